#include "report/text.h"
#include "base/mem.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FINDINGS(a) { a, COUNT(a), COUNT(a) }

static struct qk_session audit = { .mode = QK_MODE_AUDIT, .recorder = QK_RECORDER_SECCOMP,
	.recorder_note = (char *)"", .backend_note = (char *)"" };
static struct qk_session enforce = { .mode = QK_MODE_ENFORCE, .recorder = QK_RECORDER_SECCOMP,
	.backend = QK_BACKEND_HELD_OVERLAY, .recorder_note = (char *)"", .backend_note = (char *)"" };

static void prints(struct qk_report *rep, const char *expected)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_text_summary(&b, rep);
	ck_assert_str_eq(b.s, expected);
}

/* Prints a report of these tasks. */
#define PRINTS(session_, tasks_, expected_)                                                       \
	do {                                                                                      \
		struct qk_report rep_ = { .session = session_, .tasks = FINDINGS(tasks_) };       \
		prints(&rep_, expected_);                                                         \
	} while (0)

START_TEST(nothing_and_clean)
{
	struct qk_report none = { .session = &audit };
	struct qk_report_task one[] = { { .name = "t" } }, two[] = { { .name = "t" }, { .name = "u" } };

	prints(&none, "");
	PRINTS(&audit, one, "Sandbox audit: 1 task kept to what they declare\n");
	PRINTS(&audit, two, "Sandbox audit: 2 tasks kept to what they declare\n");
	PRINTS(&enforce, two, "Sandbox enforce (held overlay): 2 tasks kept to what they declare\n");
	none.trouble = (char *)"cut";
	prints(&none, "Sandbox audit: no task was checked\n"
		      "  this summary is incomplete: cut\n");
}
END_TEST

START_TEST(kinds)
{
	const char *gen[] = { "gen", NULL }, *others[] = { "x", "y", NULL };
	struct qk_finding f[] = {
		{ QK_KIND_READ, "a.h", NULL, "t: a.h", false, NULL, NULL },
		{ QK_KIND_READ, "b.h", NULL, "t: b.h", false, NULL, NULL },
		{ QK_KIND_ORDERING, "gen.c", gen, "t: gen", false, NULL, NULL },
		{ QK_KIND_ORDERING, "gen.h", gen, "t: gen", false, NULL, NULL },
		{ QK_KIND_WRITE, "w", NULL, "t: QK_OUTPUTS += w", false, NULL, NULL },
		{ QK_KIND_WRITE, "x", NULL, "t: QK_OUTPUTS += x", false, NULL, NULL },
		{ QK_KIND_WRITERS, "log", others, NULL, false, NULL, NULL },
		{ QK_KIND_LEFT, "sleep 5", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_UNKEYED, ".env", NULL, "t: .env", false, NULL, NULL },
		{ QK_KIND_GIT_WRITE, ".git/x", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_TOOLCHAIN, ".nvmrc", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_UNUSED, "u", NULL, NULL, false, NULL, NULL },
	};
	struct qk_report_task tasks[] = { { .name = "clean" }, { .name = "t", .findings = FINDINGS(f) } };

	PRINTS(&audit, tasks,
		"Sandbox audit: 1 of 2 tasks went beyond what they declare\n"
		"  t\n"
		"    2 read outside its inputs, not a prerequisite:\n"
		"      a.h\n"
		"      b.h\n"
		"    fix: t: a.h b.h\n"
		"    2 read, made by a recipe it does not wait for (breaks under -j):\n"
		"      gen.c, made by gen\n"
		"      gen.h, made by gen\n"
		"    fix: t: gen\n"
		"    2 written outside its outputs:\n"
		"      w\n"
		"      x\n"
		"    fix: t: QK_OUTPUTS += w\n"
		"    fix: t: QK_OUTPUTS += x\n"
		"    1 written by another recipe too:\n"
		"      log, by x, y\n"
		"    1 left running:\n"
		"      sleep 5\n"
		"  toolchain configuration read: .nvmrc (1 task)\n"
		"  read, which the sandbox allows, but not declared: .env (1 task)\n"
		"  wrote in .git, which the sandbox allows: 1 task\n");
}
END_TEST

/* What does not count leaves a task with the clean ones, and is said once at the end. */
START_TEST(what_does_not_count)
{
	struct qk_finding f[] = { { QK_KIND_UNKEYED, ".env", NULL, NULL, false, NULL, NULL } };
	struct qk_report_task tasks[] = { { .name = "t", .findings = FINDINGS(f) },
		{ .name = "u", .findings = FINDINGS(f) } };

	PRINTS(&audit, tasks,
		"Sandbox audit: 2 tasks kept to what they declare\n"
		"  read, which the sandbox allows, but not declared: .env (2 tasks)\n");
}
END_TEST

static struct qk_finding many[100];
static char paths[100][8], fixes[100][40];

