#include "base/fdio.h"
#include "sandbox/resolve.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *root;
static struct qk_trace trace;
static struct qk_resolver resolver;
static struct qk_place place = QK_PLACE_INIT;

static void set_up(void)
{
	char made[] = "/tmp/qk-resolve-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(made));
	root = realpath(made, NULL);
	ck_assert(!chdir(root) && !mkdir("d", 0755) && !mkdir("d/e", 0755) && !mkdir("o", 0755));
	ck_assert(!qk_write_file("d/e/f", "f", 1, 0644, NULL) &&
		  !qk_write_file("a", "a", 1, 0644, NULL));
	ck_assert(!symlink("d/e", "ke") && !symlink("../a", "d/up") && !symlink("loop", "loop"));
	ck_assert(!symlink("nowhere/x", "dangling") && !symlink("/", "slash") &&
		  !symlink("ke", "kke"));
	qk_trace_init(&trace);
	qk_strv_push(&trace.roots, root);
	qk_resolver_init(&resolver, &trace);
}

static void tear_down(void)
{
	ck_assert(!chdir("/") && !qk_remove_tree(-1, root));
	qk_resolver_release(&resolver);
	qk_trace_release(&trace);
	qk_buf_release(&place.path);
	free(root);
}

/* ~ stands for the root; links: those that must be reported, in order */
static const struct {
	const char *path;
	unsigned int flags;
	const char *expect;
	int err;
	const char *links;
} rows[] = {
	{ "a", 0, "~/a", 0, "" },
	{ "~/a", 0, "~/a", 0, "" },
	{ ".", 0, "~", 0, "" },
	{ "..//./", 0, "/tmp", 0, "" },
	{ "d/e/../..", 0, "~", 0, "" },
	{ "/", 0, "/", 0, "" },
	{ "/..", 0, "/", 0, "" },
	{ "/../../tmp", 0, "/tmp", 0, "" },
	{ "ke", 0, "~/d/e", 0, "ke" },
	{ "ke", QK_RESOLVE_NOFOLLOW, "~/ke", 0, "" },
	{ "ke/", QK_RESOLVE_NOFOLLOW, "~/d/e", 0, "ke" },
	{ "ke/f", QK_RESOLVE_NOFOLLOW, "~/d/e/f", 0, "ke" },
	{ "ke/..", 0, "~/d", 0, "ke" }, /* not as text: the kernel goes up from what ke leads to */
	{ "ke/../up", 0, "~/a", 0, "ke d/up" },
	{ "kke/f", 0, "~/d/e/f", 0, "kke ke" },
	{ "slash/tmp", 0, "/tmp", 0, "slash" },
	{ "slash", 0, "/", 0, "slash" },
	{ "loop", 0, "~/loop", ELOOP, NULL },
	{ "loop/x", 0, "~/loop/x", ELOOP, NULL },
	{ "n", 0, "~/n", ENOENT, "" },
	{ "n/m/l", 0, "~/n/m/l", ENOENT, "" },
	{ "n/../a", 0, "~/a", ENOENT, "" },
	{ "ke/n", 0, "~/d/e/n", ENOENT, "ke" },
	{ "dangling", 0, "~/nowhere/x", ENOENT, "dangling" },
	{ "a/", 0, "~/a", ENOTDIR, "" },
	{ "a/x", 0, "~/a/x", ENOTDIR, "" },
	{ "", 0, "", ENOENT, "" },
	{ "", QK_RESOLVE_EMPTY, "~", 0, "" },
	{ "/proc/self/cwd/a", 0, "~/a", 0, "" },
	{ "/proc/thread-self/cwd/ke/f", 0, "~/d/e/f", 0, "ke" },
};

static char *with_root(const char *path)
{
	return *path == '~' ? qk_asprintf("%s%s", root, path + 1) : qk_strdup(path);
}

static void check_row(int i)
{
	qk_autofree char *path = with_root(rows[i].path), *expect = with_root(rows[i].expect);
	qk_autobuf struct qk_buf links = QK_BUF_INIT;

	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, path, rows[i].flags, &place);
	ck_assert_msg(place.err == rows[i].err, "'%s': errno %d", path, place.err);
	ck_assert_msg(!strcmp(place.path.s, expect), "'%s': expected '%s', got '%s'", path, expect,
		place.path.s);
	for (size_t j = 0; j < trace.entries.n; j++)
		qk_buf_addf(
			&links, "%s%s", j ? " " : "", trace.entries.v[j].path + strlen(root) + 1);
	if (rows[i].links)
		ck_assert_msg(!strcmp(links.s, rows[i].links), "'%s': links '%s'", path, links.s);
}

START_TEST(paths)
{
	check_row(_i);
	check_row(_i); /* remembered, the answer and the links are the same */
	ck_assert(place.err || !place.path.len || !access(place.path.s, F_OK) ||
		  rows[_i].flags & QK_RESOLVE_NOFOLLOW);
}
END_TEST

START_TEST(links_are_told_when_remembered)
{
	struct qk_trace again;

	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "ke/f", 0, &place);
	qk_trace_init(&again);
	resolver.trace = &again;
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "ke/g", 0, &place);
	ck_assert_uint_eq(again.entries.n, 1);
	ck_assert_uint_eq(again.entries.v[0].flags, QK_T_FOLLOWED);
	qk_trace_release(&again);
}
END_TEST

/* Tasks run beside each other: what one looked for in vain another may make. */
START_TEST(missing_is_not_remembered)
{
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "n/x", 0, &place);
	ck_assert_int_eq(place.err, ENOENT);
	ck_assert(!mkdir("n", 0755) && !qk_write_file("n/x", "x", 1, 0644, NULL));
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "n/x", 0, &place);
	ck_assert_int_eq(place.err, 0);
}
END_TEST

START_TEST(forgotten_when_told)
{
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "ke/f", 0, &place);
	ck_assert(!unlink("ke") && !symlink("o", "ke"));
	qk_resolver_forget(&resolver);
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, "ke/f", 0, &place);
	ck_assert_int_eq(place.err, ENOENT);
	ck_assert_int_eq(strcmp(place.path.s + strlen(root), "/o/f"), 0);
}
END_TEST

START_TEST(descriptors)
{
	qk_autofree char *expect = with_root("~/d/e/f");
	int dir = open("d", O_PATH | O_DIRECTORY), file = open("d/e/f", O_RDONLY), pipes[2];
	char name[64];

	ck_assert_int_eq(pipe(pipes), 0);
	qk_resolve(&resolver, getpid(), dir, NULL, "e/f", 0, &place);
	ck_assert_str_eq(place.path.s, expect);
	qk_resolve(&resolver, getpid(), file, NULL, "", QK_RESOLVE_EMPTY, &place);
	ck_assert_str_eq(place.path.s, expect);
	qk_resolve(&resolver, getpid(), 1000, NULL, "x", 0, &place); /* no such descriptor */
	ck_assert_int_ne(place.err, 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", pipes[0]);
	qk_resolve(&resolver, getpid(), AT_FDCWD, NULL, name, 0, &place);
	ck_assert_int_eq(place.err, 0);
	ck_assert_str_eq(place.path.s, "");
	ck_assert(S_ISFIFO(place.st.st_mode));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("resolve");
	TCase *tc = tcase_create("resolve");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, paths, 0, (int)(sizeof(rows) / sizeof(*rows)));
	tcase_add_test(tc, links_are_told_when_remembered);
	tcase_add_test(tc, missing_is_not_remembered);
	tcase_add_test(tc, forgotten_when_told);
	tcase_add_test(tc, descriptors);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
