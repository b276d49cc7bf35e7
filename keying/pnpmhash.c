#include "keying/pnpmhash.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static uint32_t left(uint32_t x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t right(uint32_t x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

/* The text, a one bit, zeros, and its length in bits: whole blocks of 64. The caller frees. */
static unsigned char *padded(const char *s, size_t n, bool big_endian, size_t *ret_n)
{
	size_t all = (n + 9 + 63) / 64 * 64;
	unsigned char *p = qk_zalloc(all);

	memcpy(p, s, n);
	p[n] = 0x80;
	for (size_t i = 0; i < 8; i++)
		p[big_endian ? all - 1 - i : all - 8 + i] = (unsigned char)((uint64_t)n * 8 >> 8 * i);
	*ret_n = all;
	return p;
}

static uint32_t little(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t big(const unsigned char *p)
{
	return p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

/* floor(abs(sin(i + 1)) * 2^32) */
static const uint32_t md5_sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
	0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
	0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
	0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
	0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
	0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
	0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
	0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
	0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
	0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const unsigned char md5_shifts[4][4] = { { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 },
	{ 6, 10, 15, 21 } };

static void md5_block(uint32_t state[4], const unsigned char *p)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3], f, next;

	for (unsigned int i = 0; i < 64; i++) {
		unsigned int round = i / 16, at;

		switch (round) {
		case 0: f = (b & c) | (~b & d), at = i; break;
		case 1: f = (d & b) | (~d & c), at = 5 * i + 1; break;
		case 2: f = b ^ c ^ d, at = 3 * i + 5; break;
		default: f = c ^ (b | ~d), at = 7 * i; break;
		}
		next = b + left(a + f + md5_sines[i] + little(p + 4 * (at % 16)), md5_shifts[round][i % 4]);
		a = d, d = c, c = b, b = next;
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

void qk_pnpmhash_md5(const char *s, size_t n, unsigned char ret[16])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	size_t all;
	qk_autofree unsigned char *p = padded(s, n, false, &all);

	for (size_t i = 0; i < all; i += 64)
		md5_block(state, p + i);
	for (size_t i = 0; i < 16; i++)
		ret[i] = (unsigned char)(state[i / 4] >> 8 * (i % 4));
}

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t sha256_roots[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_block(uint32_t state[8], const unsigned char *p)
{
	uint32_t w[64], v[8];

	for (size_t i = 0; i < 16; i++)
		w[i] = big(p + 4 * i);
	for (size_t i = 16; i < 64; i++) {
		uint32_t x = w[i - 15], y = w[i - 2];

		w[i] = w[i - 16] + (right(x, 7) ^ right(x, 18) ^ x >> 3) + w[i - 7] +
		       (right(y, 17) ^ right(y, 19) ^ y >> 10);
	}
	memcpy(v, state, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		uint32_t a = v[0], e = v[4], one, two;

		one = v[7] + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
		      sha256_roots[i] + w[i];
		two = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) +
		      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += one;
		v[0] = one + two;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += v[i];
}

void qk_pnpmhash_sha256(const char *s, size_t n, unsigned char ret[32])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		0x1f83d9ab, 0x5be0cd19 };
	size_t all;
	qk_autofree unsigned char *p = padded(s, n, true, &all);

	for (size_t i = 0; i < all; i += 64)
		sha256_block(state, p + i);
	for (size_t i = 0; i < 32; i++)
		ret[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}
