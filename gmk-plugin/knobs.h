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
	bool wrap;        /* QK_WRAP = no: only $(qk-sandbox ...) commands are tasks */
	bool cache;       /* CACHE; tasks of workspaces */
	bool skip_cache;  /* SKIP_CACHE = 1 */
	bool no_overlay;  /* QK_SANDBOX_OVERLAY = 0 */
	char *report;     /* SANDBOX_REPORT; NULL = none */
	char *run_report; /* QK_REPORT */
	char *recorder;   /* QK_RECORDER */
	char *root;       /* QK_ROOT */
};

void qk_knobs_read(struct qk_knobs *k);
/* Ends make if CACHE=on is asked of recipes that are not cached: where there is no workspace. */
void qk_knobs_refuse_cache(void);

void qk_knobs_release(struct qk_knobs *k);

#endif
