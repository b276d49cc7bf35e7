/*
 * The places of outputs before and after a command, whatever the back end: qk_outputs_prepare and
 * qk_outputs_tidy are declared in walls.h; here is what the walls share with them.
 */
#ifndef QK_SANDBOX_OUTPUTS_H
#define QK_SANDBOX_OUTPUTS_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"

/* qk_outputs_tidy by descriptor: root_fd is the workspace root, whatever is mounted over it. */
void qk_outputs_tidy_at(int root_fd, const char *root, const struct qk_strv *made);

/* The directories that lead to outputs and are not there, each with those above it. */
void qk_outputs_missing(int root_fd, const struct qk_policy *p, struct qk_strv *ret);

/* Makes the missing directories on the way to dir (absolute, under root), each noted in made. */
int qk_outputs_make_way(int root_fd, const char *root, const char *dir, struct qk_strv *made,
	struct qk_err *err);

/*
 * Where writes are held as they happen, what is to be written must exist. Missing outputs named as
 * trees, without an extension, are made as directories (into made); a missing file is made empty
 * and dated to the epoch (into files), so that one left by a crash is older than anything. Targets
 * are files: a Makefile rule that makes a directory says so in its outputs.
 */
int qk_outputs_precreate(int root_fd, const struct qk_policy *p, struct qk_strv *made,
	struct qk_strv *files, struct qk_err *err);

/* Removes the files that are as they were made. */
void qk_outputs_tidy_files(int root_fd, const char *root, const struct qk_strv *files);

#endif
