/*
 * Signals that reach a task while its calls wait for the recorder: children that end by the
 * hundred, and threads that are signalled every 100 us, as Go's run time does. Without
 * WAIT_KILLABLE_RECV such calls are made again for ever. QK_TEST_STORMS says how often (20).
 */
#include "sandbox/run.h"

#include "sandbox/recorder-seccomp.h"

#include <check.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char build[4096];
static int rounds = 20;
static enum qk_recorder_kind kinds[2];
static int n_kinds;

static void run(enum qk_recorder_kind k, char *const *argv)
{
	char *const envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	struct qk_run_spec spec = { .argv = argv, .envp = envp, .recorder = k, .tmpdir = "/tmp" };
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result result;
	struct qk_trace t;

	qk_trace_init(&t);
	qk_strv_push(&t.roots, build);
	ck_assert_msg(!qk_run(&spec, &t, &result, &err), "%s", err.msg);
	ck_assert_int_eq(result.status, 0);
	ck_assert_msg(!t.incomplete, "%s", t.incomplete);
	ck_assert_uint_ge(t.entries.n, 1);
	qk_run_result_release(&result);
	qk_trace_release(&t);
}

START_TEST(children)
{
	qk_autofree char *script = qk_asprintf(
		"i=0; while [ $i -lt 500 ]; do : <'%s/probes/storm' & i=$((i+1)); done; wait",
		build);
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", script, NULL };

	for (int i = 0; i < rounds; i++)
		run(kinds[_i], argv);
}
END_TEST

/* count opens a thread, pause microseconds between signals */
static void storm(enum qk_recorder_kind k, const char *count, const char *pause)
{
	qk_autofree char *program = qk_asprintf("%s/probes/storm", build);
	char *argv[] = { program, program, (char *)count, (char *)pause, NULL };

	for (int i = 0; i < rounds; i++)
		run(k, argv);
}

START_TEST(threads)
{
	storm(kinds[_i], "2000", "100");
}
END_TEST

START_TEST(threads_without_pause)
{
	storm(kinds[_i], "2000", "0");
}
END_TEST

static volatile int *handled;

static void on_urg(int sig)
{
	*handled = sig;
}

/* Once a call is being looked at, a signal waits for the answer, however long that takes. */
START_TEST(calls_are_shielded)
{
	struct timespec moment = { 0, 50 * 1000 * 1000 };
	struct seccomp_notif n = { 0 };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct utsname uts;
	struct qk_seccomp s;
	struct qk_trace t;
	int major, minor, status;
	volatile int *shared;
	pid_t pid;

	ck_assert(!uname(&uts) && sscanf(uts.release, "%d.%d", &major, &minor) == 2);
	if (major < 5 || (major == 5 && minor < 19)) {
		fprintf(stderr, "skipped: before Linux 5.19\n");
		return;
	}
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	handled = shared;
	qk_trace_init(&t);
	qk_seccomp_init(&s, &t, NULL);
	shared[1] = -1;
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		signal(SIGURG, on_urg);
		shared[1] = qk_seccomp_install(&s);
		_exit(rmdir("/nonexistent/x") == 0);
	}
	while (shared[1] == -1)
		sched_yield();
	ck_assert_int_ge(shared[1], 0);
	ck_assert_int_eq(ioctl(shared[1], SECCOMP_IOCTL_NOTIF_RECV, &n), 0);
	ck_assert_int_eq(kill(pid, SIGURG), 0);
	nanosleep(&moment, NULL);
	ck_assert_int_eq(*handled, 0);
	answer.id = n.id;
	ck_assert_int_eq(ioctl(shared[1], SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
	ck_assert(waitpid(pid, &status, 0) == pid && !status);
	ck_assert_int_eq(*handled, SIGURG);
	qk_seccomp_release(&s);
	qk_trace_release(&t);
}
END_TEST

int main(int argc, char **argv)
{
	const char *given = getenv("QK_TEST_STORMS");
	Suite *s = suite_create("storms");
	SRunner *sr = srunner_create(s);
	TCase *tc = tcase_create("storms");
	enum qk_recorder_kind k;
	char why[256];
	int failed;

	(void)argc;
	if (given)
		rounds = atoi(given);
	if (!realpath(argv[0], build))
		return 2;
	*strrchr(build, '/') = '\0';
	if (!qk_recorder_choose("seccomp", &k, why, sizeof(why), NULL))
		kinds[n_kinds++] = k;
	else
		fprintf(stderr, "skipped: no seccomp recorder here\n");
	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60 + 5.0 * rounds);
	tcase_add_loop_test(tc, calls_are_shielded, 0, n_kinds);
	tcase_add_loop_test(tc, children, 0, n_kinds);
	tcase_add_loop_test(tc, threads, 0, n_kinds);
	tcase_add_loop_test(tc, threads_without_pause, 0, n_kinds);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
