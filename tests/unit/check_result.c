#include "report/result.h"
#include "base/record.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char *log_path;

static void setup(void)
{
	tree_make();
	log_path = qk_asprintf("%s/results", tree);
}

static void teardown(void)
{
	free(log_path);
	tree_remove();
}

static void make(struct qk_result *r, uint64_t offset)
{
	struct qk_policy p;

	qk_result_init(r, 1234, offset);
	r->fate = QK_FATE_UNSANDBOXED;
	r->status = 0xffff;
	r->why = qk_strdup("because\n\xff");
	qk_trace_event(&r->trace, QK_EV_READ, "/w/a\nb");
	qk_trace_event(&r->trace, QK_EV_CREATE, "/w/out");
	qk_trace_event(&r->trace, QK_EV_MKDIR, "/w/dir");
	qk_trace_event(&r->trace, QK_EV_READ, "/w/.env");
	qk_trace_lost(&r->trace, "lost");
	qk_strv_push(&r->declared, "/w/a.h");
	qk_strv_push(&r->declared, "/w/b.h");
	qk_strv_push(&r->left, "sleep 1");
	qk_strv_push(&r->stray, "/w/stray");
	qk_policy_init(&p, "/w", "/w/.qk");
	qk_policy_add(&p, "/w", "out", QK_EXACT, QK_READ | QK_WRITE, QK_BY_TARGET);
	qk_policy_add(&p, "/w", "dir/in/it", QK_EXACT, QK_WRITE, QK_BY_OUTPUT);
	qk_result_judge(r, &p);
	qk_policy_release(&p);
}

static void append(uint64_t offset)
{
	struct qk_result r;

	make(&r, offset);
	ck_assert_int_eq(qk_result_append(&r, tree, NULL), 0);
	qk_result_release(&r);
}

/* What each result must be like; arg counts them. */
static void compare(struct qk_result *r, void *arg)
{
	struct qk_result want;
	uint64_t *n = arg;

	make(&want, *n * 100);
	ck_assert(r->make_pid == 1234 && r->offset == want.offset && r->fate == want.fate &&
		  r->status == want.status);
	ck_assert_str_eq(r->why, want.why);
	ck_assert_str_eq(r->trace.incomplete, "lost");
	ck_assert_uint_eq(r->trace.entries.n, 4);
	ck_assert_uint_eq(r->judged.n, 4);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_str_eq(r->trace.entries.v[i].path, want.trace.entries.v[i].path);
		ck_assert_uint_eq(r->trace.entries.v[i].flags, want.trace.entries.v[i].flags);
		ck_assert_mem_eq(&r->judged.v[i].read, &want.judged.v[i].read, sizeof(struct qk_verdict));
		ck_assert_mem_eq(&r->judged.v[i].write, &want.judged.v[i].write, sizeof(struct qk_verdict));
		ck_assert_int_eq(r->judged.v[i].leads, want.judged.v[i].leads);
	}
	ck_assert(r->judged.v[2].leads && !r->judged.v[1].leads);
	ck_assert(r->declared.n == 2 && r->left.n == 1 && r->stray.n == 1);
	ck_assert_str_eq(r->declared.v[1], "/w/b.h");
	ck_assert_str_eq(r->left.v[0], "sleep 1");
	ck_assert_str_eq(r->stray.v[0], "/w/stray");
	qk_result_release(&want);
	++*n;
}

static void count(struct qk_result *r, void *arg)
{
	ck_assert_uint_eq(r->judged.n, r->trace.entries.n);
	++*(uint64_t *)arg;
}

START_TEST(round_trip)
{
	uint64_t n = 0;

	ck_assert_int_eq(qk_result_each(tree, count, &n, NULL), 0); /* no log: an empty one */
	ck_assert_uint_eq(n, 0);
	for (uint64_t i = 0; i < 3; i++)
		append(i * 100);
	ck_assert_int_eq(qk_result_each(tree, compare, &n, NULL), 0);
	ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(cut_anywhere)
{
	qk_autobuf struct qk_buf log = QK_BUF_INIT;
	size_t first;

	append(0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, log_path, 1 << 20, &log, NULL), 0);
	first = log.len;
	append(100);
	for (size_t len = 2 * first; len-- > 0;) {
		struct qk_err err = QK_ERR_INIT;
		uint64_t n = 0;
		int r;

		ck_assert(!truncate(log_path, (off_t)len));
		r = qk_result_each(tree, compare, &n, &err);
		ck_assert_int_eq(r, len % first ? -EBADMSG : 0);
		ck_assert_uint_eq(n, len / first); /* what came before is handed over */
		ck_assert(!r || strstr(err.msg, "results': cut short"));
	}
}
END_TEST

START_TEST(any_byte_damaged)
{
	static const unsigned char values[] = { 0, 1, 2, 3, 0x0f, 0x1f, 0x20, 0x7f, 0x80, 0xff };
	qk_autobuf struct qk_buf log = QK_BUF_INIT;

	append(0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, log_path, 1 << 20, &log, NULL), 0);
	for (size_t i = 0; i < log.len; i++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			char was = log.s[i];
			uint64_t n = 0;
			int fd = open(log_path, O_WRONLY | O_TRUNC);
			int r;

			log.s[i] = (char)values[v];
			ck_assert_int_eq(qk_write_all(fd, log.s, log.len), 0);
			close(fd);
			r = qk_result_each(tree, count, &n, NULL);
			ck_assert((r == 0 && n == 1) || (r == -EBADMSG && n == 0));
			log.s[i] = was;
		}
	}
}
END_TEST

