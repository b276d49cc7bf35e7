/*
 * What the supervisor does for a task while the seccomp recorder holds it stopped in a call. The
 * supervisor is in the task's namespaces and under none of its restrictions; so it can open what
 * the walls would refuse although the policy does not, and hand the descriptor over. It never hands
 * out what the kernel refuses for good reason: it looks at files and not at names (own.h), opens by
 * the path that was judged with no link followed, and with the task's own standing (guise.h).
 *
 *   - Missing parents of outputs: the directories that lead to a declared output are made when a
 *     task first makes something in one of them, not before: a recipe that says `mkdir out` itself
 *     works as with plain make. What is left empty is removed at the end. In audit as in enforce.
 *   - Inner overlay: a rule cannot be made for a file that is not there yet. What the task makes, or
 *     empties and fills again, is opened for it, so that it can be read back; what it makes can be
 *     executed (slots.h). A fifo that it makes cannot be opened for reading.
 *   - Both overlays: what the policy lets be read by its name wherever it is. A node_modules or .git
 *     directory is bound through when it is first met; a dotenv file, and what of such a directory
 *     is reached from a current directory within, is opened for reading.
 *
 * All this needs the seccomp recorder: with another one parents are as with plain make, and the
 * limits of the walls stay (walls.h). Landlock alone is not helped: there missing parents are made
 * beforehand, since rules must be made for them.
 *
 * It acts on what the recorder is told. Whoever lets opens through untold must tell those that fail
 * for EACCES or ENOENT, and in the inner overlay those that make or empty a file.
 */
#ifndef QK_SANDBOX_DOORMAN_H
#define QK_SANDBOX_DOORMAN_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/own.h"
#include "sandbox/policy.h"
#include "sandbox/slots.h"
#include "sandbox/walls.h"
#include "sandbox/witness.h"

#include <stdbool.h>

struct qk_doorman {
	const struct qk_policy *policy; /* borrowed, as the walls */
	const struct qk_walls *walls;   /* NULL: audit, or nothing to be done about these walls */
	int root_fd;                    /* the workspace as the task sees it */
	int names_fd;                   /* the lower layer, read-only; -1: not needed yet */
	bool inner;
	struct qk_strv missing; /* directories that lead to outputs and are not there */
	struct qk_strv made;    /* those that we made */
	struct qk_strv bound;   /* directories bound through on the way */
	struct qk_strv unbound; /* and those that could not or must not be */
	struct qk_own own;      /* inner overlay */
	struct qk_slots slots;
	struct qk_place place;
};

/*
 * Once the walls (NULL: none) are entered. False if there will be nothing to do: the recorder need
 * not ask. Errors: what an earlier line of the recipe left cannot be read.
 */
int qk_doorman_init(struct qk_doorman *d, const struct qk_policy *policy,
	const struct qk_walls *walls, bool *ret_needed, struct qk_err *err);

/* Before the witness looks: the directories that the call needs are made. */
void qk_doorman_make_way(struct qk_doorman *d, struct qk_witness *w, const struct qk_deed *deed);

/*
 * After the witness has looked (at w->a, w->b): the descriptor to answer an open with, which the
 * caller passes on and closes, or negative: the kernel shall go on with the call.
 */
int qk_doorman_open(struct qk_doorman *d, const struct qk_witness *w, const struct qk_deed *deed);

/*
 * After the command and before settling: removes directories that were made and are still empty,
 * and leaves in the layer what later lines of the recipe need to know.
 */
void qk_doorman_release(struct qk_doorman *d);

#endif
