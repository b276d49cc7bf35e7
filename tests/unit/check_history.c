#include "report/history.h"

#include "base/fdio.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static char state[80];

static void make_state(void)
{
	tree_make();
	snprintf(state, sizeof(state), "%s/state", tree);
}

static void keep(const char *id, const char *report)
{
	struct qk_run run = { .id = id,
		.mode = "audit",
		.goals = "build test",
		.cwd = "/w",
		.report = report,
		.status = 2,
		.start_ms = 5,
		.duration_ms = 7,
		.up_to_date = 3 };
	struct qk_taskstatus s = { .id = "p:build", .status = QK_STATUS_RAN, .exit = 256, .key = "k" };

	qk_taskstatuses_add(&run.tasks, &s);
	s = (struct qk_taskstatus){ .id = "q:build", .status = QK_STATUS_RESTORED };
	qk_taskstatuses_add(&run.tasks, &s);
	ck_assert_int_eq(qk_history_add(state, &run, NULL), 0);
	qk_run_release(&run);
}

START_TEST(kept_and_read)
{
	qk_autostrv struct qk_strv ids = { 0 };
	struct qk_run run;

	keep("1000-1", "{\"tasks\":{}}");
	keep("1001-1", NULL);
	tree_file("state/runs/.tmp", "x");
	qk_history_list(state, &ids);
	ck_assert_uint_eq(ids.n, 2);
	ck_assert_str_eq(ids.v[0], "1001-1");
	ck_assert_int_eq(qk_history_read(state, "1000-1", &run, NULL), 0);
	ck_assert_str_eq(run.goals, "build test");
	ck_assert_str_eq(run.report, "{\"tasks\":{}}");
	ck_assert_int_eq(run.status, 2);
	ck_assert_uint_eq(run.tasks.v.n, 2);
	ck_assert_str_eq(run.tasks.v.v[0].key, "k");
	ck_assert_uint_eq(qk_run_count(&run, QK_STATUS_RAN, true), 1);
	ck_assert_uint_eq(qk_run_count(&run, QK_STATUS_RAN, false), 0);
	ck_assert_uint_eq(qk_run_count(&run, QK_STATUS_RESTORED, false), 1);
	ck_assert_uint_eq(qk_run_count(&run, QK_STATUS_UP_TO_DATE, false), 3);
	qk_run_release(&run);
}
END_TEST

START_TEST(bounded)
{
	qk_autostrv struct qk_strv ids = { 0 };
	char *big = qk_alloc(QK_HISTORY_REPORT_MAX + 2);
	struct qk_run run;

	for (int i = 0; i < QK_HISTORY_RUNS + 5; i++) {
		qk_autofree char *id = qk_asprintf("%d-1", 2000 + i);

		keep(id, NULL);
	}
	qk_history_list(state, &ids);
	ck_assert_uint_eq(ids.n, QK_HISTORY_RUNS);
	ck_assert_str_eq(ids.v[ids.n - 1], "2005-1");
	memset(big, 'x', QK_HISTORY_REPORT_MAX + 1);
	big[QK_HISTORY_REPORT_MAX + 1] = '\0';
	keep("3000-1", big);
	ck_assert_int_eq(qk_history_read(state, "3000-1", &run, NULL), 0);
	ck_assert_ptr_null(run.report);
	qk_run_release(&run);
	free(big);
}
END_TEST

/* Cut anywhere it is damaged, or whole up to a task: never more than it was, and never a crash. */
START_TEST(damaged)
{
	qk_autofree char *path = qk_asprintf("%s/runs/1000-1", state), *other = qk_asprintf("%s/runs/1-1", state);
	qk_autobuf struct qk_buf whole = QK_BUF_INIT;
	struct qk_run run;

	keep("1000-1", NULL);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &whole, NULL), 0);
	for (size_t n = 0; n < whole.len; n++) {
		int r;

		qk_write_file(path, whole.s, n, 0666, NULL);
		r = qk_history_read(state, "1000-1", &run, NULL);
		ck_assert(r == -EBADMSG || (!r && run.tasks.v.n < 2));
		qk_run_release(&run);
	}
	ck_assert_int_eq(qk_history_read(state, "../x", &run, NULL), -ENOENT);
	ck_assert_int_eq(qk_history_read(state, "77-1", &run, NULL), -ENOENT);
	/* another's file under this name */
	qk_write_file(other, whole.s, whole.len, 0666, NULL);
	ck_assert_int_eq(qk_history_read(state, "1-1", &run, NULL), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("history");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, make_state, tree_remove);
	tcase_add_test(t, kept_and_read);
	tcase_add_test(t, bounded);
	tcase_add_test(t, damaged);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
