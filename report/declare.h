/*
 * From declarations to policy: what the request of a Makefile recipe lets it touch.
 *
 * Readable are the prerequisites, QK_INPUTS and what the dependency file lists; writable are the
 * targets and QK_OUTPUTS. A target that is a directory is writable whole. A prerequisite that is a
 * directory grants itself, not what is in it: make does not look there either. In a QK_ variable a
 * plain name stands for a file or a whole directory.
 */
#ifndef QK_REPORT_DECLARE_H
#define QK_REPORT_DECLARE_H

#include "keying/request.h"
#include "sandbox/policy.h"

/* Fills an empty policy. The caller then adds what else it knows, and resolves. */
void qk_declare(struct qk_policy *p, const struct qk_request *r);

/* True if QK_IGNORE_WRITES has the absolute path: a write there is no finding. */
bool qk_declare_ignores_write(const struct qk_request *r, const char *path);

/* How an entry of a QK_ variable is matched; *ret_path is allocated (without a trailing "**"). */
enum qk_scope qk_declare_scope(const char *entry, char **ret_path);

#endif
