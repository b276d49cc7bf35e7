/* Which lines the fast lane is worth its start for: learned by the programs a line names. */
#include "runner/lanes.h"

#include "base/mem.h"

#include <check.h>
#include <stdlib.h>
#include <unistd.h>

static char run[] = "/tmp/qk-lanes-XXXXXX";

static void setup(void)
{
	strcpy(run, "/tmp/qk-lanes-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(run));
}

static void teardown(void)
{
	qk_autofree char *file = qk_asprintf("%s/lanes", run);

	unlink(file);
	ck_assert_int_eq(rmdir(run), 0);
}

static void ran(const char *line, bool with, unsigned long by_lane, unsigned long for_lane)
{
	struct qk_run_result r = { .by_lane = by_lane, .for_lane = for_lane };

	qk_lanes_learn(run, line, with, &r);
}

START_TEST(by_programs)
{
	ck_assert(qk_lanes_worth(run, "touch a") && qk_lanes_worth(run, NULL));
	ran("touch a", true, 2, 0);
	ck_assert(!qk_lanes_worth(run, "touch b"));
	ck_assert(!qk_lanes_worth(run, "@touch 'some other'"));
	ck_assert(qk_lanes_worth(run, "touch b; cc -c b.c"));
	ck_assert(qk_lanes_worth(run, "cc -c touch"));
	ran("cc -c a.c", true, 300, 0);
	ck_assert(qk_lanes_worth(run, "cc -c b.c"));
}
END_TEST

/* What was thought of a line is given up once it would have been worth it, and not before. */
START_TEST(given_up)
{
	ran("cp a b", true, 0, 0);
	ran("cp a b", false, 0, 10);
	ck_assert(!qk_lanes_worth(run, "cp a b"));
	ran("cp -R a b", false, 0, 500);
	ck_assert(qk_lanes_worth(run, "cp a b"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lanes");
	TCase *t = tcase_create("lanes");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, by_programs);
	tcase_add_test(t, given_up);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
