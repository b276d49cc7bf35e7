/*
 * The weak key of a recipe line (K8): what the line is, before anything is known of what it reads.
 *
 *   the command's words, with shell and flags; target and working directory, relative to the root
 *   what the makefiles put into the environment: every variable that make itself did not get
 *   the variables of qk_recipe_key_variables, which compilers and interpreters read, and QK_ENV's
 *   what the QK_RUNTIME command prints (once per run), the umask, QK_SYSTEM_READS
 *   the key of the line before
 */
#ifndef QK_RUNNER_RECIPE_KEY_H
#define QK_RUNNER_RECIPE_KEY_H

#include "base/buf.h"
#include "base/err.h"
#include "keying/digest.h"
#include "keying/request.h"
#include "runner/chain.h"

/* Names; a trailing '*' stands for any rest. NULL ends it. */
extern const char *const qk_recipe_key_variables[];

/*
 * argv and env: the command's, NULL-terminated. text gets the fields as keying/key.h has them.
 * -EINVAL: the QK_RUNTIME command failed, so that there is no key.
 */
int qk_recipe_key(const struct qk_request *r, char *const *argv, char *const *env,
	const struct qk_chain *before, struct qk_buf *text, struct qk_digest *ret, struct qk_err *err);

#endif
