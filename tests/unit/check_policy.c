#include "base/fdio.h"
#include "sandbox/policy.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct qk_policy p;

static void setup(void)
{
	qk_policy_init(&p, "/w", "/w/.qk");
	qk_policy_add(&p, "/w", "src/a.c", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_add(&p, "/w", "out", QK_EXACT, QK_READ | QK_WRITE, QK_BY_TARGET);
	qk_policy_add(&p, "/w/sub", "../dist", QK_TREE, QK_READ | QK_WRITE, QK_BY_OUTPUT);
	qk_policy_add(&p, "/w", "include", QK_TREE, QK_READ, QK_BY_GRANT);
	qk_policy_add(&p, "/w", "include/a.h", QK_EXACT, QK_READ, QK_BY_DEPFILE);
	qk_policy_add(&p, "/w", "pre", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
}

static void teardown(void)
{
	qk_policy_release(&p);
}

static const struct {
	const char *path;
	enum qk_right right;
	enum qk_answer answer;
	enum qk_reason reason;
} judged[] = {
	{ "/w/src/a.c", QK_READ, QK_ALLOWED, QK_BY_PREREQUISITE },
	{ "/w/src/a.c", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/src/b.c", QK_READ, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/out", QK_WRITE, QK_ALLOWED, QK_BY_TARGET },
	{ "/w/out", QK_READ, QK_ALLOWED, QK_BY_TARGET },
	{ "/w/outer", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/dist", QK_WRITE, QK_ALLOWED, QK_BY_OUTPUT },
	{ "/w/dist/a/b", QK_WRITE, QK_ALLOWED, QK_BY_OUTPUT },
	{ "/w/dist2/a", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/include/b.h", QK_READ, QK_TOLERATED, QK_BY_GRANT },
	{ "/w/include/a.h", QK_READ, QK_ALLOWED, QK_BY_DEPFILE },
	{ "/w/pre/file", QK_READ, QK_REFUSED, QK_BY_NOTHING }, /* a directory prerequisite is itself only */
	{ "/w/.git/HEAD", QK_READ, QK_TOLERATED, QK_BY_GIT },
	{ "/w/sub/.git", QK_WRITE, QK_TOLERATED, QK_BY_GIT },
	{ "/w/.gitignore", QK_READ, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/.env", QK_READ, QK_TOLERATED, QK_BY_DOTENV },
	{ "/w/x/.env.local", QK_READ, QK_TOLERATED, QK_BY_DOTENV },
	{ "/w/.local.env", QK_READ, QK_TOLERATED, QK_BY_DOTENV },
	{ "/w/.env", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/env", QK_READ, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/x.env", QK_READ, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/.envrc", QK_READ, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/a/node_modules/x/package.json", QK_READ, QK_ALLOWED, QK_BY_MODULES },
	{ "/w/.qk/run/x", QK_WRITE, QK_ALLOWED, QK_BY_STATE },
	{ "/etc/passwd", QK_READ, QK_ALLOWED, QK_BY_OUTSIDE },
	{ "/w2/x", QK_WRITE, QK_ALLOWED, QK_BY_OUTSIDE },
};

START_TEST(judge)
{
	struct qk_verdict v = qk_policy_judge(&p, judged[_i].path, judged[_i].right);

	ck_assert_msg(v.answer == judged[_i].answer && v.reason == judged[_i].reason,
		"%s: answer %d by %s", judged[_i].path, v.answer, qk_reason_name(v.reason));
}
END_TEST

START_TEST(leads)
{
	ck_assert(qk_policy_leads_to(&p, "/w/dist", QK_WRITE));
	ck_assert(qk_policy_leads_to(&p, "/w", QK_WRITE));
	ck_assert(qk_policy_leads_to(&p, "/w/src", QK_READ));
	ck_assert(!qk_policy_leads_to(&p, "/w/src", QK_WRITE));
	ck_assert(!qk_policy_leads_to(&p, "/w/other", QK_READ));
}
END_TEST

START_TEST(links)
{
	char dir[] = "/tmp/qk-policy-XXXXXX", path[200];
	struct qk_policy q;

	ck_assert(mkdtemp(dir));
	ck_assert(!chdir(dir));
	ck_assert(!mkdir("real", 0755) && !mkdir("real/deep", 0755) && !mkdir("in", 0755));
	ck_assert(!symlink("../real/deep/../f", "in/x") && !symlink("real", "alias"));
	ck_assert(!symlink("loop", "loop"));
	ck_assert(!qk_write_file("real/f", "x", 1, 0644, NULL));
	qk_policy_init(&q, dir, "/none");
	qk_policy_add(&q, dir, "in/x", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_add(&q, dir, "alias/out", QK_EXACT, QK_READ | QK_WRITE, QK_BY_TARGET);
	qk_policy_add(&q, dir, "loop", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_resolve(&q);
#define JUDGE(name, right) (snprintf(path, sizeof(path), "%s/%s", dir, name), qk_policy_judge(&q, path, right).answer)
	ck_assert_int_eq(JUDGE("real/f", QK_READ), QK_ALLOWED);
	ck_assert_int_eq(JUDGE("in/x", QK_READ), QK_ALLOWED);
	ck_assert_int_eq(JUDGE("alias", QK_READ), QK_ALLOWED);
	ck_assert_int_eq(JUDGE("alias", QK_WRITE), QK_REFUSED);
	ck_assert_int_eq(JUDGE("real/out", QK_WRITE), QK_ALLOWED);
	ck_assert_int_eq(JUDGE("real/g", QK_READ), QK_REFUSED);
	qk_policy_release(&q);
	ck_assert(!chdir("/") && !qk_remove_tree(-100, dir));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy");
	TCase *tc = tcase_create("policy");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, judge, 0, (int)(sizeof(judged) / sizeof(judged[0])));
	tcase_add_test(tc, leads);
	tcase_add_test(tc, links);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
