#include "keying/tracked.h"

#include "base/buf.h"
#include "base/fdio.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];
static struct qk_err err;

static void setup(void)
{
	strcpy(dir, "/tmp/qk-tracked-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	/* Neither the user's settings nor those of the machine. */
	setenv("HOME", dir, 1);
	setenv("XDG_CONFIG_HOME", dir, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	unsetenv("GIT_DIR");
	unsetenv("GIT_WORK_TREE");
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	qk_remove_tree(AT_FDCWD, dir);
}

static void __attribute__((format(printf, 1, 2))) sh(const char *fmt, ...)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_addstr(&b, "exec >/dev/null 2>&1; set -e; "
			  "git() { command git -c user.name=n -c user.email=e@x "
			  "-c protocol.file.allow=always -c init.defaultBranch=main \"$@\"; }; ");
	qk_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	ck_assert_msg(system(b.s) == 0, "%s", b.s);
}

/* "path" if tracked, "?path" if not, blank-separated. */
static void files_are(const char *root, const char *want)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, full = QK_BUF_INIT;
	struct qk_tracked t;

	qk_buf_addf(&full, "%s/%s", dir, root);
	ck_assert_msg(!qk_tracked_load(&t, full.s, &err), "%s", err.msg);
	for (size_t i = 0; i < t.n; i++)
		qk_buf_addf(&b, "%s%s%s", i ? " " : "", t.in_git[i] ? "" : "?", t.v[i]);
	ck_assert_str_eq(b.s, want);
	qk_tracked_release(&t);
}

START_TEST(no_git)
{
	sh("mkdir -p w/a w/node_modules/x w/.qk; echo '*.log' > w/.gitignore; "
	   "touch w/a/f w/a/x.log w/node_modules/x/y w/.qk/z; ln -s /etc w/a/l; mkfifo w/a/p");
	files_are("w", "?.gitignore ?a/f ?a/l ?a/x.log");
}
END_TEST

START_TEST(tracked_untracked_ignored)
{
	sh("git init w; cd w; mkdir -p a/deep dist b/node_modules; printf 'dist/\\n*.log\\n' > "
	   ".gitignore; "
	   "printf '!keep.log\\n/only-here\\n' > a/.gitignore; "
	   "touch a/f a/gone 'a/odd \"name' dist/forced dist/x a/deep/y; "
	   "git add .; git add -f dist/forced; git commit -m x; rm a/gone; "
	   "touch a/new a/z.log a/keep.log a/only-here a/deep/only-here b/node_modules/m; "
	   "echo 'private' > .git/info/exclude; touch private");
	files_are("w", ".gitignore a/.gitignore ?a/deep/only-here a/deep/y a/f ?a/keep.log ?a/new "
		       "a/odd \"name dist/forced");
	/* The workspace may be a directory of the repository. */
	files_are("w/a", ".gitignore ?deep/only-here deep/y f ?keep.log ?new odd \"name");
	/* What is only added counts as tracked; one that Git ignores as a whole as without Git. */
	sh("cd w; touch staged; git add staged; mkdir -p dist/own; touch dist/own/f "
	   "dist/own/x.log");
	files_are("w/dist/own", "?f ?x.log");
	files_are("w", ".gitignore a/.gitignore ?a/deep/only-here a/deep/y a/f ?a/keep.log ?a/new "
		       "a/odd \"name dist/forced staged");
}
END_TEST

START_TEST(excludes_file_of_the_user)
{
	sh("mkdir -p git; echo '*.bak' > git/ignore; git init w; touch w/a w/a.bak");
	files_are("w", "?a");
}
END_TEST

START_TEST(worktree)
{
	sh("git init w; cd w; touch a; git add a; git commit -m x; git worktree add ../tree; "
	   "cd ../tree; test -f .git; touch b; echo c > .gitignore; touch c");
	files_are("tree", "?.gitignore a ?b");
}
END_TEST

START_TEST(submodule_and_nested_repository)
{
	sh("git init s; cd s; mkdir d; touch d/f; echo '*.o' > .gitignore; git add .; git commit "
	   "-m x; cd ..; "
	   "git init w; cd w; echo '*.log' > .gitignore; git submodule add \"$PWD/../s\" libs/s; "
	   "git add .; git commit -m x; touch libs/s/new libs/s/x.o libs/s/x.log; "
	   "git init nested; touch nested/f nested/x.log; mkdir fake; touch fake/.git fake/f "
	   "fake/x.log");
	files_are("w", ".gitignore .gitmodules ?fake/f libs/s/.gitignore libs/s/d/f ?libs/s/new "
		       "?libs/s/x.log ?nested/f ?nested/x.log");
	/* Not checked out: nothing there, no error. */
	sh("cd w; git submodule deinit -f libs/s; rm -rf nested fake");
	files_are("w", ".gitignore .gitmodules");
}
END_TEST

START_TEST(below)
{
	struct qk_tracked t;
	size_t first;

	sh("mkdir -p w/a/b w/a-b w/a.b; touch w/a/b/x w/a/y w/a-b/z w/a.b/z w/ab");
	sh("true");
	ck_assert_int_eq(chdir("w"), 0);
	{
		qk_autobuf struct qk_buf full = QK_BUF_INIT;

		qk_buf_addf(&full, "%s/w", dir);
		ck_assert_int_eq(qk_tracked_load(&t, full.s, &err), 0);
	}
	ck_assert_uint_eq(qk_tracked_below(&t, ".", &first), 5);
	ck_assert_uint_eq(qk_tracked_below(&t, "a", &first), 2);
	ck_assert_str_eq(t.v[first], "a/b/x");
	ck_assert_str_eq(t.v[first + 1], "a/y");
	ck_assert_uint_eq(qk_tracked_below(&t, "none", &first), 0);
	ck_assert(qk_tracked_has(&t, "ab"));
	ck_assert(!qk_tracked_has(&t, "a"));
	qk_tracked_release(&t);
}
END_TEST

START_TEST(damage_is_said)
{
	struct qk_tracked t;
	qk_autobuf struct qk_buf full = QK_BUF_INIT;

	sh("git init w; cd w; touch a; git add a; echo garbage > .git/index");
	qk_buf_addf(&full, "%s/w", dir);
	ck_assert_int_lt(qk_tracked_load(&t, full.s, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "Git index of"));
	qk_tracked_release(&t);
	qk_buf_addstr(&full, "/none");
	ck_assert_int_lt(qk_tracked_load(&t, full.s, &err), 0);
	qk_tracked_release(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tracked");
	TCase *t = tcase_create("tracked");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, no_git);
	tcase_add_test(t, tracked_untracked_ignored);
	tcase_add_test(t, excludes_file_of_the_user);
	tcase_add_test(t, worktree);
	tcase_add_test(t, submodule_and_nested_repository);
	tcase_add_test(t, below);
	tcase_add_test(t, damage_is_said);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
