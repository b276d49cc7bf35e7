/*
 * libyaml takes time that grows with the square of how deep flow collections nest, before anyone sees
 * the first node: a megabyte of '[' is a day. Text is looked at with this first.
 */
#ifndef QK_KEYING_YAMLDEPTH_H
#define QK_KEYING_YAMLDEPTH_H

#include "base/err.h"

#include <stddef.h>

enum { QK_YAML_DEPTH = 1000 };

/*
 * -EINVAL with file, line and column if more brackets or braces are open at once, or more of a line's
 * "- ", than QK_YAML_DEPTH. Those in quoted text count as well: it takes that many without an end.
 */
int qk_yaml_check_depth(const char *file, const char *p, size_t n, struct qk_err *err);

#endif
