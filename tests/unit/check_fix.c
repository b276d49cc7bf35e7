#include "base/glob.h"
#include "report/declare.h"
#include "report/fix.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <stdio.h>
#include <sys/wait.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct {
	const char *target, *prerequisite;
	const char *line; /* NULL = make has no way to say it */
} prerequisites[] = {
	{ "a.o", "a.h", "a.o: a.h" },
	{ "out/a.o", "b/a.h", "out/a.o: b/a.h" },
	{ "app:build", "a:b", "app\\:build: a\\:b" },
	{ "a b", "c d", "a\\ b: c\\ d" },
	{ "a\tb", "c", NULL }, /* make reads a blank there */
	{ "a", "c\td", "a: c\\\td" },
	{ " a", " b", "\\ a: \\ b" },
	{ "a#b", "c#d", "a\\#b: c\\#d" },
	{ "a$b", "$(c)", NULL }, /* a member c of an archive "$" */
	{ "a$b", "c${d}", "a$$b: c$${d}" },
	{ "a%b", "c%d", "a\\%b: c%d" },
	{ "a=b", "c=d", "a$(or =)b: c$(or =)d" },
	{ "a", "=", "a: $(or =)" },
	{ "a:=b", "c!=d", "a\\:$(or =)b: c!$(or =)d" },
	{ "a;b", "c;d", "a\\$(or ;)b: c\\$(or ;)d" },
	{ "a|b", "c|d", "a|b: c\\|d" },
	{ "|a", "b", "|a: b" },
	{ "a", "|", NULL },
	{ "a", "|b", NULL },
	{ "a&", "b&", "a$(or &): b&" },
	{ "a&b", "c&d", "a&b: c&d" },
	{ "a\\b", "c\\d", "a\\b: c\\d" },
	{ "a\\ b", "c\\ d", "a\\\\\\ b: c\\\\\\ d" },
	{ "a\\#b", "c\\;d", "a\\\\\\#b: c\\\\\\$(or ;)d" },
	{ "a\\:b", "c\\$d", "a\\\\\\:b: c\\$$d" },
	{ "a\\%b", "c\\%d", "a\\\\\\%b: c\\%d" },
	{ "a\\\\b", "c\\\\d", "a\\\\b: c\\\\d" },
	{ "a\"b'c`d", "e~f!g(h", "a\"b'c`d: e~f!g(h" },
	{ "a*", "[b]", "a\\*: \\[b]" },
	{ "include", "export", "include: export" },
	{ "export", "include", "export: include" },
	{ "define", "x", "define: x" },
	{ "endef", "x", "endef: x" },
	{ "endif", "x", "endif: x" },
	{ "ifdef", "x", "ifdef: x" },
	{ "override", "x", "override: x" },
	{ "private", "x", "private: x" },
	{ "vpath", "x", "vpath: x" },
	{ "load", "x", "load: x" },
	{ "-include", "-x", "-include: -x" },
	{ "@a", "+b", "@a: +b" },
	{ "\x01", "\x1b[x", "\x01: \x1b\\[x" },
	{ "\xff\xc3\xa4", "\x7f", "\xff\xc3\xa4: \x7f" },
	{ "a\nb", "c", NULL },
	{ "a", "b\nc", NULL },
	{ "a", "b\r", NULL },
	{ "a", "~b", NULL },
	{ "a", "b~", "a: b~" },
	{ "a\\", "b", NULL },
	{ "a", "b\\", NULL },
	{ "lib(x.o)", "b", NULL },
	{ "a", "lib(x.o)", NULL },
	{ "a", "(b)c", "a: (b)c" },
	{ "a", "b\\*", NULL },
};

/* Puts the Makefile into the tree and what make -p or its recipe prints into out. */
static void ask_make(const char *make, const char *flags, const char *makefile, struct qk_buf *out)
{
	qk_autofree char *command =
		qk_asprintf("cd %s && env -i PATH=\"$PATH\" %s -f M %s 2>.err >.out </dev/null", tree, make, flags);
	qk_autofree char *path = qk_asprintf("%s/.out", tree);
	int status;

	tree_file("M", makefile);
	status = system(command);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1); /* 1: something is not up to date */
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 24, out, NULL), 0);
}

