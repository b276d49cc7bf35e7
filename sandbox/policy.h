/*
 * What one task may touch: data only. A policy is a list of rules (path, scope, rights, reason).
 * Every back end is compiled from it and every finding is judged by it; there is no second opinion.
 *
 * Paths are absolute and clean. Only what lies under root is judged: outside, everything is open (but
 * under explicit grants, where it can be read, and written as rules say).
 * Directories may always be listed and everything may be looked up (stat, readlink, access).
 *
 * A rule names a path as declared. Where a link stands on the way, qk_policy_resolve() adds the
 * rule for what it leads to and for each link, so that judging compares resolved paths only.
 */
#ifndef QK_SANDBOX_POLICY_H
#define QK_SANDBOX_POLICY_H

#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdbool.h>

enum qk_right {
	QK_READ = 1 << 0,  /* contents, and execution */
	QK_WRITE = 1 << 1, /* make, change, rename, remove */
};

enum qk_scope {
	QK_EXACT, /* this path alone; of a directory: itself, not what is in it */
	QK_TREE,  /* this path and everything beneath it */
	QK_GLOB,  /* what the pattern matches: base/glob.h syntax, absolute */
};

/* Why a rule exists, in the order of precedence in which a verdict names one. */
enum qk_reason {
	QK_BY_NOTHING,
	QK_BY_TARGET,       /* the target itself */
	QK_BY_OUTPUT,       /* QK_OUTPUTS, outputs of a workspace task */
	QK_BY_PREREQUISITE, /* $^ and $| */
	QK_BY_INPUT,        /* QK_INPUTS, inputs of a workspace task */
	QK_BY_DEPFILE,      /* listed by the depfile the recipe wrote */
	QK_BY_DEPENDENCY,   /* an output of a task this one depends on */
	QK_BY_SCRATCH,
	QK_BY_WARM,
	QK_BY_IGNORE,  /* QK_IGNORE_READS, ignoreReads */
	QK_BY_GRANT,   /* QK_ALLOW_READ, QK_ALLOW_WRITE */
	QK_BY_MODULES, /* any node_modules */
	QK_BY_GIT,     /* .git, file or directory, anywhere */
	QK_BY_DOTENV,  /* .env, .env.*, .*.env, anywhere */
	QK_BY_STATE,   /* qk's own state directory */
	QK_BY_OUTSIDE, /* not under root */
};

struct qk_rule {
	const char *path; /* absolute, clean; a pattern for QK_GLOB */
	enum qk_scope scope;
	unsigned int rights; /* enum qk_right */
	enum qk_reason reason;
};

enum qk_answer {
	QK_REFUSED,   /* not declared: a finding under audit, refused under enforce */
	QK_TOLERATED, /* open, but not declared: counted apart (.git, dotenv), or reported (a grant) */
	QK_ALLOWED,
};

struct qk_verdict {
	enum qk_answer answer;
	enum qk_reason reason;
};

struct qk_policy {
	struct qk_arena arena;
	const char *root;  /* the workspace; absolute, clean, resolved */
	const char *state; /* qk's state directory, under root */
	QK_VEC(struct qk_rule) rules;
	/*
	 * Explicit grants: what no rule names is refused, node_modules, .git and dotenv files too.
	 * A wall (a directory) is passed by rules at or beneath it alone, not by those for what holds
	 * it. What is hidden lies outside root, and is refused nevertheless; nothing else out there is
	 * written without a rule, but for devices and /proc.
	 */
	bool closed;
	struct qk_strv walls, hidden;
	struct qk_policy_index *index; /* hash of exact and tree rules by path */
};

void qk_policy_init(struct qk_policy *p, const char *root, const char *state);
void qk_policy_release(struct qk_policy *p);

/* Adds a rule; path is cleaned against base (absolute) and copied. Rights of equal rules join. */
void qk_policy_add(struct qk_policy *p, const char *base, const char *path, enum qk_scope scope,
	unsigned int rights, enum qk_reason reason);

/*
 * Follows the links on the way of every exact and tree rule, as the file system is now, and adds
 * rules for the links passed (exact, read) and for the resolved path. Call it once, after the last
 * _add and before compiling or judging against resolved paths. Missing paths are left as they are.
 */
void qk_policy_resolve(struct qk_policy *p);

/* The innermost wall that path is at or beneath, or NULL; and whether one lies strictly beneath dir. */
const char *qk_policy_wall_of(const struct qk_policy *p, const char *path);
bool qk_policy_has_walls(const struct qk_policy *p, const char *dir);

/* Judges one access (a single enum qk_right) to an absolute clean path. Pure: no file is looked at. */
struct qk_verdict qk_policy_judge(
	const struct qk_policy *p, const char *path, enum qk_right right);

/* True if some rule with `right` lies at or beneath dir: dir leads to something declared. */
bool qk_policy_leads_to(const struct qk_policy *p, const char *dir, enum qk_right right);

const char *qk_reason_name(enum qk_reason reason); /* "prerequisite", "target" ... */

#endif