/* Fields as report/result.c numbers them. */
enum { MAGIC = 1, FATE = 4, TRACE = 8, JUDGED = 9 };

static const struct {
	const char *magic;
	uint64_t fate;
	size_t judged;
	const char *verdict; /* three bytes */
	const char *complaint;
} records[] = {
	{ "qk result 1", 0, 3, "\0\0\0", NULL },
	{ "qk result 1", 0, 3, "\x1a\1\2", NULL },
	{ "qk result 2", 0, 3, "\0\0\0", "not a result of this version" },
	{ "", 0, 3, "\0\0\0", "not a result of this version" },
	{ "qk result 1", 5, 3, "\0\0\0", "unknown fate of a line" },
	{ "qk result 1", 1ULL << 32, 3, "\0\0\0", "unknown fate of a line" },
	{ "qk result 1", 0, 2, "\0\0\0", "verdicts do not fit the trace" },
	{ "qk result 1", 0, 0, "", "verdicts do not fit the trace" },
	{ "qk result 1", 0, 3, "\3\0\0", "unknown verdict" },
	{ "qk result 1", 0, 3, "\x0c\0\0", "unknown verdict" },
	{ "qk result 1", 0, 3, "\x20\0\0", "unknown verdict" },
	{ "qk result 1", 0, 3, "\0\x63\0", "unknown verdict" },
	{ "qk result 1", 0, 3, "\0\0\xff", "unknown verdict" },
};

START_TEST(record)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, t = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	size_t begin = qk_record_begin(&b);
	struct qk_trace trace;
	uint64_t n = 0;
	int r;

	qk_trace_init(&trace);
	qk_trace_event(&trace, QK_EV_READ, "/a");
	qk_trace_write(&trace, &t);
	qk_trace_release(&trace);
	qk_record_putstr(&b, MAGIC, records[_i].magic);
	qk_record_putnum(&b, FATE, records[_i].fate);
	qk_record_put(&b, TRACE, t.s, t.len);
	qk_record_put(&b, JUDGED, records[_i].verdict, records[_i].judged);
	qk_record_putstr(&b, 999, "of a later version");
	qk_record_end(&b, begin);
	ck_assert_int_eq(qk_write_file(log_path, b.s, b.len, 0600, NULL), 0);
	r = qk_result_each(tree, count, &n, &err);
	ck_assert_int_eq(r, records[_i].complaint ? -EBADMSG : 0);
	ck_assert_uint_eq(n, !records[_i].complaint);
	ck_assert_msg(!r || strstr(err.msg, records[_i].complaint), "%s", err.msg);
}
END_TEST

/* Runners of one run append to one log: each result stays whole. */
START_TEST(appended_side_by_side)
{
	enum { RUNNERS = 8, EACH = 50 };
	uint64_t n = 0;

	for (int i = 0; i < RUNNERS; i++) {
		if (fork())
			continue;
		for (int k = 0; k < EACH; k++)
			append(0);
		_exit(0);
	}
	for (int i = 0; i < RUNNERS; i++) {
		int status;

		ck_assert(wait(&status) > 0 && !status);
	}
	ck_assert_int_eq(qk_result_each(tree, count, &n, NULL), 0);
	ck_assert_uint_eq(n, RUNNERS * EACH);
}
END_TEST

START_TEST(cannot_be_written)
{
	struct rlimit few = { 100, RLIM_INFINITY };
	struct qk_err err = QK_ERR_INIT;
	struct qk_result r;
	uint64_t n = 0;

	make(&r, 0);
	ck_assert_int_eq(qk_result_append(&r, "/nowhere", &err), -ENOENT);
	ck_assert_str_eq(err.msg, "open '/nowhere/results': No such file or directory");
	signal(SIGXFSZ, SIG_IGN);
	ck_assert(!setrlimit(RLIMIT_FSIZE, &few)); /* a disk that fills up half way */
	ck_assert_int_eq(qk_result_append(&r, tree, &err), -ENOSPC);
	ck_assert_int_eq(qk_result_append(&r, tree, &err), -EFBIG);
	few.rlim_cur = RLIM_INFINITY;
	ck_assert(!setrlimit(RLIMIT_FSIZE, &few));
	ck_assert_int_eq(qk_result_each(tree, count, &n, &err), -EBADMSG);
	ck_assert_uint_eq(n, 0);
	qk_result_release(&r);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("result");
	TCase *tc = tcase_create("result");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, cut_anywhere);
	tcase_add_test(tc, any_byte_damaged);
	tcase_add_loop_test(tc, record, 0, (int)(sizeof(records) / sizeof(records[0])));
	tcase_add_test(tc, appended_side_by_side);
	tcase_add_test(tc, cannot_be_written);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
