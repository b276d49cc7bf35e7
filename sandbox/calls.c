#include "sandbox/calls.h"

#include <linux/audit.h>
#include <sched.h>

/*
 * Numbers by entry: x86_64, i386, aarch64. x32 has those of x86_64, but for two that have numbers of
 * their own. N: not there.
 */
#define N QK_NO_NR
#if defined(__x86_64__)
#define CALL(op, amd64, i386, arm64, ...) { QK_CALL_##op, amd64, i386, amd64, __VA_ARGS__ }
#elif defined(__aarch64__)
#define CALL(op, amd64, i386, arm64, ...) { QK_CALL_##op, arm64, N, N, __VA_ARGS__ }
#else
#error "the table of system calls has no column for this machine"
#endif

const struct qk_call qk_calls[] = {
	/* number by entry, then dir, path, flags, dir2, path2 */
	CALL(OPEN, 257, 295, 56, 0, 1, 2, N, N, 0, 0),     /* openat */
	CALL(OPEN, 2, 5, N, N, 0, 1, N, N, 0, 0),          /* open */
	CALL(OPEN2, 437, 437, 437, 0, 1, 2, N, N, 0, 0),   /* openat2 */
	CALL(CREAT, 85, 8, N, N, 0, N, N, N, 0, 0),        /* creat */
#if defined(__x86_64__)
	{ QK_CALL_EXEC, 59, 11, 520, N, 0, N, N, N, 0, 0 },  /* execve */
	{ QK_CALL_EXEC, 322, 358, 545, 0, 1, 4, N, N, 0, 0 }, /* execveat */
#else
	CALL(EXEC, N, N, 221, N, 0, N, N, N, 0, 0),
	CALL(EXEC, N, N, 281, 0, 1, 4, N, N, 0, 0),
#endif
	CALL(RENAME, 82, 38, N, N, 0, N, N, 1, 0, 0),        /* rename */
	CALL(RENAME, 264, 302, 38, 0, 1, N, 2, 3, 0, 0),     /* renameat */
	CALL(RENAME, 316, 353, 276, 0, 1, 4, 2, 3, 0, 0),    /* renameat2 */
	CALL(LINK, 86, 9, N, N, 0, N, N, 1, 0, 0),           /* link */
	CALL(LINK, 265, 303, 37, 0, 1, 4, 2, 3, 0, 0),       /* linkat */
	CALL(SYMLINK, 88, 83, N, N, 1, N, N, N, 0, 0),       /* symlink */
	CALL(SYMLINK, 266, 304, 36, 1, 2, N, N, N, 0, 0),    /* symlinkat */
	CALL(UNLINK, 87, 10, N, N, 0, N, N, N, 0, 0),        /* unlink */
	CALL(UNLINK, 263, 301, 35, 0, 1, 2, N, N, 0, 0),     /* unlinkat */
	CALL(RMDIR, 84, 40, N, N, 0, N, N, N, 0, 0),         /* rmdir */
	CALL(MKDIR, 83, 39, N, N, 0, N, N, N, 0, 0),         /* mkdir */
	CALL(MKDIR, 258, 296, 34, 0, 1, N, N, N, 0, 0),      /* mkdirat */
	CALL(MKNOD, 133, 14, N, N, 0, N, N, N, 0, 0),        /* mknod */
	CALL(MKNOD, 259, 297, 33, 0, 1, N, N, N, 0, 0),      /* mknodat */
	CALL(TRUNCATE, 76, 92, 45, N, 0, N, N, N, 0, 0),     /* truncate */
	CALL(TRUNCATE, N, 193, N, N, 0, N, N, N, 0, 0),      /* truncate64 */
	CALL(META, 90, 15, N, N, 0, N, N, N, 0, 0),          /* chmod */
	CALL(META, 268, 306, 53, 0, 1, N, N, N, 0, 0),       /* fchmodat */
	CALL(META, 452, 452, 452, 0, 1, 3, N, N, 0, 0),      /* fchmodat2 */
	CALL(META, 92, 182, N, N, 0, N, N, N, 0, 0),         /* chown */
	CALL(META, N, 212, N, N, 0, N, N, N, 0, 0),          /* chown32 */
	CALL(META_LINK, 94, 16, N, N, 0, N, N, N, 0, 0),     /* lchown */
	CALL(META_LINK, N, 198, N, N, 0, N, N, N, 0, 0),     /* lchown32 */
	CALL(META, 260, 298, 54, 0, 1, 4, N, N, 0, 0),       /* fchownat */
	CALL(META, 188, 226, 5, N, 0, N, N, N, 0, 0),        /* setxattr */
	CALL(META_LINK, 189, 227, 6, N, 0, N, N, N, 0, 0),   /* lsetxattr */
	CALL(META, 197, 235, 14, N, 0, N, N, N, 0, 0),       /* removexattr */
	CALL(META_LINK, 198, 236, 15, N, 0, N, N, N, 0, 0),  /* lremovexattr */
	CALL(META, 463, 463, 463, 0, 1, 2, N, N, 0, 0),      /* setxattrat */
	CALL(META, 466, 466, 466, 0, 1, 2, N, N, 0, 0),      /* removexattrat */
	CALL(BIND, 49, 361, 200, N, 1, 2, N, N, 0, 0),       /* bind; "flags" is the length */
	CALL(SOCKETCALL, N, 102, N, N, 1, N, N, N, QK_CALL_IF_EQUAL, 2), /* SYS_BIND */
	CALL(HANDLE, 304, 342, 265, N, N, N, N, N, 0, 0),    /* open_by_handle_at */
	CALL(VIEW, 161, 61, 51, N, N, N, N, N, 0, 0),        /* chroot */
	CALL(VIEW, 155, 217, 41, N, N, N, N, N, 0, 0),       /* pivot_root */
	CALL(MOUNT, 165, 21, 40, N, N, N, N, N, 0, 0),        /* mount */
	CALL(MOUNT, 429, 429, 429, N, N, N, N, N, 0, 0),      /* move_mount */
	CALL(VIEW, 308, 346, 268, N, N, N, N, N, 0, 0),      /* setns */
	CALL(VIEW, 272, 310, 97, N, N, N, N, N, QK_CALL_IF_BITS, CLONE_NEWNS), /* unshare */
	CALL(REFUSED, 425, 425, 425, N, N, N, N, N, 0, 0),   /* io_uring_setup: it opens unseen */

	CALL(LOOK, 4, 106, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),          /* stat */
	CALL(LOOK, N, 195, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),          /* stat64 */
	CALL(LOOK_LINK, 6, 107, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),     /* lstat */
	CALL(LOOK_LINK, N, 196, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),     /* lstat64 */
	CALL(LOOK, 262, 300, 79, 0, 1, 3, N, N, QK_CALL_LOOKUPS, 0),       /* newfstatat */
	CALL(LOOK, 332, 383, 291, 0, 1, 2, N, N, QK_CALL_LOOKUPS, 0),      /* statx */
	CALL(LOOK, 21, 33, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),          /* access */
	CALL(LOOK, 269, 307, 48, 0, 1, N, N, N, QK_CALL_LOOKUPS, 0),       /* faccessat */
	CALL(LOOK, 439, 439, 439, 0, 1, 3, N, N, QK_CALL_LOOKUPS, 0),      /* faccessat2 */
	CALL(READLINK, 89, 85, N, N, 0, N, N, N, QK_CALL_LOOKUPS, 0),      /* readlink */
	CALL(READLINK, 267, 305, 78, 0, 1, N, N, N, QK_CALL_LOOKUPS, 0),   /* readlinkat */
};

const size_t qk_calls_n = sizeof(qk_calls) / sizeof(*qk_calls);

const struct qk_call *qk_call_find(uint32_t arch, uint32_t nr)
{
	size_t n = qk_calls_n;

	for (const struct qk_call *c = qk_calls; c < qk_calls + n; c++) {
#if defined(__x86_64__)
		if (arch == AUDIT_ARCH_I386 ? (uint32_t)c->compat == nr :
		    nr & QK_X32_BIT ? (uint32_t)c->x32 == (nr & ~(uint32_t)QK_X32_BIT) :
				      (uint32_t)c->native == nr)
			return c;
#else
		if (arch == AUDIT_ARCH_AARCH64 && (uint32_t)c->native == nr)
			return c;
#endif
	}
	return NULL;
}
