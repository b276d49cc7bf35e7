#include "report/graph.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

static struct qk_graph *g;

static void setup(void)
{
	tree_make();
	g = qk_graph_new();
	qk_graph_add(g, 1, "all", "a");
	qk_graph_add(g, 1, "all", "b");
	qk_graph_add(g, 1, "a", "c d");
	qk_graph_add(g, 1, "c d", "e");
	qk_graph_add(g, 1, "b", "e");
	qk_graph_add(g, 1, "x", "y"); /* a circle: make drops one edge and says so */
	qk_graph_add(g, 1, "y", "x");
	qk_graph_add(g, 1, "self", "self");
	qk_graph_add(g, 2, "e", "all"); /* of another make */
	qk_graph_add(g, 1, "1 f", "g");
	qk_graph_add(g, 11, "f", "h"); /* "1" + "1 f" is no "11 f" */
}

static void teardown(void)
{
	g = qk_graph_free(g);
	ck_assert_ptr_null(g);
	tree_remove();
}

static const struct {
	uint64_t make;
	const char *from, *to;
	bool waits;
} table[] = {
	{ 1, "all", "a", true },
	{ 1, "all", "e", true },
	{ 1, "a", "e", true },
	{ 1, "a", "b", false },
	{ 1, "e", "all", false },
	{ 1, "all", "all", false },
	{ 1, "x", "y", true },
	{ 1, "y", "x", true },
	{ 1, "x", "x", true },
	{ 1, "x", "a", false },
	{ 1, "self", "self", false },
	{ 2, "e", "all", true },
	{ 2, "all", "e", false },
	{ 1, "none", "a", false },
	{ 1, "a", "none", false },
	{ 3, "all", "a", false },
	{ 1, "1 f", "g", true },
	{ 1, "1 f", "h", false },
	{ 11, "f", "h", true },
};

static void answers(struct qk_graph *of, uint64_t make)
{
	size_t n = sizeof(table) / sizeof(table[0]);

	for (int round = 0; round < 2; round++) /* what was searched before is no matter */
		for (size_t i = 0; i < n; i++)
			if (!make || table[i].make == make)
				ck_assert_msg(qk_graph_waits(of, table[i].make, table[i].from, table[i].to) ==
						      table[i].waits,
					"%s for %s", table[i].from, table[i].to);
}

START_TEST(waits)
{
	answers(g, 0);
	qk_graph_add(g, 1, "e", "late"); /* what is added later counts */
	ck_assert(qk_graph_waits(g, 1, "all", "late"));
	ck_assert(!qk_graph_waits(g, 1, "all", "x"));
	qk_graph_add(g, 1, "late", "x");
	ck_assert(qk_graph_waits(g, 1, "all", "y"));
}
END_TEST

START_TEST(files)
{
	struct qk_graph *h = qk_graph_new();

	ck_assert_int_eq(qk_graph_write(g, 1, tree, NULL), 0);
	ck_assert_int_eq(qk_graph_read(h, 1, tree, NULL), 0);
	answers(h, 1);
	ck_assert(!qk_graph_waits(h, 2, "e", "all"));
	ck_assert_int_eq(qk_graph_read(h, 2, tree, NULL), 0); /* not there: nothing is added */
	ck_assert_int_eq(qk_graph_write(g, 2, tree, NULL), 0);
	ck_assert_int_eq(qk_graph_read(h, 2, tree, NULL), 0);
	answers(h, 2);
	ck_assert_int_eq(qk_graph_write(g, 99, tree, NULL), 0); /* a make without prerequisites */
	ck_assert_int_eq(qk_graph_read(h, 99, tree, NULL), 0);
	qk_graph_free(h);
	ck_assert_ptr_null(qk_graph_free(NULL));
}
END_TEST

START_TEST(damaged)
{
	qk_autofree char *path = qk_asprintf("%s/graph.1", tree);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_int_eq(qk_graph_write(g, 1, tree, NULL), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &b, NULL), 0);
	for (size_t i = 0; i < b.len; i++) {
		struct qk_graph *h = qk_graph_new();
		int r;

		b.s[i] ^= (char)0x55;
		ck_assert_int_eq(qk_write_file(path, b.s, b.len, 0600, NULL), 0);
		r = qk_graph_read(h, 1, tree, NULL);
		ck_assert(!r || r == -EBADMSG);
		qk_graph_waits(h, 1, "all", "e");
		b.s[i] ^= (char)0x55;
		qk_graph_free(h);
	}
	ck_assert_int_eq(qk_write_file(path, b.s, b.len - 1, 0600, NULL), 0);
	ck_assert_int_eq(qk_graph_read(g, 1, tree, &err), -EBADMSG);
	ck_assert(strstr(err.msg, "graph.1': damaged"));
	ck_assert_int_eq(qk_graph_write(g, 1, "/nowhere", &err), -ENOENT);
}
END_TEST

/* A chain as long as a big build, and every link of it asked for: once through is enough. */
START_TEST(long_chain)
{
	enum { LINKS = 20000 };

	for (int i = 0; i < LINKS; i++) {
		qk_autofree char *from = qk_asprintf("n%d", i), *to = qk_asprintf("n%d", i + 1);

		qk_graph_add(g, 1, from, to);
	}
	for (int i = 1; i <= LINKS; i++) {
		qk_autofree char *to = qk_asprintf("n%d", i);

		ck_assert(qk_graph_waits(g, 1, "n0", to));
	}
	ck_assert(!qk_graph_waits(g, 1, "n0", "all"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("graph");
	TCase *tc = tcase_create("graph");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, waits);
	tcase_add_test(tc, files);
	tcase_add_test(tc, damaged);
	tcase_add_test(tc, long_chain);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
