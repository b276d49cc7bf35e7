/*
 * Every way to touch a file, under every recorder that works here: the table says what must be
 * seen. Fixture: files a b secret "x (deleted)", directories d (f) and d2 (g), links k -> a and
 * kd -> d, programs prog (the probe) and static, scripts script (#!./prog), script2 (#!./script).
 */
#include "base/fdio.h"
#include "sandbox/recorder-ebpf.h"
#include "sandbox/run.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIP = 77 };

struct row {
	const char *verb, *expect;
	/* where strace and eBPF, which see results but not what was there before, cannot know better */
	const char *after;
};

/* letters as in check_trace.c: r read, x exec, l listed, f followed, p present, a absent,
 * w written, c created, d removed, D directory, m mode, o read own */
static const struct row rows[] = {
	{ "open_read", "a=r", NULL },
	{ "open_legacy", "a=r", NULL },
	{ "open_rdwr", "a=rw", NULL },
	{ "open_write", "a=w", NULL },
	{ "open_append", "a=w", NULL },
	{ "open_trunc", "a=w", NULL },
	{ "open_rdwr_trunc", "a=w", NULL },
	{ "open_new", "n=wc", NULL },
	{ "open_new_twice", "n=wco", NULL },
	{ "open_excl_there", "", NULL },
	{ "open_missing", "", NULL },
	{ "open_path", "", NULL },
	{ "open_dir", "d=lD", NULL },
	{ "open_dir_write", "", NULL },
	{ "open_not_dir", "", NULL },
	{ "openat_dirfd", "d/f=r", NULL },
	{ "openat_2", "d/f=r", NULL },
	{ "creat_new", "n=wc", NULL },
	{ "through_link", "k=f a=r", NULL },
	{ "through_dir_link", "kd=f d/f=r", NULL },
	{ "through_link_and_up", "kd=f a=r", NULL },
	{ "through_dangling_link", "kn=wco n=wc", NULL },
	{ "not_through_link", "", NULL },
	{ "link_moved", "kd=fwo d/f=r d2/g=r", NULL },
	{ "in_child_after_chdir", "d/f=r a=r", NULL },
	{ "after_fchdir", "a=r d/f=r", NULL },
	{ "thread", "a=r", NULL },
	{ "thread_own_cwd", "d/f=r a=r", NULL },
	{ "by_vfork", "prog=rx", NULL },
	{ "by_spawn", "a=r prog=rx", NULL },
	{ "by_clone3", "a=r", NULL },
	{ "exec_file", "prog=rx", NULL },
	{ "exec_fd", "prog=rx", NULL },
	{ "exec_script", "script=rx prog=rx", NULL },
	{ "exec_script_of_script", "script2=rx script=rx prog=rx", NULL },
	{ "exec_missing", "", NULL },
	{ "rename_new", "a=rwd n=wc", NULL },
	{ "rename_over", "a=rwd b=w", "a=rwd b=wc" },
	{ "rename_own", "t=wcd n=wco", NULL },
	{ "rename_own_over", "t=wcd d/f=w", "t=wcd d/f=wc" },
	{ "rename_exchange", "a=rw b=rw", NULL },
	{ "rename_noreplace", "", NULL },
	{ "rename_dir", "d/f=rwd d=lwdD e=wcD e/f=wco", NULL },
	{ "rename_own_dir", "t=wcdD t/f=wcd o=wcD o/f=wco", NULL },
	{ "rename_refused", "", NULL },
	{ "link_file", "a=r n=wc", NULL },
	{ "link_follow", "k=f a=r n=wc", NULL },
	{ "link_link", "k=f n=wc", NULL },
	{ "symlink_new", "n=wc", NULL },
	{ "symlinkat_new", "d/n=wc", NULL },
	{ "unnamed_then_linked", "n=wc", NULL },
	{ "memory_file", "", NULL },
	{ "unlink_file", "a=wd", NULL },
	{ "unlink_refused", "", NULL },
	{ "temporary", "n=wcd", NULL },
	{ "make_dir", "n=wcD n/m=wcD", NULL },
	{ "temporary_dir", "n=wcdD n/x=wcd m=wcdD", NULL },
	{ "make_fifo", "n=wc", NULL },
	{ "bind_socket", "n=wc", NULL },
	{ "truncate_file", "a=w", NULL },
	{ "change_mode", "a=m d/f=m", NULL },
	{ "change_owner", "k=m b=m a=m", NULL },
	{ "proc_self_cwd", "a=r b=r", NULL },
	{ "dev_fd", "a=r", NULL },
	{ "dev_fd_of_deleted", "a=rwd", NULL },
	{ "deleted_by_name", "x (deleted)=r", NULL },
	{ "odd_names", "n\n\t\"\\ \xff=wco =,)<>{}\x01=wc", NULL },
	{ "slashes", "d/f=r d=lD kd=f", NULL },
	{ "denied", "a=r", NULL },
	{ "entry_i386", "a=r n=wc", NULL },
	{ "entry_x32", "a=r", NULL },
	{ "io_uring", "", NULL },
	{ "look", "", NULL },
};

