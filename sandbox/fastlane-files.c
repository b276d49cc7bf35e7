/*
 * The preloaded library's wrappers for calls that look at files or open them for reading. What
 * came of such a call is known here, so it is recorded afterwards: success, a missing name, and
 * what is no link. Any other outcome is left to the plain call, made again: it changes nothing,
 * and the recorder judges it as it would without us (a refusal by the walls is to be named).
 *
 * Declared here and not by libc's headers: each name stands for a libc's own types.
 */
#include "sandbox/fastlane-preload.h"

#include "sandbox/fastlane-program.h"

#include <stdarg.h>

extern void *malloc(size_t n) __attribute__((weak));

enum {
	O_CREAT_BIT = 0100,
	O_TMPFILE_BIT = 020000000,
	O_LARGE = QK_LANE_WIDE ? 0 : 0100000,
	/* with these and no others an open does no more than read (or list) what is there */
	READING = 0400 /* NOCTTY */ | 04000 /* NONBLOCK */ | 0100000 /* LARGEFILE */ |
		  0200000 /* DIRECTORY */ | 0400000 /* NOFOLLOW */ | 01000000 /* NOATIME */ |
		  02000000 /* CLOEXEC */,
	O_DIRECTORY_BIT = 0200000,
	O_NONBLOCK_BIT = 04000,
	O_CLOEXEC_BIT = 02000000,
	O_PATH_BIT = 010000000,
};

/* An open that only reads. True if ret is what the caller gets. */
static bool read_by_lane(int dirfd, const char *path, int flags, long *ret)
{
	struct qk_lane_place p;
	long r;

	if (flags & ~READING || !qk_lane_place(&p, dirfd, path))
		return false;
	r = qk_lane_syscall(NR_openat, dirfd, (long)path, flags, 0, 0);
	/* interrupted while it waited for a fifo's other end: that was there to be opened */
	if (r < 0 && r != -QK_ENOENT && r != -QK_EINTR)
		return false;
	if (qk_lane_note(QK_LANE_OPEN, (uint32_t)flags, r == -QK_ENOENT ? QK_ENOENT : 0, &p)) {
		*ret = qk_lane_done(r);
		return true;
	}
	if (r >= 0)
		qk_lane_syscall(NR_close, r, 0, 0, 0, 0);
	return false;
}

static int open_at(int dirfd, const char *path, int flags, unsigned int mode)
{
	long r;

	if (!read_by_lane(dirfd, path, flags, &r))
		r = syscall(NR_openat, dirfd, path, flags, mode);
	return (int)r;
}

/* The mode is there only with flags that use it. */
static bool takes_mode(int flags)
{
	return flags & O_CREAT_BIT || flags & O_TMPFILE_BIT;
}

#define DEFINE_OPEN(name, more)                                                                    \
	QK_EXPORT int name(const char *path, int flags, ...);                                      \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		unsigned int mode = 0;                                                             \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if (takes_mode(flags))                                                             \
			mode = va_arg(ap, unsigned int);                                           \
		va_end(ap);                                                                        \
		return open_at(QK_AT_FDCWD, path, flags | (more), mode);                           \
	}

#define DEFINE_OPENAT(name, more)                                                                  \
	QK_EXPORT int name(int dirfd, const char *path, int flags, ...);                           \
	int name(int dirfd, const char *path, int flags, ...)                                      \
	{                                                                                          \
		unsigned int mode = 0;                                                             \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if (takes_mode(flags))                                                             \
			mode = va_arg(ap, unsigned int);                                           \
		va_end(ap);                                                                        \
		return open_at(dirfd, path, flags | (more), mode);                                 \
	}

DEFINE_OPEN(open, 0)
DEFINE_OPEN(open64, O_LARGE)
DEFINE_OPENAT(openat, 0)
DEFINE_OPENAT(openat64, O_LARGE)

