/*
 * The text of a pnpm lockfile, read into what leads to what; for lockfile.c alone, which answers
 * from it. YAML is read by libyaml; places in complaints are those of the file.
 */
#ifndef QK_KEYING_LOCKYAML_H
#define QK_KEYING_LOCKYAML_H

#include "base/mem.h"
#include "keying/lockfile.h"

#include <uthash.h>

/* Before the directory, where something leads to an importer. */
#define QK_LOCKFILE_LINK "link:"

/* An importer or a snapshot: what it counts as by itself, and what it leads to. */
struct qk_locknode {
	UT_hash_handle hh;
	const char *key;
	struct qk_digest own; /* its fields, without those of what it leads to */
	const char **refs;    /* keys of snapshots; with LINK in front, of importers */
	size_t n_refs;
	bool is_snapshot;
	int line;
};

struct qk_lockfile {
	struct qk_arena arena;
	const char *file;
	struct qk_locknode *importers, *snapshots; /* by key */
	struct qk_digest settings; /* of everything that is neither of these nor packages */
};

#endif
