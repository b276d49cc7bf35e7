#include "cli/nearest.h"
#include "cli/options.h"

#include <check.h>
#include <errno.h>
#include <string.h>

static const char *mode, *file, *quick, *jobs;
static struct qk_strv names;

static const struct qk_option options[] = {
	{ .name = "sandbox", .optional = true, .value = "MODE", .help = "h", .to = &mode },
	{ .name = "report", .value = "FILE", .help = "h", .to = &file },
	{ .name = "quick", .letter = 'q', .help = "h", .to = &quick },
	{ .name = "jobs", .letter = 'j', .value = "N", .help = "h", .to = &jobs },
	{ .name = "target", .letter = 't', .value = "NAME,...", .help = "h", .list = &names },
	{ 0 },
};

static const struct qk_usage usage = { "verb", "", "about\n", options };

struct parsed {
	int r, argc;
	struct qk_strv words;
	char **rest;
	struct qk_err err;
	char *argv[16], *copy;
};

/* line: words parted by single blanks; "~" stands for an empty word. */
static struct parsed *parse(const char *line)
{
	struct parsed *p = qk_zalloc(sizeof(*p));

	p->copy = qk_strdup(line);
	mode = file = quick = jobs = NULL;
	qk_strv_release(&names);
	p->argv[p->argc++] = (char *)"verb";
	for (char *s = p->copy, *word; (word = strsep(&s, " "));)
		if (*word)
			p->argv[p->argc++] = strcmp(word, "~") ? word : (char *)"";
	p->r = qk_options_parse(&usage, p->argc, p->argv, &p->words, &p->rest, &p->err);
	return p;
}

static void release(struct parsed *p)
{
	qk_strv_release(&p->words);
	free(p->copy);
	free(p);
}

START_TEST(values_in_all_spellings)
{
	static const struct {
		const char *line, *mode, *file, *quick, *jobs;
	} rows[] = {
		{ "", NULL, NULL, NULL, NULL },
		{ "--sandbox", "", NULL, NULL, NULL },
		{ "--sandbox=enforce", "enforce", NULL, NULL, NULL },
		{ "--sandbox= --quick", "", NULL, "", NULL },
		{ "--report f", NULL, "f", NULL, NULL },
		{ "--report=f", NULL, "f", NULL, NULL },
		{ "--report --quick", NULL, "--quick", NULL, NULL },
		{ "--report a --report b", NULL, "b", NULL, NULL },
		{ "-j4", NULL, NULL, NULL, "4" },
		{ "-j 4", NULL, NULL, NULL, "4" },
		{ "--jobs=4", NULL, NULL, NULL, "4" },
		{ "-qj4", NULL, NULL, "", "4" },
		{ "-qj 4", NULL, NULL, "", "4" },
		{ "-- --sandbox", NULL, NULL, NULL, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *p = parse(rows[i].line);

		ck_assert_msg(!p->r, "%s: %s", rows[i].line, p->err.msg);
		ck_assert_pstr_eq(mode, rows[i].mode);
		ck_assert_pstr_eq(file, rows[i].file);
		ck_assert_pstr_eq(quick, rows[i].quick);
		ck_assert_pstr_eq(jobs, rows[i].jobs);
		release(p);
	}
}
END_TEST

START_TEST(words_and_rest)
{
	struct parsed *p = parse("a --quick - b -- -n c");

	ck_assert_int_eq(p->r, 0);
	ck_assert_uint_eq(p->words.n, 3);
	ck_assert_str_eq(p->words.v[0], "a");
	ck_assert_str_eq(p->words.v[1], "-");
	ck_assert_str_eq(p->words.v[2], "b");
	ck_assert_ptr_nonnull(p->rest);
	ck_assert_str_eq(p->rest[0], "-n");
	ck_assert_str_eq(p->rest[1], "c");
	ck_assert_ptr_null(p->rest[2]);
	release(p);
	p = parse("a");
	ck_assert_ptr_null(p->rest);
	release(p);
}
END_TEST

START_TEST(lists_are_split_and_joined)
{
	struct parsed *p = parse("-t a,b --target=c -td,,e");

	ck_assert_int_eq(p->r, 0);
	ck_assert_uint_eq(names.n, 5);
	ck_assert_str_eq(names.v[0], "a");
	ck_assert_str_eq(names.v[2], "c");
	ck_assert_str_eq(names.v[4], "e");
	release(p);
}
END_TEST

START_TEST(complaints)
{
	static const struct {
		const char *line, *says;
	} rows[] = {
		{ "--sandbx", "unknown option '--sandbx'; did you mean '--sandbox'?" },
		{ "--sandbx=audit", "unknown option '--sandbx'; did you mean '--sandbox'?" },
		{ "--zzzzzz", "unknown option '--zzzzzz'; --help lists them" },
		{ "-x", "unknown option '-x'; --help lists them" },
		{ "-qx", "unknown option '-x'; --help lists them" },
		{ "--quick=1", "--quick takes no value" },
		{ "--report", "--report needs its FILE" },
		{ "-j", "-j needs its N" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct parsed *p = parse(rows[i].line);

		ck_assert_int_eq(p->r, -EINVAL);
		ck_assert_str_eq(p->err.msg, rows[i].says);
		release(p);
	}
}
END_TEST

START_TEST(help_is_asked_for)
{
	static const char *const lines[] = { "--help", "-h", "-qh", "a --help --zzzzzz" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct parsed *p = parse(lines[i]);

		ck_assert_msg(p->r == 1, "%s: %d", lines[i], p->r);
		release(p);
	}
}
END_TEST

START_TEST(nearest_word)
{
	static const char *const words[] = { "doctor", "info", "run", "run-many", "show", "cache" };
	static const struct {
		const char *word, *near;
	} rows[] = {
		{ "docter", "doctor" }, { "dcotor", "doctor" }, { "doctr", "doctor" },
		{ "rnu", "run" }, { "runn", "run" }, { "run-mny", "run-many" }, { "doc", "doctor" },
		{ "c", "cache" }, { "shwo", "show" }, { "x", NULL }, { "zebra", NULL }, { "", NULL },
		{ "info", "info" }, { "chchch", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_pstr_eq(qk_nearest(rows[i].word, words, 6), rows[i].near);
	ck_assert_ptr_null(qk_nearest("run", words, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");
	SRunner *r;
	int failed;

	tcase_add_test(t, values_in_all_spellings);
	tcase_add_test(t, words_and_rest);
	tcase_add_test(t, lists_are_split_and_joined);
	tcase_add_test(t, complaints);
	tcase_add_test(t, help_is_asked_for);
	tcase_add_test(t, nearest_word);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
