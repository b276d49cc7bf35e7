/*
 * Filesets (K1): which candidate files the patterns of a project's inputs select, as file groups.
 *
 * Candidates are what keying/tracked.h lists, without the declared outputs of any task of the
 * workspace and without the cache directory. A file belongs to the project whose directory holds it
 * most closely: {projectRoot}/… never selects a nested project's file, {workspaceRoot}/… any file.
 * A pattern that is no glob and names a directory selects all in it. Patterns with ! take away from
 * everything selected beside them, in whatever order; if there are only such, they take away from
 * all of the project's files.
 */
#ifndef QK_KEYING_FILESETS_H
#define QK_KEYING_FILESETS_H

#include "keying/parts.h"
#include "keying/tracked.h"
#include "keying/workspace.h"

#include <stdbool.h>

struct qk_filesets;

/* The workspace and the list must outlive it. */
struct qk_filesets *qk_filesets_new(const struct qk_workspace *ws, const struct qk_tracked *t);
void qk_filesets_free(struct qk_filesets *f);

struct qk_fileset {
	const char *glob; /* relative to the root, tokens resolved, without ! */
	bool negated;
	bool of_workspace; /* selects any file, not just the project's */
};

/*
 * The groups that a project's patterns select: of its own files, and of any; NULL where no pattern
 * asks for it. The same patterns give the same group, also for other projects where that is all the
 * same. Groups live as long as f.
 */
void qk_filesets_select(struct qk_filesets *f, const struct qk_project *p,
	const struct qk_fileset *sets, size_t n, struct qk_filegroup **ret_own,
	struct qk_filegroup **ret_any);

/* A group of exactly these paths, there or not. */
struct qk_filegroup *qk_filesets_group(
	struct qk_filesets *f, const char *name, const char *const *paths, size_t n);

#endif
