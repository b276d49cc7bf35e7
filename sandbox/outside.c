#include "sandbox/outside.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/newcalls.h"
#include "base/path.h"
#include "sandbox/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHM "/dev/shm"

enum { LIST_MAX = 16 << 20 };

/* Where root sets what concerns the whole system; an ordinary user is kept out by their modes. */
static const char *const of_the_system[] = { "/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
	"/proc/bus", "/proc/fs" };

/* A mount to put over a path once everything is read-only. */
struct cover {
	int mount;
	const char *path;
};

struct covers {
	struct cover *v;
	size_t n, cap;
};

static bool is_granted(const struct qk_policy *p, const struct qk_rule *r)
{
	return r->rights & QK_WRITE && !qk_path_under(r->path, p->root);
}

void qk_outside_granted(const struct qk_policy *p, struct qk_strv *ret)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct qk_rule *r = &p->rules.v[i];

		if (!is_granted(p, r))
			continue;
		if (r->scope == QK_GLOB)
			(void)qk_glob_walk(r->path, ret, NULL);
		else if (!qk_strv_has(ret, r->path))
			qk_strv_push(ret, r->path);
	}
}

/* A copy of what is at path; false if nothing is, or a link: what a rule names is resolved. */
static bool copy(struct covers *to, const char *path)
{
	qk_autofd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int mount = fd < 0 || fstat(fd, &st) || S_ISLNK(st.st_mode) ? -1 : qk_namespace_copy(fd);

	if (mount >= 0)
		qk_vec_push(to, ((struct cover){ mount, path }));
	return mount >= 0;
}

static int set_readonly(int fd, const char *path, unsigned int flags, bool on)
{
	struct mount_attr attr = { .attr_set = on ? MOUNT_ATTR_RDONLY : 0,
		.attr_clr = on ? 0 : MOUNT_ATTR_RDONLY };

	return mount_setattr(fd, path, flags, &attr, sizeof(attr)) ? -errno : 0;
}

