/*
 * The qk: fields of a target ("qk:sandbox", "qk:ultracache", "qk:warm"), checked as they are read:
 * a wrong type is an error naming file:line:column and field, an unknown field a warning.
 */
#ifndef QK_KEYING_DECLARED_H
#define QK_KEYING_DECLARED_H

#include "base/err.h"
#include "keying/workspace.h"

/* target is the merged object. Everything in ret points into it or the workspace's arena. */
int qk_declared_read(struct qk_workspace *ws, const struct qk_json *target, struct qk_declared *ret,
	struct qk_err *err);

/* Warns about members of v that begin with "qk:", but for the known ones (NULL-terminated). */
void qk_declared_warn_unknown(
	struct qk_workspace *ws, const struct qk_json *v, const char *const *known);

#endif
