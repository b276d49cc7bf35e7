/*
 * Acting for a task with the task's own standing: its file system ids and groups, its umask, and
 * no capability that it does not have. An ordinary user's supervisor is all-powerful in its user
 * namespace, over the user's own files too; what it does for a task must fail as for the task.
 *
 * For a single-threaded process; one guise at a time.
 */
#ifndef QK_SANDBOX_GUISE_H
#define QK_SANDBOX_GUISE_H

#include "base/vec.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/types.h>

/* What a process's /proc/PID/status says of its standing. */
struct qk_standing {
	mode_t umask;
	uid_t uid; /* of the file system */
	gid_t gid;
	QK_VEC(gid_t) groups;
	unsigned long long capabilities; /* effective */
};

/* Reads the text of a status file. False, with nothing to release, if anything is missing in it. */
bool qk_standing_parse(struct qk_standing *s, const char *status);

struct qk_guise {
	mode_t umask;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	int n_groups; /* -1: not changed */
	struct __user_cap_data_struct caps[2];
};

/* Puts the task's standing on; saved is for taking it off. 0, or -errno with nothing changed. */
int qk_guise_on(struct qk_guise *saved, pid_t task);
void qk_guise_off(struct qk_guise *saved);

#endif
