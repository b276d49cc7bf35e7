/*
 * What a package manager's lockfile says is installed (K4).
 *
 * Of a pnpm lockfile of version 9 the key counts what a task's importers install, with everything
 * that reaches: for each importer the packages it names (dependencies, devDependencies,
 * optionalDependencies), for each package its snapshot, and for a link to another importer of the
 * workspace what that one installs. Any other lockfile counts as a whole file.
 *
 * The format: importers, packages and snapshots of pnpm-lock.yaml as pnpm 9 and 10 write it. An
 * importer's `version` is a snapshot key without its name, a whole key (an alias), or link:DIR.
 */
#ifndef QK_KEYING_LOCKFILE_H
#define QK_KEYING_LOCKFILE_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/digest.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_lockfile;

/*
 * Reads a pnpm lockfile from memory. file is how complaints name it. -EINVAL: it does not parse
 * ("pnpm-lock.yaml:12:7: …"), or an importer or snapshot in it is not what it should be.
 * -EOPNOTSUPP: it parses, but is no version 9: count it whole.
 */
int qk_lockfile_parse(
	const char *file, const char *p, size_t n, struct qk_lockfile **ret, struct qk_err *err);
void qk_lockfile_free(struct qk_lockfile *l);

bool qk_lockfile_has_importer(const struct qk_lockfile *l, const char *dir);

/*
 * What the importers install, as one digest. dirs: directories relative to the workspace root, "."
 * for the root; those the lockfile does not know install nothing. -EINVAL if a package they name is
 * in no snapshot: the lockfile is incomplete.
 *
 * ret_local gets, sorted, the directories and archives that packages are installed from or linked to,
 * relative to the root: what is in them stands in no lockfile. One outside begins with "..".
 */
int qk_lockfile_importers(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	struct qk_digest *ret, struct qk_strv *ret_local, struct qk_err *err);

/*
 * The same for packages by name, all installed versions of each. *ret_unknown: the first name
 * nothing is installed of, else NULL; it counts as such.
 */
int qk_lockfile_packages(const struct qk_lockfile *l, const char *const *names, size_t n,
	struct qk_digest *ret, struct qk_strv *ret_local, const char **ret_unknown,
	struct qk_err *err);

/* What importers and packages by name reach, themselves included; sorted, and the lockfile's. */
struct qk_lockreach {
	QK_VEC(const char *) snapshots; /* keys */
	QK_VEC(const char *) importers; /* directories */
};

/* A name that nothing is installed of reaches nothing. Release ret also after a failure. */
int qk_lockfile_reached(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	const char *const *names, size_t n_names, struct qk_lockreach *ret, struct qk_err *err);
void qk_lockreach_release(struct qk_lockreach *r);

/* Every importer's directory, and every snapshot's key, sorted. */
void qk_lockfile_all(
	const struct qk_lockfile *l, struct qk_strv *ret_importers, struct qk_strv *ret_snapshots);

/* The name part of a snapshot key: "@x/y" of "@x/y@1.0.0(z@2.0.0)". Length. */
size_t qk_lockfile_name(const char *key);

/* Lockfiles by file name, in the order they are looked for; NULL-terminated. The first is pnpm's.
 */
extern const char *const qk_lockfile_names[];

#endif
