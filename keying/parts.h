/*
 * What a task's key is made of, as a list: the meeting point of who knows the workspace (inputs)
 * and who hashes (the runner, or make's own process where nothing has to be read). A list can be
 * written to a request and read back.
 *
 *   text     tag, name, value: a command, an environment variable, a digest of part of a lockfile
 *   files    a named group of files (keying/filehash.h says what a file counts as)
 *   runtime  a command; what it prints counts
 *   outputs  the outputs of a task this one depends on, by content (K5), or those a glob selects
 *   task     a task this one depends on that declares no outputs: its key
 *
 * Only text can be folded at once. Whoever can makes the others known: qk_parts_hash for files and
 * outputs, qk_runtime_run, and for tasks the run that has their keys.
 */
#ifndef QK_KEYING_PARTS_H
#define QK_KEYING_PARTS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/record.h"
#include "base/vec.h"
#include "keying/digest.h"
#include "keying/filehash.h"
#include "keying/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qk_part_kind {
	QK_PART_TEXT = 1,
	QK_PART_FILES,
	QK_PART_RUNTIME,
	QK_PART_OUTPUTS,
	QK_PART_TASK,
};

/* Files that count together; several tasks may share one group. */
struct qk_filegroup {
	const char *name;         /* "libs/core production" */
	const char *const *paths; /* relative to the root, in byte order */
	size_t n;
	bool known;
	struct qk_digest digest;
	struct qk_digest seen; /* what stat said of them just before: known with digest */
	/*
	 * Where the paths stand in a file beside what the group is written to, each ended by a NUL:
	 * thousands of requests name the same groups. len 0: they do not.
	 */
	uint64_t at, len;
};

struct qk_part {
	enum qk_part_kind kind;
	const char *tag;   /* of text */
	const char *name;  /* of text; the command; the task */
	const char *value; /* of text; of outputs the glob that selects, NULL for all of them */
	struct qk_filegroup *files;
	const char *const *globs; /* of outputs: what the task declares */
	size_t n_globs;
	bool known; /* digest is there; of files the group tells */
	struct qk_digest digest;
};

struct qk_parts {
	struct qk_arena arena;
	QK_VEC(struct qk_part) list;
};

void qk_parts_release(struct qk_parts *p);

/* Strings are copied; a group is referred to. */
void qk_parts_text(struct qk_parts *p, const char *tag, const char *name, const char *value);
void qk_parts_files(struct qk_parts *p, struct qk_filegroup *g);
void qk_parts_runtime(struct qk_parts *p, const char *command);
void qk_parts_task(struct qk_parts *p, const char *task);
void qk_parts_outputs(struct qk_parts *p, const char *task, const char *const *globs, size_t n,
	const char *filter);

/*
 * Makes files and outputs known, those that are not. flags as of qk_filehash_get: with
 * QK_FILEHASH_CACHED -EAGAIN as soon as a file would have to be read (no message). -EINVAL: an
 * input cannot be counted (a link out of the workspace, a device), with the reason.
 */
int qk_parts_hash(struct qk_parts *p, struct qk_filehash *f, int flags, struct qk_err *err);

/* One group by itself; as qk_parts_hash. */
int qk_filegroup_hash(struct qk_filegroup *g, struct qk_filehash *f, int flags, struct qk_err *err);

/*
 * Gives a group that was read without its paths those of the n bytes at p, which must stay. 0, or
 * -EBADMSG if they are not there.
 */
int qk_filegroup_load(struct qk_filegroup *g, struct qk_arena *a, const char *p, size_t n);

/* What stat says of the group's files now, to compare with seen. */
int qk_filegroup_look(const struct qk_filegroup *g, struct qk_filehash *f, struct qk_digest *ret,
	struct qk_err *err);

/*
 * What the outputs that globs declare and filter (or NULL) selects count as. A task that made none
 * counts as an empty tree.
 */
int qk_outputs_count(const char *const *globs, size_t n, const char *filter, struct qk_filehash *f,
	int flags, struct qk_digest *ret, struct qk_err *err);

/* The first part that is not known yet, or NULL. */
struct qk_part *qk_parts_unknown(struct qk_parts *p);

/* Folds all parts, which are all known, into the key of its kind ("task", "recipe"). */
void qk_parts_fold(
	const struct qk_parts *p, const char *kind, struct qk_buf *text, struct qk_digest *ret);

/*
 * The same without files and outputs of other tasks: the weak key of a task whose recordings say which
 * files count (keying/pathset.h). More: one further field, "system", for QK_SYSTEM_READS.
 */
void qk_parts_fold_weak(const struct qk_parts *p, unsigned int system, struct qk_buf *text,
	struct qk_digest *ret);

/*
 * The files of the group, one line each: `file PATH DIGEST x`, as they were folded into its digest.
 * What a key's text leaves out, for showing and comparing. Errors as of qk_filegroup_hash.
 */
int qk_filegroup_text(const struct qk_filegroup *g, struct qk_filehash *f, struct qk_buf *out,
	struct qk_err *err);

/* As fields of one record, tags 64 to 79; reading gives each list groups of its own. */
void qk_parts_write(const struct qk_parts *p, struct qk_buf *out);
int qk_parts_read(struct qk_parts *p, const struct qk_field *f);

/*
 * Runs the command with sh in directory cwd and gives the digest of what it printed on stdout.
 * -EINVAL with its exit status if it failed: then nothing is known about it.
 */
int qk_runtime_run(const char *command, const char *cwd, struct qk_digest *ret, struct qk_err *err);

#endif
