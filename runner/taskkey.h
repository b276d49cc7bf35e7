/*
 * The key of a workspace task in its runner: makes known what make's thread left open, folds it, and
 * can tell afterwards whether the inputs stayed as they were.
 */
#ifndef QK_RUNNER_TASKKEY_H
#define QK_RUNNER_TASKKEY_H

#include "keying/filehash.h"
#include "keying/request.h"
#include "keying/taskspec.h"

struct qk_taskkey {
	const struct qk_request *req;
	struct qk_taskspec *spec;
	struct qk_filehash *hash; /* NULL: the workspace cannot be read */
	const char *groups;       /* the paths of file groups, mapped */
	size_t groups_len;
};

/* 0; else the task has no key, with the reason. */
int qk_taskkey_make(struct qk_taskkey *k, struct qk_digest *ret, struct qk_err *err);

/* Loads the paths of all groups of files, for whoever asks which they are. 0 or -EBADMSG. */
int qk_taskkey_load(struct qk_taskkey *k);

/* True if what the key holds is as it was when it was made. */
bool qk_taskkey_stayed(struct qk_taskkey *k);

#endif
