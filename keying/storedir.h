/*
 * The directory of a store, for store.c, pathsets.c and prune.c alone: names, locks, files that appear whole.
 *
 *   DIR/v1/lock            u64 bytes in the store, about; flock: shared while storing, else pruning
 *   DIR/v1/entries/ab/cd…  one file a key (layout in store.c); mtime: when it was last of use
 *   DIR/v1/sets/ab/cd…     path sets of a weak key (pathsets.c), the files of a group (grouptext.c);
 *                          mtime: about when last of use
 *   DIR/v1/blobs/ab/cd…    one file a content, named by its digest; mode 0444
 *   DIR/v1/claims/abcd…    flock: somebody is making this key's result
 *   DIR/v1/tmp/…           not yet renamed; whatever is here while nobody stores is left from a
 * crash
 */
#ifndef QK_KEYING_STOREDIR_H
#define QK_KEYING_STOREDIR_H

#include "base/buf.h"
#include "base/err.h"
#include "keying/digest.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct qk_store {
	char *dir; /* DIR/v1 */
	int fd;
	int lockfd;
	uint64_t limit;
};

enum { QK_STOREDIR_NAME = 48 };

/* Fills a zeroed s, whose limit is the caller's; on failure too it may be closed. */
int qk_storedir_open(struct qk_store *s, const char *dir, struct qk_err *err);
void qk_storedir_close(struct qk_store *s);

/* "entries/ab/cd…" for room "entries". */
void qk_storedir_name(const char *room, const struct qk_digest *d, char ret[QK_STOREDIR_NAME]);

/* A new file under tmp/, its name in name. Descriptor or -errno. */
int qk_storedir_temp(struct qk_store *s, char name[QK_STOREDIR_NAME]);

/* Gives a temporary its final name, making the directory for it if need be. 0 or -errno. */
int qk_storedir_publish(struct qk_store *s, const char *temp, const char *name);

/*
 * Sealed files: 8 bytes of magic, the digest of what follows (16 bytes), the rest. What does not match
 * its digest is removed and counts as not there. Writing: _begin, append, _write. Reading: true, and the
 * whole file is in out, what was written from QK_STOREDIR_HEAD on; the use is noted, about once a day.
 */
enum { QK_STOREDIR_HEAD = 8 + QK_DIGEST_SIZE };
void qk_storedir_begin(struct qk_buf *b, const char *magic);
int qk_storedir_write(struct qk_store *s, const char *name, struct qk_buf *b, struct qk_err *err);
bool qk_storedir_read(struct qk_store *s, const char *name, const char *magic, struct qk_buf *out);

/* flock operation on the store; waits unless LOCK_NB. 0 or -errno. */
int qk_storedir_lock(struct qk_store *s, int operation);

/* Adds to the byte count and returns the new one; or sets it. */
uint64_t qk_storedir_count(struct qk_store *s, uint64_t bytes);
void qk_storedir_set_count(struct qk_store *s, uint64_t bytes);

/* Bytes a file of that size takes: whole blocks of 4 KiB. */
uint64_t qk_storedir_blocks(uint64_t size);

#endif
