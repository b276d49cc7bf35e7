/*
 * A path set (R1): what one run of a command read, listed and looked for, in the order of first
 * access, and nothing of what it found there. Under the weak key (what the command is) it tells
 * which paths count; their states as they are now make the strong key, under which the result is
 * stored. A state is what filehash says of the path alone, so that a path looked for in vain is
 * one whose state is "absent".
 *
 * Paths are relative to the workspace root, so that a moved workspace has the same keys; those
 * outside are absolute.
 *
 * What a command changed itself is no input. What it took over from before is: such a path is OWN,
 * and its state is that before the run. An output that waits to be made anew is as good as none, so
 * that a hit does not hang on whether the workspace was cleaned, but only where that is sure:
 *
 *   - a command was seen to replace it without looking into it (REPLACED), and it stands there just as
 *     a result last left it; or
 *   - it was looked for in vain, and what stands there now is what the found result itself would put
 *     there (`assume` in the view): for the rest of its contents, as in an archive that is added to,
 *     the command may have eyes when it is there.
 *
 * Where contents were read, or stay in, neither holds.
 */
#ifndef QK_KEYING_PATHSET_H
#define QK_KEYING_PATHSET_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/vec.h"
#include "keying/filehash.h"

#include <stdbool.h>
#include <stdint.h>

enum qk_pathclass {
	QK_PATH_LOOK,   /* a file by its contents, a link by its text, a directory by being one */
	QK_PATH_LIST,   /* a directory by the names in it, but for those of the EXCEPT that follow */
	QK_PATH_EXCEPT, /* a name the command itself made or removed in the directory listed before */
	QK_PATH_OWN,    /* the command changed it; by its state before */
};

/* How a command that changed a path took over what was there. */
enum qk_pathown {
	QK_OWN_READ = 1 << 0, /* its contents were read, or would have been */
	QK_OWN_KEPT = 1 << 1, /* its contents stayed in */
	QK_OWN_REPLACED = 1 << 2, /* it was there, and nothing of it was read or stayed in */
};

/* What belongs in the strong key beside paths. */
enum qk_pathset_flags {
	QK_PATHSET_PLACE = 1 << 0,    /* the result names the place of the workspace */
	QK_PATHSET_TERMINAL = 1 << 1, /* it printed something, which may depend on a terminal */
};

/* What files outside the workspace count by: QK_SYSTEM_READS. */
enum qk_system_reads {
	QK_SYSTEM_CONTENT,
	QK_SYSTEM_STAT, /* size and time of change */
	QK_SYSTEM_OFF,  /* left out by whoever fills a set */
};

enum { QK_PATHSETS_KEPT = 8, QK_PATHSET_MAX = 1 << 24 };

struct qk_pathset_entry {
	const char *path;
	uint8_t class; /* enum qk_pathclass */
	uint8_t how;   /* enum qk_pathown */
};

struct qk_pathset {
	struct qk_arena arena;
	unsigned int flags;
	QK_VEC(struct qk_pathset_entry) v;
};

void qk_pathset_release(struct qk_pathset *s);
void qk_pathset_add(struct qk_pathset *s, const char *path, enum qk_pathclass class, unsigned int how);
bool qk_pathset_equal(const struct qk_pathset *a, const struct qk_pathset *b);

/* Appends the set; reading checks everything: -EBADMSG. */
void qk_pathset_write(const struct qk_pathset *s, struct qk_buf *out);
int qk_pathset_read(struct qk_pathset *s, const char *p, size_t n);

/* The workspace as it is now, for several sets of one command. */
struct qk_pathview {
	struct qk_filehash *files;
	enum qk_system_reads system;
	const char *place;    /* for sets with PLACE */
	const char *terminal; /* for sets with TERMINAL */
	bool assume; /* what may be the result's own doing counts as absent, and is listed in assumed */
	struct qk_strv assumed;
	bool assumable; /* set by qk_pathset_key: with assume the key would be another */
	struct qk_pathview_known *known;
	struct qk_arena arena;
};

void qk_pathview_release(struct qk_pathview *v);

/* From now on the path counts so in that class, whatever is there. */
void qk_pathview_set(struct qk_pathview *v, const char *path, enum qk_pathclass class,
	const struct qk_digest *state);

/* As if this stood there, left by a result: for who only asks, and puts nothing in place. */
void qk_pathview_pretend(struct qk_pathview *v, const char *path, const struct qk_digest *state);

/*
 * The state of a path for LOOK. Files that may not be read count by size and times. Errors: as of
 * filehash, -EBUSY among them.
 */
int qk_pathview_look(struct qk_pathview *v, const char *path, struct qk_digest *ret, struct qk_err *err);

/* What OWN needs to know of a path, taken before the command runs. */
struct qk_before {
	bool there;
	bool made;  /* it stands there just as a result last left it */
	bool empty; /* a file without contents */
	struct qk_digest state;
};

int qk_pathview_before(struct qk_pathview *v, const char *path, struct qk_before *ret, struct qk_err *err);

/* How a path that was so before was taken over, given the bits READ and KEPT. Pure. */
unsigned int qk_pathset_how(const struct qk_before *b, unsigned int how);

/* The state for OWN. Pure. */
void qk_pathset_own(const struct qk_before *b, unsigned int how, struct qk_digest *ret);

/* Remembers what now stands at path as a result's: see above. state: as of _look. */
void qk_pathview_made(struct qk_pathview *v, const char *path, const struct qk_digest *state);

/* What an absent path counts as. */
void qk_pathset_absent(struct qk_digest *ret);

/* The state now of entry *i of the set; *i moves to the last of its exceptions. */
int qk_pathset_state(const struct qk_pathset *s, size_t *i, struct qk_pathview *v, struct qk_digest *ret,
	struct qk_err *err);

/*
 * The strong key of the set under a weak one. text, if any, gets the fields as keying/key.h has
 * them. With `remember` the states are kept in the view for further sets.
 */
int qk_pathset_key(const struct qk_pathset *s, const struct qk_digest *weak, struct qk_pathview *v,
	bool remember, struct qk_buf *text, struct qk_digest *ret, struct qk_err *err);

#endif
