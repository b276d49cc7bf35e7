/*
 * Executing what a recipe has just made, under the inner overlay. Landlock lets nothing be executed
 * without a rule, and rules are for files that are there when the command starts. So a few empty
 * files in the layer, the slots, have rules; when a new file is to be executed it is copied into one
 * of them, and that is mounted over the new file's name. The task sees its own path, in argv and in
 * /proc/self/exe. Before the name is written, renamed or removed the slot is taken off again.
 *
 * More than QK_SLOTS programs that run at the same time: the next cannot be executed.
 */
#ifndef QK_SANDBOX_SLOTS_H
#define QK_SANDBOX_SLOTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { QK_SLOTS = 8 };

struct qk_slots {
	int dir; /* -1: none */
	struct {
		char *path; /* what it is mounted over; NULL: free */
		bool used;  /* holds a copy */
	} v[QK_SLOTS];
	unsigned int turn; /* the one to try next */
};

#define QK_SLOTS_INIT { .dir = -1 }

/* Makes what is missing of the slots in the layer and grants them `rights`. 0 or -errno. */
int qk_slots_grant(int layer_fd, int ruleset, uint64_t rights, struct qk_err *err);

/* Opens the slots of a layer, once the namespaces are entered. 0 or -errno. */
int qk_slots_open(struct qk_slots *s, int layer_fd);

/* Puts a copy of what fd is open on over path, which is rel beneath root_fd. 0 or -errno. */
int qk_slots_cover(struct qk_slots *s, int fd, int root_fd, const char *rel, const char *path);

/* True if a slot covers this very path. */
bool qk_slots_covers(const struct qk_slots *s, const char *path);

/* Takes off what covers path or lies beneath it. True if there was anything. */
bool qk_slots_uncover(struct qk_slots *s, const char *path);

/* Empties the slots. What is mounted goes with the overlay. */
void qk_slots_release(struct qk_slots *s);

#endif
