/*
 * Copies small output directories into the upper layer before the command runs. An ordinary
 * user's overlay refuses to rename a directory that the lower layer has (EXDEV, since `userxattr`
 * excludes redirect_dir); one that is wholly in the upper layer can be renamed. Directories of
 * more than QK_LIFT_ENTRIES entries or QK_LIFT_BYTES bytes are left: there mv(1) copies, and a
 * program that calls rename(2) alone gets EXDEV.
 */
#ifndef QK_SANDBOX_LIFT_H
#define QK_SANDBOX_LIFT_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"

enum { QK_LIFT_ENTRIES = 64, QK_LIFT_BYTES = 1 << 20 };

/*
 * Lifts the existing directories that tree rules make readable and writable, unless the layer has
 * them already or something is bound within them. ret_lifted gets every path that was copied: in a
 * lifted directory the command can only have removed what was there then, so what others add
 * meanwhile is not taken for removed. Sorted.
 */
int qk_lift(const struct qk_policy *p, int lower_fd, int upper_fd, const struct qk_strv *bound,
	struct qk_strv *ret_lifted, struct qk_err *err);

/* True if path is among the sorted ones. */
bool qk_lifted(const struct qk_strv *lifted, const char *path);

#endif
