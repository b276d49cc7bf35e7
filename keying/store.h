/*
 * The cache of task results (K9): results under their keys, files by their content.
 *
 * Several processes, also of several workspaces, use one store at once. An entry is there whole or
 * not at all: everything is written to a temporary name and renamed, the entry after what it names.
 * Nothing is synced: after a power cut a file may be short or empty, so everything is verified
 * against its digest whenever it is read, and what does not match is removed and counts as never
 * stored. Files come and go by reflink or copy, never as hard links, so that nobody who edits an
 * output changes the cache.
 *
 * Layout, size limit and the order things go in when it is full: store.c and prune.c.
 */
#ifndef QK_KEYING_STORE_H
#define QK_KEYING_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "keying/digest.h"
#include "keying/tree.h"

#include <stdint.h>

/* 10 GiB: about what a month of work on a large workspace makes. QK_CACHE_SIZE says otherwise. */
#define QK_STORE_LIMIT ((uint64_t)10 << 30)

struct qk_store;

/* One stored result. All strings are owned. */
struct qk_entry {
	struct qk_tree tree;  /* the outputs */
	struct qk_strv gone;  /* paths that it removed (relative, sorted) */
	struct qk_strv loose; /* paths of the tree that whoever comes next is to remove again */
	struct qk_buf output; /* what it printed, as keying/capture.h has it */
	char *task;           /* who made it: for people */
	char *how;  /* the walls it was made in: "off", "audit", "enforce held-overlay" … */
	char *text; /* the key's fields as text; not read by _get, see qk_store_text */
	uint64_t duration_ms; /* of the run that made it: what a hit saves */
	uint64_t made;        /* seconds since 1970 */
};

#define QK_ENTRY_INIT                                                                              \
	{                                                                                          \
		.output = QK_BUF_INIT                                                              \
	}
#define qk_autoentry __attribute__((cleanup(qk_entry_release)))
void qk_entry_release(struct qk_entry *e);

/*
 * Opens the store at dir (absolute), making it if need be. limit: bytes, 0 for none. Errors: dir
 * cannot be made or is not writable.
 */
int qk_store_new(struct qk_store **ret, const char *dir, uint64_t limit, struct qk_err *err);
void qk_store_free(struct qk_store *s);

/* Where the store of a workspace is: QK_CACHE_DIR's value, else the configured one, else .qk/cache.
 */
char *qk_store_dir(const char *root, const char *env, const char *configured)
	__attribute__((malloc));

/* "500M", "2G", "1.5TiB", "0" (no limit) or plain bytes; -EINVAL with a line for anything else. */
int qk_store_parse_size(const char *text, uint64_t *ret, struct qk_err *err);

/*
 * Stores e under key; the files of e->tree are read beneath rootfd and must still have the digests
 * the tree has (-EBUSY otherwise). An entry of the same key is replaced. On any error (-ENOSPC …)
 * the key has no entry, or the one it had. May prune.
 */
int qk_store_put(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	int rootfd, struct qk_err *err);

/*
 * 1: found, into *ret (which is initialised and empty). 0: not there, or it was damaged and is gone
 * now. Negative: the store cannot be read. A hit marks the entry as used.
 */
int qk_store_get(
	struct qk_store *s, const struct qk_digest *key, struct qk_entry *ret, struct qk_err *err);

/* The key's fields as they were stored, appended to out. As _get, but no use is marked. */
int qk_store_text(
	struct qk_store *s, const struct qk_digest *key, struct qk_buf *out, struct qk_err *err);

/*
 * Writes a regular file's bytes to the empty file at fd, verified. 1, or 0 if the blob is missing
 * or was damaged (it is gone now), or -errno of writing.
 */
int qk_store_fetch(struct qk_store *s, const struct qk_treeent *e, int fd, struct qk_err *err);

/* The blobs an entry names; the caller frees *ret. 1, 0 or negative as _get, but no use is marked.
 */
int qk_store_blobs(
	struct qk_store *s, const struct qk_digest *key, struct qk_digest **ret, size_t *ret_n);

void qk_store_remove(struct qk_store *s, const struct qk_digest *key);

/*
 * Takes the right to produce key, waiting for whoever has it: two makes that want one result do the
 * work once, if each looks again after it was given the right. The descriptor to hand to _yield, or
 * -errno. Also given up by the end of the process.
 */
int qk_store_claim(struct qk_store *s, const struct qk_digest *key);
void qk_store_yield(struct qk_store *s, const struct qk_digest *key, int fd);

struct qk_store_usage {
	uint64_t entries, blobs, bytes; /* bytes on disk */
};

/*
 * Removes entries, the longest unused first, until at most limit bytes are left, and every blob no
 * entry names. Waits for those who are storing. *ret: what is left.
 */
int qk_store_prune(
	struct qk_store *s, uint64_t limit, struct qk_store_usage *ret, struct qk_err *err);

#endif
