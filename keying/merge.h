/*
 * Laying configuration over configuration, as Nx does.
 *
 * A value replaces the one below it, unless it holds the spread "...": as an item of an array it
 * stands for the items below, as a key of an object (with true) for the members below, and members
 * before it give way to those below while members behind it do not. With defer, a spread that has
 * nothing below it is kept, for a layer that will be put under later; without, it vanishes.
 *
 * Two targets are compatible if at most one names an executor, or both the same one (and, of
 * nx:run-commands and nx:run-script, the same command or script). Compatible ones merge: fields one
 * by one, options and every configuration member by member. Otherwise the upper one stands alone.
 */
#ifndef QK_KEYING_MERGE_H
#define QK_KEYING_MERGE_H

#include "base/err.h"
#include "keying/json.h"

#include <stdbool.h>

/* One value over another; either may be NULL (not there). */
const struct qk_json *qk_merge_value(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer);

/* Two objects, member by member: qk_merge_value of each, members of both kept. */
const struct qk_json *qk_merge_members(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer);

bool qk_merge_compatible(const struct qk_json *below, const struct qk_json *above);

/* Two targets, both already without shorthand; below may be NULL. */
const struct qk_json *qk_merge_target(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer);

/* "command": "x" is executor nx:run-commands with that option. Both at once is an error. */
int qk_merge_shorthand(struct qk_arena *a, const struct qk_json *target, const struct qk_json **ret,
	struct qk_err *err);

#endif
