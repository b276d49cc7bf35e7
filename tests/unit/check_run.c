#include "base/fdio.h"
#include "sandbox/run.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char self[4096];
static enum qk_recorder_kind kinds[3] = { QK_RECORDER_NONE };
static int n_kinds = 1;

/* A new directory, entered; removed by the caller with leave(). */
static char *enter(void)
{
	char made[] = "/tmp/qk-run-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(made));
	ck_assert_int_eq(chdir(made), 0);
	return realpath(made, NULL);
}

static void leave(char *dir)
{
	ck_assert(!chdir("/") && !qk_remove_tree(-1, dir));
	free(dir);
}

struct ran {
	struct qk_run_result result;
	struct qk_trace trace;
};

static void run_argv(
	enum qk_recorder_kind k, char *const *argv, bool end_leftovers, struct ran *ret)
{
	struct qk_run_spec spec = { .argv = argv,
		.envp = environ,
		.recorder = k,
		.tmpdir = "/tmp",
		.end_leftovers = end_leftovers };
	struct qk_err err = QK_ERR_INIT;

	qk_trace_init(&ret->trace);
	ck_assert_msg(!qk_run(&spec, &ret->trace, &ret->result, &err), "%s: %s",
		qk_recorder_name(k), err.msg);
}

static void run_script(
	enum qk_recorder_kind k, const char *script, bool end_leftovers, struct ran *ret)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };

	run_argv(k, argv, end_leftovers, ret);
}

static void release(struct ran *r)
{
	qk_run_result_release(&r->result);
	qk_trace_release(&r->trace);
}

static char *text_of(const char *file)
{
	struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_read_file(AT_FDCWD, file, 1 << 20, &b, &err), "%s", err.msg);
	return qk_buf_detach(&b);
}

START_TEST(exit_status)
{
	static const int codes[] = { 0, 1, 2, 77, 126, 127, 128, 255 };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		qk_autofree char *script = qk_asprintf("exit %d", codes[i]);
		struct ran r;

		run_script(kinds[_i], script, false, &r);
		ck_assert_int_eq(r.result.status, codes[i] << 8);
		ck_assert_int_eq(r.result.exec_errno, 0);
		ck_assert_uint_eq(r.result.left.n, 0);
		ck_assert_ptr_null(r.trace.incomplete);
		release(&r);
	}
}
END_TEST

START_TEST(death_by_signal)
{
	for (int sig = 1; sig < 32; sig++) {
		qk_autofree char *script = qk_asprintf("ulimit -c 0; kill -%d $$; exit 99", sig);
		struct ran r;

		if (strchr((char[]){ SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG,
				   SIGWINCH, 0 },
			    sig))
			continue;
		run_script(kinds[_i], script, false, &r);
		ck_assert_msg(WIFSIGNALED(r.result.status) && WTERMSIG(r.result.status) == sig,
			"signal %d: status %x", sig, (unsigned int)r.result.status);
		ck_assert(!r.result.interrupted);
		release(&r);
	}
}
END_TEST

START_TEST(not_executable)
{
	char *missing[] = { (char *)"/nonexistent/x", NULL }, *bare[] = { (char *)"qk-none", NULL };
	char *data[] = { (char *)"./data", NULL }, *dir = enter();
	struct ran r;

	run_argv(kinds[_i], missing, false, &r);
	ck_assert_int_eq(r.result.exec_errno, ENOENT);
	ck_assert_int_eq(r.result.status, 127 << 8);
	release(&r);
	run_argv(kinds[_i], bare, false, &r);
	ck_assert_int_eq(r.result.exec_errno, ENOENT);
	release(&r);
	ck_assert_int_eq(qk_write_file("data", "x", 1, 0644, NULL), 0);
	run_argv(kinds[_i], data, false, &r);
	ck_assert_int_eq(r.result.exec_errno, EACCES);
	ck_assert_int_eq(r.result.status, 126 << 8);
	release(&r);
	ck_assert(!chmod("data", 0755));
	ck_assert_int_eq(qk_write_file("data", "exit 7", 6, 0755, NULL), 0);
	run_argv(kinds[_i], data, false, &r); /* no program, so a script for the shell */
	ck_assert_int_eq(r.result.exec_errno, 0);
	ck_assert_int_eq(r.result.status, 7 << 8);
	release(&r);
	leave(dir);
}
END_TEST

/* What a process can see of how it was started. */
static const char surroundings[] =
	"exec >seen; umask; ulimit -a; grep -E '^(Sig(Blk|Ign|Cgt)|Groups|Uid)' /proc/self/status;"
	"cut -d' ' -f5-8 /proc/self/stat; for f in /proc/$$/fd/*; do echo ${f##*/}; done;"
	"read x <&5; echo \"$x\"; pwd; env";

