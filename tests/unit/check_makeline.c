#include "cli/makeline.h"
#include "cli/prefix.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The composed command line as one text; "!" and the complaint where it is refused. */
static char *compose(const struct qk_makeline *m, char **ret_makefiles)
{
	qk_autostrv struct qk_strv argv = { 0 };
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	if (qk_makeline_compose(m, &argv, ret_makefiles, &err)) {
		ck_assert_ptr_null(*ret_makefiles);
		return qk_asprintf("!%s", err.msg);
	}
	for (size_t i = 0; i < argv.n; i++)
		qk_buf_addf(&out, "%s%s", i ? " " : "", argv.v[i]);
	return qk_buf_detach(&out);
}

START_TEST(lines)
{
	char *rest[] = { (char *)"-O", (char *)"CC=clang", NULL };
	const struct {
		struct qk_makeline m;
		const char *line, *makefiles;
	} rows[] = {
		{ { .mk = "/p/qk.mk", .cwd = "/w" }, "make -f /p/qk.mk", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .has_makefile = true }, "make", "/p/qk.mk" },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .has_makefile = true, .makefiles = "a.mk b.mk" }, "make",
			"/p/qk.mk a.mk b.mk" },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .sandbox = "" }, "make -f /p/qk.mk SANDBOX=audit", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .sandbox = "enforce", .jobs = "8", .keep_going = "",
			  .dry_run = "", .skip_cache = "", .record = "" },
			"make -f /p/qk.mk -j8 -k -n SANDBOX=enforce SKIP_CACHE=1 RECORD=1", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w/sub", .sandbox_report = "../s.json", .report = "/abs/r" },
			"make -f /p/qk.mk SANDBOX_REPORT=/w/s.json QK_REPORT=/abs/r", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .report = "a$b" }, "make -f /p/qk.mk QK_REPORT=/w/a$$b",
			NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .rest = rest }, "make -f /p/qk.mk -O CC=clang", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .sandbox = "1" },
			"!--sandbox=1: not audit, enforce or off", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .sandbox = "enforc" },
			"!--sandbox=enforc: not audit, enforce or off; did you mean 'enforce'?", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .jobs = "0" }, "!-j 0: not a number of jobs", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .jobs = "" }, "!-j : not a number of jobs", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .jobs = "4x" }, "!-j 4x: not a number of jobs", NULL },
		{ { .mk = "/p/qk.mk", .cwd = "/w", .report = "" }, "!--report: the file has no name", NULL },
		{ { .mk = "/p q/qk.mk", .cwd = "/w", .has_makefile = true },
			"!'/p q/qk.mk': make takes no such name in MAKEFILES; put 'include qk.mk' into the "
			"Makefile", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		qk_autofree char *makefiles = NULL, *line = NULL;

		line = compose(&rows[i].m, &makefiles);
		ck_assert_str_eq(line, rows[i].line);
		ck_assert_pstr_eq(makefiles, rows[i].makefiles);
	}
}
END_TEST

START_TEST(goals_come_last)
{
	struct qk_makeline m = { .mk = "/p/qk.mk", .cwd = "/w", .sandbox = "" };
	qk_autofree char *makefiles = NULL, *line = NULL;

	qk_strv_push(&m.goals, "app:build");
	qk_strv_push(&m.goals, "test");
	line = compose(&m, &makefiles);
	ck_assert_str_eq(line, "make -f /p/qk.mk SANDBOX=audit app:build test");
	qk_strv_release(&m.goals);
}
END_TEST

START_TEST(makefile_named)
{
	static const struct {
		const char *word;
		bool names;
	} rows[] = { { "-f", true }, { "-fx.mk", true }, { "--file=x", true }, { "--makefile", true },
		{ "-j4", false }, { "--files", false }, { "CFLAGS=-f", false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *rest[] = { (char *)"-s", (char *)rows[i].word, NULL };

		ck_assert_int_eq(qk_makeline_names_makefile(rest), rows[i].names);
	}
	ck_assert(!qk_makeline_names_makefile(NULL));
}
END_TEST

START_TEST(quoting)
{
	static const struct {
		const char *word, *quoted;
	} rows[] = { { "app:build", "app:build" }, { "A=/x,y@z%+", "A=/x,y@z%+" }, { "a b", "'a b'" },
		{ "", "''" }, { "it's", "'it'\\''s'" }, { "$x", "'$x'" }, { "a\nb", "'a\nb'" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_makeline_quote(&b, rows[i].word);
		ck_assert_str_eq(b.s, rows[i].quoted);
	}
}
END_TEST

static void touch(const char *top, const char *path)
{
	qk_autofree char *full = qk_asprintf("%s/%s", top, path), *command = NULL;

	command = qk_asprintf("mkdir -p \"$(dirname '%s')\" && : >'%s'", full, full);
	ck_assert_int_eq(system(command), 0);
}

/* Installed, built in a source tree, and built there for sanitizers. */
START_TEST(prefixes)
{
	char top[] = "/tmp/qk-prefix.XXXXXX";
	qk_autofree char *command = NULL;
	static const struct {
		const char *program, *mk, *plugin;
	} rows[] = {
		{ "usr/bin/qk", "usr/include/qk.mk", "usr/lib/qk/qk.so" },
		{ "src/build/bin/qk", "src/qk.mk", "src/build/lib/qk/qk.so" },
		{ "src/build/san/bin/qk", "src/build/san/include/qk.mk", "src/build/san/lib/qk/qk.so" },
	};
	static const char *const files[] = { "usr/include/qk.mk", "usr/lib/qk/qk.so", "usr/libexec/qk/sh",
		"src/qk.mk", "src/build/include/qk.mk", "src/build/lib/qk/qk.so", "src/build/libexec/qk/sh",
		"src/build/san/include/qk.mk", "src/build/san/lib/qk/qk.so", "src/build/san/libexec/qk/sh" };

	ck_assert_ptr_nonnull(mkdtemp(top));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		touch(top, files[i]);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		qk_autofree char *program = qk_asprintf("%s/%s", top, rows[i].program);
		qk_autofree char *mk = qk_asprintf("%s/%s", top, rows[i].mk);
		qk_autofree char *plugin = qk_asprintf("%s/%s", top, rows[i].plugin);
		struct qk_err err = QK_ERR_INIT;
		struct qk_prefix p = { 0 };

		ck_assert_msg(!qk_prefix_of(&p, program, &err), "%s", err.msg);
		ck_assert_str_eq(p.mk, mk);
		ck_assert_str_eq(p.plugin, plugin);
		qk_prefix_release(&p);
		ck_assert_int_eq(unlink(plugin), 0);
		ck_assert_int_eq(qk_prefix_of(&p, program, &err), -ENOENT);
		ck_assert_ptr_nonnull(strstr(err.msg, plugin));
		qk_prefix_release(&p);
	}
	command = qk_asprintf("rm -r '%s'", top);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("makeline");
	TCase *t = tcase_create("makeline");
	SRunner *r;
	int failed;

	tcase_add_test(t, lines);
	tcase_add_test(t, goals_come_last);
	tcase_add_test(t, makefile_named);
	tcase_add_test(t, quoting);
	tcase_add_test(t, prefixes);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
