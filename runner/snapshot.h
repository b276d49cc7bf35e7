/*
 * What a recipe line may take over, looked at before it runs.
 */
#ifndef QK_RUNNER_SNAPSHOT_H
#define QK_RUNNER_SNAPSHOT_H

#include "base/mem.h"
#include "base/vec.h"
#include "keying/pathset.h"
#include "keying/request.h"
#include "runner/chain.h"

#include <time.h>

/* The outputs as they stand before the line runs. */
struct qk_snapshot_path {
	const char *path; /* relative to the root */
	struct qk_before before;
};

struct qk_snapshot {
	struct qk_arena arena;
	QK_VEC(struct qk_snapshot_path) v;
	struct timespec taken; /* of the clock that stamps files */
};

/* Never fails: what cannot be looked at is left out, and is then not to be taken over. */
void qk_snapshot_take(struct qk_snapshot *s, const struct qk_request *r, const struct qk_chain *before,
	struct qk_pathview *view);
void qk_snapshot_release(struct qk_snapshot *s);

/*
 * The clock that stamps files: the coarse one, or the fine one if somebody has looked since their last
 * change (Linux 6.13). What is stamped later than this has changed since.
 */
struct timespec qk_snapshot_now(void);

#endif
