#include "sandbox/layer.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const parts[] = { "upper", "work", "hidden" };
static const char *const more[] = { "own", "slots" }; /* see own.h, slots.h */

/* As getdents64(2) has it. */
struct entry {
	uint64_t d_ino;
	int64_t d_off;
	unsigned short d_reclen;
	unsigned char d_type;
	char d_name[];
};

static int open_dir(int fd, const char *name)
{
	return qk_open_beneath(fd, name, O_RDONLY | O_DIRECTORY, 0);
}

/* The merged root shows the attributes of the upper directory: those of the workspace root then. */
static int make_like_root(int fd, int lower_fd)
{
	struct timespec times[2];
	struct stat root, st;

	if (fstatat(lower_fd, "", &root, AT_EMPTY_PATH) || fstat(fd, &st))
		return -errno;
	/* an ordinary user in somebody else's directory cannot; the mode then decides for them */
	if (st.st_uid != root.st_uid || st.st_gid != root.st_gid)
		(void)fchown(fd, root.st_uid, root.st_gid);
	if (st.st_mode != root.st_mode && fchmod(fd, root.st_mode & 07777))
		return -errno;
	times[0] = root.st_atim;
	times[1] = root.st_mtim;
	return futimens(fd, times) ? -errno : 0;
}

/* "." and ".." alone; one look is enough, as a third name would find room in it too. */
static bool is_empty(int parent, const char *name)
{
	_Alignas(8) char buf[3 * (sizeof(struct entry) + NAME_MAX + 1)];
	qk_autofd int fd = open_dir(parent, name);
	long n = fd < 0 ? -1 : syscall(SYS_getdents64, fd, buf, sizeof(buf));
	int entries = 0;

	for (long at = 0; at < n; entries++) {
		unsigned short len;

		memcpy(&len, buf + at + offsetof(struct entry, d_reclen), sizeof(len));
		at += len;
	}
	return entries == 2;
}

static const char *spare_name(char name[32], unsigned int number)
{
	snprintf(name, 32, "spare.%u", number % QK_LAYER_STOCK);
	return name;
}

/*
 * Puts a spare in the place of a layer that is not there yet. False if there is none by a number
 * taken at random: the more are there, the likelier it is one. ext4 passes over inodes freed within
 * the last half minute, one by one, when it looks for a new one, and every overlay mount makes and
 * frees a handful in its work directory. A stock of layers in different block groups (see
 * spread()), taken in turn, keeps that search short.
 */
static bool take_spare(int parent, const char *name)
{
	char spare[32];

	return !renameat(parent, spare_name(spare, (unsigned int)getpid()), parent, name);
}

/* Asks ext4 to put the directories made in this one into block groups of their own. */
static void spread(int parent)
{
	int flags;

	if (!ioctl(parent, FS_IOC_GETFLAGS, &flags) && !(flags & FS_TOPDIR_FL)) {
		flags |= FS_TOPDIR_FL;
		(void)ioctl(parent, FS_IOC_SETFLAGS, &flags);
	}
}

/*
 * "volatile" leaves work/incompat/volatile to say that nothing was synced, and refuses to mount
 * while it is there. A layer that outlives a power cut is never believed anyway. The rest of the
 * directory the kernel would remove while it mounts; it is set aside instead, because each
 * directory removed may be waited for (a file system mounted with "discard").
 */
static int set_aside(struct qk_layer *l)
{
	l->aside = !renameat(l->fd, "work/work", l->fd, "aside");
	return l->aside || errno == ENOENT ? 0 : qk_remove_tree(l->fd, "work/work");
}

/* Allocates nothing: it runs beside the thread that may. */
static void *remove_aside(void *layer)
{
	const struct qk_layer *l = layer;

	/* what a mount leaves that nothing was copied up in */
	(void)unlinkat(l->fd, "aside/incompat/volatile/dirty", 0);
	(void)unlinkat(l->fd, "aside/incompat/volatile", AT_REMOVEDIR);
	(void)unlinkat(l->fd, "aside/incompat", AT_REMOVEDIR);
	(void)unlinkat(l->fd, "aside", AT_REMOVEDIR);
	return NULL;
}

