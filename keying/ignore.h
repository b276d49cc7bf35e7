/*
 * Ignore rules in the manner of .gitignore (gitignore(5)), for finding projects: one node a file of
 * rules, linked to those of the directories above, the nearest rule that matches deciding.
 */
#ifndef QK_KEYING_IGNORE_H
#define QK_KEYING_IGNORE_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_ignore;

/*
 * The rules in the n bytes at text, of the directory dir (relative to where the walk began, "" for
 * that itself), in front of those above (or NULL). Returns above itself if the text has no rule.
 */
const struct qk_ignore *qk_ignore_add(struct qk_arena *a, const struct qk_ignore *above,
	const char *dir, const char *text, size_t n);

/* True if the path (relative as above) is ignored; the directories it lies in are not looked at. */
bool qk_ignore_has(const struct qk_ignore *rules, const char *path, bool is_dir);

#endif
