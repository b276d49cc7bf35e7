/*
 * The run directory, .qk/run/ID under the workspace root: requests, results, graphs and overlay
 * layers of one run. The top make makes it and removes it; the file `lock`, held by that make for
 * as long as it lives, tells a live run from one whose make was killed, which the next run sweeps.
 */
#ifndef QK_REPORT_RUNDIR_H
#define QK_REPORT_RUNDIR_H

#include "base/err.h"

/*
 * Makes the state directory (with a .gitignore of its own) and a new run directory in it, sweeps
 * runs left by killed makes, and takes the lock. *ret_path is allocated, *ret_lock a descriptor
 * (close-on-exec). Errors name the path: an unwritable state directory is one.
 */
int qk_rundir_create(const char *state, char **ret_path, int *ret_lock, struct qk_err *err);

/* Takes the lock of a run directory that this process made before it executed itself anew. */
int qk_rundir_reopen(const char *path, int *ret_lock, struct qk_err *err);

/* Removes the directory with all in it. */
void qk_rundir_remove(const char *path);

/*
 * The workspace root for a make that starts in cwd: explicit (QK_ROOT) if set, else the nearest
 * directory upward that holds nx.json, else the Git work tree around cwd, else cwd. Allocated and
 * resolved. An explicit root must be a directory that holds cwd.
 */
int qk_rundir_root(const char *explicit_root, const char *cwd, char **ret, struct qk_err *err);

#endif
