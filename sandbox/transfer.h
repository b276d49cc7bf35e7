/*
 * One file from the upper layer to the workspace: compared, then moved. Names are single
 * components in open directories; links are handled as links.
 */
#ifndef QK_SANDBOX_TRANSFER_H
#define QK_SANDBOX_TRANSFER_H

#include <stdbool.h>
#include <sys/stat.h>

/* True if both are of one kind and mode and hold the same bytes (or link text). */
bool qk_transfer_same(int upper, int lower, const char *name, const struct stat *up,
	const struct stat *low);
bool qk_transfer_same_time(const struct stat *a, const struct stat *b);
bool qk_transfer_later(const struct timespec *a, const struct timespec *b); /* a later than b */

/*
 * Replaces lower/name by upper/name: a rename, which keeps all there is to keep; between file
 * systems a copy of contents, mode, owner and times beside it, then a rename. The names that
 * overlayfs gives its bookkeeping attributes are taken off. 0 or -errno, with the old file kept.
 */
int qk_transfer(int upper, int lower, const char *name, const struct stat *up);

/* Copies from/name to to/name, contents, mode, owner and times. 0 or -errno. */
int qk_transfer_copy(int from, int to, const char *name, const struct stat *st);

/* Gives path beneath dirfd a file of its own, with the same contents, mode, owner and times. */
int qk_transfer_unshare(int dirfd, const char *path);

/* True if dirfd/name carries the extended attribute. */
bool qk_transfer_has_mark(int dirfd, const char *name, const char *attribute);

#endif
