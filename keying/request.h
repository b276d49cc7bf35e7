/*
 * A request: what make says about one recipe, written by the plugin just before make starts the
 * recipe and read by the runner, once per line, and again by the summary.
 *
 * Requests of one make process are appended to one file of the run directory, requests.PID; the
 * environment variable QK_REQ of the recipe names one as FILE:OFFSET:LENGTH (decimal).
 *
 * Layout (base/record.h): one record per request. Its first field is the magic, whose value
 * changes with the layout; then the fields of enum request_tag in any order, lists one element a
 * field. Paths are bytes as make knows them, relative to cwd unless absolute.
 */
#ifndef QK_KEYING_REQUEST_H
#define QK_KEYING_REQUEST_H

#include "base/err.h"
#include "base/mem.h"
#include "base/record.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum qk_mode {
	QK_MODE_OFF,
	QK_MODE_AUDIT,
	QK_MODE_ENFORCE,
};

/* The declaration lists, one make variable each. */
enum qk_list {
	QK_LIST_PREREQS,      /* $^ */
	QK_LIST_ORDER,        /* $| */
	QK_LIST_SIBLINGS,     /* the other targets that the recipe makes */
	QK_LIST_INPUTS,       /* QK_INPUTS, and so on */
	QK_LIST_OUTPUTS,
	QK_LIST_SCRATCH,
	QK_LIST_WARM,
	QK_LIST_IGNORE_READS,
	QK_LIST_ENV,
	QK_LIST_RUNTIME,
	QK_LIST_DEPFILE,
	QK_LIST_ALLOW_READ,
	QK_LIST_ALLOW_WRITE,
	QK_LIST_IGNORE_WRITES,
	/* of workspace tasks too (keying/sandboxspec.h); "true" alone is everything */
	QK_LIST_ALLOW_NETWORK,
	QK_LIST_DENY_NETWORK,
	QK_LIST_IGNORE_NETWORK,
	QK_LIST_ALLOW_LOCAL_BINDING, /* ports */
	QK_LIST_ALLOW_UNIX_SOCKETS,
	QK_LIST_ALLOW, /* "pty", "git-config" */
	QK_N_LISTS,
};

/* What is to be done about a recipe's result. */
enum qk_caching {
	QK_CACHING_RESTORE = 1 << 0, /* take it from the store instead of running */
	QK_CACHING_STORE = 1 << 1,   /* keep it */
	QK_CACHING_RECORD = 1 << 2,  /* keep what was looked at */
	QK_CACHING_EXPLAIN = 1 << 3, /* say why it was not in the store */
	QK_CACHING_ASK = 1 << 4,     /* and run nothing (QK_WHY); by itself: of a target not asked for */
};

extern const char *const qk_list_variables[QK_N_LISTS]; /* "^", "|", "QK_INPUTS" ... */

/* Numbers that are the same for every recipe of a run travel along: one read serves the runner. */
struct qk_request {
	struct qk_arena arena;
	uint64_t make_pid; /* which make wrote it; with offset the request's identity in the run */
	uint64_t offset;
	uint64_t parent_pid, parent_offset; /* the recipe that started this make; parent_pid 0 = none */
	enum qk_mode mode;
	uint64_t recorder; /* enum qk_recorder_kind, as chosen for the run */
	uint64_t backend;  /* enum qk_backend */
	bool off;          /* QK_SANDBOX = off: this target runs as it is */
	bool is_explicit;  /* a workspace task held to its grants, in whatever mode */
	bool strict;       /* going beyond fails it, though it ended well */
	bool uses_make;    /* $(MAKE) was expanded in the recipe */
	const char *target; /* $@ */
	const char *cwd;    /* make's working directory, absolute */
	const char *root;   /* the workspace, resolved */
	const char *state;  /* .qk at the root */
	const char *run;    /* the run directory */
	const char *fastlane; /* path of the fast lane's library; NULL = recorded without */
	const char *shell;  /* what the Makefile set as SHELL: words */
	const char *make;   /* $(MAKE_COMMAND) */
	uint64_t caching;       /* enum qk_caching */
	uint64_t system_reads;  /* enum qk_system_reads */
	uint64_t cache_limit;   /* bytes; 0 = none */
	const char *cache_dir;  /* absolute; NULL without caching */
	const char *makefiles; /* MAKEFILES as the user had it; NULL = unset */
	const char *task; /* a workspace task: its record (keying/taskspec.h); NULL: a recipe */
	size_t task_len;
	const char *project; /* of a task: its project's directory, relative to the root */
	QK_VEC(const char *) lists[QK_N_LISTS];
};

/*
 * Whether the task's network is as without qk: it is not held, it says nothing of hosts (a recipe),
 * or it is granted all and denied none.
 */
bool qk_request_network_open(const struct qk_request *r);

/* Whether it is closed, but for hosts that are granted. */
bool qk_request_network_filtered(const struct qk_request *r);

/* Appends the request's record to out. arena, offset and make_pid's file are the caller's matter. */
void qk_request_write(const struct qk_request *r, struct qk_buf *out);

/*
 * Reads one record; strings are copied into r->arena. Damaged or foreign data: -EBADMSG, naming
 * the field. r is initialised here and must be released also after a failure.
 */
int qk_request_read(
	struct qk_request *r, const char *p, size_t n, uint64_t offset, struct qk_err *err);

/* Reads the request that a QK_REQ value names. */
int qk_request_load(struct qk_request *r, const char *value, struct qk_err *err);

void qk_request_release(struct qk_request *r);

#endif
