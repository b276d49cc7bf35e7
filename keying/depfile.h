/*
 * Dependency files: what compilers write in make syntax (-MD, -MMD) about one target.
 *
 * Syntax read: "targets : prerequisites" with backslash-newline, "\ " "\#" "\:" "$$" escapes,
 * comments and several rules in a file; recipes and variable assignments are passed over.
 */
#ifndef QK_KEYING_DEPFILE_H
#define QK_KEYING_DEPFILE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

enum { QK_DEPFILE_MAX = 8 << 20 }; /* bytes; larger files are not taken for dependency files */

/*
 * Adds to prereqs what the text's rules for target list. A rule is for the target if one of its
 * targets is the same path, or one of the two is the end of the other: compilers without -MT write
 * only the last component, and a recipe may have changed its directory. text holds n bytes.
 * False if no rule names the target: then the file is not its dependency file.
 */
bool qk_depfile_parse(const char *text, size_t n, const char *target, struct qk_strv *prereqs);

/*
 * True if a file of this name, written by target's recipe, is worth looking into. The target itself
 * may be one: "x.d: x.c" is a rule of many Makefiles, and x.d then names itself.
 */
bool qk_depfile_plausible(const char *path, const char *target);

/* Adds the names under which compilers and common Makefiles keep the target's dependency file. */
void qk_depfile_guess(const char *target, struct qk_strv *paths);

#endif
