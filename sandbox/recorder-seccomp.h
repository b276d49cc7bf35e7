/*
 * The recorder that needs no privileges and no program beside it: a seccomp filter in the command
 * stops it in every call that names a path (sandbox/calls.h) and tells us; we look, and let the
 * kernel go on with the call. It records and never decides; what a doorman answers, it passes on.
 */
#ifndef QK_SANDBOX_RECORDER_SECCOMP_H
#define QK_SANDBOX_RECORDER_SECCOMP_H

#include "base/err.h"
#include "sandbox/doorman.h"
#include "sandbox/fastlane.h"
#include "sandbox/filter.h"
#include "sandbox/trace.h"
#include "sandbox/witness.h"

#include <stdbool.h>

struct qk_seccomp {
	struct qk_filter filter;
	int listener; /* -1 before the start and after the end */
	struct qk_trace *trace;
	struct qk_witness witness;
	struct qk_fastlane *lane;   /* borrowed; NULL: none */
	struct qk_doorman *doorman; /* borrowed; NULL: nobody acts for the task */
	unsigned long by_lane, programs; /* calls told that the lane's library could make; execs */
	bool view_watched;       /* some process tried to change what paths mean */
	unsigned long long view; /* then: our mount namespace */
};

/*
 * Compiles the filter, which lets pass what comes by the fast lane if there is one (an open one,
 * or NULL); nothing is installed yet.
 */
void qk_seccomp_init(struct qk_seccomp *s, struct qk_trace *trace, struct qk_fastlane *lane);
void qk_seccomp_release(struct qk_seccomp *s);

/*
 * In the child, just before exec; async-signal-safe, allocates nothing. Returns the listener's
 * descriptor number or -errno (-EBUSY: the caller is itself being recorded).
 */
int qk_seccomp_install(const struct qk_seccomp *s);

/* In the parent: the descriptor that the child got, now in our table. */
void qk_seccomp_start(struct qk_seccomp *s, int listener);

/* Takes and answers one notification, once the listener polls readable. */
void qk_seccomp_serve(struct qk_seccomp *s);

/* How many of the calls that were told one by one the fast lane might have brought. */
unsigned long qk_seccomp_for_lane(const struct qk_seccomp *s);

/* The recording is over: takes what has come by the fast lane, and closes it. */
void qk_seccomp_finish(struct qk_seccomp *s);

/*
 * Goes on answering without recording, until nobody is left who could ask; for processes that
 * outlive the recording. Never returns.
 */
void qk_seccomp_keep(struct qk_seccomp *s) __attribute__((noreturn));

#endif
