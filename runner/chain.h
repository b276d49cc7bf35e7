/*
 * From one line of a recipe to the next. Each line is a process of its own that does not know
 * whether it is the last; what the lines before it were and did is handed on in the run directory.
 *
 * A line's result may be used later only once the recipe has shown that it makes what it is for: all
 * its targets are files. Until then the line waits; the line after which it is so publishes the
 * waiting ones with its own. A recipe that never gets there (a phony one, one that fails) publishes
 * nothing.
 */
#ifndef QK_RUNNER_CHAIN_H
#define QK_RUNNER_CHAIN_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/digest.h"
#include "keying/pathset.h"
#include "keying/pathsets.h"
#include "keying/request.h"

#include <stdbool.h>
#include <stdint.h>

struct qk_chain {
	uint64_t lines;        /* so many came before */
	struct qk_digest weak; /* the key of the line before */
	bool tainted;          /* a line left what no key counts: none after it is looked up or stored */
	bool waiting;          /* the recipe has a file of lines that wait, and of strays */
	struct qk_strv strays; /* relative to the root: left by lines before, outputs of none */
};

/* What is there is taken for the first line's if nothing is. */
void qk_chain_read(struct qk_chain *c, const struct qk_request *r);
void qk_chain_release(struct qk_chain *c);

/* Hands on to the next line. weak is this line's. Failure makes that line run uncached. */
void qk_chain_write(struct qk_chain *c, const struct qk_request *r, const struct qk_digest *weak);

/* Has this line wait: its set (NULL: it is published already), what it leaves beside outputs. */
int qk_chain_wait(struct qk_chain *c, const struct qk_request *r, const struct qk_digest *weak,
	const struct qk_pathset *set, const struct qk_strv *strays, struct qk_err *err);

/* Publishes the lines that wait. */
int qk_chain_publish(struct qk_chain *c, const struct qk_request *r, struct qk_store *store,
	struct qk_err *err);

/* True if each target of the recipe is a file or a link. */
bool qk_chain_complete(const struct qk_request *r);

#endif
