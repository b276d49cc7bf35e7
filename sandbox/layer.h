/*
 * The directory in which one recipe's writes are collected: upper/ and work/ for overlayfs, hidden/
 * to cover the state directory with; in an inner overlay own and slots/ (own.h, slots.h). It is opened once and used by descriptor.
 *
 * Making and removing these directories costs as much as mounting. So a layer in which nothing is
 * left may become a spare: it is renamed to spare.NUMBER beside its place, and a layer that is
 * opened there later takes it over by another rename, which only one taker can win.
 */
#ifndef QK_SANDBOX_LAYER_H
#define QK_SANDBOX_LAYER_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>

enum { QK_LAYER_STOCK = 48 }; /* spares that are kept */

struct qk_layer {
	char *path;  /* absolute */
	int parent;  /* the directory it lies in */
	int fd;
	int upper;
	bool aside; /* the work directory of the mount before is there, as aside/, to be removed */
	bool tidying;
	pthread_t tidier;
};

#define QK_LAYER_INIT { .parent = -1, .fd = -1, .upper = -1 }

/*
 * Opens the layer (absolute) without following a link from the workspace root on, and makes or
 * readies what is missing, itself included (its parent must be there): a new upper/ looks like the workspace root, whose place it takes;
 * a used one keeps what it holds, and overlayfs's mark of an unclean end is taken off. spares: an
 * empty layer may be replaced by a spare. 0 or -errno.
 */
int qk_layer_open(struct qk_layer *l, int lower_fd, const char *root, const char *path, bool spares,
	struct qk_err *err);

/*
 * Removes what the mount before has left, in a thread, while the command runs; end waits for it. All
 * signals are blocked in the thread. Between the two the process must not need to be single-threaded
 * (namespaces). Without begin, or if no thread can be had, end does it.
 */
void qk_layer_tidy_begin(struct qk_layer *l);
void qk_layer_tidy_end(struct qk_layer *l);

/* Empties the layer; the directory itself is the caller's. */
void qk_layer_clear(struct qk_layer *l);

/* The layer has served: it becomes a spare, or is emptied if anything is left in it. */
void qk_layer_retire(struct qk_layer *l);

void qk_layer_release(struct qk_layer *l);

#endif
