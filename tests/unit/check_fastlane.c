/*
 * The fast lane: that it is used, that nobody sees it but the recorder, that a program it cannot
 * serve runs and is recorded as if there were none, and that a recording with it is equal to one
 * without. (tests/unit/check_probes.c runs the whole probe table both ways.)
 *
 * Fixture: files a and b, directory d with file f, links k -> a and kd -> d, plain-script (a shell
 * script without #!), and the probe as lane.
 */
#include "tests/unit/laned.h"

enum { SKIP = 77 };

/* What a command printed, did and touched. */
struct ran {
	int status;
	unsigned long by_lane;
	struct qk_buf out; /* stdout and stderr */
	struct qk_buf trace;
	char *incomplete; /* NULL = complete */
};

static void release(struct ran *r)
{
	qk_buf_release(&r->out);
	qk_buf_release(&r->trace);
	free(r->incomplete);
}

#define autoran __attribute__((cleanup(release)))

static void show(const struct qk_trace *t, struct qk_buf *out)
{
	static const char names[] = "rxlfpawcdDmo"; /* in the order of enum qk_touch */

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];
		const char *below = qk_path_below(e->path, root);

		if (!below || !strcmp(below, ".out"))
			continue;
		qk_buf_addf(out, "%s=", below);
		for (int bit = 0; bit < 12; bit++)
			if (e->flags >> bit & 1)
				qk_buf_addch(out, names[bit]);
		qk_buf_addch(out, ' ');
	}
}

/* Runs argv in the fixture as it is now. */
static void run(
	const char *lane, bool lookups, char *const *argv, char *const *envp, struct ran *ret)
{
	struct qk_run_spec spec = { .argv = argv,
		.envp = envp,
		.recorder = QK_RECORDER_SECCOMP,
		.tmpdir = "/tmp",
		.fastlane = lane };
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result result;
	int out, saved[2];
	struct qk_trace t;

	*ret = (struct ran){ .out = QK_BUF_INIT, .trace = QK_BUF_INIT };
	qk_trace_init(&t);
	t.lookups = lookups;
	fflush(NULL);
	out = open(".out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	for (int fd = 1; fd <= 2; fd++) {
		saved[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
		ck_assert_int_eq(dup2(out, fd), fd);
	}
	ck_assert_msg(!qk_run(&spec, &t, &result, &err), "%s", err.msg);
	for (int fd = 1; fd <= 2; fd++) {
		ck_assert_int_eq(dup2(saved[fd - 1], fd), fd);
		close(saved[fd - 1]);
	}
	close(out);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, ".out", 1 << 20, &ret->out, NULL), 0);
	ret->status = result.status;
	ret->by_lane = result.by_lane;
	ret->incomplete = t.incomplete ? qk_strdup(t.incomplete) : NULL;
	show(&t, &ret->trace);
	qk_run_result_release(&result);
	qk_trace_release(&t);
}

/*
 * Runs argv with and without the lane, which must make no difference. Returns how many events came
 * by the lane, or -1 if the program cannot do here what it is for.
 */
static long both_env(bool lookups, char *const *argv, char *const *envp)
{
	autoran struct ran without;
	autoran struct ran with;

	unlink("made"); /* by all_calls */
	run(NULL, lookups, argv, envp, &without);
	unlink("made");
	run(library, lookups, argv, envp, &with);
	ck_assert_msg(with.status == without.status, "status %x, without the lane %x: %s",
		(unsigned int)with.status, (unsigned int)without.status, with.out.s);
	ck_assert_str_eq(with.out.s, without.out.s);
	ck_assert_str_eq(with.trace.s, without.trace.s);
	ck_assert_msg(!with.incomplete, "%s", with.incomplete);
	ck_assert_msg(!without.incomplete, "%s", without.incomplete);
	ck_assert_uint_eq(without.by_lane, 0);
	if (WIFEXITED(with.status) && WEXITSTATUS(with.status) == SKIP) {
		fprintf(stderr, "skipped: %s %s: this machine cannot\n", argv[0], argv[1]);
		return -1;
	}
	ck_assert_msg(!with.status, "%s %s: status %x: %s", argv[0], argv[1],
		(unsigned int)with.status, with.out.s);
	return (long)with.by_lane;
}

