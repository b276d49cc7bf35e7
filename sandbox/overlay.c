#include "sandbox/overlay.h"

#include "sandbox/landlock.h"
#include "base/newcalls.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct mounting {
	int lower, upper, work, ruleset;
	int mount; /* the result, or -errno */
	const char *step;
	char said[160]; /* what the kernel says of a refused mount */
};

/* Layers are named by descriptor: no path is walked again, and no byte of it needs quoting. */
static int set_layer(int fs, const char *key, int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

static int configure(int fs, struct mounting *m)
{
	m->step = "set layers";
	if (set_layer(fs, "lowerdir", m->lower) || set_layer(fs, "upperdir", m->upper) ||
		set_layer(fs, "workdir", m->work))
		return -errno;
	m->step = "set options";
	if (fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) ||
		fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0))
		return -errno;
	m->step = "mount";
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) ? -errno : 0;
}

static int mount_it(struct mounting *m)
{
	int fs, fd, r;

	m->step = "restrict the mounter";
	if (m->ruleset >= 0) {
		/* ours alone: the caller shares memory and descriptors, not credentials */
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			return -errno;
		r = qk_landlock_restrict(m->ruleset);
		if (r)
			return r;
	}
	m->step = "fsopen";
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	r = configure(fs, m);
	if (r) {
		ssize_t n = read(fs, m->said, sizeof(m->said) - 1);

		m->said[n > 0 ? n : 0] = '\0';
		m->said[strcspn(m->said, "\n")] = '\0';
		close(fs);
		return r;
	}
	m->step = "fsmount";
	fd = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	r = fd < 0 ? -errno : fd;
	close(fs);
	return r;
}

static int mounter(void *arg)
{
	struct mounting *m = arg;

	m->mount = mount_it(m);
	return 0;
}

int qk_overlay_mount(int lower_fd, int upper_fd, int work_fd, int ruleset_fd, struct qk_err *err)
{
	static char stack[1 << 14] __attribute__((aligned(16)));
	struct mounting m = { lower_fd, upper_fd, work_fd, ruleset_fd, -EIO, "mounter", "" };
	pid_t pid = clone(mounter, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, &m);

	if (pid < 0)
		return qk_fail(err, errno, "overlay: start the mounter");
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (m.mount >= 0)
		return m.mount;
	/* messages come as "e overlay: text" */
	if (!strncmp(m.said, "e ", 2))
		return qk_fail(err, -m.mount, "overlay: %s (%s)", m.step,
			m.said + 2 + (strncmp(m.said + 2, "overlay: ", 9) ? 0 : 9));
	return qk_fail(err, -m.mount, "overlay: %s", m.step);
}
