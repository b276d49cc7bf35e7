/*
 * One end-to-end case, as tests/cases/NAME/case says it. The format is described in
 * tests/cases/README.md; tests/cases/NAME/tree, where there is one, is the tree it starts from.
 */
#ifndef QK_TESTS_CASEFILE_H
#define QK_TESTS_CASEFILE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdbool.h>

enum mode {
	MODE_BARE, /* an empty qk.mk: plain make, what the other modes are compared with */
	MODE_OFF,  /* qk.mk included, no knob */
	MODE_AUDIT,
	MODE_ENFORCE,
	MODE_CACHED, /* CACHE=on, nothing stored yet */
	MODE_HITS,   /* the same in a fresh tree, with what CACHED has stored */
	MODE_N,
};

extern const char *const mode_names[MODE_N];

/* One "KEY: VALUE" line, or "KEY:" with the block of indented lines below it (indent taken off). */
struct entry {
	const char *key;
	const char *value;
	unsigned int modes; /* bits 1 << enum mode in which it counts */
	int line;
};

struct casefile {
	struct qk_arena arena;
	char *name;
	char *dir; /* tests/cases/NAME, absolute */
	QK_VEC(struct entry) entries;
};

/*
 * Reads DIR/case. Unknown keys, modes and repeated single keys fail with "DIR/case:LINE: ...".
 * The caller releases c in either case.
 */
int casefile_read(struct casefile *c, const char *dir, struct qk_err *err);
void casefile_release(struct casefile *c);

/* The value of a key for a mode; fallback if the case does not have it. */
const char *casefile_get(
	const struct casefile *c, const char *key, enum mode m, const char *fallback);

#endif
