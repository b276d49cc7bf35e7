/*
 * Why a recipe line or a task was not found in the store: the first thing that differs from its nearest
 * stored key, which is that of the last result it had here, whether run or restored.
 */
#ifndef QK_KEYING_WHY_H
#define QK_KEYING_WHY_H

#include "keying/parts.h"
#include "keying/pathset.h"
#include "keying/store.h"

#include <stdint.h>

/* The fact (keying/filehash.h) that holds the last key of line (from 0) of target; allocated. */
char *qk_why_name(const char *target, uint64_t line);

/*
 * A sentence without a full stop, allocated: "a.h has changed (1f0c2a91 became 77ab10fe)", "word 3 of
 * the command was -O2 and is -O0", "it has no result yet". weak: the fields of its weak key now, as
 * keying/key.h has them. NULL leaves them out of the comparison, and takes QK_SYSTEM_READS as it
 * was: for who only asks, outside of a run. Then no sentence, NULL, says that no path differs that
 * the line only looks at. A place or terminal that is NULL in the view is not compared.
 */
char *qk_why(struct qk_store *s, struct qk_pathview *view, const char *name, const char *weak);

/*
 * The same for a task of a workspace, from the last key it had here and its parts, all known. NULL:
 * nothing differs.
 */
char *qk_why_task(struct qk_store *s, const struct qk_digest *last, const struct qk_parts *now,
	struct qk_filehash *f);

/* The same where the last result is that of a recording (runner/ultracache.h), stored under `strong`. */
char *qk_why_recorded(struct qk_store *s, const struct qk_digest *strong, const struct qk_parts *now,
	struct qk_pathview *view);

#endif
