#include "sandbox/run.h"

#include "base/path.h"
#include "sandbox/doorman.h"
#include "sandbox/fastlane.h"
#include "sandbox/outside.h"
#include "sandbox/processes.h"
#include "sandbox/recorder-ebpf.h"
#include "sandbox/recorder-seccomp.h"
#include "sandbox/recorder-strace.h"
#include "sandbox/spawn.h"
#include "base/newcalls.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GRACE_MS = 200, /* for what a command leaves behind to end by itself */
	TERM_TO_KILL_MS = 100,
	KILL_AGAIN_MS = 50,   /* until what was born meanwhile is found and ended too */
	STRACE_END_MS = 5000, /* for what strace has still to say when all has ended */
	TRACER_ROUNDS = 20,   /* of killing, before strace itself is killed */
};

/* What is passed on to the command, and SIGCHLD. */
static const int handled[] = { SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT };
enum { HANDLED = sizeof(handled) / sizeof(*handled) };

/* What the handler saw; signals are blocked but in ppoll. */
static volatile sig_atomic_t child_changed, came[HANDLED], to_pass_on[HANDLED];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig == SIGCHLD)
		child_changed = 1;
	for (int i = 1; i < HANDLED; i++) {
		if (handled[i] != sig)
			continue;
		came[i] = 1;
		/* the terminal sends to the whole group, a process to us alone */
		if (info->si_code <= 0)
			to_pass_on[i] = 1;
	}
}

/* How signals were before, and while we wait. */
struct signals {
	struct sigaction old[HANDLED];
	sigset_t mask, waiting, defaults, ignored;
};

static void signals_take(struct signals *s)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP };
	sigset_t ours;

	sigemptyset(&ours);
	sigemptyset(&s->defaults);
	sigemptyset(&s->ignored);
	sigfillset(&act.sa_mask);
	for (int i = 0; i < HANDLED; i++) {
		sigaddset(&ours, handled[i]);
		came[i] = to_pass_on[i] = 0;
	}
	child_changed = 1;
	sigprocmask(SIG_BLOCK, &ours, &s->mask);
	s->waiting = s->mask;
	sigdelset(&s->waiting, SIGCHLD);
	for (int i = 0; i < HANDLED; i++) {
		sigaction(handled[i], NULL, &s->old[i]);
		if (s->old[i].sa_handler != SIG_IGN)
			sigaddset(&s->defaults, handled[i]);
		else if (handled[i] == SIGCHLD)
			sigaddset(&s->ignored, SIGCHLD);
		else
			continue; /* nohup: ignored here as in the command */
		sigaction(handled[i], &act, NULL);
	}
}

