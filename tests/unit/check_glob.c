#include "base/fdio.h"
#include "base/glob.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const struct {
	const char *pattern, *path;
	bool yes;
} matches[] = {
	{ "a", "a", true },
	{ "a", "b", false },
	{ "", "", true },
	{ "", "a", false },
	{ "a/b", "a/b", true },
	{ "a/b", "a/bc", false },
	/* one component */
	{ "*", "a", true },
	{ "*", ".a", true },
	{ "*", "a/b", false },
	{ "*.c", "x.c", true },
	{ "*.c", ".c", true },
	{ "*.c", "x.cc", false },
	{ "a*b*c", "aXbYc", true },
	{ "a*b*c", "aXcYb", false },
	{ "src/*.c", "src/a.c", true },
	{ "src/*.c", "src/d/a.c", false },
	{ "src/*/a.c", "src/d/a.c", true },
	{ "src/*/a.c", "src/a.c", false },
	{ "?", "a", true },
	{ "?", "", false },
	{ "a?b", "a/b", false },
	{ "a**b", "axyb", true },
	{ "a**b", "ax/yb", false },
	{ "**.js", "a.js", true },
	{ "**.js", "d/a.js", false },
	/* any number of components */
	{ "**", "", true },
	{ "**", "a", true },
	{ "**", "a/b/.c", true },
	{ "**/x", "x", true },
	{ "**/x", "a/b/x", true },
	{ "**/x", "ax", false },
	{ "**/*", "a/b", true },
	{ "a/**", "a", true },
	{ "a/**", "a/b/c", true },
	{ "a/**", "ab", false },
	{ "a/**/b", "a/b", true },
	{ "a/**/b", "a/x/y/b", true },
	{ "a/**/b", "a/xb", false },
	{ "a/**/**/b", "a/b", true },
	{ "**/a/**/b", "x/a/b", true },
	{ "**/a/**/b", "a/x/a/y/b", true },
	{ "**/a/*/b", "a/x/a/y/z/b", false },
	{ "**/.*", "a/.env", true },
	/* classes */
	{ "[abc]", "b", true },
	{ "[a-c]x", "cx", true },
	{ "[a-c]", "d", false },
	{ "[!a-c]", "d", true },
	{ "[^a-c]", "b", false },
	{ "a[!x]b", "a/b", false },
	{ "[]]", "]", true },
	{ "[!]]", "]", false },
	{ "[a-]", "-", true },
	{ "[\\]x]", "x", true },
	{ "[ab", "[ab", true },
	{ "a[", "a[", true },
	{ "[\xc0-\xff]", "\xe9", true },
	/* either */
	{ "{a,b}", "a", true },
	{ "{a,b}", "b", true },
	{ "{a,b}", "c", false },
	{ "{a,b}.{c,d}", "b.d", true },
	{ "*.{js,ts{,x}}", "a.tsx", true },
	{ "*.{js,ts{,x}}", "a.ts", true },
	{ "*.{js,ts{,x}}", "a.jsx", false },
	{ "{a/**,b}/c", "a/x/y/c", true },
	{ "{a/**,b}/c", "a/c", true },
	{ "{a/**,b}/c", "b/c", true },
	{ "{a/**,b}/c", "b/x/c", false },
	{ "{**/a,b}", "x/a", true },
	{ "{a}", "a", true },
	{ "{a,b", "{a,b", true },
	{ "{a,[,}]}", "}", true },
	{ "{\\,,b}", ",", true },
	/* extended groups */
	{ "@(a|b)", "b", true },
	{ "@(a|b)", "ab", false },
	{ "?(a)b", "b", true },
	{ "?(a)b", "aab", false },
	{ "*(a|b)", "", true },
	{ "*(a|b)c", "abbac", true },
	{ "+(a|b)", "", false },
	{ "+(a|b)", "abab", true },
	{ "+(a|b)", "abc", false },
	{ "!(a|b)", "c", true },
	{ "!(a|b)", "a", false },
	{ "!(a|b)", "ab", true },
	{ "!(a)", "", true },
	{ "!(a)/x", "b/x", true },
	{ "!(a)/x", "b/c/x", false },
	{ "src/!(*.spec).ts", "src/a.ts", true },
	{ "src/!(*.spec).ts", "src/a.spec.ts", false },
	{ "**/!(*.test|*.spec).js", "d/a.js", true },
	{ "**/!(*.test|*.spec).js", "d/a.test.js", false },
	{ "!(!(a))", "a", true },
	{ "!(!(a))", "b", false },
	{ "@(a", "@(a", true },
	{ "a!b", "a!b", true },
	/* escapes */
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "a\\{b", "a{b", true },
	{ "a\\\\b", "a\\b", true },
	{ "a\\", "a\\", true },
};

