#include "keying/pnpmdir.h"

#include <check.h>

#define LONG "peer-with-a-long-name-so-that-the-directory-of-its-installation-has-to-be-cut"

/* Names that pnpm 9.15.9 and 10.34.9 gave the same workspace's packages; the last rows by their rule. */
static const struct {
	const char *key, *nine, *ten;
	size_t max;
} rows[] = {
	{ "is-odd@3.0.1", "is-odd@3.0.1", "is-odd@3.0.1", 120 },
	{ "phantom@file:vendor/phantom", "phantom@file+vendor+phantom", "phantom@file+vendor+phantom",
		120 },
	{ "Upper@file:vendor/Upper.tgz", "Upper@file+vendor+Upper.tgz_fel76l6mnxntwqsb6al7q2hwim",
		"Upper@file+vendor+Upper.tgz_880be29eaf249930c90f2d653ead73b0", 120 },
	{ LONG "@file:vendor/" LONG "(host@file:vendor/host)",
		LONG "@file+vendor+pee_ytzkuz5tezk4xv633tvbchrsz4",
		LONG "@file+vend_4b8a741faa6514f3438c01e869ac42fe", 120 },
	{ "@babel/core@7.0.0", "@babel+core@7.0.0", "@babel+core@7.0.0", 120 },
	{ "a@1.0.0(b@2.0.0(c@3.0.0))(@d/e@4.0.0)", "a@1.0.0_b@2.0.0_c@3.0.0__@d+e@4.0.0",
		"a@1.0.0_b@2.0.0_c@3.0.0__@d+e@4.0.0", 120 },
	{ "git@https://x.org/a.git#1", "git@https+++x.org+a.git#1", "git@https+++x.org+a.git+1", 120 },
};

START_TEST(names)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_pnpmdir_name(&b, rows[_i].key, QK_PNPMDIR_9, rows[_i].max);
	ck_assert_str_eq(b.s, rows[_i].nine);
	qk_buf_reset(&b);
	qk_pnpmdir_name(&b, rows[_i].key, QK_PNPMDIR_10, rows[_i].max);
	ck_assert_str_eq(b.s, rows[_i].ten);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pnpmdir");
	TCase *t = tcase_create("pnpmdir");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, names, 0, sizeof(rows) / sizeof(*rows));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
