/*
 * The network of a task that is held: as without qk, closed, or closed with the proxy as its way out.
 */
#ifndef QK_RUNNER_WAYOUT_H
#define QK_RUNNER_WAYOUT_H

#include "keying/request.h"
#include "sandbox/walls.h"

/* Prepares the walls and the command's environment for what the request grants, outside. */
int qk_wayout_prepare(
	struct qk_walls *w, const struct qk_request *r, struct qk_strv *env, struct qk_err *err);

#endif
