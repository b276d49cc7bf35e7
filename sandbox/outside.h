/*
 * What lies outside the workspace, for a command held to explicit grants: it can be read, and
 * written only where a grant says so. Over an overlay every mount is made read-only in the command's
 * mount namespace, with what is granted bound through; with Landlock alone it is a matter of rules
 * (grants.h).
 *
 * Devices, pipes and sockets are no files: they are as open as they were. /proc stays writable for
 * what a process may set of itself; what root could set there of the whole system is read-only.
 * /dev/shm is an empty one of the command's own.
 */
#ifndef QK_SANDBOX_OUTSIDE_H
#define QK_SANDBOX_OUTSIDE_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"

/*
 * In a new mount namespace, before anything is mounted over the workspace or opened in it: closes
 * what the policy, resolved, does not let be written. The workspace becomes a mount of its own,
 * writable as before.
 */
int qk_outside_close(const struct qk_policy *policy, struct qk_err *err);

/* The paths outside the workspace that rules let be written, patterns as they match now. */
void qk_outside_granted(const struct qk_policy *policy, struct qk_strv *ret);

/*
 * Before any command: makes the directories that the policy lets be written outside the workspace,
 * where they are missing, and empty files for the names that are granted as files. What cannot be made
 * is no error: writing there fails, and is told. Returns a descriptor for tidy, -1 if nothing out there
 * is granted.
 *
 * tidy removes what is still empty, once no task of this workspace uses any of it: what was made stands
 * in the file `outside` of the state directory, paths ended by NUL each, which every such task holds
 * locked meanwhile. So what a killed one had made goes with the next.
 */
int qk_outside_prepare(const struct qk_policy *policy);
void qk_outside_tidy(const struct qk_policy *policy, int fd);

/* In a namespace so closed: a directory of its own in which files can be made. */
const char *qk_outside_scratch(const struct qk_policy *policy);

#endif
