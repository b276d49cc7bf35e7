/*
 * JSON values: what jsonc.h reads and merge.h combines. They never change once made; new ones share
 * parts with old ones. All of them, with their strings and file names, live as long as their arena.
 */
#ifndef QK_KEYING_JSON_H
#define QK_KEYING_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qk_json_type {
	QK_JSON_NULL,
	QK_JSON_BOOL,
	QK_JSON_NUMBER,
	QK_JSON_STRING,
	QK_JSON_ARRAY,
	QK_JSON_OBJECT,
};

struct qk_json {
	enum qk_json_type type : 8;
	bool boolean;
	uint32_t line, column; /* from 1; 0 = made by merging, of no one place */
	uint32_t n;            /* bytes of a string or number's text, items, members */
	const char *file;      /* as given to qk_json_parse */
	union {
		const char *s; /* terminated; of a number its text as written */
		const struct qk_json *const *items;
		const struct qk_json_member *members;
	};
};

struct qk_json_member {
	const char *key; /* terminated */
	uint32_t line, column;
	const struct qk_json *value;
};

/* A member's value; NULL if v is NULL, no object, or has no such member. */
const struct qk_json *qk_json_get(const struct qk_json *v, const char *key);
const struct qk_json_member *qk_json_member(const struct qk_json *v, const char *key);

/* Records "file:line:column: message" and returns -EINVAL. at may be NULL: no place then. */
int qk_json_fail(const struct qk_json *at, struct qk_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* "file:line:column", in the arena. */
const char *qk_json_place(struct qk_arena *a, const struct qk_json *at);

/* How a type is called in complaints: "a string". */
const char *qk_json_type_name(enum qk_json_type type);

/*
 * Typed members. An absent member (or null) leaves *ret as it was and is 0; one of another type is
 * -EINVAL: `file:3:9: "cache" must be true or false, not a string`. v must be an object or NULL.
 */
int qk_json_get_string(
	const struct qk_json *v, const char *key, const char **ret, struct qk_err *err);
int qk_json_get_bool(const struct qk_json *v, const char *key, bool *ret, struct qk_err *err);
int qk_json_get_array(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err);
int qk_json_get_object(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err);
/* An array of strings; a single string is refused. */
int qk_json_get_strings(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err);

bool qk_json_is(const struct qk_json *v, const char *s); /* a string equal to s */
bool qk_json_is_true(const struct qk_json *v);

/* Equal as data: members in any order, numbers by value. NULL equals NULL. */
bool qk_json_equal(const struct qk_json *a, const struct qk_json *b);

/*
 * Appends v as JSON without blanks; sorted puts members in the byte order of their keys. Equal data
 * gives equal text when sorted, numbers written in different ways aside.
 */
void qk_json_write(struct qk_buf *out, const struct qk_json *v, bool sorted);

/* Making values. Positions are taken from `at` (which may be NULL). Strings are copied. */
const struct qk_json *qk_json_new_string(
	struct qk_arena *a, const struct qk_json *at, const char *s);
const struct qk_json *qk_json_new_bool(struct qk_arena *a, const struct qk_json *at, bool b);
const struct qk_json *qk_json_new_array(
	struct qk_arena *a, const struct qk_json *at, const struct qk_json *const *items, size_t n);
/* members is copied, what it points to is not. */
const struct qk_json *qk_json_new_object(struct qk_arena *a, const struct qk_json *at,
	const struct qk_json_member *members, size_t n);

#endif
