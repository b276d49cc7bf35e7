/*
 * Inside the preloaded library. It is linked without libc and finds what it needs of the program's
 * (weak names), so that one library serves glibc and musl; it allocates nothing, takes no lock
 * and keeps no state but the mapped ring, so that it may run in signal handlers, in children of
 * vfork and between threads.
 *
 * Every wrapper can fall back to the plain call, which the recorder sees as if there were no lane.
 */
#ifndef QK_SANDBOX_FASTLANE_PRELOAD_H
#define QK_SANDBOX_FASTLANE_PRELOAD_H

#include "sandbox/fastlane-ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QK_EXPORT __attribute__((visibility("default")))

/* as the kernel has them, on x86 */
enum {
	QK_AT_FDCWD = -100,
	QK_AT_NOFOLLOW = 0x100,
	QK_AT_EMPTY = 0x1000,
	QK_ENOENT = 2,
	QK_EINTR = 4,
	QK_ENOEXEC = 8,
	QK_EACCES = 13,
	QK_ENODEV = 19,
	QK_ENOTDIR = 20,
	QK_EINVAL = 22,
	QK_ENAMETOOLONG = 36,
	QK_ENOSYS = 38,
	QK_ETIMEDOUT = 110,
	QK_ESTALE = 116,
	QK_PATH_MAX = 4096,
	QK_NAME_MAX = 255,
};

#if defined(__x86_64__) && !defined(__ILP32__)
#define QK_LANE_WIDE 1
enum {
	NR_close = 3,
	NR_fstat = 5,
	NR_mmap = 9,
	NR_munmap = 11,
	NR_pread64 = 17,
	NR_access = 21,
	NR_execve = 59,
	NR_fcntl = 72,
	NR_getcwd = 79,
	NR_readlink = 89,
	NR_gettid = 186,
	NR_openat = 257,
	NR_newfstatat = 262,
	NR_readlinkat = 267,
	NR_faccessat = 269,
	NR_statx = 332,
	NR_faccessat2 = 439,
};
#elif defined(__i386__)
#define QK_LANE_WIDE 0
enum {
	NR_close = 6,
	NR_execve = 11,
	NR_access = 33,
	NR_readlink = 85,
	NR_munmap = 91,
	NR_pread64 = 180,
	NR_getcwd = 183,
	NR_mmap = 192, /* mmap2 */
	NR_fcntl = 221,
	NR_gettid = 224,
	NR_openat = 295,
	NR_readlinkat = 305,
	NR_faccessat = 307,
	NR_statx = 383,
	NR_faccessat2 = 439,
};
#else
#error "the fast lane is for x86"
#endif

/* The program's own libc. */
extern long syscall(long nr, ...) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));
extern char **environ __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* The mapped ring; NULL: this process has no lane and every wrapper is plain. */
extern struct qk_lane_ring *qk_lane_ring;

/* A call that the filter lets pass. Returns what the kernel returned, -errno included. */
long qk_lane_syscall(long nr, long a, long b, long c, long d, long e);

/* The kernel's answer as libc has it: -1 and errno. */
long qk_lane_done(long r);

/* The next definition of a function, libc's; NULL if there is none. */
void *qk_lane_next(const char *name);

/* A path as it is recorded. */
struct qk_lane_place {
	uint32_t len;
	uint32_t from; /* where what the caller wrote begins; 0 = it is all the caller's */
	char text[QK_LANE_TEXT];
};

/*
 * Whether a call about this path can go by the lane: there is room, the path fits, and it is not
 * one whose meaning depends on who asks. ret is the absolute form.
 */
bool qk_lane_place(struct qk_lane_place *ret, int dirfd, const char *path);

/* The name of what a descriptor stands for; false if it has none that can be told. */
bool qk_lane_descriptor(struct qk_lane_place *ret, int fd);

/* False for what cannot be a path: NULL and its kin, errors taken for pointers, the kernel's half. */
static inline bool qk_lane_readable(const char *path)
{
	uintptr_t at = (uintptr_t)path;

	return at >= QK_LANE_HEAD_BYTES && at < (QK_LANE_WIDE ? UINTPTR_MAX >> 1 : 0xffffe000u);
}

/* True if looks are recorded: otherwise plain calls that look are not notified and cost nothing. */
bool qk_lane_looks(void);

/* Records a call that has been made. False if the ring stays full: make it again, plainly. */
bool qk_lane_note(
	enum qk_lane_call call, uint32_t flags, int err, const struct qk_lane_place *place);

#endif
