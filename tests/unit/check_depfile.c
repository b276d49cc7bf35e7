#include "keying/depfile.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct {
	const char *text, *target;
	const char *prereqs; /* '|' between; NULL = not the target's */
} parsed[] = {
	/* as gcc 12 and clang 14 write them */
	{ "a.o: a.c a.h\n", "a.o", "a.c|a.h" },
	{ "out/a.o: src/a.c src/a.h \\\n include/b.h\n", "out/a.o", "src/a.c|src/a.h|include/b.h" },
	{ "a.o: a.c a.h\na.h:\n", "a.o", "a.c|a.h" }, /* -MP */
	{ "a.o: a.c a.h\n\na.h:\n\nb.h:\n", "a.o", "a.c|a.h" },
	{ "a.o a.d: a.c\n", "a.o", "a.c" }, /* -MT 'a.o a.d' */
	{ "a.o a.d: a.c\n", "a.d", "a.c" },
	{ "a.o : a.c\n", "a.o", "a.c" },
	{ "a.o: \\\n a.c \\\n  a.h", "a.o", "a.c|a.h" },
	{ "a.o:\\\n a.c\n", "a.o", "a.c" },
	{ "a.o: a.c\\\na.h\n", "a.o", "a.c|a.h" },
	{ "a.o:\n", "a.o", "" },
	{ "a.o:", "a.o", "" },
	/* escapes */
	{ "a.o: my\\ dir/a.c b.h\n", "a.o", "my dir/a.c|b.h" },
	{ "my\\ dir/a.o: a.c\n", "my dir/a.o", "a.c" },
	{ "a.o: a\\\tb\n", "a.o", "a\tb" },
	{ "a.o: x\\\\\\ y z\n", "a.o", "x\\ y|z" }, /* 2N+1 backslashes and a blank: N and the blank */
	{ "a.o: x\\\\ y\n", "a.o", "x\\|y" }, /* 2N and a blank: N, and the word ends */
	{ "a.o: x\\y\\\\z\n", "a.o", "x\\y\\\\z" }, /* elsewhere each is itself */
	{ "a.o: a\\#b.h c$$d.h\n", "a.o", "a#b.h|c$d.h" },
	{ "a.o: $x $$ $\n", "a.o", "$x|$|$" },
	{ "a.o: a\\:b.h\n", "a.o", "a:b.h" },
	{ "app\\:a.o: a.c\n", "app:a.o", "a.c" },
	{ "a.o: c:/x/y.h C:\\z.h\n", "a.o", "c:/x/y.h|C:\\z.h" },
	{ "a.o: a:b.h\n", "a.o", "a:b.h" }, /* gcc before 10 */
	{ "a.o: a%b.h [x].h *.h\n", "a.o", "a%b.h|[x].h|*.h" },
	{ "a.o: \xff\x01.h\n", "a.o", "\xff\x01.h" },
	{ "a.o: x\\", "a.o", "x\\" },
	{ "a.o: \\", "a.o", "\\" },
	/* lines */
	{ "a.o: a.c \\\r\n a.h\r\nb.h:\r\n", "a.o", "a.c|a.h" },
	{ "a.o: a.c\r\n", "a.o", "a.c" },
	{ "\n\n  a.o: a.c\n", "a.o", "a.c" },
	{ "# a.o: z.c\na.o: a.c # b.c\n", "a.o", "a.c" },
	{ "a.o: a.c\n\ttouch a.o : z.c\n", "a.o", "a.c|z.c" }, /* no recipe is expected */
	{ "a.o: a.c\na.o: b.c\nb.o: c.c\n", "a.o", "a.c|b.c" },
	{ "b.o: b.c\na.o: a.c\n", "a.o", "a.c" },
	{ "a.o: a.c : b.c\n", "a.o", "a.c|b.c" },
	/* whose it is */
	{ "./out/a.o: a.c\n", "out/a.o", "a.c" },
	{ "a.o: a.c\n", "out/a.o", "a.c" }, /* no -MT */
	{ "../out/a.o: a.c\n", "out/a.o", "a.c" },
	{ "/w/out/a.o: a.c\n", "out/a.o", "a.c" },
	{ "out/a.o: a.c\n", "/w/out/a.o", "a.c" },
	{ "out/a.o: a.c\n", "./a.o", "a.c" },
	{ "debug/a.o: a.c\n", "release/a.o", NULL },
	{ "ba.o: a.c\n", "a.o", NULL },
	{ "a.o: a.c\n", "ba.o", NULL },
	{ "b.o: a.o a.c\n", "a.o", NULL },
	{ "a.o = a.c\n", "a.o", NULL },
	{ "touch a.o\n", "a.o", NULL },
	{ "", "a.o", NULL },
	{ ":", "a.o", NULL },
	{ ": a.c\n", "a.o", NULL },
	{ "\\\n\\\n", "a.o", NULL },
};

static char *joined(const struct qk_strv *sv)
{
	struct qk_strv copy = *sv;
	size_t n = 1;
	char *s;

	for (size_t i = 0; i < copy.n; i++)
		n += strlen(copy.v[i]) + 1;
	s = calloc(1, n);
	for (size_t i = 0; i < copy.n; i++) {
		strcat(s, i ? "|" : "");
		strcat(s, copy.v[i]);
	}
	return s;
}

