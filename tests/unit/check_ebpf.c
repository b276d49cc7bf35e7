/*
 * What only the eBPF recorder has: events that may be lost, a helper that may end, several tasks in
 * one set of programs. What it records is in check_probes.c.
 */
#include "base/fdio.h"
#include "sandbox/recorder-ebpf.h"
#include "sandbox/run.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 3000000, FULL = 200000 };

static char build[4096]; /* the directory that probes/ lies in */
static char *helper;
static char dir[32], *root;
static struct qk_trace trace;
static struct qk_run_result result;

static void set_up(void)
{
	char made[] = "/tmp/qk-ebpf-XXXXXX";
	struct qk_ebpf_host h = { .helper = helper, .dir = dir, .root = "/nowhere" };
	struct qk_err err = QK_ERR_INIT;

	ck_assert_ptr_nonnull(mkdtemp(made));
	strcpy(dir, made);
	root = qk_asprintf("%s/root", dir);
	ck_assert(!mkdir(root, 0755) && !chdir(root));
	ck_assert_msg(!qk_ebpf_start(&h, &err), "%s", err.msg);
	qk_trace_init(&trace);
	qk_strv_push(&trace.roots, root);
	trace.lookups = true;
}

static void tear_down(void)
{
	qk_run_result_release(&result);
	qk_trace_release(&trace);
	qk_ebpf_stop(dir);
	ck_assert(!chdir("/") && !qk_remove_tree(-1, dir));
	free(root);
}

static void run(char *const *argv)
{
	char *const envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	struct qk_run_spec spec = {
		.argv = argv, .envp = envp, .recorder = QK_RECORDER_EBPF, .tmpdir = dir
	};
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_run(&spec, &trace, &result, &err), "%s", err.msg);
}

static void run_looks(long count, const char *more)
{
	qk_autofree char *program = qk_asprintf("%s/probes/looks", build);
	qk_autofree char *number = qk_asprintf("%ld", count);
	char *argv[] = { program, number, (char *)more, NULL };

	run(argv);
	ck_assert_int_eq(result.status, 0);
}

static void run_shell(const char *text)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)text, NULL };

	run(argv);
}

static bool saw(const char *name)
{
	qk_autofree char *path = qk_asprintf("%s/%s", root, name);

	return qk_trace_find(&trace, path);
}

START_TEST(many_looks)
{
	run_looks(MANY, NULL);
	if (trace.incomplete) {
		ck_assert_msg(strstr(trace.incomplete, "events were lost") != NULL, "%s",
			trace.incomplete);
		fprintf(stderr, "of %d looks, %s\n", MANY, trace.incomplete);
		return;
	}
	ck_assert_uint_eq(trace.entries.n, 1001);
	ck_assert(saw("n0") && saw("n999") && saw("end"));
}
END_TEST

START_TEST(lost_events_are_told)
{
	run_looks(FULL, "stop");
	ck_assert_ptr_nonnull(trace.incomplete);
	ck_assert_msg(
		strstr(trace.incomplete, " events were lost") != NULL, "%s", trace.incomplete);
	ck_assert_int_gt(atol(trace.incomplete), 0);
	ck_assert_int_lt(atol(trace.incomplete), FULL);
}
END_TEST

/* After one that lost events the next in the same slot is complete. */
START_TEST(the_next_is_complete)
{
	run_looks(FULL, "stop");
	ck_assert_ptr_nonnull(trace.incomplete);
	qk_run_result_release(&result);
	qk_trace_release(&trace);
	qk_trace_init(&trace);
	qk_strv_push(&trace.roots, root);
	trace.lookups = true;
	run_looks(3, NULL);
	ck_assert_msg(!trace.incomplete, "%s", trace.incomplete);
	ck_assert_uint_eq(trace.entries.n, 4);
}
END_TEST