START_TEST(match)
{
	ck_assert_msg(qk_glob_match(matches[_i].pattern, matches[_i].path) == matches[_i].yes,
		"'%s' on '%s'", matches[_i].pattern, matches[_i].path);
}
END_TEST

/* Every pair of short patterns and texts against a matcher that simply tries everything. */
static bool try_all(const char *p, const char *s, bool start)
{
	if (!*p)
		return !*s;
	if (start && p[0] == '*' && p[1] == '*' && (!p[2] || p[2] == '/')) {
		if (!p[2])
			return true;
		for (const char *t = s;; t++) {
			if ((t == s || t[-1] == '/') && try_all(p + 3, t, true))
				return true;
			if (!*t)
				return false;
		}
	}
	if (p[0] == '/' && p[1] == '*' && p[2] == '*' && !p[3] && !*s)
		return true;
	if (*p == '*') {
		for (const char *t = s;; t++) {
			if (try_all(p + 1, t, false))
				return true;
			if (!*t || *t == '/')
				return false;
		}
	}
	return *p == *s && try_all(p + 1, s + 1, *p == '/');
}

START_TEST(agrees_with_trying_everything)
{
	static const char pc[] = "a/*", tc[] = "a/b";
	char pattern[7], text[7];

	for (int i = 0; i < 729; i++) {
		int pn = 0, n = i;

		for (int k = 0; k < 6; k++, n /= 3)
			pattern[pn++] = pc[n % 3];
		pattern[pn] = '\0';
		if (strstr(pattern, "//") || pattern[0] == '/' || pattern[5] == '/')
			continue;
		for (int j = 0; j < 729; j++) {
			int m = j;

			for (int k = 0; k < 6; k++, m /= 3)
				text[k] = tc[m % 3];
			text[6] = '\0';
			if (strstr(text, "//") || text[0] == '/' || text[5] == '/')
				continue;
			ck_assert_msg(qk_glob_match(pattern, text) == try_all(pattern, text, true),
				"'%s' on '%s'", pattern, text);
		}
	}
}
END_TEST

