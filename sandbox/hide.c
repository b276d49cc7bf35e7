#include "sandbox/hide.h"

#include "base/mem.h"
#include "base/newcalls.h"
#include "sandbox/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* An empty directory of its own, as a detached mount. -errno. */
static int nothing(void)
{
	qk_autofd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0555", 0) ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
	return fd < 0 ? -errno : fd;
}

static int hide_one(const char *path)
{
	qk_autofd int target = open(path, O_PATH | O_CLOEXEC);
	qk_autofd int null = -1;
	qk_autofd int mount = -1;
	struct stat st;

	if (target < 0) /* not there, or not ours to enter: not the task's either */
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? 0 : -errno;
	if (fstat(target, &st))
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		mount = nothing();
	} else {
		null = open("/dev/null", O_PATH | O_CLOEXEC);
		mount = null < 0 ? -errno : qk_namespace_copy(null);
	}
	return mount < 0 ? mount : qk_namespace_attach(mount, target);
}

int qk_hide(const struct qk_policy *policy, struct qk_err *err)
{
	for (size_t i = 0; i < policy->hidden.n; i++) {
		int r = hide_one(policy->hidden.v[i]);

		if (r)
			return qk_fail(err, -r, "hide '%s'", policy->hidden.v[i]);
	}
	return 0;
}
