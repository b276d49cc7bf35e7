/*
 * What this host gives: the make, the recorder and the sandbox back end that a run started now
 * would get, and why not better ones. Everything is found by trying it, as a run does.
 */
#ifndef QK_CLI_HOST_H
#define QK_CLI_HOST_H

#include "cli/faults.h"
#include "cli/jsonout.h"
#include "cli/page.h"
#include "cli/prefix.h"
#include "sandbox/recorder.h"
#include "sandbox/walls.h"

#include <stdbool.h>

struct qk_host {
	struct qk_prefix prefix;
	char *prefix_problem; /* what is missing of it; NULL = nothing */
	char *make;           /* the make on PATH; NULL = there is none */
	char *make_version;   /* "GNU Make 4.3"; the first line it prints */
	char *make_problem;   /* why qk.mk does not load into it; NULL = it does */
	enum qk_recorder_kind recorder;
	char *recorder_note;    /* why not better ones; "" = nothing to say */
	bool fastlane;          /* the seccomp recorder has its fast lane */
	char *fastlane_note;    /* why not; "" = it has, or is not the recorder */
	char *ebpf_problem;     /* why eBPF cannot record here; "" = it can */
	char *recorder_problem; /* QK_RECORDER asks for what cannot be; NULL = it does not */
	struct qk_walls_host walls;
	char *backend_note;  /* as recorder_note */
	char *state_problem; /* why no state directory can be made in root; NULL = it can */
};

/* root: where .qk is, or would be made. Nothing is left behind there. */
void qk_host_find(struct qk_host *h, const char *root);
void qk_host_release(struct qk_host *h);

/* Its recorders, as rows of a page and as members of JSON. */
void qk_host_recorder(struct qk_page *p, const struct qk_host *h);
void qk_host_recorder_json(struct qk_jsonout *j, const struct qk_host *h);

/* What of it stands in the way of anything, or makes it weaker or slower than it could be. */
void qk_host_faults(const struct qk_host *h, struct qk_faults *faults);

#endif
