/*
 * A json input: some fields of a JSON file as text. `fields` are dotted paths ("scripts.build");
 * a part of a path may also index an array. excludeFields takes such paths out of the whole.
 */
#ifndef QK_KEYING_JSONINPUT_H
#define QK_KEYING_JSONINPUT_H

#include "base/buf.h"
#include "base/mem.h"
#include "keying/json.h"

/*
 * Appends the text: with fields one "path=value" line each in the order given ("path" alone where
 * there is nothing), else the whole value, less excluded. v NULL: there is no such file. fields and
 * excluded are arrays of strings or NULL.
 */
void qk_jsoninput_text(struct qk_buf *out, const struct qk_json *v, const struct qk_json *fields,
	const struct qk_json *excluded);

#endif
