/*
 * The system calls that name a path, for every entry of this machine (64-bit, 32-bit, x32): which
 * argument is what. The filter is compiled from this table and notifications are read by it.
 */
#ifndef QK_SANDBOX_CALLS_H
#define QK_SANDBOX_CALLS_H

#include <stddef.h>
#include <stdint.h>

enum qk_call_op {
	QK_CALL_OPEN,
	QK_CALL_OPEN2, /* flags lie in a struct open_how */
	QK_CALL_CREAT,
	QK_CALL_EXEC,
	QK_CALL_RENAME,
	QK_CALL_LINK,
	QK_CALL_SYMLINK,
	QK_CALL_UNLINK,
	QK_CALL_RMDIR,
	QK_CALL_MKDIR,
	QK_CALL_MKNOD,
	QK_CALL_TRUNCATE,
	QK_CALL_META,
	QK_CALL_META_LINK, /* of a link itself */
	QK_CALL_BIND,      /* path is a struct sockaddr_un */
	QK_CALL_SOCKETCALL,
	QK_CALL_HANDLE, /* opens a file without naming it */
	QK_CALL_VIEW,   /* changes what paths mean to the caller */
	QK_CALL_MOUNT,  /* ... or to everybody */
	QK_CALL_LOOK,
	QK_CALL_LOOK_LINK,
	QK_CALL_READLINK,
	QK_CALL_REFUSED, /* answered ENOSYS */
};

enum qk_call_when {
	QK_CALL_ALWAYS,
	QK_CALL_LOOKUPS, /* only when looks at files are recorded too */
	QK_CALL_IF_BITS, /* if the first argument has one of the bits in `bits` */
	QK_CALL_IF_EQUAL, /* if the first argument is `bits` */
};

enum { QK_NO_ARG = -1, QK_NO_NR = -1 };

struct qk_call {
	enum qk_call_op op;
	int16_t native, compat, x32; /* numbers; x32 without its marker bit; QK_NO_NR: not there */
	int8_t dir, path, flags;     /* positions of arguments, or QK_NO_ARG */
	int8_t dir2, path2;
	enum qk_call_when when;
	uint32_t bits;
};

extern const struct qk_call qk_calls[];
extern const size_t qk_calls_n;

enum { QK_X32_BIT = 0x40000000 };

/* The row of a call as a seccomp notification has it (arch: AUDIT_ARCH_*), or NULL. */
const struct qk_call *qk_call_find(uint32_t arch, uint32_t nr);

#endif
