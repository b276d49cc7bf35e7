/*
 * What the programs in the kernel, the helper that loads them and the runner tell each other.
 *
 * The helper (helper.c) loads the programs once for a run and listens at `ebpf` in the run
 * directory. A runner connects, sends one struct qk_ebpf_hello, and is answered by one struct
 * qk_ebpf_welcome with two descriptors: its ring buffer and the map of slots. From then on what it
 * starts is recorded, and what that starts, until it closes the connection.
 *
 * Each recorded call is one struct qk_ebpf_event in the ring, followed by its strings.
 */
#ifndef QK_SANDBOX_EBPF_EVENT_H
#define QK_SANDBOX_EBPF_EVENT_H

#include <linux/types.h>

enum {
	QK_EBPF_PATH = 4096,    /* longest string of an event, NUL included */
	QK_EBPF_ROOT = 256,     /* longest root that is filtered by, NUL included */
	QK_EBPF_SLOTS = 1024,   /* tasks at one time */
	QK_EBPF_RING = 1 << 22, /* bytes of a ring buffer */
	QK_EBPF_PAGE = 1 << 12, /* the least a ring buffer can have */
	QK_EBPF_NUMBERS = 512,  /* system calls of one entry */
};

#define QK_EBPF_SOCKET "ebpf"

/* Which system calls are recorded: a row of sandbox/calls.h as the programs have it. */
struct qk_ebpf_call {
	__u8 there, op, when, pad;
	__s8 dir, path, flags, dir2, path2;
	__u8 pad2[3];
	__u32 bits;
};

enum qk_ebpf_entry { QK_EBPF_NATIVE, QK_EBPF_COMPAT, QK_EBPF_X32, QK_EBPF_ENTRIES };

/* Written before the programs are loaded, constant then. */
struct qk_ebpf_config {
	struct qk_ebpf_call calls[QK_EBPF_ENTRIES][QK_EBPF_NUMBERS];
	char root[QK_EBPF_ROOT]; /* of the workspace; "" = nothing can be filtered by it */
	__u32 root_len, pad;
	__u64 pid_dev, pid_ino; /* of the helper's pid namespace */
};

/* A task at work. In a map that runners may read. */
struct qk_ebpf_slot {
	__u64 turn;    /* counts the tasks that had this slot; odd: one has it now */
	__u64 lookups; /* looks are recorded too */
	__u64 filter;  /* what lies outside the configured root is left out */
	__u64 lost;    /* events for which there was no room */
	__u64 unread;  /* events whose strings could not be read */
};

enum qk_ebpf_bits {
	QK_EBPF_OPENED =
		1 << 0, /* a file was opened or executed; NAME is its name, unless it has none */
	QK_EBPF_CREATED = 1 << 1, /* ... and made by that */
	QK_EBPF_DIR = 1 << 2,     /* ... and is a directory */
};

/* In the order in which they lie. */
enum qk_ebpf_string {
	QK_EBPF_TEXT,
	QK_EBPF_NAME, /* of the opened file */
	QK_EBPF_BASE,
	QK_EBPF_TEXT2,
	QK_EBPF_BASE2,
	QK_EBPF_STRINGS,
	QK_EBPF_LENS = 8, /* a power of two, for the verifier */
};

struct qk_ebpf_event {
	__u64 turn;
	__u32 pid; /* of the thread, in the helper's pid namespace */
	__s32 result;
	__u64 flags;
	__u32 bits;
	__u16 op, pad;
	__u16 len[QK_EBPF_LENS]; /* of the strings, with NUL; 0: there is none */
};

struct qk_ebpf_hello {
	__u32 version, lookups;
	char root[QK_EBPF_ROOT]; /* what may be filtered by; "" = nothing */
};

struct qk_ebpf_welcome {
	__u32 version, slot;
	__u64 turn; /* 0: no slot is free */
};

enum {
	QK_EBPF_VERSION = 1,
	QK_EBPF_STOP = 0x73746f70, /* for lookups: the helper is to end */
};

#endif
