/*
 * Remembered digests: (name, what stat said) -> digest, in one file that any number of processes
 * read and write at once without locks. It is only ever a short cut: an entry lost, damaged,
 * overwritten or not written is one digest computed again.
 *
 * A NULL cache is valid everywhere and remembers nothing.
 */
#ifndef QK_KEYING_DIGESTCACHE_H
#define QK_KEYING_DIGESTCACHE_H

#include "keying/digest.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

struct qk_digestcache;

/* Opens or makes the file. NULL if it can be neither read nor made. */
struct qk_digestcache *qk_digestcache_new(const char *path);
void qk_digestcache_free(struct qk_digestcache *c);

/* Goes over to the file that another process has put in place of the one that is open. */
void qk_digestcache_refresh(struct qk_digestcache *c);

/* True if name was remembered and st is what it had then. */
bool qk_digestcache_find(
	struct qk_digestcache *c, const char *name, const struct stat *st, struct qk_digest *ret);

/*
 * Remembers d for name. hashed: qk_digestcache_clock() from before the first byte was read. Not
 * settled then (see qk_digestcache_settled): nothing is remembered.
 */
void qk_digestcache_put(struct qk_digestcache *c, const char *name, const struct stat *st,
	struct timespec hashed, const struct qk_digest *d);

/* The clock that file time stamps are taken from. */
struct timespec qk_digestcache_clock(void);

/*
 * True if any change after `now` is bound to show in mtime or ctime: both are older than `now` by
 * more than the coarsest tick they can have. A pure function. An mtime ahead of the clock was set
 * by hand and tells nothing; ctime, which cannot be set, decides then.
 */
bool qk_digestcache_settled(const struct stat *st, struct timespec now);

#endif
