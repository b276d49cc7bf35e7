#include "tests/unit/storing.h"

/* --- capture --- */

START_TEST(capture_replays_in_order)
{
	qk_autocapture struct qk_capture c = QK_CAPTURE_INIT;
	qk_autobuf struct qk_buf both = QK_BUF_INIT;
	int p[2];

	qk_capture_add(&c, 1, "a", 1);
	qk_capture_add(&c, 1, "b\0c", 3);
	qk_capture_add(&c, 2, "E", 1);
	qk_capture_add(&c, 2, "", 0);
	qk_capture_add(&c, 1, "\xff\n", 2);
	ck_assert_uint_eq(c.data.len, 3 * 5 + 4 + 1 + 2);
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(qk_capture_replay(c.data.s, c.data.len, p[1], p[1]), 0);
	close(p[1]);
	qk_buf_reserve(&both, 64);
	both.len = (size_t)read(p[0], both.s, 64);
	ck_assert_uint_eq(both.len, 7);
	ck_assert_mem_eq(both.s, "ab\0cE\xff\n", 7);
	/* Each stream to its own. */
	int q[2];
	char one[8];

	ck_assert_int_eq(pipe(q), 0);
	qk_capture_replay(c.data.s, c.data.len, open("/dev/null", O_WRONLY), q[1]);
	ck_assert_int_eq(read(q[0], one, 8), 1);
	ck_assert_int_eq(one[0], 'E');
}
END_TEST

START_TEST(damaged_capture_is_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\1", 1 },
		{ "\1\0\0\0\0", 5 },
		{ "\3\1\0\0\0a", 6 },
		{ "\1\2\0\0\0a", 6 },
		{ "\1\1\0\0\0ab", 7 },
		{ "\1\377\377\377\377a", 6 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(qk_capture_check(bad[i].bytes, bad[i].n), -EBADMSG);
	ck_assert_int_eq(qk_capture_check("", 0), 0);
}
END_TEST

/* --- outputs --- */

static const struct {
	const char *globs, *path;
	bool match;
} match_table[] = {
	{ "dist", "dist", true },
	{ "dist", "dist/a/b", true },
	{ "dist", "distant", false },
	{ "dist/", "dist/a", true },
	{ "./dist", "dist/a", true },
	{ "dist/**", "dist/a/b", true },
	{ "dist/*.js", "dist/a.js", true },
	{ "dist/*.js", "dist/a.css", false },
	{ "dist !dist/cache", "dist/cache/x", false },
	{ "dist !dist/cache", "dist/cached", true },
	{ "dist !dist/**/*.map", "dist/a/b.map", false },
	{ "{a,b}/out", "b/out/x", true },
	{ "!dist", "dist", false },
};

START_TEST(match)
{
	struct qk_outputs o = outputs_of(match_table[_i].globs);

	ck_assert_int_eq(qk_outputs_match(&o, match_table[_i].path), match_table[_i].match);
	qk_outputs_release(&o);
}
END_TEST

START_TEST(outputs_stay_in_the_workspace)
{
	static const char *const bad[] = { "/etc", "../x", "a/../../b", ".", "", "!../x", "a/.." };
	struct qk_outputs o = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(qk_outputs_add(&o, bad[i], &err), -EINVAL);
	ck_assert_uint_eq(o.include.n + o.exclude.n, 0);
}
END_TEST

static void list_is(const char *globs, const char *want)
{
	struct qk_filehash *f = open_hash();
	struct qk_outputs o = outputs_of(globs);
	qk_autotree struct qk_tree t = { 0 };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_msg(!qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &t, &err), "%s", err.msg);
	for (size_t i = 0; i < t.n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", t.v[i].path);
	ck_assert_str_eq(b.s, want);
	qk_outputs_release(&o);
	qk_filehash_free(f);
}

START_TEST(list)
{
	mkdir("w/p", 0777);
	mkdir("w/p/dist", 0777);
	mkdir("w/p/dist/a", 0777);
	mkdir("w/p/dist/empty", 0777);
	mkdir("w/p/dist/node_modules", 0777);
	mkdir("w/p/node_modules", 0777);
	puts_in("w/p/dist/a/x.js", "x");
	puts_in("w/p/dist/a-b", "x");
	puts_in("w/p/dist/node_modules/y.js", "y");
	puts_in("w/p/node_modules/z.js", "z");
	puts_in("w/p/src.js", "s");
	symlink("/etc", "w/p/dist/link");
	list_is("none", "");
	list_is("p/dist", "p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty p/dist/link "
			  "p/dist/node_modules p/dist/node_modules/y.js");
	list_is("p/dist/**", "p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty p/dist/link "
			     "p/dist/node_modules p/dist/node_modules/y.js");
	list_is("p/dist p/dist/a !p/dist/node_modules !p/dist/*k",
		"p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty");
	list_is("p/*.js", "p/src.js");
	list_is("**/*.js", "p/dist/a/x.js p/src.js");
	list_is("p/dist/link", "p/dist/link");
	{
		struct qk_filehash *f = open_hash();
		struct qk_outputs o = outputs_of("p/dist/link/passwd");
		qk_autotree struct qk_tree t = { 0 };

		ck_assert_int_eq(qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &t, &err), -ELOOP);
		qk_outputs_release(&o);
		qk_filehash_free(f);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("outputs");
	TCase *t = tcase_create("outputs");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, capture_replays_in_order);
	tcase_add_test(t, damaged_capture_is_refused);
	tcase_add_loop_test(t, match, 0, sizeof(match_table) / sizeof(*match_table));
	tcase_add_test(t, outputs_stay_in_the_workspace);
	tcase_add_test(t, list);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