void qk_layer_tidy_begin(struct qk_layer *l)
{
	sigset_t all, before;

	if (!l->aside)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	l->tidying = !pthread_create(&l->tidier, NULL, remove_aside, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void qk_layer_tidy_end(struct qk_layer *l)
{
	if (l->tidying)
		pthread_join(l->tidier, NULL);
	l->tidying = false;
	if (l->aside)
		(void)qk_remove_tree(l->fd, "aside"); /* if anything is left */
	l->aside = false;
}

static int make_parts(struct qk_layer *l, int lower_fd, struct qk_err *err)
{
	bool news = false;
	int r;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		/* hidden is where a task with explicit grants has its temporary files */
		if (!mkdirat(l->fd, parts[i], strcmp(parts[i], "hidden") ? 0777 : 0700))
			news |= !i;
		else if (errno != EEXIST)
			return qk_fail(err, errno, "make '%s/%s'", l->path, parts[i]);
	}
	l->upper = open_dir(l->fd, "upper");
	if (l->upper < 0)
		return qk_fail(err, -l->upper, "open '%s/upper'", l->path);
	if (news || is_empty(l->fd, "upper")) {
		r = make_like_root(l->upper, lower_fd);
		if (r)
			return qk_fail(err, -r, "make '%s/upper'", l->path);
	}
	r = set_aside(l);
	return r ? qk_fail(err, -r, "ready '%s/work'", l->path) : 0;
}

int qk_layer_open(struct qk_layer *l, int lower_fd, const char *root, const char *path, bool spares,
	struct qk_err *err)
{
	qk_autofree char *dir = qk_strndup(path, qk_path_dirlen(path));
	const char *rel = qk_path_below(dir, root);

	l->path = qk_strdup(path);
	if (rel)
		l->parent = open_dir(lower_fd, *rel ? rel : ".");
	else
		l->parent = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->parent < 0)
		return qk_fail(err, rel ? -l->parent : errno, "open '%s'", dir);
	if (!faccessat(l->parent, qk_path_base(path), F_OK, AT_SYMLINK_NOFOLLOW) ||
		(spares && take_spare(l->parent, qk_path_base(path)))) {
		/* the layer of the recipe's line before, or a spare */
	} else {
		spread(l->parent);
		if (mkdirat(l->parent, qk_path_base(path), 0777) && errno != EEXIST)
			return qk_fail(err, errno, "mkdir '%s'", path);
	}
	l->fd = open_dir(l->parent, qk_path_base(path));
	if (l->fd < 0)
		return qk_fail(err, -l->fd, "open '%s'", path);
	return make_parts(l, lower_fd, err);
}

void qk_layer_clear(struct qk_layer *l)
{
	for (size_t i = 0; l->fd >= 0 && i < sizeof(parts) / sizeof(*parts); i++)
		(void)qk_remove_tree(l->fd, parts[i]);
	for (size_t i = 0; l->fd >= 0 && i < sizeof(more) / sizeof(*more); i++)
		(void)qk_remove_tree(l->fd, more[i]);
}

/* No layer is renamed over another: each holds something. */
static bool make_spare(const struct qk_layer *l)
{
	char spare[32];

	for (unsigned int i = 0; i < QK_LAYER_STOCK; i++) {
		spare_name(spare, (unsigned int)getpid() + i);
		if (!renameat(l->parent, qk_path_base(l->path), l->parent, spare))
			return true;
		if (errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	return false;
}

void qk_layer_retire(struct qk_layer *l)
{
	(void)unlinkat(l->fd, "own", 0);
	if (!is_empty(l->fd, "upper") || !is_empty(l->fd, "hidden") || !make_spare(l))
		qk_layer_clear(l);
}

void qk_layer_release(struct qk_layer *l)
{
	int *fds[] = { &l->parent, &l->fd, &l->upper };

	qk_layer_tidy_end(l);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	free(l->path);
	l->path = NULL;
}