/* the same with looks at files recorded */
static const struct row looks[] = {
	{ "look", "a=p n=a k=p d/f=p kd=f b=p nd/x=a", NULL },
	{ "look_at_own", "n=wcD", NULL },
	{ "open_missing", "n=a nd/n=a a/n=a", NULL },
	{ "open_missing_then_new", "n=awc", NULL },
	{ "open_path", "a=p", NULL },
	{ "exec_missing", "n=a a=p", NULL },
	{ "through_link", "k=f a=r", NULL },
};

enum { N_ROWS = sizeof(rows) / sizeof(*rows), N_LOOKS = sizeof(looks) / sizeof(*looks) };

static char build[4096]; /* the directory that probes/ lies in */
static char helper_dir[] = "/tmp/qk-probes-ebpf-XXXXXX"; /* where the helper of eBPF listens */

/* The recorders that work here; the seccomp recorder once with the fast lane and once without. */
static struct recorder {
	enum qk_recorder_kind kind;
	bool lane;
} recorders[4];
static int n_recorders;

static void copy(const char *from, const char *to)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_read_file(-1, from, 1 << 26, &b, &err), "%s", err.msg);
	ck_assert_int_eq(qk_write_file(to, b.s, b.len, 0755, NULL), 0);
}

static void put(const char *path, const char *text, mode_t mode)
{
	ck_assert_int_eq(qk_write_file(path, text, strlen(text), mode, NULL), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
}

/* strace's recorder tells old files from new by their birth, which goes by the coarse clock. */
static void let_clock_tick(void)
{
	struct timespec made, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &made);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec == made.tv_sec && now.tv_nsec == made.tv_nsec);
}

static char *make_fixture(void)
{
	char made[] = "/tmp/qk-probes-XXXXXX", *root;
	qk_autofree char *probe = qk_asprintf("%s/probes/touch", build);
	qk_autofree char *stat = qk_asprintf("%s/probes/static", build);

	ck_assert_ptr_nonnull(mkdtemp(made));
	ck_assert_int_eq(chmod(made, 0755), 0);
	root = realpath(made, NULL);
	ck_assert_int_eq(chdir(root), 0);
	put("a", "aaa\n", 0644);
	put("b", "bbb\n", 0644);
	put("secret", "s\n", 0);
	put("x (deleted)", "x\n", 0644);
	put("script", "#!./prog\n", 0755);
	put("script2", "#! ./script \n", 0755);
	ck_assert(!mkdir("d", 0755) && !mkdir("d2", 0755));
	put("d/f", "f\n", 0644);
	put("d2/g", "g\n", 0644);
	ck_assert(!symlink("a", "k") && !symlink("d", "kd"));
	copy(probe, "prog");
	copy(stat, "static");
	let_clock_tick();
	return root;
}

static void show(const struct qk_trace *t, const char *root, struct qk_buf *out)
{
	static const char names[] = "rxlfpawcdDmo"; /* in the order of enum qk_touch */

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];

		qk_buf_addf(out, "%s%s=", i ? " " : "", e->path + strlen(root) + 1);
		for (int bit = 0; bit < 12; bit++)
			if (e->flags >> bit & 1)
				qk_buf_addch(out, names[bit]);
	}
}

