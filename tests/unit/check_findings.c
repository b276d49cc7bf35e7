/* One task at a time: reads, writes, lines, standing; and what many have in common. */
#include "tests/unit/run.h"

/* reads */

START_TEST(reads)
{
	has(QK_LIST_PREREQS, "a.c pre");
	has(QK_LIST_ALLOW_READ, "inc");
	has(QK_LIST_IGNORE_READS, "ign*");
	task("a.o", "r:a.c r:a.h r:inc/b.h r:ignored r:tsconfig.base.json r:sub/.nvmrc r:.env r:.git/HEAD "
		    "r:pre/x x:tool l:other r:/etc/passwd c:a.o");
	reports("a.o\n"
		"  undeclaredReads a.h | a.o: a.h\n"
		"  undeclaredReads pre/x | a.o: pre/x\n"
		"  undeclaredReads tool | a.o: tool\n"
		"  undeclaredReads inc/b.h | a.o: inc/b.h\n"
		"  tsconfigReads tsconfig.base.json | a.o: tsconfig.base.json\n"
		"  unkeyedReads .env | a.o: .env\n"
		"  unkeyedReads .git/HEAD | a.o: .git/HEAD\n"
		"  toolchainReads sub/.nvmrc | a.o: sub/.nvmrc\n");
}
END_TEST

START_TEST(reads_and_writes_of_one_file)
{
	task("t", "r:before w:before c:after r:after w:.env r:.env c:t");
	reports("t\n"
		"  undeclaredReads before | t: before\n"
		"  strayWrites .env | t: QK_OUTPUTS += .env\n"
		"  strayWrites after | t: QK_OUTPUTS += after\n"
		"  strayWrites before | t: QK_OUTPUTS += before\n");
}
END_TEST

START_TEST(links)
{
	has(QK_LIST_PREREQS, "declared");
	ck_assert(!chdir(tree) && !symlink("real", "declared") && !chdir("/"));
	task("t", "f:declared r:real f:other c:own f:own -:own c:t");
	reports("t\n"
		"  undeclaredReads other | t: other\n");
}
END_TEST

/* writes */

START_TEST(writes)
{
	tree_file("gen/y", "");
	has(QK_LIST_OUTPUTS, "gen/**");
	task("t", "c:t d:gen c:gen/x c:stray w:old -:gone m:mode c:tmp -:tmp d:dir d:way c:way/f "
		  "c:node_modules/x c:.git/x");
	reports("t\n"
		"  strayWrites dir | t: QK_OUTPUTS += dir\n"
		"  strayWrites gone | t: QK_OUTPUTS += gone\n"
		"  strayWrites mode | t: QK_OUTPUTS += mode\n"
		"  strayWrites old | t: QK_OUTPUTS += old\n"
		"  strayWrites stray | t: QK_OUTPUTS += stray\n"
		"  strayWrites way/f | t: QK_OUTPUTS += way/f\n"
		"  strayWrites .git/x | t: QK_OUTPUTS += .git/x\n");
}
END_TEST

START_TEST(way_to_an_output)
{
	has(QK_LIST_OUTPUTS, "a/b/c");
	task("t", "d:a d:a/b c:a/b/c c:a/x c:t");
	reports("t\n"
		"  strayWrites a/x | t: QK_OUTPUTS += a/x\n");
}
END_TEST

/* Under enforce the layer says what was left, but for .git, which is bound through. */
START_TEST(writes_that_were_held)
{
	struct id id;

	session.mode = mode = QK_MODE_ENFORCE;
	backend = QK_BACKEND_HELD_OVERLAY;
	id = request("t");
	line_with(&id, "c:t c:stray w:.git/x", (struct outcome){ .stray = "first" });
	line_with(&id, "", (struct outcome){ .stray = "stray" }); /* the last line's word holds */
	release_id(&id);
	backend = QK_BACKEND_LANDLOCK;
	task("u", "c:u c:stray2");
	reports("t\n"
		"  strayWrites stray | t: QK_OUTPUTS += stray\n"
		"  strayWrites .git/x | t: QK_OUTPUTS += .git/x\n"
		"u\n"
		"  strayWrites stray2 | u: QK_OUTPUTS += stray2\n");
}
END_TEST

/* lines */

START_TEST(lines_are_one_task)
{
	struct id id;

	tree_file("unused", "");
	tree_file("used", "");
	has(QK_LIST_PREREQS, "used unused");
	id = request("t");
	line(&id, "c:tmp r:used");
	line(&id, "r:tmp c:t r:twice");
	line(&id, "-:tmp r:twice");
	release_id(&id);
	reports("t\n"
		"  undeclaredReads twice | t: twice\n"
		"  unusedInputs unused\n");
}
END_TEST

