/*
 * A key: the digest over tagged fields that a task's result depends on, and the same fields as
 *text, so that "why a miss" is a diff of two texts.
 *
 * Every field is (tag, name, value), each hashed with its length in front; the text has one line a
 * field, `tag name value`, names and values quoted where they hold blanks or unprintable bytes:
 *
 *	env CPATH "/usr/local/include"
 *	file libs/core/a.c 3f0c2a…
 *
 * The order of fields counts: callers add lists in byte order.
 */
#ifndef QK_KEYING_KEY_H
#define QK_KEYING_KEY_H

#include "base/buf.h"
#include "keying/digest.h"

#include <stddef.h>

struct qk_key {
	struct qk_hasher h;
	struct qk_buf *text; /* NULL: no text is kept */
};

/*
 * Starts a key of its kind ("task", "recipe", "pathset"): two kinds never give the same key. The
 * version of what is folded is part of it, so that a new release does not believe keys of an old
 * one. text may be NULL, and stays the caller's.
 */
void qk_key_init(struct qk_key *k, const char *kind, struct qk_buf *text);

/* tag: a word without blanks. name and value: any bytes up to NUL; NULL is unlike "". */
void qk_key_add(struct qk_key *k, const char *tag, const char *name, const char *value);
void qk_key_add_digest(struct qk_key *k, const char *tag, const char *name,
	const struct qk_digest *d, const char *note);
void qk_key_done(struct qk_key *k, struct qk_digest *ret);

/*
 * Appends s as one token: as it is, or between double quotes with \n, \t, \", \\ and \xHH. Used for
 * every name and value of the text; "-" stands for NULL and a lone dash is quoted.
 */
void qk_key_quote(struct qk_buf *out, const char *s);

#endif
