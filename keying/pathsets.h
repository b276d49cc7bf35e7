/*
 * The path sets of one weak key, newest first, at most QK_PATHSETS_KEPT: one file in the store beside
 * the entries, written whole or not at all, verified when read. Two who add to one file at once may
 * lose one set, which costs one run of the command.
 */
#ifndef QK_KEYING_PATHSETS_H
#define QK_KEYING_PATHSETS_H

#include "keying/pathset.h"
#include "keying/store.h"

struct qk_pathsets {
	struct qk_pathset v[QK_PATHSETS_KEPT];
	size_t n;
};

void qk_pathsets_release(struct qk_pathsets *sets);

/* None, or a damaged file, is an empty list. */
void qk_pathsets_load(struct qk_pathsets *sets, struct qk_store *s, const struct qk_digest *weak);

/* True if there is a file of them, in the store at dir: one look, nothing is opened or made. */
bool qk_pathsets_exist(const char *dir, const struct qk_digest *weak);

/* Puts the set in front of those that are there now. Nothing is written if it is in front already. */
int qk_pathsets_add(struct qk_store *s, const struct qk_digest *weak, const struct qk_pathset *set,
	struct qk_err *err);

#endif
