#include "runner/continuous.h"

#include "base/buf.h"
#include "base/mem.h"
#include "report/keepers.h"
#include "runner/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IS_READY = -1 }; /* on the pipe; other numbers are wait statuses */

static void say(struct qk_continuous *k, int what)
{
	if (k->ready < 0)
		return;
	(void)!write(k->ready, &what, sizeof(what));
	close(qk_steal_fd(&k->ready));
}

/* What make waits for: the first that the keeper says. */
static void __attribute__((noreturn)) wait_for_keeper(int fd, pid_t keeper)
{
	int what = QK_TASK_FAILED << 8, status;
	ssize_t n;

	while ((n = read(fd, &what, sizeof(what))) < 0 && errno == EINTR)
		;
	if (n == sizeof(what) && what == IS_READY)
		_exit(0);
	if (n != sizeof(what) && waitpid(keeper, &status, 0) == keeper)
		what = status ? status : QK_TASK_FAILED << 8;
	qk_task_end_as(what ? what : QK_TASK_FAILED << 8);
}

/* What make hands down to its children (the job server) must not be held open after it. */
static void close_inherited(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name), flags;

		if (fd <= 2 || fd == dirfd(d))
			continue;
		flags = fcntl(fd, F_GETFD);
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	if (d)
		closedir(d);
}

static void take_null_input(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		dup2(fd, 0);
	if (fd > 0)
		close(fd);
}

/* Looks for what is still to be met in what was printed, the end of what came before included. */
static void look(void *continuous, const char *p, size_t n)
{
	struct qk_continuous *k = continuous;
	const struct qk_texts *want = &k->spec->ready_when;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t longest = 0, keep;

	if (k->ready < 0)
		return;
	qk_buf_addstr(&b, k->tail ? k->tail : "");
	qk_buf_add(&b, p, n);
	for (size_t i = 0; i < want->n; i++) {
		size_t len = strlen(want->v[i]);

		longest = len > longest ? len : longest;
		if (!k->met[i] && memmem(b.s, b.len, want->v[i], len)) {
			k->met[i] = true;
			k->n_met++;
		}
	}
	keep = b.len < longest ? b.len : longest - 1;
	free(k->tail);
	k->tail = qk_strndup(b.s + b.len - keep, keep);
	if (k->n_met == want->n)
		say(k, IS_READY);
}

static void all_run(void *continuous)
{
	struct qk_continuous *k = continuous;

	if (!k->spec->ready_when.n)
		say(k, IS_READY);
}

void qk_continuous_begin(struct qk_continuous *k, const struct qk_taskspec *spec, const char *run,
	pid_t make, struct qk_commands *c)
{
	int fds[2], lock;
	pid_t pid;

	*k = (struct qk_continuous){ .spec = spec, .ready = -1 };
	if (spec->foreground)
		return;
	if (pipe2(fds, O_CLOEXEC) || (pid = fork()) < 0) {
		fprintf(stderr, "qk: %s: %s\n", spec->id, strerror(errno));
		_exit(QK_TASK_FAILED);
	}
	if (pid) {
		close(fds[1]);
		wait_for_keeper(fds[0], pid);
	}
	close(fds[0]);
	k->ready = fds[1];
	k->met = qk_zalloc(spec->ready_when.n + 1);
	lock = qk_keeper_begin(run, spec->number);
	if (lock < 0) {
		fprintf(stderr, "qk: %s: its keeper: %s\n", spec->id, strerror(-lock));
		_exit(QK_TASK_FAILED);
	}
	close_inherited();
	take_null_input();
	c->until = make;
	c->started = all_run;
	c->started_arg = k;
	c->relay->seen = look;
	c->relay->arg = k;
}

void qk_continuous_end(struct qk_continuous *k, int status)
{
	say(k, status);
	free(k->met);
	free(k->tail);
}
