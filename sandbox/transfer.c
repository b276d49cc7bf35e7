#include "sandbox/transfer.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool same_bytes(int a, int b)
{
	static char x[1 << 16], y[1 << 16];

	for (;;) {
		ssize_t n = read(a, x, sizeof(x)), m = 0;

		if (n < 0)
			return false;
		while (m < n) {
			ssize_t k = read(b, y + m, (size_t)(n - m));

			if (k <= 0)
				return false;
			m += k;
		}
		if (!n)
			return true; /* sizes were compared before */
		if (memcmp(x, y, (size_t)n))
			return false;
	}
}

static bool same_text(int upper, int lower, const char *name)
{
	char x[PATH_MAX], y[PATH_MAX];
	ssize_t n = readlinkat(upper, name, x, sizeof(x)), m = readlinkat(lower, name, y, sizeof(y));

	return n >= 0 && n == m && !memcmp(x, y, (size_t)n);
}

bool qk_transfer_same(int upper, int lower, const char *name, const struct stat *up,
	const struct stat *low)
{
	enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK };
	qk_autofd int a = -1;
	qk_autofd int b = -1;

	if (up->st_mode != low->st_mode || up->st_uid != low->st_uid || up->st_gid != low->st_gid)
		return false;
	if (S_ISLNK(up->st_mode))
		return same_text(upper, lower, name);
	if (!S_ISREG(up->st_mode))
		return up->st_rdev == low->st_rdev;
	if (up->st_size != low->st_size)
		return false;
	if (!up->st_size)
		return true;
	a = openat(upper, name, FLAGS);
	b = openat(lower, name, FLAGS);
	return a >= 0 && b >= 0 && same_bytes(a, b);
}

bool qk_transfer_same_time(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool qk_transfer_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* There are no *xattrat calls before Linux 6.13; the directory is ours, its name in /proc will do. */
static void name_by_fd(char *out, size_t size, int dirfd, const char *name)
{
	snprintf(out, size, "/proc/self/fd/%d/%s", dirfd, name);
}

bool qk_transfer_has_mark(int dirfd, const char *name, const char *attribute)
{
	char path[NAME_MAX + 40];

	name_by_fd(path, sizeof(path), dirfd, name);
	return lgetxattr(path, attribute, NULL, 0) >= 0;
}

/* Takes off what overlayfs notes on files for itself (its documentation, "userxattr"). */
static void unmark(int dirfd, const char *name, mode_t mode)
{
	static const char *const marks[] = { "user.overlay.origin", "user.overlay.nlink",
		"user.overlay.metacopy", "user.overlay.protattr" };
	char path[NAME_MAX + 40];

	if (!S_ISREG(mode))
		return;
	name_by_fd(path, sizeof(path), dirfd, name);
	/* most files carry none; one call tells */
	if (llistxattr(path, NULL, 0) <= 0)
		return;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		(void)lremovexattr(path, marks[i]);
}

/* Copies contents and kind of upper/name to to/temp. */
static int copy_file(int from, const char *name, int to, const char *temp, const struct stat *st)
{
	char text[PATH_MAX];
	qk_autofd int a = -1;
	qk_autofd int b = -1;
	ssize_t n;

	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(from, name, text, sizeof(text) - 1);
		if (n < 0)
			return -errno;
		text[n] = '\0';
		return symlinkat(text, to, temp) ? -errno : 0;
	}
	if (!S_ISREG(st->st_mode))
		return mknodat(to, temp, st->st_mode, st->st_rdev) ? -errno : 0;
	a = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (a < 0)
		return -errno;
	b = openat(to, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b < 0)
		return -errno;
	return qk_copy_fd(a, b);
}

/* Copies upper/name to lower/name by way of a temporary name. */
static int copy_over(int upper, int lower, const char *from, const char *name,
	const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct stat now;
	char temp[32];
	int r;

	snprintf(temp, sizeof(temp), ".qk-settle.%d", (int)getpid());
	(void)unlinkat(lower, temp, 0);
	r = copy_file(upper, from, lower, temp, st);
	if (!r && fstatat(lower, temp, &now, AT_SYMLINK_NOFOLLOW))
		r = -errno;
	if (!r && (now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
		fchownat(lower, temp, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW))
		r = -errno;
	/* after the owner: a change of owner takes set-id bits off */
	if (!r && !S_ISLNK(st->st_mode) && fchmodat(lower, temp, st->st_mode & 07777, 0))
		r = -errno;
	if (!r && utimensat(lower, temp, times, AT_SYMLINK_NOFOLLOW))
		r = -errno;
	if (!r && renameat(lower, temp, lower, name))
		r = -errno;
	if (r)
		(void)unlinkat(lower, temp, 0);
	return r;
}

int qk_transfer(int upper, int lower, const char *name, const struct stat *up)
{
	int r;

	unmark(upper, name, up->st_mode);
	if (!renameat(upper, name, lower, name)) {
		/* two names of one file: rename(2) then does nothing, and says it worked */
		if (up->st_nlink > 1)
			(void)unlinkat(upper, name, 0);
		return 0;
	}
	if (errno != EXDEV)
		return -errno;
	r = copy_over(upper, lower, name, name, up);
	if (!r && unlinkat(upper, name, 0))
		r = -errno;
	return r;
}

int qk_transfer_copy(int from, int to, const char *name, const struct stat *st)
{
	return copy_over(from, to, name, name, st);
}

int qk_transfer_unshare(int dirfd, const char *path)
{
	qk_autofree char *dir = qk_strndup(path, qk_path_dirlen(path));
	qk_autofd int fd = qk_open_beneath(dirfd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
	const char *name = qk_path_base(path);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return copy_over(fd, fd, name, name, &st);
}