START_TEST(depfile_of_a_later_line)
{
	struct id id = request("a.o");

	line(&id, "r:a.h r:b.h c:a.o");
	line_with(&id, "c:a.d", (struct outcome){ .declared = "a.h a.d" });
	release_id(&id);
	reports("a.o\n"
		"  undeclaredReads b.h | a.o: b.h\n"
		"  strayWrites a.d | a.o: QK_OUTPUTS += a.d\n");
}
END_TEST

START_TEST(lines_of_many_makes_come_mixed)
{
	struct id a = request("a"), b = request("b");

	line(&a, "r:1");
	line(&b, "r:2");
	line(&a, "r:3 c:a");
	line_with(&b, "c:b", (struct outcome){ .status = 2 << 8 });
	reports("a\n"
		"  undeclaredReads 1 | a: 1\n"
		"  undeclaredReads 3 | a: 3\n"
		"b failed\n"
		"  undeclaredReads 2 | b: 2\n");
	release_id(&a);
	release_id(&b);
}
END_TEST

/* inputs */

START_TEST(unused_inputs)
{
	tree_file("read", "");
	tree_file("not", "");
	tree_file("order", "");
	tree_file("dir/x", "");
	tree_file("to", "");
	ck_assert(!chdir(tree) && !symlink("to", "link") && !chdir("/"));
	has(QK_LIST_PREREQS, "read not dir phony link");
	has(QK_LIST_ORDER, "order");
	task("t", "r:read f:link r:to c:t");
	reports("t\n"
		"  unusedInputs not\n"
		"  unusedInputs order\n");
}
END_TEST

START_TEST(patterns_that_match_nothing)
{
	tree_file("src/a.c", "");
	has(QK_LIST_INPUTS, "src/*.c scr/*.c plain-missing");
	has(QK_LIST_ENV, "A*");
	has(QK_LIST_IGNORE_READS, "no*");
	task("t", "c:t");
	has(QK_LIST_INPUTS, "scr/*.c");
	has(QK_LIST_OUTPUTS, "scr/*.c");
	task("u", "c:u");
	reports("t\nu\n"
		"notice t QK_INPUTS scr/*.c\n"
		"notice u QK_OUTPUTS scr/*.c\n");
}
END_TEST

/* standing */

