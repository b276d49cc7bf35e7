/*
 * The knobs: SANDBOX and its kin, read from make's variables wherever they were set. A value that
 * is not known ends make before any recipe runs.
 */
#ifndef QK_GMK_PLUGIN_KNOBS_H
#define QK_GMK_PLUGIN_KNOBS_H

#include "keying/request.h"

#include <stdbool.h>

struct qk_knobs {
	enum qk_mode mode;
	bool sandbox_off; /* SANDBOX = off was said, not only left out */
	bool wrap;        /* QK_WRAP = no: only $(qk-sandbox ...) commands are tasks */
	bool no_fastlane; /* QK_FASTLANE = off */
	bool cache;       /* CACHE; tasks of workspaces */
	bool skip_cache;  /* SKIP_CACHE = 1 */
	bool record;      /* RECORD = 1, QK_RECORD; tasks of workspaces */
	bool explain;     /* QK_EXPLAIN = 1; tasks of workspaces */
	bool no_overlay;  /* QK_SANDBOX_OVERLAY = 0 */
	char *report;     /* SANDBOX_REPORT; NULL = none */
	char *run_report; /* QK_REPORT */
	char *recorder;   /* QK_RECORDER */
	char *root;       /* QK_ROOT */
	unsigned int caching; /* enum qk_caching, from CACHE, SKIP_CACHE, RECORD and QK_EXPLAIN */
	unsigned int system_reads; /* enum qk_system_reads */
	uint64_t cache_limit; /* QK_CACHE_SIZE */
	char *cache_dir;      /* QK_CACHE_DIR */
	char *why;            /* QK_WHY: asked about, and nothing runs */
};

void qk_knobs_read(struct qk_knobs *k);
/* True if recipes are to go through the runner at all. */
bool qk_knobs_handle(const struct qk_knobs *k);

void qk_knobs_release(struct qk_knobs *k);

#endif
