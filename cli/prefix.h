/*
 * Where this qk is installed: qk.mk and what it loads, found from the program itself, so that a
 * program and a plugin of one version meet whatever else is installed.
 *
 *   PREFIX/bin/qk    PREFIX/include/qk.mk    PREFIX/lib/qk/qk.so    PREFIX/libexec/qk/sh
 *
 * In a source tree PREFIX is build/, and qk.mk stands beside it.
 */
#ifndef QK_CLI_PREFIX_H
#define QK_CLI_PREFIX_H

#include "base/err.h"

struct qk_prefix {
	char *mk; /* absolute, as the other two */
	char *plugin, *runner;
};

/* -ENOENT with the name of what is missing. Release also after a failure. */
int qk_prefix_find(struct qk_prefix *p, struct qk_err *err);

/* The same for a program at path. */
int qk_prefix_of(struct qk_prefix *p, const char *program, struct qk_err *err);
void qk_prefix_release(struct qk_prefix *p);

#endif
