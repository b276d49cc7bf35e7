#include "gmk-plugin/orphans.h"

#include "base/fdio.h"
#include "report/result.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100, ENVIRON_MAX = 4 << 20 };

struct finished {
	struct qk_strv ids; /* "PID:OFFSET" of requests that have a result */
};

static void note(struct qk_result *r, void *arg)
{
	struct finished *f = arg;

	qk_strv_take(&f->ids, qk_asprintf("%llu:%llu", (unsigned long long)r->make_pid,
		(unsigned long long)r->offset));
}

/* The value of QK_TASK in a process's environment, "" if it has none: no recipe started it. */
static void task_of(long pid, struct qk_buf *value)
{
	qk_autofree char *path = qk_asprintf("/proc/%ld/environ", pid);
	qk_autobuf struct qk_buf env = QK_BUF_INIT;

	qk_buf_reset(value);
	if (qk_read_file(AT_FDCWD, path, ENVIRON_MAX, &env, NULL))
		return;
	for (size_t i = 0; i < env.len; i += strlen(env.s + i) + 1)
		if (!strncmp(env.s + i, "QK_TASK=", 8))
			qk_buf_addstr(value, env.s + i + 8);
}

void qk_orphans_end(const char *run)
{
	qk_autofree char *path = qk_asprintf("/proc/self/task/%d/children", (int)getpid());
	struct finished done = { 0 };
	bool read_results = false;

	/* what dies hands its own children to us: again, until nobody is left */
	for (int round = 0; round < ROUNDS; round++) {
		qk_autobuf struct qk_buf list = QK_BUF_INIT, task = QK_BUF_INIT;
		bool any = false;

		if (qk_read_file(AT_FDCWD, path, ENVIRON_MAX, &list, NULL) || !list.len)
			break;
		if (!read_results)
			qk_result_each(run, note, &done, NULL);
		read_results = true;
		for (char *s = list.s, *end;; s = end) {
			long pid = strtol(s, &end, 10);

			if (end == s || pid <= 0)
				break;
			task_of(pid, &task);
			if (!task.len || qk_strv_has(&done.ids, task.s))
				continue;
			any = !kill((pid_t)pid, SIGKILL);
			waitpid((pid_t)pid, NULL, 0);
		}
		if (!any)
			break;
	}
	qk_strv_release(&done.ids);
}
