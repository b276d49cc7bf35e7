/*
 * Installed packages (A6): which one a file in pnpm's store belongs to, and whether a task's key holds
 * it. Found by the directory of the store, node_modules/.pnpm/NAME, which pnpm names after a snapshot
 * of the lockfile: what lies elsewhere in node_modules (.bin, caches), or in a directory that no
 * snapshot gives its name to (left from an earlier install), is no package.
 *
 * A7: ignored reads that cover the directory of an importer, as that of end-to-end tests, cover what
 * it installs and the projects it links to with what these install. The root's, the task's own and
 * those its key holds are never covered.
 */
#ifndef QK_KEYING_PACKAGES_H
#define QK_KEYING_PACKAGES_H

#include "base/vec.h"
#include "keying/inputs.h"

struct qk_packages;

/* in must outlive it. NULL: no pnpm lockfile is read, or there is no store. */
struct qk_packages *qk_packages_new(struct qk_inputs *in);
void qk_packages_free(struct qk_packages *p);

/*
 * The name of the package that the file (relative to the root, without links on the way) is the
 * package.json of, if the key of the task does not hold it; else NULL. ignored: directories and
 * patterns of reads that the task has ignored. *ret_hoisted: nothing that the task's importers
 * install depends on it; else it is not among the task's externalDependencies.
 */
const char *qk_packages_unkeyed(struct qk_packages *p, const struct qk_task *t,
	const struct qk_strv *ignored, const char *path, bool *ret_hoisted);

/* Directories of the projects that ignored reads cover because a covered importer links to them. */
void qk_packages_linked(struct qk_packages *p, const struct qk_task *t,
	const struct qk_strv *ignored, struct qk_strv *ret);

#endif
