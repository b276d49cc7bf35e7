/*
 * The fast lane, the runner's side. A library preloaded into the programs of a command answers
 * the calls that only look or read by calls of its own, which the recorder's filter lets pass by
 * where they come from, and leaves what came of them in a ring (sandbox/fastlane-ring.h). All else
 * meets the notification: static programs, libc's own opens, whatever writes. So the lane makes a
 * recording cheap and never incomplete.
 *
 * Order: the ring is emptied before any notified call is looked at, and a call is in the ring
 * before the library returns from it. What changes files is always notified, so what was read
 * before it is known before it, and the paths of the ring still mean what they meant.
 *
 * No process inherits the ring. A process that has just been executed and opens the library gets
 * the descriptor put into its table, close-on-exec, and the library closes it once it is mapped.
 */
#ifndef QK_SANDBOX_FASTLANE_H
#define QK_SANDBOX_FASTLANE_H

#include "base/err.h"
#include "base/vec.h"
#include "sandbox/fastlane-ring.h"
#include "sandbox/witness.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { QK_FASTLANE_STARTS = 256 };

struct qk_fastlane {
	int fd; /* of the ring; -1 = there is no lane */
	struct qk_lane_ring *ring;
	uint32_t tail;
	unsigned long events; /* taken out so far */
	pid_t started[QK_FASTLANE_STARTS]; /* executed, and the library not opened yet; by pid */
};

#define QK_FASTLANE_INIT                                                                           \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * Makes the ring. library is the path of fastlane.so; fastlane-32.so is looked for beside it when
 * it is needed. -ENOSYS on machines that the library is not made for.
 */
int qk_fastlane_open(struct qk_fastlane *l, const char *library, bool lookups, struct qk_err *err);
void qk_fastlane_release(struct qk_fastlane *l);

/* The environment that program is to be started with, into ret: envp, and the library if it suits. */
void qk_fastlane_env(const struct qk_fastlane *l, const char *program, char *const *envp,
	struct qk_strv *ret);

/* pid executes a program. */
void qk_fastlane_started(struct qk_fastlane *l, pid_t pid);

/*
 * The task of the notification id opens path. If that is its loader opening the library, it gets
 * the ring, and true says that this open is none of the command's.
 */
bool qk_fastlane_admit(
	struct qk_fastlane *l, int listener, uint64_t id, pid_t pid, const char *path);

/* Tells the witness what has come; marks its trace incomplete if the ring is damaged. */
void qk_fastlane_drain(struct qk_fastlane *l, struct qk_witness *w);

/* From now on every call is notified: paths mean different things, or calls are forbidden. */
void qk_fastlane_close(struct qk_fastlane *l);

#endif
