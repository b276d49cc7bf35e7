/*
 * The files of a workspace that can be inputs (K1): what Git tracks and still is there, and what is
 * untracked and not ignored. Never anything in .git, .qk or node_modules. Submodules and other
 * repositories in the workspace count by their own index and rules; a worktree whose .git is a file
 * is like any other. Where there is no Git, or Git ignores the whole workspace: all files.
 *
 * Only names are looked at, files are not opened nor their status asked: one pass over the index
 * and one over the directories. Links are listed, not followed; directories are not listed.
 */
#ifndef QK_KEYING_TRACKED_H
#define QK_KEYING_TRACKED_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_tracked {
	struct qk_arena arena;
	const char **v; /* paths relative to the root, in byte order */
	bool *in_git;   /* tracked, as opposed to just not ignored */
	size_t n, cap;
	bool has_git;
};

/*
 * root: absolute. Errors: a directory that cannot be listed, a repository that cannot be read (its
 * index is damaged, or of a kind libgit2 does not know). Release also after a failure.
 */
int qk_tracked_load(struct qk_tracked *t, const char *root, struct qk_err *err);
void qk_tracked_release(struct qk_tracked *t);

/* The paths that lie below directory dir ("." for all): v[*first] and the n after it. */
size_t qk_tracked_below(const struct qk_tracked *t, const char *dir, size_t *first);
bool qk_tracked_has(const struct qk_tracked *t, const char *path);

#endif
