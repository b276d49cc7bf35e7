/*
 * The files that a recipe has made itself, by what they are and not by name: a name can be given
 * to another file (rename, link), and then says nothing of where the contents come from.
 *
 * A file is known by its inode number and time of birth, as an overlay shows them; neither changes
 * from one command of a recipe to the next. On a file system without times of birth a number that
 * is given out again could be taken for the old file.
 *
 * They are kept in the layer from line to line of a recipe, in a file `own`: the eight bytes
 * "qkown 1\n", then per file three numbers of 64 bits in the host's order: inode, seconds,
 * nanoseconds.
 */
#ifndef QK_SANDBOX_OWN_H
#define QK_SANDBOX_OWN_H

#include "base/err.h"

#include <stdbool.h>

struct qk_own {
	struct qk_own_file *files; /* zero-initialised is empty */
	bool changed;              /* since read */
};

/* Adds the file that fd is open on; its contents are the recipe's from now on. 0 or -errno. */
int qk_own_add(struct qk_own *o, int fd);

bool qk_own_has(const struct qk_own *o, int fd);
bool qk_own_has_path(const struct qk_own *o, const char *path); /* no link followed */

/* From and to the file in the layer directory. A missing file is none; a damaged one -EBADMSG. */
int qk_own_read(struct qk_own *o, int layer_fd, struct qk_err *err);
int qk_own_write(struct qk_own *o, int layer_fd, struct qk_err *err);

void qk_own_release(struct qk_own *o);

#endif
