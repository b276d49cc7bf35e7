/*
 * From a policy to Landlock rules. Landlock holds files that exist: rules are made for what is
 * there as the command starts, with no link followed inside the workspace.
 *
 * What is readable by name (dotenv files) gets rules where a tool is likely to look: in the
 * directories from the workspace root to the current one and in the first 32 directories in which
 * something is declared. Elsewhere the kernel refuses it although the policy tolerates it, unless
 * the doorman helps (doorman.h).
 */
#ifndef QK_SANDBOX_GRANTS_H
#define QK_SANDBOX_GRANTS_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"

#include <stdint.h>

struct qk_grants {
	int ruleset;
	int root_fd;                 /* the workspace as the checks will see it */
	const struct qk_policy *policy;
	const char *cwd;             /* physical */
	struct qk_strv *named;       /* gets the files that are granted for their names; NULL: not asked */
	uint64_t read, write;        /* what the policy's rights come to, of what is handled */
};

/*
 * Rules for the workspace: readable things get read, writable ones read and write. A directory
 * that is one tree rule is one Landlock rule; so is the literal part of a pattern that ends in a "**" component.
 */
int qk_grants_workspace(const struct qk_grants *g, struct qk_err *err);

/*
 * Where writes are held as they happen: a directory in which a file is to be written is opened
 * whole if nothing but writable files lies in it, so that outputs can be removed, renamed and made
 * anew there. A directory that holds anything else stays as it is, the workspace root with it.
 */
int qk_grants_output_dirs(const struct qk_grants *g, struct qk_err *err);

/* Rules for absolute paths and all beneath, existing ones: read and write. */
int qk_grants_trees(const struct qk_grants *g, const struct qk_strv *paths, struct qk_err *err);

/*
 * Everything outside the workspace, as it is now: the entries beside the way from / to root get all
 * of `handled`, but what the policy hides. Entries made later directly in a directory on that way are not covered.
 */
int qk_grants_outside(
	int ruleset, const struct qk_policy *policy, uint64_t handled, struct qk_err *err);

#endif