START_TEST(standings)
{
	struct id killed = request("killed"), sub = request("sub"), both = request("both");
	struct id lost = request("lost"), free_ = request("free"), no = request("no"), hit = request("hit");

	line_with(&sub, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	line_with(&both, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	line(&both, "r:x");
	line_with(&lost, "r:x c:y", (struct outcome){ .incomplete = "an event was lost", .left = "sleep" });
	line(&lost, "r:z");
	line_with(&free_, "", (struct outcome){ .fate = QK_FATE_UNSANDBOXED, .why = "off" });
	line(&free_, "r:x");
	line_with(&no, "", (struct outcome){ .fate = QK_FATE_REFUSED, .why = "no walls", .status = 1 });
	line_with(&hit, "", (struct outcome){ .fate = QK_FATE_RESTORED });
	(void)killed;
	reports("killed unaudited: its runner was killed\n"
		"both\n"
		"  undeclaredReads x | both: x\n"
		"lost unaudited: an event was lost\n"
		"  leftRunning sleep\n"
		"free unsandboxed: off\n"
		"  undeclaredReads x | free: x\n"
		"no refused: no walls failed\n"
		"hit restored: restored\n");
	release_id(&killed);
	release_id(&sub);
	release_id(&both);
	release_id(&lost);
	release_id(&free_);
	release_id(&no);
	release_id(&hit);
}
END_TEST

/* An incomplete recording is no part of anyone's findings: not as a writer either. */
START_TEST(unaudited_is_left_out)
{
	struct id lost = request("lost");

	line_with(&lost, "c:lost c:log", (struct outcome){ .incomplete = "why" });
	release_id(&lost);
	has(QK_LIST_OUTPUTS, "log");
	task("t", "w:log r:lost c:t");
	reports("lost unaudited: why\n"
		"t\n"
		"  undeclaredReads lost | t: lost\n");
}
END_TEST

/* shared */

static size_t shared_of(int with, int without)
{
	struct qk_report rep;
	size_t n;

	for (int i = 0; i < with + without; i++) {
		qk_autofree char *name = qk_asprintf("t%d", i);
		qk_autofree char *events =
			i < with ? qk_asprintf("r:common c:t%d", i) : qk_asprintf("r:own%d c:t%d", i, i);

		task(name, events);
	}
	qk_report_read(&rep, &session, NULL);
	n = rep.shared.n;
	if (n) {
		ck_assert_uint_eq(rep.shared.v[0].tasks, (size_t)with);
		ck_assert_str_eq(rep.shared.v[0].path, "common");
		for (size_t i = 0; i < rep.tasks.n; i++)
			ck_assert_int_eq(rep.tasks.v[i].findings.v[0].shared, (int)i < with);
	}
	qk_report_release(&rep);
	return n;
}

static const struct {
	int with, without;
	size_t shared;
} quarters[] = { { 2, 0, 0 }, { 2, 1, 0 }, { 3, 0, 1 }, { 3, 9, 1 }, { 3, 10, 0 }, { 4, 12, 1 },
	{ 4, 13, 0 } };

START_TEST(shared)
{
	ck_assert_uint_eq(shared_of(quarters[_i].with, quarters[_i].without), quarters[_i].shared);
}
END_TEST

START_TEST(shared_fix)
{
	task("a b", "r:h c:log c:x");
	task("b", "r:h w:log c:x");
	task("c", "r:h w:log c:x");
	reports("a b\n"
		"  undeclaredReads* h | a\\ b: h\n"
		"  strayWrites* log | a\\ b: QK_OUTPUTS += log\n"
		"  strayWrites* x | a\\ b: QK_OUTPUTS += x\n"
		"  multipleWriters log by b by c | b: a\\ b\n"
		"  multipleWriters x by b by c | b: a\\ b\n"
		"b\n"
		"  undeclaredReads* h | b: h\n"
		"  strayWrites* log | b: QK_OUTPUTS += log\n"
		"  strayWrites* x | b: QK_OUTPUTS += x\n"
		"  multipleWriters log by a b by c | b: a\\ b\n"
		"  multipleWriters x by a b by c | b: a\\ b\n"
		"c\n"
		"  undeclaredReads* h | c: h\n"
		"  strayWrites* log | c: QK_OUTPUTS += log\n"
		"  strayWrites* x | c: QK_OUTPUTS += x\n"
		"  multipleWriters log by a b by b | c: a\\ b\n"
		"  multipleWriters x by a b by b | c: a\\ b\n"
		"shared h 3 | a\\ b b c: h\n"
		"shared log 3 | a\\ b b c: QK_OUTPUTS += log\n"
		"shared x 3 | a\\ b b c: QK_OUTPUTS += x\n");
}
END_TEST

/* damage */

static void cut(const char *name, off_t less)
{
	qk_autofree char *path = qk_asprintf("%s/%s", session.run, name);
	struct stat st;

	ck_assert(!stat(path, &st) && !truncate(path, st.st_size - less));
}

START_TEST(results_cut_short)
{
	task("a", "r:1 c:a");
	task("b", "r:2 c:b");
	cut("results", 3);
	reports_with("a\n"
		     "  undeclaredReads 1 | a: 1\n"
		     "b unaudited: its runner was killed\n",
		"results': cut short");
}
END_TEST

START_TEST(requests_cut_short)
{
	task("a", "r:1 c:a");
	task("b", "r:2 c:b");
	cut("requests.10", 3);
	reports_with("a\n"
		     "  undeclaredReads 1 | a: 1\n",
		"damaged");
}
END_TEST

START_TEST(graph_cut_short)
{
	struct qk_report rep;

	task("a", "c:a");
	needs("x", "y");
	ck_assert_int_eq(qk_graph_write(graph, 10, session.run, NULL), 0);
	cut("graph.10", 1);
	qk_report_read(&rep, &session, NULL);
	ck_assert(rep.trouble && strstr(rep.trouble, "graph.10': damaged"));
	ck_assert_uint_eq(rep.tasks.n, 1);
	qk_report_release(&rep);
}
END_TEST

START_TEST(run_directory_gone)
{
	struct qk_report rep;

	tree_remove();
	qk_report_read(&rep, &session, NULL);
	ck_assert(rep.trouble && strstr(rep.trouble, "No such file"));
	ck_assert_uint_eq(rep.tasks.n, 0);
	qk_report_release(&rep);
	ck_assert(!mkdir(tree, 0700));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { reads, reads_and_writes_of_one_file, links, writes,
		way_to_an_output, writes_that_were_held, lines_are_one_task,
		depfile_of_a_later_line, lines_of_many_makes_come_mixed, unused_inputs,
		patterns_that_match_nothing, standings, unaudited_is_left_out, shared_fix,
		results_cut_short, requests_cut_short, graph_cut_short, run_directory_gone };
	Suite *s = suite_create("findings");
	TCase *tc = tcase_create("findings");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	tcase_add_loop_test(tc, shared, 0, (int)(sizeof(quarters) / sizeof(quarters[0])));
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
