/*
 * The key of a workspace task as a run started now would fold it, and what went into it. Files are
 * read where the digest cache does not know them; `runtime` inputs are run. Nothing is written but
 * the digest cache, and that only where there is a state directory already.
 */
#ifndef QK_CLI_KEYS_H
#define QK_CLI_KEYS_H

#include "base/progress.h"
#include "cli/site.h"
#include "keying/inputs.h"
#include "keying/tracked.h"

struct qk_keys {
	struct qk_taskgraph *graph;
	struct qk_tracked tracked;
	struct qk_inputs *inputs;
	struct qk_filehash *hash;
	const char *root;
	struct qk_progress progress;
	bool *known; /* by task index */
	struct qk_digest *digests;
};

/* Everything for one target (and what it depends on) under a configuration, which may be NULL. */
int qk_keys_open(struct qk_keys *k, struct qk_site *s, const struct qk_target *target,
	const char *configuration, struct qk_err *err);
void qk_keys_close(struct qk_keys *k); /* also after a failure */

/* The task that it was opened for. */
const struct qk_task *qk_keys_asked(const struct qk_keys *k);

/*
 * The task's key; text (or NULL) gets its fields as lines. The parts in qk_inputs_task() are known
 * afterwards. -ENOKEY with the reason if it can have none.
 */
int qk_keys_task(struct qk_keys *k, const struct qk_task *t, struct qk_buf *text,
	struct qk_digest *ret, struct qk_err *err);

#endif