START_TEST(surroundings_as_without)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)surroundings, NULL },
	     *dir = enter();
	qk_autofree char *plain = NULL, *seen = NULL;
	sigset_t usr1;
	struct ran r;
	pid_t pid;

	/* things to be inherited: a blocked signal, ignored ones, a descriptor as in `make 5<file`
	 */
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (_i >= n_kinds)
		signal(SIGCHLD, SIG_IGN);
	ck_assert(!qk_write_file("five", "5\n5\n", 4, 0644, NULL));
	ck_assert_int_eq(dup2(open("five", O_RDONLY | O_CLOEXEC), 5), 5);

	signal(SIGCHLD, _i >= n_kinds ? SIG_IGN : SIG_DFL);
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		_exit(1);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	plain = text_of("seen");
	ck_assert_int_eq(lseek(5, 0, SEEK_SET), 0);
	run_argv(kinds[_i % n_kinds], argv, false, &r);
	ck_assert_int_eq(r.result.status, 0);
	seen = text_of("seen");
	ck_assert_str_eq(plain, seen);
	release(&r);
	leave(dir);
}
END_TEST

static pid_t left_pid(const struct ran *r, size_t i)
{
	const char *p = strstr(r->result.left.v[i], "(pid ");

	ck_assert_ptr_nonnull(p);
	return (pid_t)atoi(p + 5);
}

START_TEST(leftovers_are_ended)
{
	struct ran r;

	run_script(kinds[_i], "sleep 1000 & (trap '' TERM; while :; do sleep 1001; done) & exit 3",
		true, &r);
	ck_assert_int_eq(r.result.status, 3 << 8);
	ck_assert_uint_ge(r.result.left.n, 2);
	ck_assert_int_eq(strncmp(r.result.left.v[0], "sleep 1000 (pid ", 16), 0);
	for (size_t i = 0; i < r.result.left.n; i++)
		ck_assert(kill(left_pid(&r, i), 0) && errno == ESRCH);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_ptr_null(r.trace.incomplete);
	release(&r);
}
END_TEST

START_TEST(leftovers_live_on)
{
	char *dir = enter();
	qk_autofree char *out = NULL;
	char answer[8];
	struct ran r;
	int fd;

	ck_assert(!mkfifo("go", 0600) && !mkfifo("back", 0600));
	ck_assert(!qk_write_file("a", "text", 4, 0644, NULL));
	run_script(kinds[_i], "{ read x <go; cat a >out; mkdir d; echo done >back; } & exit 0",
		false, &r);
	ck_assert_int_eq(r.result.status, 0);
	ck_assert_uint_eq(r.result.left.n, 1);
	if (kinds[_i] != QK_RECORDER_NONE)
		ck_assert_ptr_nonnull(strstr(r.trace.incomplete, "left running"));
	fd = open("go", O_WRONLY);
	ck_assert_int_eq(write(fd, "x\n", 2), 2);
	close(fd);
	fd = open("back", O_RDONLY);
	ck_assert_int_eq(read(fd, answer, sizeof(answer)), 5);
	out = text_of("out");
	ck_assert_str_eq(out, "text");
	ck_assert_int_eq(access("d", F_OK), 0);
	release(&r);
	leave(dir);
}
END_TEST

START_TEST(nobody_holds_what_a_daemon_let_go)
{
	int ends[2], status;
	char pid_text[32] = "", byte;
	pid_t runner;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	runner = fork();
	if (!runner) {
		struct ran r;

		dup2(ends[1], 9);
		close(ends[0]);
		close(ends[1]);
		run_script(kinds[_i], "sleep 1000 9>&- </dev/null >/dev/null 2>&1 & echo $! >&9",
			false, &r);
		_exit(r.result.left.n == 1 ? 0 : 1);
	}
	close(ends[1]);
	ck_assert_int_gt(read(ends[0], pid_text, sizeof(pid_text) - 1), 0);
	/* make reads the job server's pipe to its end in the same way */
	ck_assert_int_eq(read(ends[0], &byte, 1), 0);
	ck_assert(waitpid(runner, &status, 0) == runner && !status);
	ck_assert_int_eq(kill(atoi(pid_text), SIGKILL), 0); /* it still lived */
}
END_TEST

/* A runner in a process of its own, to be sent signals. */
static pid_t fork_runner(enum qk_recorder_kind k, const char *script, struct qk_run_result *shared)
{
	pid_t pid = fork();

	if (!pid) {
		struct ran r;

		run_script(k, script, false, &r);
		*shared = r.result;
		_exit(0);
	}
	return pid;
}

