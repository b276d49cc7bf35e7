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
	bool no_fastlane; /* QK_FASTLANE = off */
	bool no_overlay;  /* QK_SANDBOX_OVERLAY = 0 */
	char *report;     /* SANDBOX_REPORT; NULL = none */
	char *run_report; /* QK_REPORT */
	char *recorder;   /* QK_RECORDER */
	char *root;       /* QK_ROOT */
};

void qk_knobs_read(struct qk_knobs *k);
void qk_knobs_release(struct qk_knobs *k);

#endif