START_TEST(hostile_patterns_end)
{
	char text[3001], longer[5000];
	clock_t begin = clock();

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert(!qk_glob_match("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
	ck_assert(!qk_glob_match("+(a|aa|aaa|*(a))b", text));
	for (size_t i = 1; i < sizeof(text) - 1; i += 2)
		text[i] = '/';
	ck_assert(!qk_glob_match("**/a/**/a/**/a/**/a/**/a/**/a/**/b", text));
	memset(longer, '(', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (size_t i = 0; i + 1 < sizeof(longer); i += 2)
		longer[i] = '@';
	ck_assert(!qk_glob_match(longer, "a"));
	memset(longer, 'a', sizeof(longer) - 1);
	ck_assert(!qk_glob_match("*", longer)); /* no path is that long */
	/* Trying every split would take longer than anybody waits. */
	ck_assert(clock() - begin < 20 * CLOCKS_PER_SEC);
}
END_TEST

START_TEST(pattern_or_literal)
{
	static const char *const patterns[] = { "*", "a?", "[a", "{a", "\\a", "!(a)", "x/@(a)" };
	static const char *const literals[] = { "", "a/b", "a!b", "a+b", "(a)", "a@b" };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		ck_assert_msg(qk_glob_is_pattern(patterns[i]), "%s", patterns[i]);
	for (size_t i = 0; i < sizeof(literals) / sizeof(*literals); i++)
		ck_assert_msg(!qk_glob_is_pattern(literals[i]), "%s", literals[i]);
}
END_TEST

START_TEST(quoted)
{
	static const char *const paths[] = { "a/b.c", "*", "a?b", "[x]/{y,z}", "!(a)", "@(a", "+(a)", "a\\*",
		"!a+b@c", "" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_glob_quote(&b, paths[i]);
		for (size_t k = 0; k < sizeof(paths) / sizeof(*paths); k++)
			ck_assert_msg(qk_glob_match(b.s ? b.s : "", paths[k]) == (i == k), "%s: %s",
				b.s, paths[k]);
	}
}
END_TEST

START_TEST(literal_directory)
{
	static const struct {
		const char *pattern;
		size_t n;
	} t[] = {
		{ "a/b/c*", 3 },
		{ "a/b/c", 3 },
		{ "/a/**", 2 },
		{ "/*", 1 },
		{ "/a", 1 },
		{ "*", 0 },
		{ "a", 0 },
		{ "a/+(b)/c", 1 },
		{ "a/b+(c)/d", 1 },
		{ "a/b/", 3 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		ck_assert_msg(qk_glob_literal_dir(t[i].pattern) == t[i].n, "%s: %zu", t[i].pattern,
			qk_glob_literal_dir(t[i].pattern));
}
END_TEST

static char root[64];

static void make(const char *path)
{
	qk_autofree char *p = qk_asprintf("%s/%s", root, path);
	size_t dir = strlen(p) - strlen(strrchr(p, '/'));
	qk_autofree char *d = qk_strndup(p, dir);

	ck_assert_int_eq(qk_mkdirs(d, NULL), 0);
	ck_assert_int_eq(qk_write_file(p, "", 0, 0644, NULL), 0);
}

static void tree(void)
{
	static const char *const files[] = { "a/b.c", "a/d/e.c", "a/d/.h", "a.c/x", "a/.git/config",
		"a/node_modules/p/i.c", "a/.qk/s.c", "b/é.c", "b/\xff", "lib/dist/o.c" };
	qk_autofree char *link = NULL;

	strcpy(root, "/tmp/qk-glob-XXXXXX");
	ck_assert(mkdtemp(root));
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		make(files[i]);
	link = qk_asprintf("%s/link", root);
	ck_assert_int_eq(symlink("a", link), 0);
}

static void untree(void)
{
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, root), 0);
}

/* The matches of root/pattern, relative to root, joined by blanks. */
static char *walk(const char *pattern)
{
	qk_autofree char *p = qk_asprintf("%s/%s", root, pattern);
	qk_autostrv struct qk_strv out = { 0 };
	struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_glob_walk(p, &out, &err), "%s", err.msg);
	for (size_t i = 0; i < out.n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", out.v[i] + strlen(root) + 1);
	return qk_buf_detach(&b);
}

START_TEST(walks)
{
	static const struct {
		const char *pattern, *found;
	} t[] = {
		{ "**/*.c", "a.c a/b.c a/d/e.c b/é.c lib/dist/o.c" },
		{ "a/*", "a/b.c a/d" },
		{ "a/**", "a a/b.c a/d a/d/.h a/d/e.c" },
		{ "*/d/*", "a/d/.h a/d/e.c" },
		{ "{a/d,b}/*.c", "a/d/e.c b/é.c" },
		{ "a/node_modules/**/*.c", "a/node_modules/p/i.c" },
		{ "a/.git/*", "a/.git/config" },
		{ "link", "link" },
		{ "l*", "lib link" },
		{ "l*/*.c", "" },
		{ "link/*.c", "link/b.c" },
		{ "none/*", "" },
		{ "a/b.c/*", "" },
		{ "none", "" },
		{ "a/b.\\c", "a/b.c" },
		{ "b/[\xff]", "b/\xff" },
		{ "lib/!(src)/*.c", "lib/dist/o.c" },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		qk_autofree char *got = walk(t[i].pattern);

		ck_assert_msg(!strcmp(got, t[i].found), "%s: '%s'", t[i].pattern, got);
	}
}
END_TEST

START_TEST(appends_and_refuses)
{
	qk_autofree char *p = qk_asprintf("%s/*", root);
	qk_autostrv struct qk_strv out = { 0 };
	struct qk_err err = QK_ERR_INIT;

	qk_strv_push(&out, "z");
	ck_assert_int_eq(qk_glob_walk(p, &out, &err), 0);
	ck_assert_str_eq(out.v[0], "z");
	ck_assert_uint_eq(out.n, 6);
	ck_assert_int_lt(qk_glob_walk("*", &out, &err), 0);
	ck_assert_str_eq(err.msg, "'*' is not an absolute pattern");
}
END_TEST

START_TEST(says_what_it_cannot_list)
{
	qk_autofree char *closed = qk_asprintf("%s/a/d", root);
	qk_autofree char *p = qk_asprintf("%s/**/*.c", root);
	qk_autostrv struct qk_strv out = { 0 };
	struct qk_err err = QK_ERR_INIT;

	ck_assert_int_eq(chmod(closed, 0), 0);
	ck_assert_int_eq(chmod(root, 0755), 0);
	if (!getuid())
		ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(qk_glob_walk(p, &out, &err), -EACCES);
	if (!getuid())
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert(strstr(err.msg, "/a/d': Permission denied"));
	ck_assert(out.n == 4); /* the rest is found all the same */
}
END_TEST

int main(void)
{
	Suite *s = suite_create("glob");
	TCase *pure = tcase_create("match"), *disk = tcase_create("walk");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(pure, 60);
	tcase_add_loop_test(pure, match, 0, sizeof(matches) / sizeof(*matches));
	tcase_add_test(pure, agrees_with_trying_everything);
	tcase_add_test(pure, hostile_patterns_end);
	tcase_add_test(pure, pattern_or_literal);
	tcase_add_test(pure, quoted);
	tcase_add_test(pure, literal_directory);
	suite_add_tcase(s, pure);
	tcase_add_checked_fixture(disk, tree, untree);
	tcase_add_test(disk, walks);
	tcase_add_test(disk, appends_and_refuses);
	tcase_add_test(disk, says_what_it_cannot_list);
	suite_add_tcase(s, disk);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
