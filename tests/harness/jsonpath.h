/*
 * Questions to a JSON report, one per line of a case:
 *
 *   STEP STEP ... = VALUE ...        what is selected is exactly these values, in any order
 *   STEP STEP ... has VALUE ...      each of these is among them; without a VALUE, there is one
 *   STEP STEP ... lacks VALUE ...    none of these is
 *
 * A step is a member name, an index, or * for every member. A step or value that holds blanks is
 * written as a JSON string. A selected string stands for itself, anything else for its compact JSON
 * text. Bytes that are no UTF-8 appear in reports as lone surrogates; here they are bytes again,
 * and a case writes them as \udcXX too.
 */
#ifndef QK_TESTS_JSONPATH_H
#define QK_TESTS_JSONPATH_H

#include "base/err.h"

#include <cjson/cJSON.h>

/* NULL with err set if the file is missing or no JSON. The caller deletes it with cJSON_Delete. */
cJSON *json_read(const char *path, struct qk_err *err);

/* 0 if the answer is yes; else -EINVAL, err saying what there is instead. */
int json_ask(const cJSON *doc, const char *question, struct qk_err *err);

#endif
