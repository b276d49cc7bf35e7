/*
 * One variant of a case: a make, a recorder, a user and a back end, through all of the case's
 * modes.
 */
#ifndef QK_TESTS_VARIANT_H
#define QK_TESTS_VARIANT_H

#include "base/buf.h"
#include "tests/harness/casefile.h"

/* Where things are; the same for all cases. */
struct place {
	const char *source;  /* the project's source tree; qk.mk is there */
	const char *build;   /* its build directory */
	const char *make;    /* the system's make */
	const char *make441; /* GNU Make 4.4.1, NULL if it is not there */
	const char *no_ebpf; /* why the eBPF recorder cannot record here; NULL = it can */
	bool verbose;        /* show what passing cases print as well */
};

struct variant {
	const char *make;     /* "system" or "4.4.1" */
	const char *recorder; /* NULL: QK_RECORDER stays unset */
	const char *user;     /* "me", or "nobody" for uid 65534 when we are root */
	const char *walls;    /* "best", "inner" or "landlock" */
};

/*
 * Runs it in a fresh temporary directory and appends to out one line per mode: "ok ...",
 * "not ok ...: why" or "skip ...: why", and below a failure what was printed, behind '#'.
 * The calling process must have no children (see child.h).
 */
void variant_run(const struct casefile *c, const struct variant *v, const struct place *at,
	struct qk_buf *out);

#endif
