/*
 * The directory in which one recipe's writes are collected: upper/ and work/ for overlayfs, hidden/
 * to cover the state directory with. It is opened once and used by descriptor.
 */
#ifndef QK_SANDBOX_LAYER_H
#define QK_SANDBOX_LAYER_H

#include "base/err.h"
#include "sandbox/policy.h"

/*
 * Opens the layer (absolute) without following a link from the workspace root on, and makes or
 * readies what is missing in it: a new upper/ looks like the workspace root, whose place it takes;
 * a used one keeps what it holds, and overlayfs's mark of an unclean end is taken off. 0 or -errno.
 */
int qk_layer_open(int lower_fd, const struct qk_policy *p, const char *layer, int *ret_layer,
	int *ret_upper, struct qk_err *err);

/* Empties the layer; the directory itself is the caller's. */
void qk_layer_clear(int layer_fd);

#endif
