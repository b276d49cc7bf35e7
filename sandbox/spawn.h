/*
 * Starts the command. The child shares our memory until it executes, so that starting costs no
 * copy of page tables, and shares our descriptors, so that the recorder's listener, which only the
 * child can make, is ours without being sent. Its exec ends both.
 */
#ifndef QK_SANDBOX_SPAWN_H
#define QK_SANDBOX_SPAWN_H

#include "base/err.h"
#include "sandbox/recorder-ebpf.h"
#include "sandbox/recorder-seccomp.h"
#include "sandbox/walls.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

/* What parent and child tell each other; in memory that both see. */
struct qk_spawn_shared {
	uint32_t state;   /* enum qk_spawn_state; a futex */
	int listener;     /* the recorder's, or -1 */
	int error;        /* FAILED: errno of the step; EXEC_FAILED: of execve */
	const char *step; /* FAILED: which step */
};

enum qk_spawn_state {
	QK_SPAWN_BEGUN,
	QK_SPAWN_READY,  /* about to execute */
	QK_SPAWN_FAILED, /* before execution: recorder or walls */
	QK_SPAWN_EXEC_FAILED,
};

struct qk_spawn {
	char *const *argv;
	char *const *envp;
	const struct qk_walls *walls;     /* NULL: none */
	const struct qk_seccomp *seccomp; /* NULL: none */
	bool ebpf; /* recorded from the kernel (recorder-ebpf.h) */
	const sigset_t *mask;             /* the signal mask the command gets */
	const sigset_t *defaults;         /* signals that we handle: default again in the command */
	const sigset_t *ignored;          /* signals that we handle and were given ignored */
	char *program; /* the file to execute; NULL: found along PATH. Owned */
	/* set by qk_spawn */
	struct qk_spawn_shared *shared;
	void *area;
	pid_t pid, parent;
	char **script;   /* the argv that runs it as a script */
};

/*
 * Starts the command; signals that are handled must be blocked. With a recorder it waits until
 * the child is about to execute, and shared->listener is set then. After a failure in the child
 * (shared->state) the child is still to be reaped.
 */
int qk_spawn(struct qk_spawn *s, struct qk_err *err);
void qk_spawn_release(struct qk_spawn *s); /* not before the child has executed or ended */

/*
 * The file that execvp(3) would execute for name, found along PATH of envp; name itself if it has
 * a slash or nothing is found. The caller frees.
 */
char *qk_spawn_find(const char *name, char *const *envp);

/* True if execve(2) would say ENOEXEC of the program: execvp(3) runs such a file as a shell script. */
bool qk_spawn_is_script(const char *name, char *const *envp);

#endif
