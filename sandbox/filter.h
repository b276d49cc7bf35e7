/*
 * The seccomp filter of the recorder: which system calls stop and are told of, as a classic BPF
 * program made from the table of calls (sandbox/calls.h).
 */
#ifndef QK_SANDBOX_FILTER_H
#define QK_SANDBOX_FILTER_H

#include "sandbox/calls.h"

#include <linux/filter.h>
#include <stdbool.h>

enum { QK_FILTER_MAX = 512 };

struct qk_filter {
	struct sock_filter v[QK_FILTER_MAX];
	unsigned short n;
};

/*
 * lookups: calls that only look at files are told too. lane: those that the fast lane's library
 * makes itself (sandbox/fastlane-ring.h) pass.
 */
void qk_filter_compile(struct qk_filter *f, bool lookups, bool lane);

/* Whether the fast lane's library makes such calls. */
bool qk_filter_by_lane(const struct qk_call *c);

#endif
