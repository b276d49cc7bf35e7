#include "base/fdio.h"

#include "base/mem.h"
#include "base/newcalls.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int qk_write_all(int fd, const void *p, size_t n)
{
	const char *s = p;

	while (n) {
		ssize_t w = write(fd, s, n);

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		s += w;
		n -= (size_t)w;
	}
	return 0;
}

int qk_read_file(int dirfd, const char *path, size_t max, struct qk_buf *out, struct qk_err *err)
{
	qk_autofd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t start = out->len;
	struct stat st;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", path);
	if (fstat(fd, &st))
		return qk_fail(err, errno, "stat '%s'", path);
	if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > max)
		return qk_fail(err, EFBIG, "read '%s'", path);
	qk_buf_reserve(out, S_ISREG(st.st_mode) ? (size_t)st.st_size + 1 : 4096);
	for (;;) {
		ssize_t n;

		if (out->cap - out->len < 2)
			qk_buf_reserve(out, out->cap);
		n = read(fd, out->s + out->len, out->cap - out->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int e = errno;

			qk_buf_truncate(out, start);
			return qk_fail(err, e, "read '%s'", path);
		}
		if (!n)
			break;
		out->len += (size_t)n;
		if (out->len - start > max) {
			qk_buf_truncate(out, start);
			return qk_fail(err, EFBIG, "read '%s'", path);
		}
	}
	out->s[out->len] = '\0';
	return 0;
}

int qk_write_file(const char *path, const void *p, size_t n, mode_t mode, struct qk_err *err)
{
	static unsigned int serial;
	qk_autofree char *tmp = qk_asprintf("%.*s.qk.%d.%u.tmp",
		(int)(strlen(path) - strlen(qk_path_base(path))), path, (int)getpid(), serial++);
	qk_autofd int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return qk_fail(err, errno, "write '%s'", path);
	r = qk_write_all(fd, p, n);
	if (!r && close(qk_steal_fd(&fd)))
		r = -errno;
	if (!r && rename(tmp, path))
		r = -errno;
	if (r) {
		unlink(tmp);
		return qk_fail(err, -r, "write '%s'", path);
	}
	return 0;
}

/* mkdir(2), where an existing directory is as good. */
static int make_dir(const char *path)
{
	struct stat st;

	if (!mkdir(path, 0777))
		return 0;
	if (errno != EEXIST)
		return -errno;
	return !stat(path, &st) && S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int qk_mkdirs(const char *path, struct qk_err *err)
{
	qk_autofree char *p = qk_strdup(path);
	int r = make_dir(p);

	for (char *s = p + 1; r == -ENOENT && *p && *s; s++) {
		if (*s != '/')
			continue;
		*s = '\0';
		r = make_dir(p);
		if (r)
			return qk_fail(err, -r, "mkdir '%s'", p);
		*s = '/';
		r = -ENOENT;
	}
	if (r == -ENOENT)
		r = make_dir(p);
	return r ? qk_fail(err, -r, "mkdir '%s'", path) : 0;
}

int qk_copy_fd(int from, int to)
{
	char block[1 << 16];

	if (!ioctl(to, FICLONE, from))
		return 0;
	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* another file system, an old kernel, a file of /proc: by hand from here */
	}
	for (;;) {
		ssize_t n = read(from, block, sizeof(block));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		r = qk_write_all(to, block, (size_t)n);
		if (r)
			return r;
	}
}

int qk_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.mode = creates ? mode : 0, /* openat2 refuses one that has no use */
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

/* Opens a directory to be emptied, whatever its mode; no link is followed. -1 with errno set. */
static int open_to_empty(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES) {
		qk_autofd int at = openat(dirfd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		char name[40];

		snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
		if (at >= 0 && !chmod(name, 0700))
			fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd >= 0)
		fchmod(fd, 0700);
	return fd;
}

enum { REMOVE_DEPTH = 64 };

struct removal {
	int top;            /* the outermost directory of the tree */
	unsigned int moved; /* directories too deep down that have been moved up to top */
};

static int remove_at(struct removal *rm, int dirfd, const char *path, int depth);

/*
 * Moves a directory up to the top of the tree that is removed, so that a tree deeper than there are
 * descriptors needs no more of them.
 */
static int move_up(struct removal *rm, int dirfd, const char *path)
{
	/* renaming a directory needs the right to write in it: it is opened up, and closed on return */
	qk_autofd __attribute__((unused)) int fd = open_to_empty(dirfd, path);
	char name[40];

	for (;;) {
		snprintf(name, sizeof(name), ".qk.deep.%u", rm->moved++);
		if (!syscall(SYS_renameat2, dirfd, path, rm->top, name, RENAME_NOREPLACE))
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
}

/* Removes what is in the directory; closes fd. */
static int empty_dir(struct removal *rm, int fd, int depth)
{
	DIR *d = fdopendir(fd);
	unsigned int moved;
	struct dirent *e;
	int first = 0;

	if (!d) {
		first = -errno;
		close(fd);
		return first;
	}
	if (!depth)
		rm->top = fd;
	do { /* at the top again, for what has come up meanwhile */
		moved = rm->moved;
		rewinddir(d);
		while ((e = readdir(d))) {
			int r;

			if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
				continue;
			r = remove_at(rm, fd, e->d_name, depth + 1);
			if (r && !first)
				first = r;
		}
	} while (!depth && moved != rm->moved);
	closedir(d);
	return first;
}

static int remove_at(struct removal *rm, int dirfd, const char *path, int depth)
{
	int fd, r;

	if (!unlinkat(dirfd, path, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno == ENOTDIR ? 0 : -errno;
	if (!unlinkat(dirfd, path, AT_REMOVEDIR) || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return errno == ENOTDIR ? -EPERM : -errno;
	if (depth == REMOVE_DEPTH)
		return move_up(rm, dirfd, path);
	fd = open_to_empty(dirfd, path);
	if (fd < 0)
		return -errno;
	r = empty_dir(rm, fd, depth);
	if (!r && unlinkat(dirfd, path, AT_REMOVEDIR) && errno != ENOENT)
		r = -errno;
	return r;
}

int qk_remove_tree(int dirfd, const char *path)
{
	struct removal rm = { .top = -1 };

	return remove_at(&rm, dirfd, path, 0);
}
