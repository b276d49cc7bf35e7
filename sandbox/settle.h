/*
 * Reads the upper layer of an overlay after a command and carries what lies within the declared
 * outputs into the workspace: files and links by rename, directories made, whiteouts and opaque
 * directories (fs/overlayfs documentation, "whiteouts and opaque directories") as removals.
 *
 * Both sides are walked by descriptor, one component at a time, and no link of the workspace is
 * followed. Every path is judged by the policy's right to write; nothing else decides.
 */
#ifndef QK_SANDBOX_SETTLE_H
#define QK_SANDBOX_SETTLE_H

#include "base/err.h"
#include "sandbox/policy.h"
#include "sandbox/walls.h"

/*
 * lower_fd is the workspace root beneath the overlay, upper_fd the upper directory, lifted what was
 * copied there before the command (see lift.h; NULL: nothing); the command is over. Goes on after an error, so that as much as can be is applied, and returns the first.
 */
int qk_settle(const struct qk_policy *p, int lower_fd, int upper_fd, const struct qk_strv *lifted,
	struct qk_settled *ret, struct qk_err *err);

#endif
