#include "base/fdio.h"
#include "sandbox/policy.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Several rules that fit one path: rights join, and the verdict names the reason that comes first. */
static const struct {
	const char *path;
	enum qk_right right;
	enum qk_answer answer;
	enum qk_reason reason;
} joined[] = {
	{ "/w/gen/a.c", QK_READ, QK_ALLOWED, QK_BY_OUTPUT },      /* tree output, exact prerequisite */
	{ "/w/gen/a.c", QK_WRITE, QK_ALLOWED, QK_BY_OUTPUT },
	{ "/w/gen/b.c", QK_WRITE, QK_ALLOWED, QK_BY_OUTPUT },
	{ "/w/inc/a.h", QK_READ, QK_ALLOWED, QK_BY_PREREQUISITE }, /* within a grant, and declared */
	{ "/w/inc/b.x", QK_READ, QK_TOLERATED, QK_BY_GRANT },
	{ "/w/inc/b.h", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/inc/own", QK_WRITE, QK_ALLOWED, QK_BY_TARGET },      /* exact within a tree for reading */
	{ "/w/inc/deep/x.h", QK_READ, QK_ALLOWED, QK_BY_INPUT },   /* a tree within a tree */
	{ "/w/src/a.c", QK_READ, QK_ALLOWED, QK_BY_INPUT },
	{ "/w/src/a.c", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/src/sub/a.c", QK_READ, QK_REFUSED, QK_BY_NOTHING },  /* '*' stays in its directory */
	{ "/w/src/.c", QK_READ, QK_ALLOWED, QK_BY_INPUT },
	{ "/w/src/a.h", QK_READ, QK_ALLOWED, QK_BY_IGNORE },
	{ "/w/src/x/y/a.h", QK_READ, QK_ALLOWED, QK_BY_IGNORE },
	{ "/w/a.h", QK_READ, QK_ALLOWED, QK_BY_IGNORE },
	{ "/w/inc/a.h", QK_WRITE, QK_REFUSED, QK_BY_NOTHING },
	{ "/w/log/1.log", QK_WRITE, QK_ALLOWED, QK_BY_GRANT },
	{ "/w/log/1.log", QK_READ, QK_TOLERATED, QK_BY_GRANT },
	{ "/w/.git/x.log", QK_WRITE, QK_TOLERATED, QK_BY_GIT },
	{ "/w/node_modules/a.h", QK_READ, QK_ALLOWED, QK_BY_IGNORE },
};

START_TEST(judge_joined)
{
	struct qk_policy q;
	struct qk_verdict v;

	qk_policy_init(&q, "/w", "/w/.qk");
	qk_policy_add(&q, "/w", "inc", QK_TREE, QK_READ, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "gen/a.c", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_add(&q, "/w", "gen", QK_TREE, QK_READ | QK_WRITE, QK_BY_OUTPUT);
	qk_policy_add(&q, "/w", "inc/a.h", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_add(&q, "/w", "inc/own", QK_EXACT, QK_READ | QK_WRITE, QK_BY_TARGET);
	qk_policy_add(&q, "/w", "inc/deep", QK_TREE, QK_READ, QK_BY_INPUT);
	qk_policy_add(&q, "/w", "src/*.c", QK_GLOB, QK_READ, QK_BY_INPUT);
	qk_policy_add(&q, "/w", "**/*.h", QK_GLOB, QK_READ, QK_BY_IGNORE);
	qk_policy_add(&q, "/w", "log/*.log", QK_GLOB, QK_READ | QK_WRITE, QK_BY_GRANT);
	v = qk_policy_judge(&q, joined[_i].path, joined[_i].right);
	ck_assert_msg(v.answer == joined[_i].answer && v.reason == joined[_i].reason,
		"%s: answer %d by %s", joined[_i].path, v.answer, qk_reason_name(v.reason));
	qk_policy_release(&q);
}
END_TEST

START_TEST(same_rule_again)
{
	struct qk_policy q;

	qk_policy_init(&q, "/w", "/w/.qk");
	for (int i = 0; i < 3; i++)
		qk_policy_add(&q, "/w", i ? "a" : "./x/../a/", QK_EXACT, QK_READ, QK_BY_INPUT);
	ck_assert_uint_eq(q.rules.n, 1);
	qk_policy_add(&q, "/w", "a", QK_EXACT, QK_READ, QK_BY_GRANT); /* a reason that never shows */
	ck_assert_uint_eq(q.rules.n, 1);
	qk_policy_add(&q, "/w", "a", QK_EXACT, QK_WRITE, QK_BY_OUTPUT);
	qk_policy_add(&q, "/w", "a", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	ck_assert_uint_eq(q.rules.n, 3);
	ck_assert_int_eq(qk_policy_judge(&q, "/w/a", QK_READ).reason, QK_BY_PREREQUISITE);
	ck_assert_int_eq(qk_policy_judge(&q, "/w/a", QK_WRITE).reason, QK_BY_OUTPUT);
	qk_policy_release(&q);
}
END_TEST

START_TEST(root_of_everything)
{
	struct qk_policy q;

	qk_policy_init(&q, "/", "/.qk");
	qk_policy_add(&q, "/", "a", QK_EXACT, QK_READ, QK_BY_PREREQUISITE);
	qk_policy_add(&q, "/", "b/t", QK_TREE, QK_WRITE, QK_BY_OUTPUT);
	qk_policy_resolve(&q);
	ck_assert_int_eq(qk_policy_judge(&q, "/b/x", QK_WRITE).answer, QK_REFUSED);
	ck_assert_int_eq(qk_policy_judge(&q, "/a", QK_READ).answer, QK_ALLOWED);
	ck_assert_int_eq(qk_policy_judge(&q, "/c", QK_READ).answer, QK_REFUSED);
	ck_assert_int_eq(qk_policy_judge(&q, "/b/t/x", QK_WRITE).answer, QK_ALLOWED);
	ck_assert_int_eq(qk_policy_judge(&q, "/.qk/x", QK_WRITE).reason, QK_BY_STATE);
	ck_assert(qk_policy_leads_to(&q, "/", QK_WRITE) && qk_policy_leads_to(&q, "/b", QK_WRITE));
	ck_assert(!qk_policy_leads_to(&q, "/c", QK_WRITE));
	qk_policy_add(&q, "/", ".", QK_TREE, QK_READ, QK_BY_GRANT);
	ck_assert_int_eq(qk_policy_judge(&q, "/c/d", QK_READ).reason, QK_BY_GRANT);
	qk_policy_release(&q);
}
END_TEST

/* A target of 20,000 prerequisites is judged as fast as one of two: what takes long fails by time. */
START_TEST(many_rules)
{
	enum { RULES = 20000, ROUNDS = 20 };
	struct qk_policy q;
	char path[64];

	qk_policy_init(&q, "/w", "/w/.qk");
	for (int i = 0; i < RULES; i++) {
		snprintf(path, sizeof(path), "d%d/e%d/f%d.h", i % 100, i % 1000, i);
		qk_policy_add(&q, "/w", path, i % 3 ? QK_EXACT : QK_TREE, QK_READ, QK_BY_PREREQUISITE);
	}
	qk_policy_resolve(&q);
	ck_assert_uint_eq(q.rules.n, RULES);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < RULES; i++) {
			snprintf(path, sizeof(path), "/w/d%d/e%d/f%d.h", i % 100, i % 1000, i);
			ck_assert_int_eq(qk_policy_judge(&q, path, QK_READ).answer, QK_ALLOWED);
			path[strlen(path) - 1] = 'c';
			ck_assert_int_eq(qk_policy_judge(&q, path, QK_READ).answer, QK_REFUSED);
		}
	}
	qk_policy_release(&q);
}
END_TEST

/* Explicit grants: what is open by its name elsewhere is not, and walls stop rules for what holds them. */
static const struct {
	const char *path;
	enum qk_right right;
	enum qk_answer answer;
} closed[] = {
	{ "/w/p/own", QK_READ, QK_ALLOWED },
	{ "/w/p/own", QK_WRITE, QK_REFUSED },
	{ "/w/p/.env", QK_READ, QK_ALLOWED },
	{ "/w/.env", QK_READ, QK_REFUSED },
	{ "/w/.git/HEAD", QK_READ, QK_REFUSED },
	{ "/w/node_modules/m", QK_READ, QK_REFUSED },
	{ "/w/p/nested", QK_READ, QK_REFUSED },
	{ "/w/p/nested/f", QK_READ, QK_REFUSED },
	{ "/w/p/nested/named", QK_READ, QK_ALLOWED },
	{ "/w/p/nested/tree/x", QK_READ, QK_ALLOWED },
	{ "/w/p/nested/a.log", QK_WRITE, QK_REFUSED },
	{ "/w/p/a.log", QK_WRITE, QK_ALLOWED },
	{ "/w/p/nested2/f", QK_READ, QK_ALLOWED },
	{ "/w/.qk/x", QK_WRITE, QK_ALLOWED },
	{ "/home/u/.ssh/id", QK_READ, QK_REFUSED },
	{ "/home/u/.ssh", QK_READ, QK_REFUSED },
	{ "/home/u/.sshx", QK_READ, QK_ALLOWED },
	{ "/etc/passwd", QK_READ, QK_ALLOWED },
	{ "/etc/passwd", QK_WRITE, QK_REFUSED },
	{ "/home/u/made/sub/f", QK_WRITE, QK_ALLOWED },
	{ "/home/u/made", QK_WRITE, QK_ALLOWED },
	{ "/home/u/made2", QK_WRITE, QK_REFUSED },
	{ "/home/u/file", QK_WRITE, QK_ALLOWED },
	{ "/home/u/file/x", QK_WRITE, QK_REFUSED },
	{ "/home/u/a.log", QK_WRITE, QK_ALLOWED },
	{ "/dev/null", QK_WRITE, QK_ALLOWED },
	{ "/proc/self/comm", QK_WRITE, QK_ALLOWED },
};

START_TEST(judge_closed)
{
	struct qk_policy q;

	qk_policy_init(&q, "/w", "/w/.qk");
	q.closed = true;
	qk_strv_push(&q.walls, "/w/p/nested");
	qk_strv_push(&q.hidden, "/home/u/.ssh");
	qk_policy_add(&q, "/w", "p", QK_TREE, QK_READ, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "p/**/*.log", QK_GLOB, QK_READ | QK_WRITE, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "p/nested/named", QK_EXACT, QK_READ, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "p/nested/tree", QK_TREE, QK_READ, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "/home/u/made", QK_TREE, QK_READ | QK_WRITE, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "/home/u/file", QK_EXACT, QK_READ | QK_WRITE, QK_BY_GRANT);
	qk_policy_add(&q, "/w", "/home/u/*.log", QK_GLOB, QK_READ | QK_WRITE, QK_BY_GRANT);
	ck_assert_msg(qk_policy_judge(&q, closed[_i].path, closed[_i].right).answer == closed[_i].answer,
		"%s", closed[_i].path);
	ck_assert(qk_policy_has_walls(&q, "/w/p") && !qk_policy_has_walls(&q, "/w/p/nested"));
	qk_policy_release(&q);
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
	tcase_add_loop_test(tc, judge_closed, 0, (int)(sizeof(closed) / sizeof(closed[0])));
	tcase_add_test(tc, leads);
	tcase_add_test(tc, links);
	tcase_add_loop_test(tc, judge_joined, 0, (int)(sizeof(joined) / sizeof(joined[0])));
	tcase_add_test(tc, same_rule_again);
	tcase_add_test(tc, root_of_everything);
	tcase_add_test(tc, many_rules);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