/* The text without anything behind it, so that a read too far is seen by the sanitizer. */
static bool parse(const char *text, size_t n, const char *target, struct qk_strv *prereqs)
{
	qk_autofree char *exact = qk_alloc(n);

	memcpy(exact, text, n);
	return qk_depfile_parse(exact, n, target, prereqs);
}

START_TEST(parse_table)
{
	qk_autostrv struct qk_strv got = { 0 };
	const char *text = parsed[_i].text;
	bool ours = parse(text, strlen(text), parsed[_i].target, &got);
	qk_autofree char *all = joined(&got);

	ck_assert_msg(ours == (parsed[_i].prereqs != NULL), "'%s' of %s: %d", text, parsed[_i].target, ours);
	ck_assert_str_eq(all, parsed[_i].prereqs ? parsed[_i].prereqs : "");
}
END_TEST

/* Cut anywhere, every file of the table is read to its end, and what was listed comes in order. */
START_TEST(parse_cut)
{
	const char *text = parsed[_i].text;

	for (size_t n = 0; n <= strlen(text); n++) {
		qk_autostrv struct qk_strv got = { 0 };

		parse(text, n, parsed[_i].target, &got);
		for (size_t i = 0; i < got.n; i++)
			ck_assert_int_ne(got.v[i][0], '\0');
	}
}
END_TEST

START_TEST(parse_binary)
{
	char junk[4096];
	unsigned int seed = 1;

	for (int round = 0; round < 500; round++) {
		qk_autostrv struct qk_strv got = { 0 };

		for (size_t i = 0; i < sizeof(junk); i++) {
			seed = seed * 1103515245 + 12345;
			junk[i] = " \\\n\r:#$\ta.o\xff:\\\\ "[seed >> 16 & 15];
		}
		parse(junk, sizeof(junk), "a.o", &got);
	}
	{
		qk_autostrv struct qk_strv got = { 0 };

		ck_assert(!parse("a.o: a.c\n\0", 10, "a.o", &got)); /* an object file, most likely */
		ck_assert_uint_eq(got.n, 0);
	}
}
END_TEST

START_TEST(parse_huge)
{
	size_t size = QK_DEPFILE_MAX, n = 0;
	qk_autofree char *text = qk_alloc(size + 100);
	qk_autostrv struct qk_strv got = { 0 };
	size_t words = 0;

	n = (size_t)(stpcpy(text, "a.o:") - text);
	for (; n < size; words++)
		n = (size_t)(stpcpy(text + n, " \\\n  include/h.h") - text);
	ck_assert(parse(text, n, "a.o", &got));
	ck_assert_uint_eq(got.n, words);
	memset(text, '\\', size); /* as long a word as can be */
	memcpy(text, "a.o: ", 5);
	ck_assert(parse(text, size, "a.o", &got));
	ck_assert_uint_eq(got.n, words + 1);
	ck_assert_uint_eq(strlen(got.v[words]), size - 5);
}
END_TEST

static const struct {
	const char *path, *target;
	bool plausible;
} plausible[] = {
	{ "/w/a.d", "/w/a.o", true },
	{ "/w/a.o.d", "/w/a.o", true },
	{ "/w/.a.o.d", "/w/a.o", true },
	{ "/w/.deps/a.Po", "/w/a.o", true },
	{ "/w/.deps/a.Tpo", "/w/a.o", true },
	{ "/w/.a.P", "/w/a.o", true },
	{ "/w/a.d.1234", "/w/a.o", true },
	{ "/w/a.d", "/w/a.d", true },
	{ "/w/b.d", "/w/a.o", false },
	{ "/w/a.o", "/w/a.o", false },
	{ "/w/a.c", "/w/a.o", false },
	{ "/w/a.log", "/w/a.o", false },
};

START_TEST(plausible_table)
{
	ck_assert_int_eq(qk_depfile_plausible(plausible[_i].path, plausible[_i].target),
		plausible[_i].plausible);
}
END_TEST

START_TEST(guesses)
{
	static const char *const of[] = { "out/a.o", "a", "./x.y.o" };
	static const char *const wanted[] = { "out/a.d", "a.d", "./x.y.d" };
	static const char *const more[] = { "out/.deps/a.Po", ".deps/a.Po", "./.deps/x.y.Po" };

	for (int i = 0; i < COUNT(of); i++) {
		qk_autostrv struct qk_strv got = { 0 };

		qk_depfile_guess(of[i], &got);
		ck_assert(qk_strv_has(&got, wanted[i]) && qk_strv_has(&got, more[i]));
		for (size_t k = 0; k < got.n; k++)
			ck_assert_msg(qk_depfile_plausible(got.v[k], of[i]), "%s", got.v[k]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("depfile");
	TCase *tc = tcase_create("depfile");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, parse_table, 0, COUNT(parsed));
	tcase_add_loop_test(tc, parse_cut, 0, COUNT(parsed));
	tcase_add_test(tc, parse_binary);
	tcase_add_test(tc, parse_huge);
	tcase_add_loop_test(tc, plausible_table, 0, COUNT(plausible));
	tcase_add_test(tc, guesses);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
