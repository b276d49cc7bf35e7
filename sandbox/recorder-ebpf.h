/*
 * The recorder in the kernel: programs that a helper (sandbox/ebpf/helper.c) has loaded for the
 * whole run leave what a task's system calls did in a ring buffer; it is read when there is much
 * of it, and at the end. Calls are seen with their results and with the name of what was opened;
 * the rest is looked at afterwards, as with strace.
 *
 * Without look-ups (an audit), opens are left out that are outside the workspace by their words and
 * lead outside or to nothing; a link in the workspace that they passed on the way goes untold.
 */
#ifndef QK_SANDBOX_RECORDER_EBPF_H
#define QK_SANDBOX_RECORDER_EBPF_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "sandbox/recorder.h"
#include "sandbox/trace.h"
#include "sandbox/witness.h"

#include <stdint.h>

struct qk_ebpf {
	struct qk_trace *trace;
	struct qk_witness witness;
	int conn; /* to the helper; -1: not connected */
	int ring; /* polls readable; -1 likewise */
	uint32_t slot;
	uint64_t turn;
	size_t page;
	void *position;     /* ours in the ring, one page */
	const void *filled; /* the kernel's, one page, then the data, twice */
	const void *slots;
	struct qk_ebpf_look *looks; /* told since the task last changed something */
	struct qk_arena arena;      /* of looks */
	struct qk_buf key;
};

/*
 * Connects to the helper that listens in dir: what this process starts from now on is recorded.
 * Before the walls are entered, which may hide dir. e may be released after a failure.
 */
int qk_ebpf_init(struct qk_ebpf *e, struct qk_trace *trace, const char *dir, struct qk_err *err);
void qk_ebpf_release(struct qk_ebpf *e);

/* Takes what is in the ring. */
void qk_ebpf_serve(struct qk_ebpf *e);

/* The task has ended: takes the rest, and asks whether anything was lost. */
void qk_ebpf_finish(struct qk_ebpf *e);

/*
 * In the child, just before exec: system calls that open files unseen are refused, where that may
 * be had without giving up privileges. Async-signal-safe.
 */
void qk_ebpf_refuse_unseen(void);

/*
 * Starts the helper, which listens in h->dir until this process has ended. Of a failure err says
 * why eBPF cannot record here.
 */
int qk_ebpf_start(const struct qk_ebpf_host *h, struct qk_err *err);

/* Ends it before this process does. */
void qk_ebpf_stop(const char *dir);

#endif
