/*
 * What a file counts as in a key (K2), and the digest cache that makes counting cheap (K10).
 *
 * A regular file counts by its bytes and the owner's executable bit, a link by its text and what it
 * leads to, a dangling or circular link as dangling, a directory by the names and states of
 * everything in it. Owner, times and other mode bits never count.
 *
 * Digests of regular files are remembered in one file shared by all processes (layout in
 * filehash.c). What is remembered is believed only while size, mtime, ctime, inode, device and mode
 * are what they were, and only if the file was settled when it was hashed: a file changed again in
 * the clock tick of its last change could show no difference. A lost, damaged or unwritable cache
 * costs time and is never an error.
 */
#ifndef QK_KEYING_FILEHASH_H
#define QK_KEYING_FILEHASH_H

#include "base/err.h"
#include "keying/digest.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum qk_filekind {
	QK_FILE_ABSENT,
	QK_FILE_REGULAR,
	QK_FILE_LINK,
	QK_FILE_DIR,
	QK_FILE_SPECIAL, /* device, socket, fifo: has no content to count */
};

struct qk_filestate {
	enum qk_filekind kind;
	bool executable; /* of a regular file */
	bool outside;    /* a link, or a link in a directory counted, leads out of the root */
	struct qk_digest content;
	/* What counts: kind, executable and content folded; equal states have equal digests. */
	struct qk_digest digest;
};

/* Fills in digest from the other fields. */
void qk_filestate_fold(struct qk_filestate *s);

struct qk_filehash;

enum {
	/* Only what stat calls and the cache can tell: -EAGAIN where bytes would have to be read.
	 */
	QK_FILEHASH_CACHED = 1 << 0,
	/* A link counts as what it leads to (its text does not count). */
	QK_FILEHASH_FOLLOW = 1 << 1,
	/* Nothing is read nor looked up: for a watch alone. States have no content. */
	QK_FILEHASH_STAT = 1 << 2,
	/* What is at the path alone: a link counts by its text, a directory by being one. */
	QK_FILEHASH_SHALLOW = 1 << 3,
};

/*
 * root: absolute; relative paths are taken from it. cache: the digest cache's path, NULL for none;
 * its directory exists. Fails only if root cannot be opened.
 */
int qk_filehash_new(
	struct qk_filehash **ret, const char *root, const char *cache, struct qk_err *err);
void qk_filehash_free(struct qk_filehash *f);

/*
 * State of path (relative to the root, or absolute). A missing file is a state, no error.
 * Errors: what open and read say (-EACCES …), -EBUSY for a file that keeps changing as it is read.
 */
int qk_filehash_get(struct qk_filehash *f, const char *path, int flags, struct qk_filestate *ret,
	struct qk_err *err);

/* What a look-up without reading can tell: kind only. Digest of a directory's sorted names. */
int qk_filehash_listing(
	struct qk_filehash *f, const char *path, struct qk_digest *ret, struct qk_err *err);

/* The same without the n names, in any order. */
int qk_filehash_listing_without(struct qk_filehash *f, const char *path, const char *const *names,
	size_t n, struct qk_digest *ret, struct qk_err *err);

/*
 * Small facts kept beside the digests, under names that no file has: qk_filehash_recall gives what
 * was last remembered for the name. Like all of the cache they may be lost at any time.
 */
void qk_filehash_remember(struct qk_filehash *f, const char *name, const struct qk_digest *d);
bool qk_filehash_recall(struct qk_filehash *f, const char *name, struct qk_digest *ret);

/*
 * While a watch is set, what stat says of every file looked at is added to it: equal digests before
 * and after mean that none of them was touched in between. NULL ends it.
 */
void qk_filehash_watch(struct qk_filehash *f, struct qk_hasher *watch);

/* Takes up what other processes did to the cache's file: for one that lives long. */
void qk_filehash_refresh(struct qk_filehash *f);

/* How many files were read since _new, and their bytes: what the cache did not save. */
void qk_filehash_cost(const struct qk_filehash *f, uint64_t *files, uint64_t *bytes);

int qk_filehash_rootfd(const struct qk_filehash *f);

#endif