/* Every GNU Make at hand: the host's, and the other one that the cases use. */
static const char *const makes[] = { "make", "build/make-4.4.1/make" };

static char *find_make(int i)
{
	char *path = realpath(makes[i], NULL);

	return i ? path : (free(path), qk_strdup(makes[i]));
}

START_TEST(prerequisite)
{
	const char *target = prerequisites[_i].target, *prereq = prerequisites[_i].prerequisite;
	qk_autobuf struct qk_buf line = QK_BUF_INIT;

	qk_buf_addstr(&line, "x");
	ck_assert_int_eq(
		qk_fix_prerequisite(&line, target, prereq), prerequisites[_i].line != NULL);
	ck_assert_str_eq(line.s + 1, prerequisites[_i].line ? prerequisites[_i].line : "");
}
END_TEST

START_TEST(make_reads_prerequisite)
{
	const char *target = prerequisites[_i].target, *prereq = prerequisites[_i].prerequisite;

	if (!prerequisites[_i].line)
		return;
	for (int m = 0; m < COUNT(makes); m++) {
		qk_autofree char *make = find_make(m), *makefile = NULL, *wanted = NULL;
		qk_autobuf struct qk_buf out = QK_BUF_INIT;

		if (!make)
			continue;
		tree_make();
		/* make takes the backslash from a '*' only where a file of that name is there */
		tree_file(target, "");
		tree_file(prereq, "");
		makefile = qk_asprintf("all:\n%s\n", prerequisites[_i].line);
		wanted = qk_asprintf("\n%s: %s\n", target, prereq);
		ask_make(make, "-pqr", makefile, &out);
		ck_assert_msg(strstr(out.s, wanted) != NULL, "%s does not read '%s'", make,
			prerequisites[_i].line);
		tree_remove();
	}
}
END_TEST

static const char *const paths[] = { "a", "../a/b", "a b", "a\tb\nc", "a#b", "a;b", "$a$(b)", "a\\b", "a\\",
	"[a]", "a*", "a?b", "{a,b}", "!(a)", "@(a|b)", "+(x)", "*(x)", "?(x)", "!a", "^a", "a^b", "a=b", "a:=b",
	"a:b", "%a", "a&", "~a", "\x1b", "\xff", "a,b", "a\"b'`", "-a", "a|b", "(a)" };

START_TEST(make_reads_variable)
{
	for (int m = 0; m < COUNT(makes); m++) {
		qk_autofree char *make = find_make(m), *makefile = NULL, *entry = NULL;
		qk_autobuf struct qk_buf line = QK_BUF_INIT, out = QK_BUF_INIT;
		qk_autostrv struct qk_strv words = { 0 };

		if (!make)
			continue;
		tree_make();
		ck_assert(qk_fix_variable(&line, "app:t", "QK_OUTPUTS", paths[_i]));
		makefile = qk_asprintf("%s\napp\\:t: ; @: $(info $(QK_OUTPUTS))\n", line.s);
		ask_make(make, "-s app:t", makefile, &out);
		qk_strv_split(&words, out.s);
		ck_assert_msg(words.n == 1, "%s reads '%s' as %s", make, line.s, out.s);
		ck_assert_int_ne(words.v[0][0], '^');
		if (qk_declare_scope(words.v[0], &entry) == QK_GLOB)
			ck_assert_msg(qk_glob_match(entry, paths[_i]), "'%s'", entry);
		else
			ck_assert_str_eq(entry, paths[_i]);
		tree_remove();
	}
}
END_TEST

START_TEST(variable_of_odd_target)
{
	qk_autobuf struct qk_buf line = QK_BUF_INIT;

	ck_assert(!qk_fix_variable(&line, "a\nb", "QK_OUTPUTS", "x"));
	ck_assert_uint_eq(line.len, 0);
	ck_assert(qk_fix_variable(&line, "a=b", "QK_OUTPUTS", "x"));
	ck_assert_str_eq(line.s, "a$(or =)b: QK_OUTPUTS += x");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fix");
	TCase *tc = tcase_create("fix");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, prerequisite, 0, COUNT(prerequisites));
	tcase_add_loop_test(tc, make_reads_prerequisite, 0, COUNT(prerequisites));
	tcase_add_loop_test(tc, make_reads_variable, 0, COUNT(paths));
	tcase_add_test(tc, variable_of_odd_target);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
