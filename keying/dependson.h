/* Reading `dependsOn`: what its items ask for, in whichever form they are written. */
#ifndef QK_KEYING_DEPENDSON_H
#define QK_KEYING_DEPENDSON_H

#include "base/err.h"
#include "keying/workspace.h"

#include <stdbool.h>
#include <stddef.h>

/* One thing asked for. */
struct qk_wanted {
	const char *target;
	bool dependencies;                        /* of every project this one depends on */
	const struct qk_project *const *projects; /* else: of these */
	size_t n_projects;
	bool forward_params, forward_options;
	const struct qk_json *at;
};

/* Target names of the whole workspace and answers to patterns, kept while a graph is built. */
struct qk_dependson;

struct qk_dependson *qk_dependson_new(struct qk_workspace *ws, struct qk_arena *arena);
void qk_dependson_free(struct qk_dependson *d);

/*
 * What the target asks for, in the arena, glob targets expanded. An item of a wrong type is an
 * error; one that can lead nowhere is a warning of the workspace.
 */
int qk_dependson_read(struct qk_dependson *d, const struct qk_target *t, struct qk_wanted **ret,
	size_t *ret_n, struct qk_err *err);

#endif