static int attach(const struct cover *c)
{
	qk_autofd int target = open(c->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return target < 0 ? -errno : qk_namespace_attach(c->mount, target);
}

static int cover_shm(void)
{
	qk_autofd int target = open(SHM, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	qk_autofd int fs = target < 0 ? -1 : fsopen("tmpfs", FSOPEN_CLOEXEC);
	qk_autofd int mount = -1;

	if (target < 0)
		return 0;
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "1777", 0) ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? -errno : qk_namespace_attach(mount, target);
}

/* /proc, less what is the whole system's. */
static int open_proc(void)
{
	/* one that was read-only before we came stays so */
	(void)set_readonly(AT_FDCWD, "/proc", 0, false);
	for (size_t i = 0; !geteuid() && i < sizeof(of_the_system) / sizeof(*of_the_system); i++) {
		struct covers one = { 0 };
		int r = 0;

		if (copy(&one, of_the_system[i])) {
			r = set_readonly(one.v[0].mount, "", AT_EMPTY_PATH | AT_RECURSIVE, true);
			r = r ? r : attach(&one.v[0]);
			close(one.v[0].mount);
		}
		qk_vec_release(&one);
		if (r)
			return r;
	}
	return 0;
}

static int by_length(const void *a, const void *b)
{
	size_t x = strlen(((const struct cover *)a)->path), y = strlen(((const struct cover *)b)->path);

	return x < y ? -1 : x > y;
}

int qk_outside_close(const struct qk_policy *p, struct qk_err *err)
{
	qk_autostrv struct qk_strv granted = { 0 };
	struct covers covers = { 0 };
	int r = 0;

	qk_outside_granted(p, &granted);
	if (qk_strv_has(&granted, "/"))
		return 0;
	if (!copy(&covers, p->root))
		return qk_fail(err, errno, "copy the mount of '%s'", p->root);
	for (size_t i = 0; i < granted.n; i++)
		(void)copy(&covers, granted.v[i]);
	/* what holds others is put there before them */
	qsort(covers.v, covers.n, sizeof(*covers.v), by_length);
	r = set_readonly(AT_FDCWD, "/", AT_RECURSIVE, true);
	if (r)
		qk_fail(err, -r, "make what lies outside read-only");
	if (!r && (r = open_proc()))
		qk_fail(err, -r, "guard /proc");
	if (!r && (r = cover_shm()))
		qk_fail(err, -r, "a " SHM " of its own");
	for (size_t i = 0; i < covers.n; i++) {
		if (!r && (r = attach(&covers.v[i])))
			qk_fail(err, -r, "bind '%s'", covers.v[i].path);
		close(covers.v[i].mount);
	}
	qk_vec_release(&covers);
	return r;
}

const char *qk_outside_scratch(const struct qk_policy *p)
{
	return access(SHM, W_OK) ? p->state : SHM;
}

/* Makes what is missing of a directory's way, each step noted. */
static void make_way(const char *dir, struct qk_buf *made)
{
	for (const char *s = dir; *s;) {
		qk_autofree char *step = NULL;

		s += strspn(s, "/");
		s += strcspn(s, "/");
		step = qk_strndup(dir, (size_t)(s - dir));
		if (*step && !mkdir(step, 0777))
			qk_buf_add(made, step, strlen(step) + 1);
	}
}

/* An empty file for a name that is granted as one. */
static void make_file(const char *path, struct qk_buf *made)
{
	static const struct timespec epoch[2];
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return;
	qk_buf_add(made, path, strlen(path) + 1);
	(void)futimens(fd, epoch); /* by that it is known again */
}

/* Waits while another task tidies. */
static int open_list(const struct qk_policy *p)
{
	qk_autofree char *path = qk_path_join(p->state, "outside");
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	int r;

	do
		r = fd < 0 ? -1 : flock(fd, LOCK_SH);
	while (r && fd >= 0 && errno == EINTR);
	return r ? -1 : qk_steal_fd(&fd);
}

int qk_outside_prepare(const struct qk_policy *p)
{
	qk_autobuf struct qk_buf made = QK_BUF_INIT;
	int fd = -1;

	for (size_t i = 0; p->closed && i < p->rules.n; i++) {
		const struct qk_rule *r = &p->rules.v[i];
		qk_autofree char *dir = qk_strndup(r->path, qk_path_dirlen(r->path));

		if (!is_granted(p, r) || r->scope == QK_GLOB)
			continue;
		if (fd < 0 && (fd = open_list(p)) < 0)
			return -1;
		make_way(r->scope == QK_TREE ? r->path : dir, &made);
		if (r->scope != QK_TREE)
			make_file(r->path, &made);
	}
	if (made.len)
		(void)qk_write_all(fd, made.s, made.len);
	return fd;
}

static void remove_if_empty(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return;
	if (S_ISDIR(st.st_mode))
		(void)rmdir(path); /* not empty: in use */
	else if (S_ISREG(st.st_mode) && !st.st_size && !st.st_mtim.tv_sec)
		(void)unlink(path);
}

/* The last first: what was made in another comes after it. */
static void remove_all(const struct qk_buf *made)
{
	for (size_t end = made->len; end;) {
		size_t at = end - 1;

		while (at && made->s[at - 1])
			at--;
		remove_if_empty(made->s + at);
		end = at;
	}
}

void qk_outside_tidy(const struct qk_policy *p, int fd)
{
	qk_autofree char *list = qk_path_join(p->state, "outside");
	qk_autobuf struct qk_buf made = QK_BUF_INIT;

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !qk_read_file(AT_FDCWD, list, LIST_MAX, &made, NULL)) {
		remove_all(&made);
		(void)ftruncate(fd, 0);
	}
	(void)flock(fd, LOCK_UN); /* a process that the task has left has a copy */
	close(fd);
}