/* Runs argv in a new fixture and compares; argv[0] is a probe's name. */
static void check(const struct recorder *r, bool lookups, char *const argv[], const char *expect)
{
	qk_autofree char *root = make_fixture();
	qk_autofree char *program = qk_asprintf("%s/probes/%s", build, argv[0]);
	char *const args[] = { program, argv[1], NULL }, *const envp[] = { NULL };
	qk_autofree char *library = qk_asprintf("%s/../lib/qk/fastlane.so", build);
	qk_autofree char *name = qk_asprintf(
		"%s%s", qk_recorder_name(r->kind), r->lane ? " with the fast lane" : "");
	struct qk_run_spec spec = { .argv = args,
		.envp = envp,
		.recorder = r->kind,
		.tmpdir = r->kind == QK_RECORDER_EBPF ? helper_dir : "/tmp",
		.fastlane = r->lane ? library : NULL };
	qk_autobuf struct qk_buf got = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result result;
	struct qk_trace t;

	qk_trace_init(&t);
	qk_strv_push(&t.roots, root);
	t.lookups = lookups;
	ck_assert_msg(!qk_run(&spec, &t, &result, &err), "%s", err.msg);
	ck_assert(!chdir("/") && !qk_remove_tree(-1, root));
	if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == SKIP) {
		fprintf(stderr, "skipped: %s: this machine cannot\n", argv[1]);
		qk_run_result_release(&result);
		qk_trace_release(&t);
		return;
	}
	ck_assert_msg(!result.status, "%s under %s: status %x", argv[1], name,
		(unsigned int)result.status);
	ck_assert_msg(!t.incomplete, "%s under %s: %s", argv[1], name, t.incomplete);
	show(&t, root, &got);
	ck_assert_msg(!strcmp(got.s, expect), "%s under %s: expected '%s', got '%s'", argv[1],
		name, expect, got.s);
	qk_run_result_release(&result);
	qk_trace_release(&t);
}

static void check_row(const struct recorder *r, bool lookups, const struct row *row)
{
	char *argv[] = { (char *)"touch", (char *)row->verb };
	bool after = r->kind != QK_RECORDER_SECCOMP && row->after;

	check(r, lookups, argv, after ? row->after : row->expect);
}

START_TEST(touches)
{
	check_row(&recorders[_i / N_ROWS], false, &rows[_i % N_ROWS]);
}
END_TEST

START_TEST(touches_with_looks)
{
	check_row(&recorders[_i / N_LOOKS], true, &looks[_i % N_LOOKS]);
}
END_TEST

START_TEST(static_program)
{
	char *argv[] = { (char *)"static", (char *)"a" };

	check(&recorders[_i], false, argv, "a=r");
}
END_TEST

int main(int argc, char **argv)
{
	static const enum qk_recorder_kind all[] = { QK_RECORDER_SECCOMP, QK_RECORDER_STRACE,
		QK_RECORDER_EBPF };
	struct qk_lane_choice no_lane = { .library = NULL };
	Suite *s = suite_create("probes");
	SRunner *sr = srunner_create(s);
	TCase *tc = tcase_create("probes");
	qk_autofree char *helper = NULL;
	struct qk_ebpf_host ebpf = { .root = "/none" };
	int failed;

	(void)argc;
	if (!realpath(argv[0], build))
		return 2;
	*strrchr(build, '/') = '\0';
	ebpf.helper = helper = qk_asprintf("%s/../libexec/qk/ebpf", build);
	ebpf.dir = mkdtemp(helper_dir);
	for (int i = 0; i < 3; i++) {
		struct qk_err err = QK_ERR_INIT;
		enum qk_recorder_kind k;
		char why[256];

		if (!qk_recorder_choose_lane(qk_recorder_name(all[i]), &k, &no_lane, &ebpf, why,
			    sizeof(why), &err))
			recorders[n_recorders++] = (struct recorder){ k, false };
		else
			fprintf(stderr, "skipped: %s\n", err.msg);
	}
	for (int i = n_recorders; i--;)
		if (recorders[i].kind == QK_RECORDER_SECCOMP)
			recorders[n_recorders++] = (struct recorder){ QK_RECORDER_SECCOMP, true };
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, touches, 0, n_recorders * N_ROWS);
	tcase_add_loop_test(tc, touches_with_looks, 0, n_recorders * N_LOOKS);
	tcase_add_loop_test(tc, static_program, 0, n_recorders);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	qk_ebpf_stop(helper_dir);
	qk_remove_tree(-1, helper_dir);
	return failed || !n_recorders;
}