static void signals_restore(const struct signals *s)
{
	for (int i = 0; i < HANDLED; i++)
		sigaction(handled[i], &s->old[i], NULL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

/* One command while it runs. */
struct running {
	const struct qk_run_spec *spec;
	struct qk_trace *trace;
	struct qk_run_result *ret;
	struct qk_seccomp *seccomp; /* NULL: not this recorder */
	struct qk_strace *strace;   /* NULL: not this one */
	struct qk_ebpf *ebpf;       /* NULL: not this one */
	const sigset_t *waiting;
	pid_t pid;
	bool ended;     /* the command itself */
	bool all_ended; /* and all that it started */
};

static void pass_on_signals(struct running *r)
{
	for (int i = 1; i < HANDLED; i++) {
		if (came[i])
			r->ret->interrupted = true;
		if (to_pass_on[i] && !r->ended)
			kill(r->pid, handled[i]);
		came[i] = to_pass_on[i] = 0;
	}
}

static void reap(struct running *r)
{
	int status;
	pid_t pid;

	child_changed = 0;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
		if (pid == r->pid) {
			r->ended = true;
			r->ret->status = status;
		}
	}
	r->all_ended = pid < 0;
}

static int ms_until(const struct timespec *end)
{
	struct timespec now;
	long ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (end->tv_sec - now.tv_sec) * 1000 + (end->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

/* Something has come from the recorder, or nothing will any more. */
static void serve_recorder(struct running *r, short events)
{
	if (r->ebpf) {
		qk_ebpf_serve(r->ebpf);
	} else if (r->strace) {
		if (events & POLLIN && qk_strace_serve(r->strace))
			return;
		if (!events || (events & POLLIN && !(events & POLLHUP)))
			return;
		close(qk_steal_fd(&r->strace->fd));
	} else if (events & POLLIN) {
		qk_seccomp_serve(r->seccomp);
	} else { /* nobody is left who could ask */
		close(qk_steal_fd(&r->seccomp->listener));
	}
}

/*
 * Serves the recorder and signals until what is waited for has come: the command's end
 * (tree false) or that of everything it started, or ms have passed (-1: no limit).
 */
static void serve(struct running *r, bool tree, int ms)
{
	struct timespec end, wait;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += ms % 1000 * 1000000L;
	for (;;) {
		struct pollfd p[1 + QK_RUN_WATCHES] = { { -1, POLLIN, 0 } };
		unsigned int n_watches = r->spec->n_watches;
		bool was_interrupted = r->ret->interrupted;
		int left = ms < 0 ? -1 : ms_until(&end), n;

		pass_on_signals(r);
		if (child_changed)
			reap(r);
		if (tree ? r->all_ended : r->ended)
			return;
		if (tree && (!left || (!was_interrupted && r->ret->interrupted)))
			return;
		if (r->seccomp)
			p[0].fd = r->seccomp->listener;
		else if (r->strace)
			p[0].fd = r->strace->fd;
		else if (r->ebpf)
			p[0].fd = r->ebpf->ring;
		for (unsigned int i = 0; i < n_watches; i++)
			p[1 + i] = (struct pollfd){ r->spec->watches[i].fd, POLLIN, 0 };
		wait = (struct timespec){ left / 1000, left % 1000 * 1000000L };
		n = ppoll(p, 1 + n_watches, left < 0 ? NULL : &wait, r->waiting);
		if (n <= 0)
			continue;
		if (p[0].revents)
			serve_recorder(r, p[0].revents);
		for (unsigned int i = 0; i < n_watches; i++)
			if (p[1 + i].revents)
				r->spec->watches[i].ready(&r->spec->watches[i]);
	}
}

static void signal_all(const struct qk_pids *pids, int sig)
{
	for (size_t i = 0; i < pids->n; i++)
		kill(pids->v[i], sig);
}

/* Ends everything that is left: politely, then surely, and again for what was born meanwhile. */
static void end_all(struct running *r)
{
	pid_t tracer = r->strace ? r->strace->tracer : 0;
	int sig = SIGTERM;

	for (int rounds = 0; !r->all_ended; rounds++) {
		struct qk_pids pids = { 0 };

		/* strace ends by itself after those it traces */
		qk_processes_below(&pids, rounds < TRACER_ROUNDS ? tracer : 0);
		signal_all(&pids, sig);
		if (sig == SIGTERM) /* one that is stopped could not act on it */
			signal_all(&pids, SIGCONT);
		qk_vec_release(&pids);
		serve(r, true, sig == SIGTERM ? TERM_TO_KILL_MS : KILL_AGAIN_MS);
		sig = SIGKILL;
	}
}

/*
 * What is left running goes on to ask, and a call nobody answers fails: a process of its own
 * stays to answer. It holds nothing open that somebody may wait for the end of.
 */
static void leave_keeper(struct running *r)
{
	pid_t pid;

	if (!r->seccomp || r->seccomp->listener < 0)
		return;
	pid = fork();
	if (pid) {
		if (pid < 0)
			qk_trace_lost(r->trace, "no process to answer for what was left running");
		return;
	}
	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			signal(sig, SIG_IGN);
	if (r->seccomp->listener != 0) {
		dup2(r->seccomp->listener, 0);
		r->seccomp->listener = 0;
	}
	close_range(1, ~0U, 0);
	(void)!chdir("/");
	qk_seccomp_keep(r->seccomp);
}

static void handle_leftovers(struct running *r)
{
	struct qk_pids pids = { 0 };

	if (!r->ret->interrupted)
		serve(r, true, GRACE_MS);
	if (r->all_ended)
		return;
	qk_processes_below(&pids, 0);
	if (r->strace)
		qk_strace_find_tracer(r->strace, pids.v, pids.n);
	for (size_t i = 0; i < pids.n; i++)
		if (!r->strace || pids.v[i] != r->strace->tracer)
			qk_strv_take(&r->ret->left, qk_process_describe(pids.v[i]));
	qk_vec_release(&pids);
	if (r->spec->end_leftovers || r->ret->interrupted) {
		end_all(r);
		return;
	}
	if (!r->ret->left.n && r->strace) { /* only strace itself, late */
		serve(r, true, STRACE_END_MS);
		if (r->all_ended)
			return;
	}
	if (r->ret->left.n)
		qk_trace_lost(r->trace, "left running: %s%s", r->ret->left.v[0],
			r->ret->left.n > 1 ? " and others" : "");
	else
		qk_trace_lost(r->trace, "a process was left running");
	leave_keeper(r);
	if (r->strace && r->strace->tracer) /* it lets go of what it traces */
		kill(r->strace->tracer, SIGTERM);
}

/* What strace wrote before it ended is still in the fifo. */
static int finish_strace(struct running *r, struct qk_err *err)
{
	struct qk_strace *s = r->strace;

	while (s->fd >= 0) {
		struct pollfd p = { s->fd, POLLIN, 0 };

		if (poll(&p, 1, STRACE_END_MS) == 0 || !qk_strace_serve(s))
			break;
	}
	if (!s->seen_any)
		return qk_fail(err, -EPERM, "strace cannot trace here");
	if (!s->executed && s->exec_errno) {
		r->ret->exec_errno = s->exec_errno;
		r->ret->status = (s->exec_errno == ENOENT ? 127 : 126) << 8;
	}
	return 0;
}

/* What the child reports of its start. 0, or the failure of recorder or walls. */
static int judge_start(struct running *r, const struct qk_spawn *s, struct qk_err *err)
{
	const struct qk_spawn_shared *shared = s->shared;

	if (shared->state == QK_SPAWN_FAILED && s->seccomp && shared->error == EBUSY)
		return qk_fail(
			err, -EBUSY, "%s: another recorder is at work here already", shared->step);
	if (shared->state == QK_SPAWN_FAILED)
		return qk_fail(err, shared->error, "%s", shared->step);
	if (shared->state == QK_SPAWN_EXEC_FAILED) {
		r->ret->exec_errno = shared->error;
		r->ret->status = (shared->error == ENOENT ? 127 : 126) << 8;
	}
	return 0;
}

static int run_command(struct running *r, struct qk_spawn *s, struct qk_err *err)
{
	int ret = qk_spawn(s, err);

	if (ret)
		return ret;
	r->pid = s->pid;
	if (r->spec->walls)
		qk_layer_tidy_begin(&r->spec->walls->opened);
	if (r->strace)
		r->strace->pid = s->pid;
	if (s->shared->listener >= 0)
		qk_seccomp_start(r->seccomp, s->shared->listener);
	serve(r, false, -1);
	ret = judge_start(r, s, err);
	if (!r->all_ended)
		handle_leftovers(r);
	if (r->seccomp)
		qk_seccomp_finish(r->seccomp);
	if (r->ebpf)
		qk_ebpf_finish(r->ebpf);
	if (!ret && r->strace)
		ret = finish_strace(r, err);
	return ret;
}

/* strace has a message of its own for a command that cannot be executed: it is not even asked. */
static bool refused_early(const struct qk_run_spec *spec, struct qk_run_result *ret)
{
	qk_autofree char *program = qk_spawn_find(spec->argv[0], spec->envp);

	if (strchr(program, '/') && !access(program, X_OK))
		return false;
	ret->exec_errno = strchr(program, '/') ? errno : ENOENT;
	ret->status = (ret->exec_errno == ENOENT ? 127 : 126) << 8;
	return true;
}

/*
 * The fast lane, if it is wanted and can be had; without it the recording is as complete. Walls
 * around the tree that the library lies in would keep it from the command.
 */
static void open_lane(struct qk_fastlane *lane, const struct qk_run_spec *spec, bool lookups,
	struct qk_spawn *s, struct qk_strv *env)
{
	if (!spec->fastlane ||
		(spec->walls && qk_path_under(spec->fastlane, spec->walls->policy->root)) ||
		qk_fastlane_open(lane, spec->fastlane, lookups, NULL))
		return;
	s->program = qk_spawn_find(spec->argv[0], spec->envp);
	qk_fastlane_env(lane, s->program, spec->envp, env);
	s->envp = env->v ? env->v : spec->envp;
}

int qk_run(const struct qk_run_spec *spec, struct qk_trace *t, struct qk_run_result *ret,
	struct qk_err *err)
{
	struct signals signals;
	struct qk_seccomp seccomp;
	struct qk_fastlane lane = QK_FASTLANE_INIT;
	qk_autostrv struct qk_strv env = { 0 };
	struct qk_strace strace;
	struct qk_ebpf ebpf;
	struct qk_doorman doorman;
	bool needed = false, attended = false;
	struct running r = { .spec = spec, .trace = t, .ret = ret, .waiting = &signals.waiting };
	struct qk_spawn s = { .argv = spec->argv,
		.envp = spec->envp,
		.walls = spec->walls,
		.mask = &signals.mask,
		.defaults = &signals.defaults,
		.ignored = &signals.ignored };
	int result = 0;

	*ret = (struct qk_run_result){ 0 };
	if (spec->recorder == QK_RECORDER_EBPF) {
		r.ebpf = &ebpf;
		s.ebpf = true;
		result = qk_ebpf_init(&ebpf, t, spec->tmpdir, err);
	}
	if (!result && spec->walls && qk_walls_enter(spec->walls, err))
		result = qk_wrap(err, "walls");
	if (!result && prctl(PR_SET_CHILD_SUBREAPER, 1))
		result = qk_fail(err, errno, "child subreaper");
	if (result) {
		if (r.ebpf)
			qk_ebpf_release(r.ebpf);
		return result;
	}
	if (spec->recorder == QK_RECORDER_SECCOMP) {
		open_lane(&lane, spec, t->lookups, &s, &env);
		qk_seccomp_init(&seccomp, t, lane.ring ? &lane : NULL);
		s.seccomp = r.seccomp = &seccomp;
		attended = spec->policy;
		if (attended)
			result = qk_doorman_init(&doorman, spec->policy, spec->walls, &needed, err);
		seccomp.doorman = needed ? &doorman : NULL;
	}
	if (spec->recorder == QK_RECORDER_STRACE) {
		/* a state directory in the workspace is hidden in an overlay */
		bool hidden = spec->walls && spec->walls->backend != QK_BACKEND_LANDLOCK;
		const char *dir = hidden ? NULL : spec->tmpdir;

		if (hidden && spec->policy && spec->policy->closed)
			dir = qk_outside_scratch(spec->policy);
		if (refused_early(spec, ret))
			return 0;
		result = qk_strace_init(&strace, t, spec->argv, dir, !spec->end_leftovers, err);
		r.strace = &strace;
		s.argv = strace.argv.v;
	}
	signals_take(&signals);
	if (!result)
		result = run_command(&r, &s, err);
	signals_restore(&signals);
	qk_spawn_release(&s);
	ret->by_lane = lane.events;
	if (r.seccomp) {
		ret->for_lane = qk_seccomp_for_lane(&seccomp);
		qk_seccomp_release(r.seccomp);
	}
	qk_fastlane_release(&lane);
	if (attended)
		qk_doorman_release(&doorman);
	if (r.strace)
		qk_strace_release(r.strace);
	if (r.ebpf)
		qk_ebpf_release(r.ebpf);
	return result;
}

void qk_run_result_release(struct qk_run_result *r)
{
	qk_strv_release(&r->left);
}
