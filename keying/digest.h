/*
 * The one digest of the project: XXH3-128. It tells contents apart; it is no seal against somebody
 * who makes collisions on purpose (docs/threat-model says what the cache may be fed with).
 */
#ifndef QK_KEYING_DIGEST_H
#define QK_KEYING_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	QK_DIGEST_SIZE = 16,
	QK_DIGEST_HEX = 33, /* characters of the text form, with its NUL */
};

/* Big-endian bytes, as XXH128_canonical_t has them: equal on every machine. */
struct qk_digest {
	unsigned char b[QK_DIGEST_SIZE];
};

/* A digest in the making. Lives where the caller puts it, allocates nothing, needs no release. */
struct qk_hasher {
	_Alignas(64) unsigned char state[576];
};

void qk_hasher_init(struct qk_hasher *h);
void qk_hasher_add(struct qk_hasher *h, const void *p, size_t n);
/* Length first, so that two fields cannot be cut differently and give the same bytes. */
void qk_hasher_field(struct qk_hasher *h, const void *p, size_t n);
void qk_hasher_done(const struct qk_hasher *h, struct qk_digest *ret);

void qk_digest_bytes(const void *p, size_t n, struct qk_digest *ret);
/* Digest of what is left to read of fd. 0 or -errno. */
int qk_digest_fd(int fd, struct qk_digest *ret);

void qk_digest_hex(const struct qk_digest *d, char ret[QK_DIGEST_HEX]);
/* Exactly 32 lower-case hexadecimal digits, or -EINVAL. */
int qk_digest_parse(const char *hex, struct qk_digest *ret);

static inline bool qk_digest_eq(const struct qk_digest *a, const struct qk_digest *b)
{
	return !memcmp(a->b, b->b, QK_DIGEST_SIZE);
}

#endif