static long both(bool lookups, const char *program, const char *word, const char *word2)
{
	qk_autofree char *path = qk_asprintf("PATH=%s/d:%s:/usr/bin:/bin", root, root);
	char *argv[] = { (char *)program, (char *)word, (char *)word2, NULL };
	char *envp[] = { path, (char *)"X=1", NULL };

	return both_env(lookups, argv, envp);
}

static long both_sh(bool lookups, const char *script)
{
	return both(lookups, "sh", "-c", script);
}

START_TEST(is_used)
{
	char *argv[] = { (char *)"./lane", (char *)"read_a", NULL }, *envp[] = { NULL };
	autoran struct ran r;

	run(library, false, argv, envp, &r);
	ck_assert_int_eq(r.status, 0);
	ck_assert_uint_eq(r.by_lane, 1);
	ck_assert_str_eq(r.trace.s, "lane=rx a=r ");
}
END_TEST

/* Verbs of the probe, and how many events must have come by the lane at least. */
static const struct {
	const char *verb;
	long reads, looks;
} verbs[] = {
	{ "read_a", 1, 1 },
	{ "all_calls", 3, 15 },
	{ "missing_realpath", 0, 4 },
	{ "bad_pointers", 0, 0 },
	{ "many", 2900, 2900 },
	{ "killed", 1, 1 },
	{ "forked", 2, 2 },
	{ "closed", 1, 1 },
	{ "by_spawn", 1, 1 },
	{ "by_spawnp", 1, 1 },
	{ "by_execvp", 2, 2 }, /* and the directory of PATH that lacks it */
	{ "by_execlp", 2, 2 },
	{ "by_execle", 1, 1 },
	{ "exec_errors", 2, 2 },
	{ "no_variable", 0, 0 },
};

enum { N_VERBS = sizeof(verbs) / sizeof(*verbs) };

static void check_verb(size_t i, bool looks)
{
	long n = both(looks, "./lane", verbs[i].verb, NULL);

	ck_assert_msg(n >= (looks ? verbs[i].looks : verbs[i].reads), "%s: %ld by the lane",
		verbs[i].verb, n);
}

START_TEST(programs)
{
	check_verb((size_t)_i % N_VERBS, _i >= N_VERBS);
}
END_TEST

/* The same built for 32 bits and against another libc; started by a program with the lane too. */
START_TEST(other_programs)
{
	static const char *const others[] = { "lane-32", "lane-musl" };
	const char *name = others[_i / N_VERBS], *verb = verbs[_i % N_VERBS].verb;
	qk_autofree char *line = qk_asprintf("./lane %s", verb);

	if (!take_probe(name, "lane")) {
		if (!(_i % N_VERBS))
			fprintf(stderr, "skipped: %s cannot be built or started here\n", name);
		return;
	}
	/* libc does more by itself there, and calls musl's script fallback by no name */
	both(true, "./lane", verb, NULL);
	both_sh(false, line);
	if (!strcmp(verb, "read_a"))
		ck_assert_int_eq(both_sh(false, line), 1);
}
END_TEST

START_TEST(shells)
{
	ck_assert_int_ge(both_sh(false, "cat a b; cd d; cat f ../k; (cat f)"), 5);
	ck_assert_int_ge(both_sh(true, "test -e none || test -e a; cat <b; ls d"), 3);
	ck_assert_int_ge(both_sh(false, "cat a | cat - b | cat >/dev/null; cat a & wait"), 3);
	ck_assert_int_ge(both_sh(false, "exec env -i cat a"), 1);
	ck_assert_int_ge(both_sh(false, "./plain-script a; lane by_execvp_script"), 2);
	ck_assert_int_ge(both_sh(false, "env X=2 sh -c 'nice cat b'"), 1);
}
END_TEST

START_TEST(order_of_reads_and_writes)
{
	char *argv[] = { (char *)"sh", (char *)"-c",
		(char *)"cat b; : >b; cat b; : >n; cat n; rm n; cat a", NULL };
	char *envp[] = { NULL };
	autoran struct ran r;

	run(library, false, argv, envp, &r);
	ck_assert_uint_ge(r.by_lane, 4);
	ck_assert_str_eq(r.trace.s, "b=rwo n=wcdo a=r ");
}
END_TEST

