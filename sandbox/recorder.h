/*
 * Recorders: which ones there are, which one this host gives, and why not a better one.
 */
#ifndef QK_SANDBOX_RECORDER_H
#define QK_SANDBOX_RECORDER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum qk_recorder_kind {
	QK_RECORDER_NONE,
	QK_RECORDER_STRACE,
	QK_RECORDER_SECCOMP,
	QK_RECORDER_EBPF,
};

const char *qk_recorder_name(enum qk_recorder_kind k); /* "seccomp" ...; "none" */

/*
 * Chooses for a whole run. name is QK_RECORDER: NULL, "" or "auto" take the best that works and
 * never fail (ret = NONE with the reasons in why if none does); a recorder's name takes that one
 * or fails with why it cannot record here; another name fails. Tries the real thing in a child.
 * QK_TEST_WITHOUT may name seccomp, strace, ebpf: they then fail as on a host without them.
 */
int qk_recorder_choose(const char *name, enum qk_recorder_kind *ret, char *why, unsigned int whysize,
	struct qk_err *err);

/* Whether the seccomp recorder has its fast lane (sandbox/fastlane.h); found out with it. */
struct qk_lane_choice {
	const char *library; /* path of fastlane.so; NULL: the lane is not wanted */
	bool works;
	char why[256]; /* why it does not; "" if it was not wanted or another recorder was chosen */
};

/* Where the eBPF recorder's helper is, and for what it is started. */
struct qk_ebpf_host {
	const char *helper; /* path of libexec/qk/ebpf */
	const char *dir;    /* the run directory; NULL: it is only tried */
	const char *root;   /* of the workspace; "/" if there is none */
};

/* Whether eBPF can record here; if not, why. Leaves nothing running. h->dir is not looked at. */
int qk_recorder_try_ebpf(const struct qk_ebpf_host *h, struct qk_err *err);

/*
 * The same, and tries the fast lane and eBPF (NULL: not to be had); QK_TEST_WITHOUT may name
 * fastlane too. If eBPF is chosen its helper serves dir from now on until this process has ended.
 */
int qk_recorder_choose_lane(const char *name, enum qk_recorder_kind *ret,
	struct qk_lane_choice *lane, const struct qk_ebpf_host *ebpf, char *why,
	unsigned int whysize, struct qk_err *err);

#endif
