/*
 * Adding to a JSON document as text, so that comments, order and layout stay as their author has
 * them: what is added stands behind the last item or member, on a line of its own where that one
 * does, and a trailing comma stays one.
 */
#ifndef QK_KEYING_JSONEDIT_H
#define QK_KEYING_JSONEDIT_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

/*
 * Adds items (texts of JSON values) to the array that the keys lead to from the document's top object;
 * keys is NULL-terminated. What is missing on the way is made, and the array then begins with the
 * texts of base. name is how complaints call the document. -EINVAL: it does not parse, or something
 * else stands there. The text is the old one then.
 */
int qk_jsonedit_append(struct qk_buf *text, const char *name, const char *const *keys,
	const char *const *base, size_t n_base, const char *const *items, size_t n, struct qk_err *err);

#endif
