/* Tasks against each other: who reads what another makes, and who writes the same. */
#include "tests/unit/run.h"

/* ordering */

START_TEST(ordering)
{
	task("gen.h", "c:gen.h");
	has(QK_LIST_INPUTS, "gen.h");
	task("a.o", "r:gen.h c:a.o"); /* declared, and yet nothing makes it wait */
	task("b.o", "r:gen.h c:b.o"); /* said once: as ordering */
	reports("gen.h\n"
		"a.o\n"
		"  ordering gen.h by gen.h | a.o: gen.h\n"
		"b.o\n"
		"  ordering gen.h by gen.h | b.o: gen.h\n");
}
END_TEST

START_TEST(ordering_kept)
{
	task("gen.h", "c:gen.h c:gen.c");
	has(QK_LIST_PREREQS, "gen.h");
	task("direct", "r:gen.h c:direct");
	has(QK_LIST_ORDER, "gen.h");
	task("order-only", "r:gen.h c:order-only");
	needs("over", "stamp"); /* stamp has no recipe: only the graph knows */
	needs("stamp", "gen.h");
	has(QK_LIST_PREREQS, "stamp");
	has(QK_LIST_INPUTS, "gen.h");
	task("over", "r:gen.h c:over");
	has(QK_LIST_INPUTS, "late.h gen.h");
	needs("maker", "reader"); /* the maker waits for the reader: no race either */
	task("reader", "r:late.h c:reader");
	has(QK_LIST_PREREQS, "reader");
	task("maker", "r:reader w:late.h c:maker");
	reports("gen.h\n"
		"  strayWrites gen.c | gen.h: QK_OUTPUTS += gen.c\n"
		"direct\norder-only\nover\nreader\n"
		"maker\n"
		"  strayWrites late.h | maker: QK_OUTPUTS += late.h\n");
}
END_TEST

START_TEST(ordering_of_siblings)
{
	has(QK_LIST_SIBLINGS, "p.h");
	task("p.c", "c:p.c c:p.h");
	has(QK_LIST_PREREQS, "p.h");
	task("a.o", "r:p.h r:p.c c:a.o"); /* waits for p.h: that recipe makes p.c as well */
	reports("p.c\n"
		"a.o\n"
		"  undeclaredReads p.c | a.o: p.c\n");
}
END_TEST

START_TEST(ordering_names_every_maker)
{
	has(QK_LIST_OUTPUTS, "log");
	task("x", "w:log c:x");
	has(QK_LIST_OUTPUTS, "log");
	has(QK_LIST_PREREQS, "x");
	task("y", "w:log c:y r:x");
	task("z", "r:log c:z");
	/* of x and y one waits for the other, and both declare the file: that is no finding */
	reports("x\n"
		"y\n"
		"z\n"
		"  ordering log by x | z: x\n"
		"  ordering log by y | z: y\n");
}
END_TEST

/* Two sub-makes, started by recipes of the top make: what is to wait is the recipe up there. */
START_TEST(ordering_across_submakes)
{
	struct id lib = request("lib"), app = request("app"), made, used;

	line_with(&lib, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	line_with(&app, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	made = request_of(20, "l.a", &lib);
	used = request_of(30, "a.out", &app);
	line(&made, "c:l.a");
	line(&used, "r:l.a c:a.out");
	reports("l.a\n"
		"a.out\n"
		"  ordering l.a by l.a | app: lib\n");
	needs("app", "middle");
	needs("middle", "lib");
	reports("l.a\n"
		"a.out\n"
		"  undeclaredReads l.a | a.out: l.a\n");
	release_id(&lib);
	release_id(&app);
	release_id(&made);
	release_id(&used);
}
END_TEST

START_TEST(ordering_within_one_recipe)
{
	struct id all = request("all"), one, two;

	line_with(&all, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	line_with(&all, "", (struct outcome){ .fate = QK_FATE_SUBMAKE });
	one = request_of(20, "x", &all); /* its lines come one after the other */
	two = request_of(21, "y", &all);
	line(&one, "c:x");
	line(&two, "r:x c:y");
	reports("x\n"
		"y\n"
		"  undeclaredReads x | y: x\n");
	release_id(&all);
	release_id(&one);
	release_id(&two);
}
END_TEST

START_TEST(parents_in_a_circle)
{
	struct id a = { .pid = 10 }, b = { .pid = 20 }, c;

	b = request_of(20, "b", &a);
	a = request_of(10, "a", &b);
	c = request_of(30, "c", &a);
	line(&a, "c:a");
	line(&c, "r:a c:c");
	line(&b, "r:a c:b");
	/* it must end; what it says of such a log is of no use to anyone */
	{
		struct qk_report rep;

		qk_report_read(&rep, &session, NULL);
		ck_assert_uint_eq(rep.tasks.n, 3);
		qk_report_release(&rep);
	}
	release_id(&a);
	release_id(&b);
	release_id(&c);
}
END_TEST

/* writers */

START_TEST(two_writers)
{
	task("x", "c:x c:log");
	task("y", "c:y w:log");
	task("z", "c:z c:tmp -:tmp w:log");
	task("v", "c:v c:tmp -:tmp"); /* made and removed: nobody meets it */
	reports("x\n"
		"  strayWrites* log | x: QK_OUTPUTS += log\n"
		"  multipleWriters log by y by z | y: x\n"
		"y\n"
		"  strayWrites* log | y: QK_OUTPUTS += log\n"
		"  multipleWriters log by x by z | y: x\n"
		"z\n"
		"  strayWrites* log | z: QK_OUTPUTS += log\n"
		"  multipleWriters log by x by y | z: x\n"
		"v\n"
		"shared log 3 | x y z: QK_OUTPUTS += log\n");
}
END_TEST

START_TEST(double_colon)
{
	has(QK_LIST_PREREQS, "a");
	task("t", "r:a w:t");
	has(QK_LIST_PREREQS, "b");
	task("t", "r:b r:t w:t r:c");
	reports("t\n"
		"  undeclaredReads c | t: c\n");
}
END_TEST

/* A report of a big build is a matter of moments, not of minutes. */
START_TEST(many_tasks)
{
	enum { TASKS = 1500, HEADERS = 100 };
	qk_autobuf struct qk_buf all = QK_BUF_INIT;
	struct qk_report rep;

	for (int i = 0; i < HEADERS; i++) {
		qk_autofree char *name = qk_asprintf("h%d", i), *events = qk_asprintf("c:h%d", i);

		task(name, events);
		needs("headers", name);
		qk_buf_addf(&all, "r:h%d ", i);
	}
	for (int i = 0; i < TASKS; i++) {
		qk_autofree char *name = qk_asprintf("o%d", i), *events = qk_asprintf("%sc:o%d", all.s, i);

		needs(name, "headers");
		needs("all", name);
		has(QK_LIST_INPUTS, "h*");
		has(QK_LIST_PREREQS, "headers");
		task(name, events);
	}
	ck_assert_int_eq(qk_graph_write(graph, 10, session.run, NULL), 0);
	qk_report_read(&rep, &session, NULL);
	ck_assert_uint_eq(rep.tasks.n, TASKS + HEADERS);
	for (size_t i = 0; i < rep.tasks.n; i++)
		ck_assert_uint_eq(rep.tasks.v[i].findings.n, 0);
	qk_report_release(&rep);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { ordering, ordering_kept, ordering_of_siblings,
		ordering_names_every_maker, ordering_across_submakes, ordering_within_one_recipe,
		parents_in_a_circle, two_writers, double_colon, many_tasks };
	Suite *s = suite_create("ordering");
	TCase *tc = tcase_create("ordering");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
