/*
 * Which files are a task's outputs (K7): globs relative to the workspace root. A glob that matches
 * a directory means everything in it; "!glob" takes out again what it matches, or what lies below.
 *
 * Nothing here follows a link: a link among the outputs is an output itself, and outputs that would
 * lie behind a link are refused.
 */
#ifndef QK_KEYING_OUTPUTS_H
#define QK_KEYING_OUTPUTS_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/filehash.h"
#include "keying/tree.h"

#include <stdbool.h>

struct qk_outputs {
	struct qk_strv include, exclude; /* clean; exclude without the '!' */
};

void qk_outputs_release(struct qk_outputs *o);

/* -EINVAL with a line if the glob leaves the workspace or names all of it. */
int qk_outputs_add(struct qk_outputs *o, const char *glob, struct qk_err *err);

/* True if path is an output, or lies in one. Pure. */
bool qk_outputs_match(const struct qk_outputs *o, const char *path);

enum {
	/* Directories that may not be listed are opened up (u+rwx) first: for removing. */
	QK_OUTPUTS_OPEN = 1 << 0,
};

/*
 * What is there now: sorted, without digests; special files are listed too. Missing outputs are no
 * error. -ELOOP or -EXDEV: an output lies behind a link.
 */
int qk_outputs_list(
	const struct qk_outputs *o, int rootfd, int flags, struct qk_tree *ret, struct qk_err *err);

/*
 * Fills in the digests of a listed tree's regular files. flags as of qk_filehash_get: with
 * QK_FILEHASH_CACHED -EAGAIN if a file has to be read.
 */
int qk_outputs_digests(struct qk_tree *t, struct qk_filehash *f, int flags, struct qk_err *err);

/* Removes what is there. Directories that hold excluded files stay. 0 or the first error. */
int qk_outputs_remove(const struct qk_outputs *o, int rootfd, struct qk_err *err);

#endif
