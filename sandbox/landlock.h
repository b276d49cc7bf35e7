/*
 * Landlock in three pieces: a pure table from what the kernel offers to what is asked and what is
 * then lacking, and the bare system calls. Which paths get rules is grants.h.
 *
 * The access rights are those of the kernel's documentation (userspace-api/landlock). Listing
 * directories and device ioctls are never handled, so they stay open.
 */
#ifndef QK_SANDBOX_LANDLOCK_H
#define QK_SANDBOX_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qk_landlock_right {
	QK_LL_EXECUTE = 1 << 0,
	QK_LL_WRITE_FILE = 1 << 1,
	QK_LL_READ_FILE = 1 << 2,
	QK_LL_REMOVE_DIR = 1 << 4,
	QK_LL_REMOVE_FILE = 1 << 5,
	QK_LL_MAKE_CHAR = 1 << 6,
	QK_LL_MAKE_DIR = 1 << 7,
	QK_LL_MAKE_REG = 1 << 8,
	QK_LL_MAKE_SOCK = 1 << 9,
	QK_LL_MAKE_FIFO = 1 << 10,
	QK_LL_MAKE_BLOCK = 1 << 11,
	QK_LL_MAKE_SYM = 1 << 12,
	QK_LL_REFER = 1 << 13,    /* ABI 2 */
	QK_LL_TRUNCATE = 1 << 14, /* ABI 3 */
};

#define QK_LL_READ (QK_LL_EXECUTE | QK_LL_READ_FILE)

/* What may be granted on something that is no directory. */
#define QK_LL_FILE (QK_LL_READ | QK_LL_WRITE_FILE | QK_LL_TRUNCATE)

/* What a domain is built for. */
enum qk_landlock_use {
	QK_LL_FOR_MOUNTER, /* the mounter of a held overlay: reads of the lower layer */
	QK_LL_FOR_READS,   /* a command over an overlay: its reads */
	QK_LL_FOR_ALL,     /* a command without overlay: reads and writes */
};

/* The rights a ruleset for this use handles under this ABI. 0 = the ABI (below 1) gives nothing. */
uint64_t qk_landlock_handled(enum qk_landlock_use use, int abi);

/*
 * What cannot be had under this ABI for this use: the i-th limit as a sentence part, or NULL past
 * the last. In the order in which kernels lifted them. attended: a doorman (doorman.h) helps.
 */
const char *qk_landlock_limit(enum qk_landlock_use use, int abi, bool attended, size_t i);

int qk_landlock_abi(void); /* 1 and up; -ENOSYS: not built in; -EOPNOTSUPP: not enabled at boot */
int qk_landlock_create(uint64_t handled); /* a ruleset descriptor, or -errno */

/* Grants rights beneath what fd (O_PATH will do) names. 0 or -errno. */
int qk_landlock_allow(int ruleset, int fd, uint64_t rights);

/* Puts the calling thread under the ruleset. Without CAP_SYS_ADMIN it needs no_new_privs first. */
int qk_landlock_restrict(int ruleset);

#endif
