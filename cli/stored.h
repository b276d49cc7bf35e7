/*
 * How much a store holds, looked at from outside: without making, locking or pruning it.
 */
#ifndef QK_CLI_STORED_H
#define QK_CLI_STORED_H

#include <stdint.h>

struct qk_stored {
	uint64_t entries; /* results */
	uint64_t bytes;   /* on disk, of all its files */
};

/* A store that is not there holds nothing; what cannot be looked at is left out. */
void qk_stored_count(const char *dir, struct qk_stored *ret);

/* "1.5 MiB". The caller frees. */
char *qk_stored_size(uint64_t bytes);

#endif
