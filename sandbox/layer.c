#include "sandbox/layer.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const parts[] = { "upper", "work", "hidden" };

/* The merged root shows the attributes of the upper directory: those of the workspace root then. */
static int make_upper(int layer_fd, int lower_fd)
{
	struct timespec times[2];
	struct stat root, st;
	qk_autofd int fd = -1;

	if (mkdirat(layer_fd, "upper", 0700))
		return errno == EEXIST ? 0 : -errno;
	fd = qk_open_beneath(layer_fd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fstatat(lower_fd, "", &root, AT_EMPTY_PATH) || fstat(fd, &st))
		return -errno;
	/* an ordinary user in somebody else's directory cannot; the mode then decides for them */
	if (st.st_uid != root.st_uid || st.st_gid != root.st_gid)
		(void)fchown(fd, root.st_uid, root.st_gid);
	times[0] = root.st_atim;
	times[1] = root.st_mtim;
	return fchmod(fd, root.st_mode & 07777) || futimens(fd, times) ? -errno : 0;
}

int qk_layer_open(int lower_fd, const struct qk_policy *p, const char *layer, int *ret_layer,
	int *ret_upper, struct qk_err *err)
{
	const char *rel = qk_path_below(layer, p->root);
	qk_autofd int fd = -1;
	int r, upper;

	if (rel && *rel)
		fd = qk_open_beneath(lower_fd, rel, O_RDONLY | O_DIRECTORY, 0);
	else
		fd = open(layer, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return qk_fail(err, rel && *rel ? -fd : errno, "open '%s'", layer);
	r = make_upper(fd, lower_fd);
	if (r)
		return qk_fail(err, -r, "make '%s/upper'", layer);
	for (size_t i = 1; i < sizeof(parts) / sizeof(*parts); i++)
		if (mkdirat(fd, parts[i], 0777) && errno != EEXIST)
			return qk_fail(err, errno, "make '%s/%s'", layer, parts[i]);
	/* "volatile" leaves this to say that nothing was synced; a layer that outlives a power cut
	   is never believed anyway */
	r = qk_remove_tree(fd, "work/work/incompat");
	if (r)
		return qk_fail(err, -r, "ready '%s/work'", layer);
	upper = qk_open_beneath(fd, "upper", O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0)
		return qk_fail(err, -upper, "open '%s/upper'", layer);
	*ret_layer = qk_steal_fd(&fd);
	*ret_upper = upper;
	return 0;
}

void qk_layer_clear(int layer_fd)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		(void)qk_remove_tree(layer_fd, parts[i]);
}