/* What programs built with _FORTIFY_SOURCE call: a mode that is missing is libc's to complain of. */
#define DEFINE_OPEN_2(name, more)                                                                  \
	QK_EXPORT int name(const char *path, int flags);                                           \
	int name(const char *path, int flags)                                                      \
	{                                                                                          \
		int (*libcs)(const char *, int);                                                   \
		long r;                                                                            \
                                                                                                   \
		if (read_by_lane(QK_AT_FDCWD, path, flags | (more), &r))                           \
			return (int)r;                                                             \
		libcs = (int (*)(const char *, int))qk_lane_next(#name);                           \
		return libcs ? libcs(path, flags) : open_at(QK_AT_FDCWD, path, flags | (more), 0); \
	}

#define DEFINE_OPENAT_2(name, more)                                                                \
	QK_EXPORT int name(int dirfd, const char *path, int flags);                                \
	int name(int dirfd, const char *path, int flags)                                           \
	{                                                                                          \
		int (*libcs)(int, const char *, int);                                              \
		long r;                                                                            \
                                                                                                   \
		if (read_by_lane(dirfd, path, flags | (more), &r))                                 \
			return (int)r;                                                             \
		libcs = (int (*)(int, const char *, int))qk_lane_next(#name);                      \
		return libcs ? libcs(dirfd, path, flags) : open_at(dirfd, path, flags | (more), 0);\
	}

DEFINE_OPEN_2(__open_2, 0)
DEFINE_OPEN_2(__open64_2, O_LARGE)
DEFINE_OPENAT_2(__openat_2, 0)
DEFINE_OPENAT_2(__openat64_2, O_LARGE)

/* A look by the lane; true if r is what came of it. */
static bool looked(enum qk_lane_call call, int flags, long r, const struct qk_lane_place *p)
{
	int err = r < 0 ? (int)-r : 0;

	if (r < 0 && err != QK_ENOENT && !(call == QK_LANE_READLINK && err == QK_EINVAL))
		return false;
	return qk_lane_note(call, (uint32_t)flags & QK_AT_NOFOLLOW, err, p);
}

/* A look of up to five arguments whose path stands second. */
static long look(long nr, int dirfd, const char *path, long c, long d, long e, int flags)
{
	struct qk_lane_place p;
	long r;

	if (qk_lane_looks() && qk_lane_place(&p, dirfd, path)) {
		r = qk_lane_syscall(nr, dirfd, (long)path, c, d, e);
		if (looked(QK_LANE_LOOK, flags, r, &p))
			return qk_lane_done(r);
	}
	return syscall(nr, dirfd, path, c, d, e);
}

/* Of an open descriptor: its open was seen, and nothing is to be recorded. */
static bool of_descriptor(const char *path, int flags)
{
	return flags & QK_AT_EMPTY && qk_lane_readable(path) && !*path;
}

QK_EXPORT int statx(int dirfd, const char *path, int flags, unsigned int mask, void *to);
int statx(int dirfd, const char *path, int flags, unsigned int mask, void *to)
{
	if (of_descriptor(path, flags))
		return (int)qk_lane_done(
			qk_lane_syscall(NR_statx, dirfd, (long)path, flags, mask, (long)to));
	return (int)look(NR_statx, dirfd, path, flags, mask, (long)to, flags);
}

QK_EXPORT int access(const char *path, int mode);
int access(const char *path, int mode)
{
	struct qk_lane_place p;
	long r;

	if (qk_lane_looks() && qk_lane_place(&p, QK_AT_FDCWD, path)) {
		r = qk_lane_syscall(NR_access, (long)path, mode, 0, 0, 0);
		if (looked(QK_LANE_LOOK, 0, r, &p))
			return (int)qk_lane_done(r);
	}
	return (int)syscall(NR_access, path, mode);
}

/* Kernels before 5.8 know no flags: libc makes do there. */
QK_EXPORT int faccessat(int dirfd, const char *path, int mode, int flags);
int faccessat(int dirfd, const char *path, int mode, int flags)
{
	int (*libcs)(int, const char *, int, int);
	struct qk_lane_place p;
	long r;

	if (!flags)
		return (int)look(NR_faccessat, dirfd, path, mode, 0, 0, 0);
	if (!(flags & QK_AT_EMPTY) && qk_lane_looks() && qk_lane_place(&p, dirfd, path)) {
		r = qk_lane_syscall(NR_faccessat2, dirfd, (long)path, mode, flags, 0);
		if (looked(QK_LANE_LOOK, flags, r, &p))
			return (int)qk_lane_done(r);
	}
	libcs = (int (*)(int, const char *, int, int))qk_lane_next("faccessat");
	return libcs ? libcs(dirfd, path, mode, flags)
		     : (int)syscall(NR_faccessat2, dirfd, path, mode, flags);
}

QK_EXPORT intptr_t readlink(const char *path, char *to, size_t size);
intptr_t readlink(const char *path, char *to, size_t size)
{
	struct qk_lane_place p;
	long r;

	if (qk_lane_looks() && qk_lane_place(&p, QK_AT_FDCWD, path)) {
		r = qk_lane_syscall(NR_readlink, (long)path, (long)to, (long)size, 0, 0);
		if (looked(QK_LANE_READLINK, 0, r, &p))
			return qk_lane_done(r);
	}
	return syscall(NR_readlink, path, to, size);
}

QK_EXPORT intptr_t readlinkat(int dirfd, const char *path, char *to, size_t size);
intptr_t readlinkat(int dirfd, const char *path, char *to, size_t size)
{
	struct qk_lane_place p;
	long r;

	if (qk_lane_looks() && qk_lane_place(&p, dirfd, path)) {
		r = qk_lane_syscall(NR_readlinkat, dirfd, (long)path, (long)to, (long)size, 0);
		if (looked(QK_LANE_READLINK, 0, r, &p))
			return qk_lane_done(r);
	}
	return syscall(NR_readlinkat, dirfd, path, to, size);
}

/* On 32 bits libc turns what the kernel tells into one of several structures. */
#if QK_LANE_WIDE

static int stat_at(int dirfd, const char *path, void *to, int flags)
{
	if (of_descriptor(path, flags))
		return (int)qk_lane_done(
			qk_lane_syscall(NR_newfstatat, dirfd, (long)path, (long)to, flags, 0));
	return (int)look(NR_newfstatat, dirfd, path, (long)to, flags, 0, flags);
}

#define DEFINE_STAT(name, flags)                                                                   \
	QK_EXPORT int name(const char *path, void *to);                                            \
	int name(const char *path, void *to)                                                       \
	{                                                                                          \
		return stat_at(QK_AT_FDCWD, path, to, flags);                                      \
	}

#define DEFINE_FSTATAT(name)                                                                       \
	QK_EXPORT int name(int dirfd, const char *path, void *to, int flags);                      \
	int name(int dirfd, const char *path, void *to, int flags)                                 \
	{                                                                                          \
		return stat_at(dirfd, path, to, flags);                                            \
	}

/* glibc asks for "" by newfstatat; the call that needs no path is not notified. */
#define DEFINE_FSTAT(name)                                                                         \
	QK_EXPORT int name(int fd, void *to);                                                      \
	int name(int fd, void *to)                                                                 \
	{                                                                                          \
		return (int)qk_lane_done(qk_lane_syscall(NR_fstat, fd, (long)to, 0, 0, 0));        \
	}

DEFINE_STAT(stat, 0)
DEFINE_STAT(stat64, 0)
DEFINE_STAT(lstat, QK_AT_NOFOLLOW)
DEFINE_STAT(lstat64, QK_AT_NOFOLLOW)
DEFINE_FSTATAT(fstatat)
DEFINE_FSTATAT(fstatat64)
DEFINE_FSTAT(fstat)
DEFINE_FSTAT(fstat64)

/* What programs call that were built before glibc 2.33; there is one version of the structure. */
#define DEFINE_XSTAT(name, flags)                                                                  \
	QK_EXPORT int name(int version, const char *path, void *to);                               \
	int name(int version, const char *path, void *to)                                          \
	{                                                                                          \
		return version == 0 || version == 1 ? stat_at(QK_AT_FDCWD, path, to, flags)        \
						    : (int)qk_lane_done(-QK_EINVAL);               \
	}

DEFINE_XSTAT(__xstat, 0)
DEFINE_XSTAT(__xstat64, 0)
DEFINE_XSTAT(__lxstat, QK_AT_NOFOLLOW)
DEFINE_XSTAT(__lxstat64, QK_AT_NOFOLLOW)

/* libc opens for these by names of its own; both are made of an open and a call that wraps it. */

static bool only_reads(const char *mode, int *flags)
{
	if (*mode++ != 'r')
		return false;
	*flags = 0;
	for (; *mode; mode++) {
		if (*mode == 'e')
			*flags |= O_CLOEXEC_BIT;
		else if (*mode != 'b')
			return false;
	}
	return true;
}

static void *open_stream(const char *name, const char *path, const char *mode)
{
	void *(*libcs)(const char *, const char *);
	void *(*wrap)(int, const char *), *stream;
	int flags;
	long fd;

	if (qk_lane_ring && only_reads(mode, &flags)) {
		wrap = (void *(*)(int, const char *))qk_lane_next("fdopen");
		if (wrap && read_by_lane(QK_AT_FDCWD, path, flags, &fd)) {
			stream = fd < 0 ? NULL : wrap((int)fd, mode);
			if (fd >= 0 && !stream)
				qk_lane_host_close((int)fd);
			return stream;
		}
	}
	libcs = (void *(*)(const char *, const char *))qk_lane_next(name);
	return libcs ? libcs(path, mode) : NULL;
}

QK_EXPORT void *fopen(const char *path, const char *mode);
void *fopen(const char *path, const char *mode)
{
	return open_stream("fopen", path, mode);
}

QK_EXPORT void *fopen64(const char *path, const char *mode);
void *fopen64(const char *path, const char *mode)
{
	return open_stream("fopen64", path, mode);
}

QK_EXPORT void *opendir(const char *path);
void *opendir(const char *path)
{
	void *(*wrap)(int) = (void *(*)(int))qk_lane_next("fdopendir"), *dir;
	void *(*libcs)(const char *);
	long fd;

	if (wrap && read_by_lane(QK_AT_FDCWD, path,
			    O_DIRECTORY_BIT | O_NONBLOCK_BIT | O_CLOEXEC_BIT, &fd)) {
		dir = fd < 0 ? NULL : wrap((int)fd);
		if (fd >= 0 && !dir)
			qk_lane_host_close((int)fd);
		return dir;
	}
	libcs = (void *(*)(const char *))qk_lane_next("opendir");
	return libcs ? libcs(path) : NULL;
}
#endif

/*
 * realpath asks for every name on the way whether it is a link; compilers do it for each header.
 * The kernel knows the answer of an existing file as a whole; the runner adds the way that glibc
 * goes (musl's is another). What is missing, compilers look for in many places: found out here if
 * no link is on the way. Whatever else fails is libc's.
 */
enum realpath_answer { UNKNOWN, FOUND, MISSING };

/* Goes along the path to the name that is missing, which glibc leaves in the caller's buffer. */
static enum realpath_answer find_missing(const struct qk_lane_place *p, struct qk_lane_place *ret)
{
	char link[2];
	long r;

	for (uint32_t i = 0; i < p->from; i++)
		ret->text[i] = p->text[i];
	ret->len = p->from ? p->from - 1 : 0; /* a slash is the last of it */
	for (const char *s = p->text + ret->len; *s == '/';) {
		/* an empty name, "." and ".." ask for more than a link */
		if (s[1] == '/' || !s[1] || (s[1] == '.' && (s[2] == '/' || !s[2] || s[2] == '.')))
			return UNKNOWN;
		do
			ret->text[ret->len++] = *s++;
		while (*s && *s != '/');
		ret->text[ret->len] = '\0';
		r = qk_lane_syscall(NR_readlink, (long)ret->text, (long)link, sizeof(link), 0, 0);
		if (r == -QK_ENOENT)
			return MISSING;
		if (r != -QK_EINVAL)
			return UNKNOWN;
	}
	return UNKNOWN;
}

static enum realpath_answer resolve(struct qk_lane_place *ret, const char *path)
{
	enum realpath_answer answer = UNKNOWN;
	struct qk_lane_place p;
	long fd;

	if (!gnu_get_libc_version || !qk_lane_looks() || !qk_lane_place(&p, QK_AT_FDCWD, path))
		return UNKNOWN;
	fd = qk_lane_syscall(
		NR_openat, QK_AT_FDCWD, (long)path, O_PATH_BIT | O_CLOEXEC_BIT | O_LARGE, 0, 0);
	if (fd >= 0) {
		answer = qk_lane_descriptor(ret, (int)fd) ? FOUND : UNKNOWN;
		qk_lane_host_close((int)fd);
	} else if (fd == -QK_ENOENT) {
		answer = find_missing(&p, ret);
	}
	if (answer != UNKNOWN && !qk_lane_note(QK_LANE_REALPATH, p.from,
					 answer == MISSING ? QK_ENOENT : 0, &p))
		return UNKNOWN;
	return answer;
}

static char *resolved(enum realpath_answer answer, const struct qk_lane_place *p, char *to)
{
	char *ret = to || answer == MISSING ? to : malloc(p->len + 1);

	for (uint32_t i = 0; ret && i <= p->len; i++)
		ret[i] = p->text[i];
	if (answer == FOUND)
		return ret;
	qk_lane_done(-QK_ENOENT);
	return NULL;
}

QK_EXPORT char *realpath(const char *path, char *to);
char *realpath(const char *path, char *to)
{
	char *(*libcs)(const char *, char *);
	enum realpath_answer answer;
	struct qk_lane_place p;

	answer = malloc ? resolve(&p, path) : UNKNOWN;
	if (answer != UNKNOWN)
		return resolved(answer, &p, to);
	libcs = (char *(*)(const char *, char *))qk_lane_next("realpath");
	return libcs ? libcs(path, to) : NULL;
}

QK_EXPORT char *canonicalize_file_name(const char *path);
char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* with _FORTIFY_SOURCE; size is what the compiler knows of the buffer */
QK_EXPORT char *__realpath_chk(const char *path, char *to, size_t size);
char *__realpath_chk(const char *path, char *to, size_t size)
{
	char *(*libcs)(const char *, char *, size_t);
	enum realpath_answer answer;
	struct qk_lane_place p;

	answer = malloc && size >= QK_PATH_MAX ? resolve(&p, path) : UNKNOWN;
	if (answer != UNKNOWN)
		return resolved(answer, &p, to);
	libcs = (char *(*)(const char *, char *, size_t))qk_lane_next("__realpath_chk");
	return libcs ? libcs(path, to, size) : NULL;
}
