/*
 * A directory tree: copied for a case to work in, and written down as text (one line per entry:
 * path, type, mode, and content or link text as a digest) so that two states can be compared.
 */
#ifndef QK_TESTS_SNAPSHOT_H
#define QK_TESTS_SNAPSHOT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

/* Copies what is in `from` into the existing directory `to`; bytes, modes and links. */
int tree_copy(const char *from, const char *to, struct qk_err *err);

/* Gives the tree to a user, links themselves included. */
int tree_chown(const char *path, uid_t uid, gid_t gid, struct qk_err *err);

/* Appends the tree's lines to out, sorted by path. skip_state leaves out every .qk. */
int tree_snapshot(const char *path, bool skip_state, struct qk_buf *out, struct qk_err *err);

/* The first line in which two texts differ, as "'a' is not 'b'". The caller frees; NULL if equal.
 */
char *text_difference(const char *got, const char *wanted);

#endif