START_TEST(helper_killed)
{
	/* the class, so that no command line is found for having the pattern in it */
	qk_autofree char *text =
		qk_asprintf("for p in /proc/[0-9]*; do grep -qa 'ebp[f].%s' $p/cmdline "
			    "&& kill -9 ${p#/proc/}; done 2>/dev/null; :",
			dir);

	run_shell(text);
	ck_assert_ptr_nonnull(trace.incomplete);
	ck_assert_msg(strstr(trace.incomplete, "has ended") != NULL, "%s", trace.incomplete);
}
END_TEST

/* A task in a process of its own; its exit status is 0 if it saw one name and not the other. */
static pid_t begin_task(const char *text, const char *seen, const char *unseen)
{
	pid_t pid = fork();

	if (!pid) {
		run_shell(text);
		_exit(trace.incomplete || !saw(seen) || saw(unseen));
	}
	return pid;
}

/* Each with its own ring: the second is at work while the first waits. */
START_TEST(two_at_once)
{
	pid_t first, second;
	int status;

	ck_assert(!mkfifo("go", 0600) && !mkfifo("begun", 0600));
	first = begin_task("echo >begun; read x <go; test -e first", "first", "second");
	second = begin_task("read x <begun; test -e second; echo >go", "second", "first");
	ck_assert(waitpid(first, &status, 0) == first);
	ck_assert_int_eq(status, 0);
	ck_assert(waitpid(second, &status, 0) == second);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* The helper ends with whoever started it, however that ended. */
START_TEST(ends_with_its_starter)
{
	char made[] = "/tmp/qk-ebpf-XXXXXX";
	struct qk_ebpf_host h = { .helper = helper, .dir = mkdtemp(made), .root = "/" };
	struct timespec moment = { 0, 10 * 1000 * 1000 };
	struct qk_err err = QK_ERR_INIT;
	struct qk_ebpf e;
	pid_t pid = fork();

	if (!pid) {
		if (qk_ebpf_start(&h, NULL))
			_exit(1);
		raise(SIGKILL);
	}
	ck_assert(waitpid(pid, NULL, 0) == pid);
	/* it answers until it has noticed */
	while (!qk_ebpf_init(&e, &trace, made, &err)) {
		qk_ebpf_release(&e);
		nanosleep(&moment, NULL);
	}
	qk_ebpf_release(&e);
	ck_assert_msg(
		strstr(err.msg, "does not answer") || strstr(err.msg, "has ended"), "%s", err.msg);
	ck_assert_int_eq(qk_remove_tree(-1, made), 0);
}
END_TEST

START_TEST(not_built_in)
{
	struct qk_ebpf_host h = { .helper = "/nonexistent/ebpf", .root = "/" };
	struct qk_err err = QK_ERR_INIT;

	ck_assert_int_lt(qk_recorder_try_ebpf(&h, &err), 0);
	ck_assert_str_eq(err.msg, "not built in ('/nonexistent/ebpf': No such file or directory)");
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("ebpf");
	SRunner *sr = srunner_create(s);
	TCase *tc = tcase_create("ebpf"), *without = tcase_create("without");
	struct qk_ebpf_host h = { .root = "/" };
	struct qk_err err = QK_ERR_INIT;
	int failed;

	(void)argc;
	if (!realpath(argv[0], build))
		return 2;
	*strrchr(build, '/') = '\0';
	h.helper = helper = qk_asprintf("%s/../libexec/qk/ebpf", build);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, without);
	tcase_add_test(without, not_built_in);
	if (qk_recorder_try_ebpf(&h, &err)) {
		fprintf(stderr, "skipped: no eBPF recorder here: %s\n", err.msg);
	} else {
		tcase_add_checked_fixture(tc, set_up, tear_down);
		tcase_set_timeout(tc, 120);
		tcase_add_test(tc, many_looks);
		tcase_add_test(tc, lost_events_are_told);
		tcase_add_test(tc, the_next_is_complete);
		tcase_add_test(tc, helper_killed);
		tcase_add_test(tc, two_at_once);
		tcase_add_test(tc, ends_with_its_starter);
	}
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	free(helper);
	return failed != 0;
}
