#include "base/fdio.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
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
	qk_autofd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
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
	qk_autofree char *tmp = qk_asprintf("%s.%d.%u.tmp", path, (int)getpid(), serial++);
	qk_autofd int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int r;

	if (fd < 0)
		return qk_fail(err, errno, "create '%s'", tmp);
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

int qk_mkdirs(const char *path, struct qk_err *err)
{
	qk_autofree char *p = qk_strdup(path);

	if (!mkdir(p, 0777) || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return qk_fail(err, errno, "mkdir '%s'", path);
	for (char *s = p + 1; *s; s++) {
		if (*s != '/')
			continue;
		*s = '\0';
		if (mkdir(p, 0777) && errno != EEXIST)
			return qk_fail(err, errno, "mkdir '%s'", p);
		*s = '/';
	}
	if (mkdir(p, 0777) && errno != EEXIST)
		return qk_fail(err, errno, "mkdir '%s'", path);
	return 0;
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
		if (n < 0)
			break; /* another file system, an old kernel: by hand from here on */
		if (!n)
			return 0;
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
	struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.mode = flags & (O_CREAT | O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

int qk_remove_tree(int dirfd, const char *path)
{
	int fd, first = 0;
	struct dirent *e;
	DIR *d;

	if (!unlinkat(dirfd, path, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno == ENOTDIR ? 0 : -errno;
	if (!unlinkat(dirfd, path, AT_REMOVEDIR) || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -errno;
	fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && !fchmodat(dirfd, path, 0700, 0))
		fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fchmod(fd, 0700);
	d = fdopendir(fd);
	if (!d) {
		first = -errno;
		close(fd);
		return first;
	}
	while ((e = readdir(d))) {
		int r;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		r = qk_remove_tree(fd, e->d_name);
		if (r && !first)
			first = r;
	}
	closedir(d);
	if (!first && unlinkat(dirfd, path, AT_REMOVEDIR) && errno != ENOENT)
		first = -errno;
	return first;
}