/* What the environment shows, and in which order. */
START_TEST(environment_is_the_users)
{
	qk_autofree char *user = qk_asprintf("LD_PRELOAD=%s/probes/preloaded.so", build);
	qk_autofree char *wanted = qk_asprintf("B=1\n%s\nA=2\n", user);
	char *argv[] = { (char *)"env", NULL, NULL };
	char *nested[] = { (char *)"sh", (char *)"-c", (char *)"env; exec env -u A env", NULL };
	char *none[] = { (char *)"B=1", (char *)"A=2", NULL };
	char *empty[] = { (char *)"B=1", (char *)"LD_PRELOAD=", (char *)"A=2", NULL };
	char *own[] = { (char *)"B=1", user, (char *)"A=2", NULL };
	autoran struct ran plain;
	autoran struct ran with;

	run(library, true, argv, none, &plain);
	ck_assert_str_eq(plain.out.s, "B=1\nA=2\n");
	ck_assert_uint_ge(plain.by_lane, 0);
	both_env(true, argv, empty);
	both_env(true, nested, none);
	both_env(true, nested, empty);
	run(library, true, argv, own, &with);
	ck_assert_str_eq(with.out.s, wanted);
}
END_TEST

START_TEST(users_library_comes_first)
{
	qk_autofree char *user = qk_asprintf("LD_PRELOAD=%s/probes/preloaded.so", build);
	char *argv[] = { (char *)"./lane", (char *)"read_a", NULL }, *envp[] = { user, NULL };
	autoran struct ran r;

	run(library, false, argv, envp, &r);
	ck_assert_str_eq(r.out.s, "open a\n");
	ck_assert_int_eq(r.status, 0);
	ck_assert_uint_eq(r.by_lane, 1); /* it calls the next open, and that is the lane's */
	ck_assert_str_eq(r.trace.s, "lane=rx a=r ");
}
END_TEST

/* Such a program sees no variable of ours either: it would say so. */
START_TEST(static_programs)
{
	ck_assert(take_probe("static", "static"));
	ck_assert_int_eq(both(false, "./static", "a", NULL), 0);
	ck_assert_int_eq(both_sh(false, "./static a && exec ./static b"), 0);
}
END_TEST

/* gcc's run time is a library that must be the first; within the program it has the lane. */
START_TEST(sanitized_programs)
{
	static const char *const names[] = { "lane-asan", "lane-asan-in" };

	ck_assert_int_eq(qk_lane_program("./lane"), QK_LANE_64);
	if (!take_probe(names[_i], "asan")) {
		fprintf(stderr, "skipped: %s cannot be built or started here\n", names[_i]);
		return;
	}
	if (qk_lane_program("./asan") == QK_LANE_NONE)
		ck_assert_int_eq(both(false, "./asan", "read_a", NULL), 0);
	both(true, "./asan", "all_calls", NULL);
	both_sh(false, "./asan read_a && ./asan read_a");
}
END_TEST

/* A set-user-ID program is started by a user that is not root; root may record so. */
START_TEST(setuid_programs)
{
	if (getuid()) {
		fprintf(stderr, "skipped: only root can make a program set-user-ID to another\n");
		return;
	}
	ck_assert(!chown("lane", 0, 0) && !chmod("lane", 04755));
	both_sh(false, "setpriv --reuid=65534 --regid=65534 --clear-groups ./lane secure");
}
END_TEST

/* A library that the program's user cannot read would make the loader complain aloud. */
START_TEST(unreadable_library)
{
	char *argv[] = { (char *)"sh", (char *)"-c",
		(char *)"cat a; exec setpriv --reuid=65534 --regid=65534 --clear-groups ./lane read_a", NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	qk_autofree char *own = qk_path_join(root, "lib/qk/fastlane.so");
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	autoran struct ran r;

	if (getuid()) {
		fprintf(stderr, "skipped: only root can become somebody else\n");
		return;
	}
	ck_assert(!qk_read_file(AT_FDCWD, library, 1 << 20, &b, NULL));
	ck_assert(!qk_mkdirs("lib/qk", NULL) && !qk_write_file(own, b.s, b.len, 0755, NULL));
	ck_assert_int_eq(chmod("lib", 0700), 0);
	run(own, false, argv, envp, &r);
	ck_assert_int_eq(r.status, 0);
	ck_assert_str_eq(r.out.s, "aaa\n");
	ck_assert_uint_ge(r.by_lane, 1);
}
END_TEST

/* The library's place is already taken. */
START_TEST(taken_place)
{
	qk_autofree char *user = qk_asprintf("LD_PRELOAD=%s/probes/preloaded-there.so", build);
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"cat a; ./lane read_a", NULL };
	char *envp[] = { user, (char *)"PATH=/usr/bin:/bin", NULL };

	ck_assert_int_eq(both_env(true, argv, envp), 0);
}
END_TEST

