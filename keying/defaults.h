/*
 * nx.json's targetDefaults. Of its keys one counts for a target: the target's executor, else its
 * name, else the longest glob that matches its name. A key's value is what applies, or an array of
 * such things that apply in order, each with an optional "filter" (projects, executor, plugin).
 */
#ifndef QK_KEYING_DEFAULTS_H
#define QK_KEYING_DEFAULTS_H

#include "base/err.h"
#include "keying/workspace.h"

/* Lays target (merged, without shorthand) over the defaults for it; project has name, root, tags.
 */
int qk_defaults_apply(struct qk_workspace *ws, const struct qk_project *project, const char *name,
	const struct qk_json *target, const struct qk_json **ret, struct qk_err *err);

#endif
