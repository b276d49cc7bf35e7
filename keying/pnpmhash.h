/*
 * MD5 (RFC 1321) and SHA-256 (FIPS 180-4), as pnpm shortens long names by them. For nothing that has
 * to be safe, and for texts of at most 8 KiB or so: all of it is padded in memory.
 */
#ifndef QK_KEYING_PNPMHASH_H
#define QK_KEYING_PNPMHASH_H

#include <stddef.h>

void qk_pnpmhash_md5(const char *s, size_t n, unsigned char ret[16]);
void qk_pnpmhash_sha256(const char *s, size_t n, unsigned char ret[32]);

#endif
