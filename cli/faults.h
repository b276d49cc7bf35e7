/*
 * What `qk doctor` finds: a list of lines with a stable area and kind, for people and for --strict.
 */
#ifndef QK_CLI_FAULTS_H
#define QK_CLI_FAULTS_H

#include "base/vec.h"

struct qk_fault {
	const char *area; /* "host", "install", "workspace" */
	const char *kind; /* "recorder", "scratch" ...: qk(1) lists them */
	char *text;       /* begins with file:line:column where there is a place */
};

struct qk_faults {
	QK_VEC(struct qk_fault) v;
};

void qk_faults_add(struct qk_faults *f, const char *area, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void qk_faults_release(struct qk_faults *f);

#endif