START_TEST(few_descriptors)
{
	both_sh(false, "ulimit -n 20; ./lane read_a && exec ./lane by_execvp");
}
END_TEST

/* The number that the ring would get holds something of the program's. */
START_TEST(taken_descriptor)
{
	qk_autofd int fd = open("b", O_RDONLY);

	ck_assert_int_eq(dup2(fd, QK_LANE_FD), QK_LANE_FD);
	ck_assert_int_eq(both_sh(false, "cat a && readlink /proc/self/fd/61"), 0);
	close(QK_LANE_FD);
}
END_TEST

START_TEST(no_descriptor_is_left)
{
	ck_assert_int_ge(both_sh(false, "cat a && exec ls /proc/self/fd"), 1);
}
END_TEST

START_TEST(own_filter)
{
	both(false, "./lane", "own_filter", NULL);
}
END_TEST

START_TEST(other_root)
{
	char *argv[] = { (char *)"./lane", (char *)"other_root", NULL }, *envp[] = { NULL };
	autoran struct ran r;

	if (getuid()) {
		fprintf(stderr, "skipped: only root can change its root\n");
		return;
	}
	run(library, false, argv, envp, &r);
	ck_assert_int_eq(r.status, 0);
	ck_assert_msg(r.incomplete && strstr(r.incomplete, "chroot"), "%s", r.incomplete);
}
END_TEST

/* Programs that are asked what they load do not name the library. */
START_TEST(loader_shows_nothing)
{
	char *argv[] = { (char *)"sh", (char *)"-c",
		(char *)"cat a; LD_TRACE_LOADED_OBJECTS=1 ./lane read_a; ldd ./lane", NULL };
	char *envp[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	autoran struct ran r;

	run(library, false, argv, envp, &r);
	ck_assert_uint_ge(r.by_lane, 1);
	ck_assert_ptr_nonnull(strstr(r.out.s, "libc.so"));
	ck_assert_ptr_null(strstr(r.out.s, "fastlane"));
}
END_TEST

/* A library that cannot be had is no reason to fail or to say anything to the command. */
START_TEST(missing_library)
{
	static const char *const none[] = { "/nonexistent/qk/fastlane.so", "/odd name/qk/fastlane.so",
		"/nonexistent/fastlane", "" };
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"cat a", NULL }, *envp[] = { NULL };

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		autoran struct ran r;

		run(none[i], false, argv, envp, &r);
		ck_assert_int_eq(r.status, 0);
		ck_assert_uint_eq(r.by_lane, 0);
		ck_assert_str_eq(r.out.s, "aaa\n");
		ck_assert_ptr_nonnull(strstr(r.trace.s, "a=r"));
	}
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("fastlane");
	SRunner *sr = srunner_create(s);
	TCase *tc = tcase_create("commands");
	int failed;

	(void)argc;
	if (!find_library(argv[0]))
		return 0;
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, is_used);
	tcase_add_loop_test(tc, programs, 0, 2 * N_VERBS);
	tcase_add_loop_test(tc, other_programs, 0, 2 * N_VERBS);
	tcase_add_test(tc, shells);
	tcase_add_test(tc, order_of_reads_and_writes);
	tcase_add_test(tc, environment_is_the_users);
	tcase_add_test(tc, users_library_comes_first);
	tcase_add_test(tc, static_programs);
	tcase_add_loop_test(tc, sanitized_programs, 0, 2);
	tcase_add_test(tc, setuid_programs);
	tcase_add_test(tc, unreadable_library);
	tcase_add_test(tc, taken_place);
	tcase_add_test(tc, few_descriptors);
	tcase_add_test(tc, taken_descriptor);
	tcase_add_test(tc, no_descriptor_is_left);
	tcase_add_test(tc, own_filter);
	tcase_add_test(tc, other_root);
	tcase_add_test(tc, loader_shows_nothing);
	tcase_add_test(tc, missing_library);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	free(library);
	return failed != 0;
}
