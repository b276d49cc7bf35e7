#include "base/fdio.h"
#include "report/taskstatus.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[32];

static void make_dir(void)
{
	strcpy(dir, "/tmp/qk-status-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	qk_remove_tree(AT_FDCWD, dir);
}

static void add(struct qk_taskstatuses *l, const char *id, enum qk_status status, int exit,
	const char *uncached, bool as_declared)
{
	struct qk_taskstatus s = { .id = id, .status = status, .exit = exit, .uncached = uncached,
		.as_declared = as_declared, .start_ms = 5, .duration_ms = 7, .saved_ms = 9 };

	qk_taskstatuses_add(l, &s);
}

START_TEST(summary)
{
	struct qk_taskstatuses l = { 0 };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_taskstatuses_text(&b, &l);
	ck_assert_str_eq(b.s, "");
	add(&l, "a:noop", QK_STATUS_NOTHING, 0, NULL, false);
	qk_taskstatuses_text(&b, &l);
	ck_assert_str_eq(b.s, "");
	add(&l, "a:x", QK_STATUS_UP_TO_DATE, 0, NULL, false);
	qk_taskstatuses_text(&b, &l);
	ck_assert_str_eq(b.s, "qk: 1 task: 1 up to date\n");
	qk_buf_reset(&b);
	add(&l, "b:x", QK_STATUS_RAN, 0, "reason", false);
	add(&l, "c:x", QK_STATUS_RAN, 256, NULL, false);
	add(&l, "d:x", QK_STATUS_RESTORED, 0, NULL, false);
	add(&l, "e:x", QK_STATUS_RAN, 0, "other", true);
	for (int i = 0; i < 4; i++)
		add(&l, "f:x", QK_STATUS_RAN, 0, "reason", false);
	qk_taskstatuses_text(&b, &l);
	ck_assert_str_eq(b.s, "qk: 9 tasks: 6 ran, 1 failed, 1 restored, 1 up to date\n"
			      "  not cached: b:x, f:x, f:x and 2 more: reason\n");
	qk_taskstatuses_release(&l);
}
END_TEST

START_TEST(recordings)
{
	struct qk_taskstatuses l = { 0 }, back = { 0 };
	qk_autobuf struct qk_buf a = QK_BUF_INIT, b = QK_BUF_INIT;
	const char *const two[] = { "o/1", "o/\"2\n", NULL };
	const struct qk_taskstatus all[] = {
		{ .id = "a:x", .recordings = "restored", .differing = two },
		{ .id = "b:x", .recordings = "none", .unrecorded = "why" },
		{ .id = "c:x", .recordings = "restored", .differing = two + 2 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		qk_taskstatuses_add(&l, &all[i]);
	ck_assert_int_eq(qk_taskstatuses_append(&l, dir, NULL), 0);
	qk_taskstatuses_read(&back, dir);
	qk_taskstatuses_text(&a, &back);
	ck_assert_str_eq(a.s, "qk: 3 tasks: 3 ran\n"
			      "  recording not kept: b:x: why\n"
			      "  recordings would have had: a:x, c:x: restored\n"
			      "  recordings would have had: b:x: none yet\n"
			      "  recordings would have restored a:x with other outputs than it made: o/1, \"o/\\\"2\\n\"\n");
	qk_taskstatuses_json(&b, &back, NULL);
	ck_assert_ptr_nonnull(strstr(b.s, "\"recordings\": \"restored\", \"differing\": [\"o/1\", \"o/\\\"2\\n\"]"));
	ck_assert_ptr_nonnull(strstr(b.s, "\"recordings\": \"none\", \"unrecorded\": \"why\""));
	ck_assert_ptr_nonnull(strstr(b.s, "\"differing\": []"));
	qk_taskstatuses_release(&l);
	qk_taskstatuses_release(&back);
}
END_TEST

START_TEST(round_trip)
{
	struct qk_taskstatuses l = { 0 }, back = { 0 };
	qk_autobuf struct qk_buf a = QK_BUF_INIT, b = QK_BUF_INIT;

	add(&l, "a:x", QK_STATUS_RAN, 9, NULL, false);
	add(&l, "b:\xff", QK_STATUS_RESTORED, 0, "why", true);
	ck_assert_int_eq(qk_taskstatuses_append(&l, dir, NULL), 0);
	qk_taskstatuses_read(&back, dir);
	ck_assert_uint_eq(back.v.n, 2);
	ck_assert(back.v.v[1].as_declared);
	qk_taskstatuses_json(&a, &l, NULL);
	qk_taskstatuses_json(&b, &back, NULL);
	ck_assert_str_eq(a.s, b.s);
	ck_assert_ptr_nonnull(strstr(a.s, "\"a:x\": { \"status\": \"failed\", \"signal\": 9"));
	ck_assert_ptr_nonnull(strstr(a.s, "\"start\": 5, \"duration\": 7, \"saved\": 9"));
	qk_taskstatuses_release(&l);
	qk_taskstatuses_release(&back);
}
END_TEST

START_TEST(damaged)
{
	struct qk_taskstatuses l = { 0 }, back = { 0 };
	qk_autofree char *path = qk_asprintf("%s/statuses", dir);

	qk_taskstatuses_read(&back, dir);
	ck_assert_uint_eq(back.v.n, 0);
	add(&l, "a:x", QK_STATUS_RAN, 0, NULL, false);
	ck_assert_int_eq(qk_taskstatuses_append(&l, dir, NULL), 0);
	ck_assert_int_eq(qk_write_file(path, "\xff\xff\xff\x7f garbage", 12, 0600, NULL), 0);
	qk_taskstatuses_read(&back, dir);
	ck_assert_uint_eq(back.v.n, 0);
	ck_assert_int_lt(qk_taskstatuses_append(&l, "/nonexistent", NULL), 0);
	qk_taskstatuses_release(&l);
	qk_taskstatuses_release(&back);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("taskstatus");
	TCase *c = tcase_create("taskstatus");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(c, make_dir, remove_dir);
	tcase_add_test(c, summary);
	tcase_add_test(c, recordings);
	tcase_add_test(c, round_trip);
	tcase_add_test(c, damaged);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
