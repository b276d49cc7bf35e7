#include "keying/pnpmdir.h"

#include <ctype.h>
#include <md5.h>
#include <sha2.h>
#include <stdbool.h>
#include <string.h>

/* Names that are cut short end in one of these, by which pnpm tells them apart. */
static void md5(const struct qk_buf *text, unsigned char ret[MD5_DIGEST_LENGTH])
{
	MD5_CTX c;

	MD5Init(&c);
	MD5Update(&c, (const uint8_t *)text->s, text->len);
	MD5Final(ret, &c);
}

static void sha256(const struct qk_buf *text, unsigned char ret[SHA256_DIGEST_LENGTH])
{
	SHA2_CTX c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)text->s, text->len);
	SHA256Final(ret, &c);
}

static void add_plain(struct qk_buf *out, const char *key, enum qk_pnpmdir_form form)
{
	const char *refused = form == QK_PNPMDIR_9 ? "\\/:*?\"<>|" : "\\/:*?\"<>|#";
	const char *s = key + (*key == '/');

	for (; *s; s++) {
		if (strchr(refused, *s))
			qk_buf_addch(out, '+');
		else if (*s == ')' && !s[1])
			break;
		else if (*s == '(' || *s == ')')
			qk_buf_addch(out, '_');
		else
			qk_buf_addch(out, *s);
		s += *s == ')' && s[1] == '(';
	}
}

static bool has_upper(const char *s)
{
	for (; *s; s++)
		if (isupper((unsigned char)*s))
			return true;
	return false;
}

/* RFC 4648, in small letters and without padding. */
static void add_base32(struct qk_buf *out, const unsigned char *p, size_t n)
{
	unsigned int bits = 0, have = 0;

	for (size_t i = 0; i < n || have; have -= have < 5 ? have : 5) {
		while (have < 5 && i < n) {
			bits = bits << 8 | p[i++];
			have += 8;
		}
		if (have < 5) {
			qk_buf_addch(out, "abcdefghijklmnopqrstuvwxyz234567"[bits << (5 - have) & 31]);
			continue;
		}
		qk_buf_addch(out, "abcdefghijklmnopqrstuvwxyz234567"[bits >> (have - 5) & 31]);
	}
}

void qk_pnpmdir_name(struct qk_buf *out, const char *key, enum qk_pnpmdir_form form, size_t max)
{
	const size_t digest = form == QK_PNPMDIR_9 ? 26 : 32; /* characters */
	qk_autobuf struct qk_buf plain = QK_BUF_INIT;
	unsigned char d[SHA256_DIGEST_LENGTH];
	size_t kept = max > digest + 1 ? max - digest - 1 : 0;

	add_plain(&plain, key, form);
	if (plain.len <= max && (!has_upper(plain.s) || !strncmp(plain.s, "file+", 5))) {
		qk_buf_add(out, plain.s, plain.len);
		return;
	}
	qk_buf_add(out, plain.s, plain.len < kept ? plain.len : kept);
	qk_buf_addch(out, '_');
	if (form == QK_PNPMDIR_9) {
		md5(&plain, d);
		add_base32(out, d, MD5_DIGEST_LENGTH);
		return;
	}
	sha256(&plain, d);
	for (size_t i = 0; i < 16; i++)
		qk_buf_addf(out, "%02x", d[i]);
}