static void fill(enum qk_kind kind, const char *fix)
{
	for (int i = 0; i < 100; i++) {
		snprintf(paths[i], sizeof(paths[i]), "p%02d", i);
		snprintf(fixes[i], sizeof(fixes[i]), "%.30sp%02d", fix, i);
		many[i] = (struct qk_finding){ kind, paths[i], NULL, fixes[i], false, NULL, NULL };
	}
}

START_TEST(at_most_eight_paths)
{
	struct qk_report_task eight[] = { { .name = "t", .findings = { many, 8, 8 } } };
	struct qk_report_task nine[] = { { .name = "t", .findings = { many, 9, 9 } } };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_report rep = { .session = &audit, .tasks = FINDINGS(nine) };

	fill(QK_KIND_WRITE, "t: QK_OUTPUTS += ");
	PRINTS(&audit, eight,
		"Sandbox audit: 1 of 1 task went beyond what they declare\n"
		"  t\n"
		"    8 written outside its outputs:\n"
		"      p00\n      p01\n      p02\n      p03\n      p04\n      p05\n      p06\n      p07\n"
		"    fix: t: QK_OUTPUTS += p00\n    fix: t: QK_OUTPUTS += p01\n"
		"    fix: t: QK_OUTPUTS += p02\n    fix: t: QK_OUTPUTS += p03\n"
		"    fix: t: QK_OUTPUTS += p04\n    fix: t: QK_OUTPUTS += p05\n"
		"    fix: t: QK_OUTPUTS += p06\n    fix: t: QK_OUTPUTS += p07\n");
	qk_text_summary(&b, &rep);
	ck_assert(strstr(b.s, "      p07\n      and 1 more\n    fix: t: QK_OUTPUTS += p00\n"));
	ck_assert(strstr(b.s, "+= p07\n") && !strstr(b.s, "p08"));
	fill(QK_KIND_READ, "t: ");
	qk_buf_reset(&b);
	qk_text_summary(&b, &rep); /* the rule is one line: it may well be whole */
	ck_assert(strstr(b.s, "and 1 more\n    fix: t: p00 p01 p02 p03 p04 p05 p06 p07 p08\n"));
}
END_TEST

START_TEST(rules_of_several_targets)
{
	struct qk_finding f[] = {
		{ QK_KIND_ORDERING, "1", NULL, "app: lib", false, NULL, NULL },
		{ QK_KIND_ORDERING, "2", NULL, "app: gen", false, NULL, NULL },
		{ QK_KIND_ORDERING, "3", NULL, "app: lib", false, NULL, NULL },
		{ QK_KIND_ORDERING, "4", NULL, "app: li", false, NULL, NULL },
		{ QK_KIND_ORDERING, "5", NULL, "apple: lib", false, NULL, NULL },
		{ QK_KIND_ORDERING, "6", NULL, NULL, false, NULL, NULL },
	};
	struct qk_report_task tasks[] = { { .name = "t", .findings = FINDINGS(f) } };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_report rep = { .session = &audit, .tasks = FINDINGS(tasks) };

	qk_text_summary(&b, &rep);
	ck_assert_str_eq(strstr(b.s, "      6\n"), "      6\n"
						   "    fix: app: lib gen li\n"
						   "    fix: apple: lib\n");
}
END_TEST

START_TEST(shared)
{
	struct qk_finding f[] = {
		{ QK_KIND_READ, "common.h", NULL, "t: common.h", true, NULL, NULL },
		{ QK_KIND_READ, "own.h", NULL, "t: own.h", false, NULL, NULL },
	};
	struct qk_report_task tasks[] = { { .name = "t", .findings = FINDINGS(f) },
		{ .name = "u", .findings = { f, 1, 1 } } };
	struct qk_report_shared s[] = { { QK_KIND_READ, "common.h", 3, "t u v: common.h" },
		{ QK_KIND_WRITE, "log", 4, NULL } };
	struct qk_report rep = { .session = &audit, .tasks = FINDINGS(tasks), .shared = FINDINGS(s) };

	prints(&rep, "Sandbox audit: 2 of 2 tasks went beyond what they declare\n"
		     "  read by many tasks, a prerequisite of none of them:\n"
		     "    common.h (3 tasks)\n"
		     "    fix: t u v: common.h\n"
		     "  written by many tasks, an output of none of them:\n"
		     "    log (4 tasks)\n"
		     "  t\n"
		     "    1 read outside its inputs, not a prerequisite:\n"
		     "      own.h\n"
		     "    fix: t: own.h\n");
}
END_TEST

START_TEST(standings)
{
	struct qk_report_task tasks[] = {
		{ .name = "a", .standing = QK_UNSANDBOXED, .why = "off" },
		{ .name = "b", .standing = QK_REFUSED_RUN, .why = "no walls" },
		{ .name = "c", .standing = QK_UNSANDBOXED, .why = "SHELL is set" },
		{ .name = "d", .standing = QK_UNSANDBOXED, .why = "off" },
		{ .name = "e", .standing = QK_UNAUDITED, .why = "an event was lost" },
		{ .name = "f", .standing = QK_RESTORED, .why = "restored" },
	};

	PRINTS(&enforce, tasks,
		"Sandbox enforce: no task was checked\n"
		"  ran unsandboxed: a, d (off)\n"
		"  ran unsandboxed: c (SHELL is set)\n"
		"  not audited: e (an event was lost)\n"
		"  refused: b (no walls)\n"
		"  1 task restored from the cache, so not checked\n");
}
END_TEST