static pid_t wait_until_ready(void)
{
	char text[32] = "";
	size_t len = 0;
	ssize_t n;
	int fd = open("ready", O_RDONLY);

	/* to the end, or the writer would still be there at the next time */
	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	ck_assert_uint_gt(len, 0);
	close(fd);
	return (pid_t)atoi(text);
}

START_TEST(signals_are_passed_on)
{
	static const int sigs[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
	char *dir = enter();
	struct qk_run_result *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ck_assert_int_eq(mkfifo("ready", 0600), 0);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(*sigs); i++) {
		qk_autofree char *script =
			qk_asprintf("trap 'exit 5' %d; sleep 1000 & echo $! >ready; wait", sigs[i]);
		pid_t runner = fork_runner(kinds[_i], script, shared), left = wait_until_ready();

		ck_assert_int_eq(kill(runner, sigs[i]), 0);
		ck_assert_int_eq(waitpid(runner, NULL, 0), runner);
		ck_assert_int_eq(shared->status, 5 << 8);
		ck_assert(shared->interrupted);
		/* audit too: who is interrupted leaves nothing behind */
		ck_assert(kill(left, 0) && errno == ESRCH);
	}
	leave(dir);
}
END_TEST

/* ^C reaches the command once, from the terminal; the runner has it too and passes nothing on. */
START_TEST(interrupt_from_the_terminal)
{
	struct qk_run_result *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char *dir = enter();
	pid_t runner;
	int go;

	ck_assert(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	ck_assert(!mkfifo("ready", 0600) && !mkfifo("go", 0600));
	go = open("go", O_RDWR | O_CLOEXEC);
	runner = fork();
	if (!runner) {
		struct ran r;
		int tty;

		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* out of the reach of who ends a failed test */
		tty = open(ptsname(terminal), O_RDWR);
		dup2(tty, 0);
		run_script(kinds[_i],
			/* the trap may run before or in wait, which misses no signal; twice
			 * would block it for ever */
			"n=0; trap 'n=$((n+1)); echo $$ >ready' INT; (read x <go) & s=$!;"
			"echo $$ >ready; while kill -0 $s 2>/dev/null; do wait $s; done;"
			"test -t 0 && exit $n",
			false, &r);
		*shared = r.result;
		_exit(0);
	}
	wait_until_ready();
	ck_assert_int_eq(write(terminal, "\003", 1), 1);
	wait_until_ready();
	ck_assert_int_eq(write(go, "x\n", 2), 2);
	ck_assert_int_eq(waitpid(runner, NULL, 0), runner);
	ck_assert_int_eq(shared->status, 1 << 8);
	ck_assert(shared->interrupted);
	close(terminal);
	leave(dir);
}
END_TEST

START_TEST(command_dies_with_its_runner)
{
	struct qk_run_result unused;
	char *dir = enter();
	pid_t runner, command;
	int status;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	ck_assert(!mkfifo("ready", 0600) && !mkfifo("never", 0600));
	/* a call that is being looked at when the recorder goes fails first: it waits in none */
	runner = fork_runner(kinds[_i], "exec 3<>never; echo $$ >ready; read x <&3", &unused);
	command = wait_until_ready();
	kill(runner, SIGKILL);
	ck_assert_int_eq(waitpid(runner, NULL, 0), runner);
	ck_assert_int_eq(waitpid(command, &status, 0), command); /* ours now */
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	leave(dir);
}
END_TEST

START_TEST(changed_view_is_incomplete)
{
	struct ran r;

	run_script(kinds[_i],
		"unshare -m --propagation unchanged /bin/cat /dev/null 2>/dev/null || exit 77",
		false, &r);
	if (r.result.status == 77 << 8) {
		fprintf(stderr, "skipped: no mount namespaces here\n");
		return;
	}
	ck_assert_int_eq(r.result.status, 0);
	ck_assert_ptr_nonnull(strstr(r.trace.incomplete, "changed what its paths mean"));
	release(&r);
}
END_TEST

/* A recorder started in what is being recorded finds that it cannot, and does not hang. */
START_TEST(recorder_within_recorder)
{
	char *argv[] = { self, (char *)"--choose", NULL }, *dir = enter();
	qk_autofree char *seen = NULL;
	struct ran r;

	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* a leak check cannot run where strace does */
	run_argv(kinds[_i], argv, true, &r);
	ck_assert_int_eq(r.result.status, 0);
	seen = text_of("chosen");
	if (kinds[_i] == QK_RECORDER_SECCOMP) {
		ck_assert_msg(strstr(seen, "named: recorder 'seccomp' cannot record here: ") &&
				      strstr(seen, "another recorder is at work here already"),
			"%s", seen);
		ck_assert_msg(!strstr(seen, "auto: seccomp"), "%s", seen);
	}
	release(&r);
	leave(dir);
}
END_TEST

/* In the command of the test above. */
static int choose(void)
{
	struct qk_err err = QK_ERR_INIT;
	enum qk_recorder_kind k;
	char why[512];
	FILE *f = fopen("chosen", "w");

	if (!f)
		return 1;
	if (qk_recorder_choose("seccomp", &k, why, sizeof(why), &err))
		fprintf(f, "named: %s\n", err.msg);
	if (qk_recorder_choose(NULL, &k, why, sizeof(why), &err))
		return 1;
	fprintf(f, "auto: %s: %s\n", qk_recorder_name(k), why);
	return fclose(f) != 0;
}

START_TEST(choice)
{
	struct qk_err err = QK_ERR_INIT;
	enum qk_recorder_kind k;
	char why[512];

	ck_assert_int_eq(qk_recorder_choose("dtrace", &k, why, sizeof(why), &err), -EINVAL);
	ck_assert_str_eq(err.msg, "recorder 'dtrace': there is auto, ebpf, seccomp and strace");
	ck_assert_int_eq(qk_recorder_choose("none", &k, why, sizeof(why), &err), -EINVAL);
	setenv("QK_TEST_WITHOUT", "overlay,seccomp,ebpf,strace", 1);
	ck_assert_int_lt(qk_recorder_choose("strace", &k, why, sizeof(why), &err), 0);
	ck_assert_str_eq(
		err.msg, "recorder 'strace' cannot record here: taken away by QK_TEST_WITHOUT");
	ck_assert_int_eq(qk_recorder_choose("auto", &k, why, sizeof(why), &err), 0);
	ck_assert_int_eq(k, QK_RECORDER_NONE);
	ck_assert_str_eq(why, "seccomp: taken away by QK_TEST_WITHOUT; "
			      "ebpf: taken away by QK_TEST_WITHOUT; "
			      "strace: taken away by QK_TEST_WITHOUT");
	setenv("QK_TEST_WITHOUT", "seccom", 1); /* another word */
	if (n_kinds > 1 && kinds[1] == QK_RECORDER_SECCOMP) {
		ck_assert_int_eq(qk_recorder_choose("", &k, why, sizeof(why), &err), 0);
		ck_assert_int_eq(k, QK_RECORDER_SECCOMP);
	}
	setenv("PATH", "/nonexistent", 1);
	unsetenv("QK_TEST_WITHOUT");
	ck_assert_int_lt(qk_recorder_choose("strace", &k, why, sizeof(why), &err), 0);
	ck_assert_str_eq(err.msg, "recorder 'strace' cannot record here: strace is not installed");
}
END_TEST

int main(int argc, char **argv)
{
	enum qk_recorder_kind k;
	char why[256];
	SRunner *sr;
	TCase *tc;
	Suite *s;
	int failed;

	if (argc > 1 && !strcmp(argv[1], "--choose"))
		return choose();
	if (!realpath(argv[0], self))
		return 2;
	if (!qk_recorder_choose("seccomp", &k, why, sizeof(why), NULL))
		kinds[n_kinds++] = k;
	if (!qk_recorder_choose("strace", &k, why, sizeof(why), NULL))
		kinds[n_kinds++] = k;
	if (n_kinds < 3)
		fprintf(stderr, "skipped: a recorder that this host does not give\n");
	s = suite_create("run");
	sr = srunner_create(s);
	tc = tcase_create("run");
	/* a background job of a script starts with these ignored, and a shell can trap neither then
	 */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, exit_status, 0, n_kinds);
	tcase_add_loop_test(tc, death_by_signal, 0, n_kinds);
	tcase_add_loop_test(tc, not_executable, 0, n_kinds);
	tcase_add_loop_test(tc, surroundings_as_without, 0, 2 * n_kinds);
	tcase_add_loop_test(tc, leftovers_are_ended, 0, n_kinds);
	tcase_add_loop_test(tc, leftovers_live_on, 0, n_kinds);
	tcase_add_loop_test(tc, nobody_holds_what_a_daemon_let_go, 0, n_kinds);
	tcase_add_loop_test(tc, signals_are_passed_on, 0, n_kinds);
	tcase_add_loop_test(tc, interrupt_from_the_terminal, 0, n_kinds);
	tcase_add_loop_test(tc, command_dies_with_its_runner, 0, n_kinds);
	tcase_add_loop_test(tc, changed_view_is_incomplete, 1, n_kinds);
	tcase_add_loop_test(tc, recorder_within_recorder, 0, n_kinds);
	tcase_add_test(tc, choice);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
