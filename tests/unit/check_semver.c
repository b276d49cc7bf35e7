#include "keying/semver.h"

#include <check.h>

/* What npm's own implementation answers, prereleases included. */
static const struct {
	const char *version, *range;
	bool yes;
} t[] = {
#include "semver-answers.h"
};

START_TEST(answers)
{
	ck_assert_msg(qk_semver_satisfies(t[_i].version, t[_i].range) == t[_i].yes, "%s in '%s'",
		t[_i].version, t[_i].range);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("semver");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, answers, 0, sizeof(t) / sizeof(*t));
	suite_add_tcase(s, tc);
	srunner_set_fork_status(sr, CK_NOFORK);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
