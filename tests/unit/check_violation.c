#include "report/violation.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct qk_policy p;
static struct qk_result r;
static struct qk_violations v;

static bool is_input(void *arg, const char *path)
{
	(void)arg;
	return !strcmp(path, "/w/p/keyed");
}

static const char *const withheld[] = { "/w/ui\t@x/ui" };
static const char *const ignored_reads[] = { "/w/p/odd[1]" };
static const char *const ignored_writes[] = { "/w/**/*.tmp" };

static const struct qk_violation_scope scope = { .policy = &p, .project = "/w/p", .home = "/home/u",
	.temporary = "/tmp", .withheld = withheld,
	.n_withheld = 1, .ignored_reads = ignored_reads, .n_ignored_reads = 1,
	.ignored_writes = ignored_writes, .n_ignored_writes = 1, .is_input = is_input };

static void setup(void)
{
	qk_policy_init(&p, "/w", "/w/.qk");
	p.closed = true;
	qk_strv_push(&p.walls, "/w/p/nested");
	qk_policy_add(&p, "/w", "p/src", QK_TREE, QK_READ, QK_BY_GRANT);
	qk_result_init(&r, 1, 0);
	v = (struct qk_violations){ 0 };
}

static void teardown(void)
{
	qk_violations_release(&v);
	qk_result_release(&r);
	qk_policy_release(&p);
}

static void find(bool settled)
{
	qk_result_judge(&r, &p);
	qk_violations_find(&v, &scope, &r, settled);
}

START_TEST(reads)
{
	static const char *const read[] = { "/w/p/a", "/w/p/keyed", "/w/p/src/granted", "/w/p/odd[1]",
		"/w/p/nested/f", "/w/root", "/w/q/f", "/w/ui/f", "/w/uix/f", "/etc/passwd" };
	qk_autobuf struct qk_buf fix = QK_BUF_INIT;

	for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
		qk_trace_event(&r.trace, QK_EV_READ, read[i]);
	find(true);
	ck_assert_uint_eq(v.v.n, 3);
	ck_assert_uint_eq(v.counted, 3);
	ck_assert_str_eq(v.v.v[0].path, "/w/p/a");
	ck_assert(v.v.v[0].unkeyed && !v.v.v[1].unkeyed);
	ck_assert_str_eq(v.v.v[1].path, "/w/p/keyed");
	ck_assert_int_eq(v.v.v[2].kind, QK_VIOLATION_WITHHELD);
	ck_assert_str_eq(v.v.v[2].package, "@x/ui");
	qk_violations_fix(&fix, &v, &scope);
	ck_assert_str_eq(fix.s,
		"qk:sandbox.allow: { \"read\": [\"a\", \"keyed\"] }\n"
		"and, if the output depends on them, inputs: [\"{projectRoot}/a\"]\n"
		"depend on a task of @x/ui that runs a command (dependsOn: [\"^build\"]), or grant its files "
		"and make them inputs");
}
END_TEST

/* A directory that the task made is told once; past the project a write is named and not counted. */
START_TEST(writes)
{
	qk_autobuf struct qk_buf fix = QK_BUF_INIT;

	qk_trace_event(&r.trace, QK_EV_MKDIR, "/w/p/dist");
	qk_trace_event(&r.trace, QK_EV_MKDIR, "/w/p/dist/sub");
	qk_trace_event(&r.trace, QK_EV_CREATE, "/w/p/dist/sub/a");
	qk_trace_event(&r.trace, QK_EV_CREATE, "/w/p/dist/b");
	qk_strv_push(&r.stray, "/w/p/dist/b");
	qk_strv_push(&r.stray, "/w/p/dist/sub/a");
	qk_strv_push(&r.stray, "/w/p/x.tmp");
	qk_strv_push(&r.stray, "/w/p/log");
	qk_strv_push(&r.stray, "/w/q/f");
	find(true);
	ck_assert_uint_eq(v.v.n, 3);
	ck_assert_uint_eq(v.counted, 2);
	ck_assert_str_eq(v.v.v[0].path, "/w/p/dist");
	ck_assert(v.v.v[0].is_dir);
	ck_assert_int_eq(v.v.v[2].kind, QK_VIOLATION_PAST);
	qk_violations_fix(&fix, &v, &scope);
	ck_assert_str_eq(fix.s, "qk:sandbox.allow: { \"write\": [\"dist/\", \"log\", \"../q/\"] }");
}
END_TEST

/* Where writes fail as they happen the trace tells; what is gone again is none. */
START_TEST(writes_as_they_happen)
{
	qk_trace_event(&r.trace, QK_EV_CREATE, "/w/p/gone");
	qk_trace_event(&r.trace, QK_EV_REMOVE, "/w/p/gone");
	qk_trace_event(&r.trace, QK_EV_CREATE, "/w/p/kept");
	find(false);
	ck_assert_uint_eq(v.v.n, 1);
	ck_assert_str_eq(v.v.v[0].path, "/w/p/kept");
}
END_TEST

/* Outside the workspace no layer holds what is written: the trace tells, whatever the back end. */
START_TEST(outside)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	qk_trace_event(&r.trace, QK_EV_MKDIR, "/home/u/.cache/x");
	qk_trace_event(&r.trace, QK_EV_WRITE, "/etc/hosts");
	qk_trace_event(&r.trace, QK_EV_CREATE, "/tmp/t");
	qk_trace_event(&r.trace, QK_EV_WRITE, "/dev/null");
	qk_trace_event(&r.trace, QK_EV_READ, "/etc/passwd");
	qk_policy_add(&p, "/w", "/var/log", QK_TREE, QK_READ | QK_WRITE, QK_BY_GRANT);
	qk_trace_event(&r.trace, QK_EV_CREATE, "/var/log/granted");
	find(true);
	ck_assert_uint_eq(v.v.n, 3);
	ck_assert_uint_eq(v.counted + v.failing, 0);
	qk_violations_text(&text, &v, &scope);
	ck_assert_str_eq(text.s,
		"/etc/hosts = a write outside the workspace  [/etc/hosts]\n"
		"/home/u/.cache/x/ = a write outside the workspace  [/home/u/.cache/x]\n"
		"/tmp/t = a write outside the workspace: $TMPDIR is the task's own directory for such "
		"files  [/tmp/t]\n"
		"\nfix: qk:sandbox.allow: { \"write\": [\"/etc/\", \"~/.cache/x/\"] }\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("violation");
	TCase *t = tcase_create("violation");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, reads);
	tcase_add_test(t, writes);
	tcase_add_test(t, writes_as_they_happen);
	tcase_add_test(t, outside);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
