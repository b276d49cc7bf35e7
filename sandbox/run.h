/*
 * Runs one command: starts a recorder, builds the walls, waits for the whole process tree, and
 * says what happened. The calling process must be single-threaded; it becomes a child subreaper
 * and, under enforce, enters namespaces, so it runs one command and then reports and exits.
 *
 * The command sees what it would see without qk: the same stdin, stdout, stderr and job server
 * descriptors, process group, terminal, umask, limits, signal mask and dispositions.
 */
#ifndef QK_SANDBOX_RUN_H
#define QK_SANDBOX_RUN_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/policy.h"
#include "sandbox/recorder.h"
#include "sandbox/trace.h"
#include "sandbox/walls.h"

#include <stdbool.h>

/* A descriptor looked after while the command runs: ready is called when something can be read. */
struct qk_run_watch {
	int fd; /* -1: not any more */
	void (*ready)(struct qk_run_watch *w);
	void *arg;
};

struct qk_run_spec {
	char *const *argv;
	char *const *envp;
	enum qk_recorder_kind recorder; /* QK_RECORDER_NONE: not recorded */
	struct qk_walls *walls;         /* NULL: no walls (audit) */
	const struct qk_policy *policy; /* what the command may do: the seccomp recorder then helps it
					   to (doorman.h). NULL: it only records */
	const char *tmpdir; /* existing directory for a recorder's files (the run directory) */
	const char *fastlane; /* path of fastlane.so, for the seccomp recorder; NULL: no fast lane */
	struct qk_run_watch *watches; /* up to QK_RUN_WATCHES */
	unsigned int n_watches;
	bool end_leftovers; /* enforce: end what the command leaves running; else let it live */
};

struct qk_run_result {
	int status;           /* as from waitpid(2), of the command itself */
	int exec_errno;       /* the command could not be executed: why; status is then 127 or 126 << 8 */
	unsigned long by_lane; /* events that came by the fast lane; 0 also where it did not work */
	unsigned long for_lane; /* events told one by one that it might have brought (run without it) */
	bool interrupted;     /* this process was sent SIGINT, SIGTERM, SIGHUP or SIGQUIT meanwhile */
	struct qk_strv left;  /* processes left running: "sleep 1000 (pid 123)" */
};

enum { QK_RUN_WATCHES = 4 };

/*
 * t is initialised by the caller, with its roots. Negative only if the command could not be
 * started because of the recorder or the walls (err says which step): nothing has run then.
 * A recorder that fails later marks the trace incomplete, and the command goes on.
 *
 * SIGTERM, SIGHUP, SIGINT and SIGQUIT sent to this process alone are passed on to the command
 * (those that come from the terminal reach it anyway); once it has ended, whatever it left is
 * ended too (SIGTERM, then SIGKILL). If this process is killed, the command is (PR_SET_PDEATHSIG).
 */
int qk_run(const struct qk_run_spec *spec, struct qk_trace *t, struct qk_run_result *ret,
	struct qk_err *err);

void qk_run_result_release(struct qk_run_result *r);

#endif
