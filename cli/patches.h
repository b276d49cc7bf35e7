/*
 * Files as they are and as they are to be: shown as one patch, or written, all of them or none.
 */
#ifndef QK_CLI_PATCHES_H
#define QK_CLI_PATCHES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

struct qk_patch {
	char *name; /* relative to root */
	struct qk_buf old, text;
};

struct qk_patches {
	const char *root;
	QK_VEC(struct qk_patch *) v;
};

/* The file's patch, text the same as old when it is new here. Errors are those of reading it. */
int qk_patches_file(
	struct qk_patches *p, const char *name, struct qk_patch **ret, struct qk_err *err);

/* A unified diff, as patch -p1 and git apply take it, with one hunk a file. */
void qk_patches_show(struct qk_buf *out, const struct qk_patches *p);

/*
 * Writes what changed, through links, modes kept. Where one cannot be written, those written before
 * are put back. -EBUSY: a file is no longer what it was when it was read.
 */
int qk_patches_write(const struct qk_patches *p, struct qk_err *err);

void qk_patches_release(struct qk_patches *p);

#endif
