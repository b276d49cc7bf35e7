/*
 * JSON with comments, read into an arena with the place of every value and key, so that whoever
 * finds fault with one later can say where it is: `libs/core/project.json:12:7: expected ','`.
 *
 * Beyond JSON it takes // and slash-star comments, trailing commas and a byte order mark. Of a key
 * given twice the last value counts; it stands where the first was, and the repeat is remembered.
 * Strings and keys are UTF-8, anything else is refused with its place; a NUL character (\u0000) is
 * refused, a lone surrogate (\ud800) becomes U+FFFD. Columns count bytes from 1, as compilers do.
 */
#ifndef QK_KEYING_JSONC_H
#define QK_KEYING_JSONC_H

#include "base/err.h"
#include "base/mem.h"
#include "keying/json.h"

#include <stddef.h>
#include <stdint.h>

enum {
	QK_JSON_SIZE_MAX = 100 * 1000 * 1000, /* bytes of one document */
	QK_JSON_DEPTH_MAX = 200,              /* arrays and objects inside each other */
};

/* A key that a document gives more than once. */
struct qk_json_repeat {
	const struct qk_json_repeat *next;
	const char *key, *file;
	uint32_t line, column; /* of the later one */
};

/*
 * Reads the n bytes at p. file is how complaints name the document (kept by pointer). With
 * repeats, keys given twice are put in front of that list. -EINVAL (bad text) or -EFBIG, with a
 * message that starts with the place.
 */
int qk_json_parse(struct qk_arena *a, const char *file, const char *p, size_t n,
	const struct qk_json **ret, const struct qk_json_repeat **repeats, struct qk_err *err);

/* The same of a file; path is opened, name is how it is called (copied). -ENOENT says nothing
 * wrong. */
int qk_json_read(struct qk_arena *a, const char *path, const char *name, const struct qk_json **ret,
	const struct qk_json_repeat **repeats, struct qk_err *err);

#endif