START_TEST(standing_of_many)
{
	struct qk_report_task tasks[10];

	fill(QK_KIND_READ, "");
	for (int i = 0; i < 10; i++)
		tasks[i] = (struct qk_report_task){ .name = paths[i], .standing = QK_UNAUDITED, .why = "w" };
	PRINTS(&audit, tasks,
		"Sandbox audit: no task was checked\n"
		"  not audited: p00, p01, p02, p03, p04, p05, p06, p07 and 2 more (w)\n");
}
END_TEST

START_TEST(notes)
{
	struct qk_report_task tasks[] = { { .name = "t" } };
	struct qk_report_notice notices[] = { { "t", "QK_INPUTS", "scr/*.c" } };
	struct qk_session s = enforce;
	struct qk_report rep = { .session = &s, .tasks = FINDINGS(tasks), .notices = FINDINGS(notices) };

	s.backend = QK_BACKEND_LANDLOCK;
	s.backend_note = (char *)"no overlay here";
	s.recorder = QK_RECORDER_STRACE;
	s.recorder_note = (char *)"no seccomp here";
	prints(&rep, "Sandbox enforce (landlock alone): 1 task kept to what they declare\n"
		     "  QK_INPUTS: 'scr/*.c' matches nothing (t)\n"
		     "  held by landlock alone: no overlay here\n"
		     "  recorded by strace: no seccomp here\n");
}
END_TEST

static const struct {
	const char *name, *shown;
} names[] = {
	{ "", "" },
	{ "plain name", "plain name" },
	{ "quo\"te\\", "quo\"te\\" },
	{ "\xc3\xa4\xff", "\xc3\xa4\xff" },
	{ "a\nb\tc", "\"a\\nb\\tc\"" },
	{ "\x1b[31m", "\"\\033[31m\"" },
	{ "\x7f\"\\", "\"\\177\\\"\\\\\"" },
	{ "a\xc2\x9b" "31m", "\"a\\302\\23331m\"" }, /* one byte is as good as ESC [ to a terminal */
	{ "\xc2\xa0", "\xc2\xa0" },
};

START_TEST(name)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_text_name(&b, names[_i].name);
	ck_assert_str_eq(b.s, names[_i].shown);
}
END_TEST

/* Whatever a name holds, no line of the summary but its own is made of it, nor any control byte. */
START_TEST(control_bytes)
{
	const char *odd = "a\n  b\x1b[2J\r";
	const char *others[] = { odd, NULL };
	struct qk_finding f[] = {
		{ QK_KIND_READ, odd, NULL, odd, false, NULL, NULL },
		{ QK_KIND_WRITERS, odd, others, odd, false, NULL, NULL },
		{ QK_KIND_TOOLCHAIN, odd, NULL, odd, false, NULL, NULL },
		{ QK_KIND_UNKEYED, odd, NULL, odd, false, NULL, NULL },
	};
	struct qk_report_task tasks[] = { { .name = odd, .findings = FINDINGS(f) },
		{ .name = odd, .standing = QK_UNSANDBOXED, .why = odd } };
	struct qk_report_shared s[] = { { QK_KIND_READ, odd, 3, odd } };
	struct qk_report_notice notices[] = { { odd, "QK_INPUTS", odd } };
	struct qk_session noted = { .mode = QK_MODE_ENFORCE, .recorder = QK_RECORDER_STRACE,
		.backend = QK_BACKEND_LANDLOCK, .recorder_note = (char *)odd, .backend_note = (char *)odd };
	struct qk_report rep = { .session = &noted, .tasks = FINDINGS(tasks), .shared = FINDINGS(s),
		.notices = FINDINGS(notices), .trouble = (char *)odd };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t lines = 0;

	qk_text_summary(&b, &rep);
	for (size_t i = 0; i < b.len; i++) {
		lines += b.s[i] == '\n';
		ck_assert_msg(b.s[i] == '\n' || b.s[i] < 0 || (b.s[i] >= ' ' && b.s[i] != 0x7f), "%s", b.s);
	}
	ck_assert_uint_eq(lines, 15);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("text");
	TCase *tc = tcase_create("text");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_test(tc, nothing_and_clean);
	tcase_add_test(tc, kinds);
	tcase_add_test(tc, what_does_not_count);
	tcase_add_test(tc, at_most_eight_paths);
	tcase_add_test(tc, rules_of_several_targets);
	tcase_add_test(tc, shared);
	tcase_add_test(tc, standings);
	tcase_add_test(tc, standing_of_many);
	tcase_add_test(tc, notes);
	tcase_add_loop_test(tc, name, 0, (int)COUNT(names));
	tcase_add_test(tc, control_bytes);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
