#include "report/suggest.h"

#include "base/glob.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *paths[14];
	size_t most;
	const char *wanted[9];
} suggestions[] = {
	{ { NULL }, 8, { NULL } },
	/* few stand for themselves, sorted, repeats dropped */
	{ { "{projectRoot}/b", "{projectRoot}/a", "{projectRoot}/b" }, 2, { "{projectRoot}/a", "{projectRoot}/b" } },
	/* one directory, all alike */
	{ { "{projectRoot}/s/a.c", "{projectRoot}/s/b.c", "{projectRoot}/s/c.c" }, 2, { "{projectRoot}/s/*.c" } },
	/* of several kinds, and deeper */
	{ { "{projectRoot}/s/a.c", "{projectRoot}/s/b.h", "{projectRoot}/s/c.c" }, 2, { "{projectRoot}/s/*" } },
	{ { "{projectRoot}/s/a.c", "{projectRoot}/s/t/b.c", "{projectRoot}/s/c.c" }, 1, { "{projectRoot}/s/**/*.c" } },
	/* as far down as the list allows: y is opened up, x would be too long */
	{ { "{workspaceRoot}/x/1", "{workspaceRoot}/x/2", "{workspaceRoot}/x/3", "{workspaceRoot}/x/4",
		  "{workspaceRoot}/y/1", "{workspaceRoot}/y/2" },
		3, { "{workspaceRoot}/x/*", "{workspaceRoot}/y/1", "{workspaceRoot}/y/2" } },
	/* the whole workspace is never one of them, a project may be */
	{ { "{workspaceRoot}/1/a", "{workspaceRoot}/2/a", "{workspaceRoot}/3/a" }, 1,
		{ "{workspaceRoot}/1/a", "{workspaceRoot}/2/a", "{workspaceRoot}/3/a" } },
	{ { "{projectRoot}/1/a", "{projectRoot}/2/a", "{projectRoot}/3/b.d" }, 1, { "{projectRoot}/**/*" } },
	/* a name that begins like a directory's does not lie in it */
	{ { "{workspaceRoot}/d/1", "{workspaceRoot}/d/2", "{workspaceRoot}/d-e/1", "{workspaceRoot}/d.c" }, 3,
		{ "{workspaceRoot}/d/*", "{workspaceRoot}/d-e/1", "{workspaceRoot}/d.c" } },
	/* no end is common to a hidden file and one without, nor one that a glob would read */
	{ { "{projectRoot}/s/.a", "{projectRoot}/s/.b" }, 1, { "{projectRoot}/s/*" } },
	{ { "{projectRoot}/s/a.\\[x", "{projectRoot}/s/b.\\[x" }, 1, { "{projectRoot}/s/*" } },
	/* of a Makefile */
	{ { "data/a.txt", "data/b.txt", "../c" }, 2, { "data/*.txt", "../c" } },
};

START_TEST(few_globs_for_many_paths)
{
	const char *paths[14];
	qk_autostrv struct qk_strv out = { 0 };
	size_t n = 0, k = 0;

	for (; suggestions[_i].paths[n]; n++)
		paths[n] = suggestions[_i].paths[n];
	qk_suggest(&out, paths, n, suggestions[_i].most);
	for (; suggestions[_i].wanted[k]; k++) {
		ck_assert(k < out.n);
		ck_assert_str_eq(out.v[k], suggestions[_i].wanted[k]);
	}
	ck_assert_uint_eq(out.n, k);
}
END_TEST

/* Whatever the paths: each is matched by what is suggested. */
START_TEST(nothing_is_left_out)
{
	enum { N = 3000 };
	static char names[N][64];
	static const char *paths[N];
	qk_autostrv struct qk_strv out = { 0 };

	srandom(7);
	for (int i = 0; i < N; i++) {
		snprintf(names[i], sizeof(names[i]), "{%sRoot}/%c%s/%ld/%.*sf%d%s", i % 3 ? "project" : "workspace",
			(char)('a' + random() % 5), i % 2 ? "" : "-x", random() % 4,
			i % 7 ? 0 : 5, "deep/", i, i % 5 ? ".c" : "");
		paths[i] = names[i];
	}
	qk_suggest(&out, paths, N, 16);
	ck_assert(out.n <= 16);
	for (int i = 0; i < N; i++) {
		bool met = false;

		for (size_t k = 0; k < out.n && !met; k++)
			met = qk_glob_match(out.v[k] + strcspn(out.v[k], "}"), names[i] + strcspn(names[i], "}"));
		ck_assert_msg(met, "%s", names[i]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("suggest");
	TCase *tc = tcase_create("suggest");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, few_globs_for_many_paths, 0, sizeof(suggestions) / sizeof(suggestions[0]));
	tcase_add_test(tc, nothing_is_left_out);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
