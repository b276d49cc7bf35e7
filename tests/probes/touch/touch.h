/*
 * What the two halves of touch.c share: verbs by name, and short ways to say what is to come of a call.
 */
#ifndef QK_TESTS_PROBES_TOUCH_H
#define QK_TESTS_PROBES_TOUCH_H

#include <sys/types.h>

enum { SKIP = 77 };

struct verb {
	const char *name;
	int (*run)(void);
};

#define VERB(v) { #v, v }

/* In a thread, another program or by another entry; ends with a name that is NULL. */
extern const struct verb program_verbs[];

/* 0 if it is as said. */
int opens(const char *path, int flags); /* and closes it */
int fails(int r, int err);
int wait_for(pid_t pid);

#endif
