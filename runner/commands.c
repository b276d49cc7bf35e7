#include "runner/commands.h"

#include "base/clock.h"
#include "sandbox/processes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int ending[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
enum {
	N_ENDING = sizeof(ending) / sizeof(*ending),
	TERM_TO_KILL_MS = 5000, /* for a server to end by itself */
	KILL_AGAIN_MS = 50,
};

struct running {
	struct qk_commands *c;
	sigset_t mask; /* the one the commands get */
	int signals;   /* descriptor */
	QK_VEC(pid_t) pids;
	int watched;   /* descriptor of the process it goes on until the end of, or -1 */
	int64_t kill_at; /* when those that were told to end are killed; 0 = none was told */
};

static int take_signals(struct running *r, struct qk_err *err)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGWINCH);
	for (size_t i = 0; i < N_ENDING; i++)
		sigaddset(&ours, ending[i]);
	sigprocmask(SIG_BLOCK, &ours, &r->mask);
	r->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? qk_fail(err, errno, "signalfd") : 0;
}

static int spawn_sh(struct running *r, const char *command, pid_t *pid, struct qk_err *err)
{
	const struct qk_commands *c = r->c;
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int ret;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETSIGMASK | (c->until ? POSIX_SPAWN_SETPGROUP : 0));
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &r->mask);
	posix_spawn_file_actions_addchdir_np(&actions, c->spec->cwd);
	if (c->relay->n) {
		posix_spawn_file_actions_adddup2(&actions, c->relay->channels[0].theirs, 1);
		posix_spawn_file_actions_adddup2(
			&actions, c->relay->channels[c->relay->n - 1].theirs, 2);
	}
	ret = posix_spawn(pid, "/bin/sh", &actions, &attr, argv, c->env->v);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (ret)
		return qk_fail(err, ret, "start sh in '%s'", c->spec->cwd);
	return 0;
}

static int start(struct running *r, size_t i, struct qk_err *err)
{
	struct qk_commands *c = r->c;
	pid_t pid;
	int ret = 0;

	if (c->held) {
		pid = fork();
		if (!pid) {
			sigprocmask(SIG_SETMASK, &r->mask, NULL);
			qk_relay_enter(c->relay);
			c->held(c->arg, i);
		}
		if (pid < 0)
			ret = qk_fail(err, errno, "fork");
	} else {
		ret = spawn_sh(r, c->spec->commands.v[i], &pid, err);
	}
	if (!ret)
		qk_vec_push(&r->pids, pid);
	return ret;
}

static void signal_all(const struct running *r, int sig)
{
	bool groups = r->c->until && !r->c->held; /* a held command's process ends all below it */

	for (size_t i = 0; i < r->pids.n; i++)
		kill(groups ? -r->pids.v[i] : r->pids.v[i], sig);
}

/* Nobody needs what goes on for ever any more. */
static void end_all(struct running *r)
{
	r->c->interrupted = true;
	if (r->kill_at)
		return;
	signal_all(r, SIGTERM);
	r->kill_at = qk_clock_ms() + TERM_TO_KILL_MS;
}

static void reap(struct running *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < r->pids.n; i++) {
			if (r->pids.v[i] != pid)
				continue;
			r->pids.v[i] = r->pids.v[--r->pids.n];
			if (!status || r->c->status)
				continue;
			/* the first that fails ends those beside it */
			r->c->status = status;
			signal_all(r, SIGTERM);
		}
}

static void serve_signals(struct running *r)
{
	struct signalfd_siginfo s;

	while (read(r->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD) {
			reap(r);
		} else if (s.ssi_signo == SIGWINCH) {
			qk_relay_resize(r->c->relay);
		} else if (r->c->until) {
			end_all(r);
		} else {
			r->c->interrupted = true;
			/* the terminal sends to the whole group, a process to us alone */
			if (s.ssi_code <= 0)
				signal_all(r, (int)s.ssi_signo);
		}
	}
}

static void serve(struct running *r)
{
	struct qk_relay *relay = r->c->relay;

	reap(r);
	while (r->pids.n) {
		struct pollfd p[4] = { { .fd = r->signals, .events = POLLIN },
			{ .fd = -1, .events = POLLIN }, { .fd = -1, .events = POLLIN },
			{ .fd = r->kill_at ? -1 : r->watched, .events = POLLIN } };
		int64_t left = r->kill_at ? r->kill_at - qk_clock_ms() : -1;

		for (int i = 0; i < relay->n; i++)
			p[1 + i].fd = relay->channels[i].from;
		if (r->kill_at && left <= 0) {
			signal_all(r, SIGKILL);
			left = KILL_AGAIN_MS;
		}
		if (poll(p, 4, (int)left) < 0)
			continue;
		for (int i = 0; i < relay->n; i++)
			if (p[1 + i].revents)
				qk_relay_serve(relay, i);
		if (p[0].revents)
			serve_signals(r);
		if (p[3].revents)
			end_all(r);
	}
}

/* What commands left behind that were ended, from outside or by the failing of one beside them. */
static void end_leftovers(void)
{
	static const int signals[] = { SIGTERM, SIGKILL, SIGKILL, SIGKILL };

	for (size_t round = 0; round < sizeof(signals) / sizeof(*signals); round++) {
		struct timespec pause = { 0, 20 * 1000 * 1000 };
		struct qk_pids pids = { 0 };

		qk_processes_below(&pids, 0);
		for (size_t i = 0; i < pids.n; i++)
			kill(pids.v[i], signals[round]);
		if (!pids.n)
			return;
		qk_vec_release(&pids);
		nanosleep(&pause, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int qk_commands_run(struct qk_commands *c, struct qk_err *err)
{
	struct running r = { .c = c, .signals = -1, .watched = -1 };
	size_t n = c->spec->commands.n;
	int ret = take_signals(&r, err);

	prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that what is left can be found */
	if (c->until)
		r.watched = (int)syscall(SYS_pidfd_open, c->until, 0);
	for (size_t i = 0; i < n && !ret && !c->status && !c->interrupted; i++) {
		ret = start(&r, i, err);
		if (c->spec->parallel && i + 1 < n)
			continue;
		if (i + 1 == n)
			qk_relay_started(c->relay);
		if (c->started && !ret)
			c->started(c->started_arg);
		serve(&r);
	}
	if (ret && r.pids.n) {
		signal_all(&r, SIGTERM);
		serve(&r);
	}
	if (c->interrupted || (c->spec->parallel && c->status))
		end_leftovers();
	qk_relay_started(c->relay);
	c->left = qk_relay_finish(c->relay);
	sigprocmask(SIG_SETMASK, &r.mask, NULL);
	qk_closep(&r.signals);
	qk_closep(&r.watched);
	qk_vec_release(&r.pids);
	return ret;
}
