/*
 * Runs a shell script as a user, in a directory, with an environment of its own, for at most so
 * many seconds, and sees to it that nothing of it lives on. The calling process becomes a child
 * subreaper: it must have no other children.
 */
#ifndef QK_TESTS_CHILD_H
#define QK_TESTS_CHILD_H

#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
	const char *script; /* given to sh -c */
	const char *dir;
	char *const *env;
	const char *out, *err; /* files that take stdout and stderr (emptied first) */
	uid_t uid;
	gid_t gid;
	int seconds;
};

struct child_result {
	int status;     /* exit status, 128 + signal as a shell says it */
	bool timed_out; /* ended by us */
	struct qk_strv
		left; /* names of processes still there 2 s after the script ended; ended by us */
};

int child_run(const struct child *c, struct child_result *ret, struct qk_err *err);
void child_result_release(struct child_result *r);

#endif
