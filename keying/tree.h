/*
 * A file tree as a list: what a task's outputs are, in the workspace or in the store. Paths are
 * clean, relative to the workspace root, and sorted so that a directory comes before what it holds.
 */
#ifndef QK_KEYING_TREE_H
#define QK_KEYING_TREE_H

#include "base/buf.h"
#include "base/err.h"
#include "keying/digest.h"
#include "keying/filehash.h"

#include <stdint.h>
#include <sys/types.h>

struct qk_treeent {
	char *path;
	enum qk_filekind kind;    /* never QK_FILE_ABSENT */
	mode_t mode;              /* the twelve bits; 0777 for a link */
	uint64_t size;            /* of a regular file */
	char *link;               /* text of a link, else NULL */
	struct qk_digest content; /* of a regular file's bytes, once it was asked for */
	char *data;               /* a small file's bytes, if they came with the tree; else NULL */
	char *twin; /* of a regular file: the path that is another name of it (hard link); else NULL */
	uint64_t dev, ino; /* of a file listed with several names; else 0 */
};

struct qk_tree {
	struct qk_treeent *v;
	size_t n, cap;
};

#define qk_autotree __attribute__((cleanup(qk_tree_release)))
void qk_tree_release(struct qk_tree *t);

/* Appends an entry and returns it, zeroed but for its path, which is copied. */
struct qk_treeent *qk_tree_add(struct qk_tree *t, const char *path);
void qk_tree_sort(struct qk_tree *t);
/* Drops repeated paths of a sorted tree. */
void qk_tree_uniq(struct qk_tree *t);
/*
 * Finds the twins of a sorted tree by dev and ino: each further name of a file gets the path of the
 * first, which has none.
 */
void qk_tree_pair(struct qk_tree *t);
/* The entry of e's twin, if that is in the tree: it comes before e, and is the same file. */
const struct qk_treeent *qk_tree_twin(const struct qk_tree *t, const struct qk_treeent *e);
/* strcmp with '/' before every other byte: the order of a tree. */
int qk_tree_compare(const char *a, const char *b);
const struct qk_treeent *qk_tree_find(const struct qk_tree *t, const char *path);

/* True if both hold the same paths with the same kinds, modes, texts, bytes and twins. */
bool qk_tree_equal(const struct qk_tree *a, const struct qk_tree *b);

/*
 * What a tree counts as in the key of a task that uses it: as K2 has it, so no mode but the owner's
 * executable bit. Directories count by what is in them, empty ones by being there.
 */
void qk_tree_digest(const struct qk_tree *t, struct qk_digest *ret);

/*
 * Fields of one record: per entry PATH, then KIND, MODE, SIZE, LINK, CONTENT, DATA, TWIN as they apply
 * (tags in tree.c, 1 to 15). _read takes tags it knows from the fields of a record and checks what
 * it gets: clean relative paths in order, nothing below what is no directory. 0 or -EBADMSG.
 */
void qk_tree_write(const struct qk_tree *t, struct qk_buf *out);
struct qk_field;
int qk_tree_read(struct qk_tree *t, const struct qk_field *f);
int qk_tree_check(const struct qk_tree *t);

#endif
