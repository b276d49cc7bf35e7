#include "keying/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* xxhash.h stays out of our header: with XXH_INLINE_ALL it would be compiled into every module. */
static_assert(sizeof(((struct qk_hasher *)0)->state) >= sizeof(XXH3_state_t), "state too small");
static_assert(sizeof(XXH128_canonical_t) == QK_DIGEST_SIZE, "digest size");

static XXH3_state_t *state_of(struct qk_hasher *h)
{
	return (XXH3_state_t *)(void *)h->state;
}

void qk_hasher_init(struct qk_hasher *h)
{
	XXH3_INITSTATE(state_of(h));
	XXH3_128bits_reset(state_of(h));
}

void qk_hasher_add(struct qk_hasher *h, const void *p, size_t n)
{
	if (n)
		XXH3_128bits_update(state_of(h), p, n);
}

void qk_hasher_field(struct qk_hasher *h, const void *p, size_t n)
{
	unsigned char le[8];

	for (int i = 0; i < 8; i++)
		le[i] = (unsigned char)((uint64_t)n >> 8 * i);
	qk_hasher_add(h, le, sizeof(le));
	qk_hasher_add(h, p, n);
}

static void canonical(XXH128_hash_t hash, struct qk_digest *ret)
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, hash);
	memcpy(ret->b, c.digest, QK_DIGEST_SIZE);
}

void qk_hasher_done(const struct qk_hasher *h, struct qk_digest *ret)
{
	canonical(XXH3_128bits_digest((const XXH3_state_t *)(const void *)h->state), ret);
}

void qk_digest_bytes(const void *p, size_t n, struct qk_digest *ret)
{
	canonical(XXH3_128bits(p, n), ret);
}

int qk_digest_fd(int fd, struct qk_digest *ret)
{
	char block[1 << 16];
	struct qk_hasher h;
	size_t have = 0;
	bool big = false;

	/* Most sources fit one block and are cheaper hashed at once than streamed. */
	for (;;) {
		ssize_t n = read(fd, block + have, sizeof(block) - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		if (!n || have == sizeof(block)) {
			if (!n && !big) {
				qk_digest_bytes(block, have, ret);
				return 0;
			}
			if (!big)
				qk_hasher_init(&h);
			big = true;
			qk_hasher_add(&h, block, have);
			have = 0;
		}
		if (!n) {
			qk_hasher_done(&h, ret);
			return 0;
		}
	}
}

void qk_digest_hex(const struct qk_digest *d, char ret[QK_DIGEST_HEX])
{
	for (int i = 0; i < QK_DIGEST_SIZE; i++) {
		ret[2 * i] = "0123456789abcdef"[d->b[i] >> 4];
		ret[2 * i + 1] = "0123456789abcdef"[d->b[i] & 15];
	}
	ret[QK_DIGEST_HEX - 1] = '\0';
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int qk_digest_parse(const char *hex, struct qk_digest *ret)
{
	for (int i = 0; i < QK_DIGEST_SIZE; i++) {
		int hi = digit(hex[2 * i]), lo = hi < 0 ? -1 : digit(hex[2 * i + 1]);

		if (lo < 0)
			return -EINVAL;
		ret->b[i] = (unsigned char)(hi << 4 | lo);
	}
	return hex[QK_DIGEST_HEX - 1] ? -EINVAL : 0;
}
