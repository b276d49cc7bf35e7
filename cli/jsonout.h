/*
 * Writes one JSON document, two blanks a level, commas and quotes put where they belong. Strings
 * hold bytes, as report/json.h has them. A key is NULL within an array and at the top.
 */
#ifndef QK_CLI_JSONOUT_H
#define QK_CLI_JSONOUT_H

#include "base/buf.h"
#include "base/vec.h"
#include "keying/json.h"

#include <stdbool.h>
#include <stdint.h>

struct qk_jsonout {
	struct qk_buf out;
	int depth;
	bool filled; /* something stands before, at this level */
};

#define QK_JSONOUT_INIT { QK_BUF_INIT, 0, false }

void qk_jsonout_open(struct qk_jsonout *j, const char *key, char bracket);
void qk_jsonout_close(struct qk_jsonout *j, char bracket);
void qk_jsonout_string(struct qk_jsonout *j, const char *key, const char *s); /* NULL: null */
void qk_jsonout_number(struct qk_jsonout *j, const char *key, uint64_t n);
void qk_jsonout_bool(struct qk_jsonout *j, const char *key, bool b);
void qk_jsonout_value(struct qk_jsonout *j, const char *key, const struct qk_json *v);
void qk_jsonout_strings(struct qk_jsonout *j, const char *key, const char *const *v, size_t n);

/* Ends the document, writes it to stdout and releases it: 0 or an exit status. */
int qk_jsonout_print(struct qk_jsonout *j);

#endif
