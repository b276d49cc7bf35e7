#include "tests/harness/child.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 2000 }; /* processes on their way out when the script ends */

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
}

/* Ends (and names in left, if not NULL) whatever is below this process, again and again. */
static void end_all(struct qk_strv *left)
{
	qk_autofree char *list = qk_asprintf("/proc/self/task/%d/children", (int)getpid());

	for (;;) {
		qk_autobuf struct qk_buf pids = QK_BUF_INIT;
		pid_t r;

		qk_read_file(AT_FDCWD, list, 1 << 20, &pids, NULL);
		for (char *p = pids.s, *end; *p; p = end + (*end == ' ')) {
			long pid = strtol(p, &end, 10);

			if (end == p)
				break;
			if (left) {
				qk_autofree char *comm = qk_asprintf("/proc/%ld/comm", pid);
				qk_autobuf struct qk_buf name = QK_BUF_INIT;

				qk_read_file(AT_FDCWD, comm, 4096, &name, NULL);
				name.s[strcspn(name.s, "\n")] = 0;
				qk_strv_push(left, name.s);
			}
			kill((pid_t)pid, SIGKILL);
		}
		left = NULL;
		while ((r = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (r < 0 && errno == ECHILD)
			return;
		nap();
	}
}

static void start(const struct child *c)
{
	int in = open("/dev/null", O_RDONLY);
	int out = open(c->out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	int err = open(c->err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)c->script, NULL };

	if (in < 0 || out < 0 || err < 0 || chdir(c->dir))
		_exit(125);
	umask(022);
	/* A session of its own: no terminal of ours, no signal that is meant for us. */
	setsid();
	if (getuid() != c->uid && (setgroups(0, NULL) || setresgid(c->gid, c->gid, c->gid) ||
					  setresuid(c->uid, c->uid, c->uid)))
		_exit(125);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(125);
	/* What the harness itself was started with (a job server) is not for the case. */
	close_range(3, ~0u, 0);
	execve("/bin/sh", argv, c->env);
	_exit(125);
}

int child_run(const struct child *c, struct child_result *ret, struct qk_err *err)
{
	long long deadline = now_ms() + c->seconds * 1000LL, grace;
	int status = 0;
	bool done = false;
	pid_t pid, r;

	*ret = (struct child_result){ 0 };
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid < 0)
		return qk_fail(err, errno, "fork");
	if (!pid)
		start(c);
	while (!done && now_ms() < deadline) {
		int st;

		while ((r = waitpid(-1, &st, WNOHANG)) > 0)
			if (r == pid) {
				status = st;
				done = true;
			}
		if (!done)
			nap();
	}
	ret->timed_out = !done;
	ret->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	grace = now_ms() + GRACE_MS;
	while (done && now_ms() < grace) {
		while ((r = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (r < 0 && errno == ECHILD)
			return 0;
		nap();
	}
	end_all(&ret->left);
	return 0;
}

void child_result_release(struct child_result *r)
{
	qk_strv_release(&r->left);
}
