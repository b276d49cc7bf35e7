#include "keying/pathset.h"
#include "keying/pathsets.h"
#include "keying/why.h"

#include "base/fdio.h"
#include "base/mem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[PATH_MAX];
static struct qk_err err;
static struct qk_pathview view;
static const struct qk_digest weak = { { 1, 2, 3 } };

static void put(const char *path, const char *text)
{
	ck_assert_msg(!qk_write_file(path, text, strlen(text), 0644, &err), "%s", err.msg);
}

static void open_view(void)
{
	view = (struct qk_pathview){ .place = "/here", .terminal = "11 xterm" };
	ck_assert_msg(!qk_filehash_new(&view.files, ".", "../digests", &err), "%s", err.msg);
}

static void close_view(void)
{
	qk_filehash_free(view.files);
	qk_pathview_release(&view);
}

static void setup(void)
{
	strcpy(dir, "/tmp/qk-pathset-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir("w", 0777) | mkdir("w/d", 0777), 0);
	ck_assert_int_eq(chdir("w"), 0);
	put("a", "one");
	put("d/x", "x");
	open_view();
}

static void teardown(void)
{
	close_view();
	ck_assert_int_eq(chdir("/"), 0);
	qk_remove_tree(AT_FDCWD, dir);
}

static struct qk_digest key(const struct qk_pathset *s)
{
	struct qk_digest d;

	ck_assert_msg(!qk_pathset_key(s, &weak, &view, false, NULL, &d, &err), "%s", err.msg);
	return d;
}

#define same(a, b)                                                                                \
	do {                                                                                      \
		struct qk_digest x_ = (a), y_ = (b);                                              \
		ck_assert(qk_digest_eq(&x_, &y_));                                                \
	} while (0)
#define differ(a, b)                                                                              \
	do {                                                                                      \
		struct qk_digest x_ = (a), y_ = (b);                                              \
		ck_assert(!qk_digest_eq(&x_, &y_));                                               \
	} while (0)

START_TEST(comes_back)
{
	struct qk_pathset s = { .flags = QK_PATHSET_PLACE }, t = { 0 };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_pathset_add(&s, "src/a.c", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "src/a.h", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "s", QK_PATH_LIST, 0);
	qk_pathset_add(&s, "s/\xff odd\nname", QK_PATH_EXCEPT, 0);
	qk_pathset_add(&s, "/usr/bin/cc", QK_PATH_OWN, QK_OWN_READ | QK_OWN_REPLACED);
	qk_pathset_write(&s, &b);
	ck_assert_int_eq(qk_pathset_read(&t, b.s, b.len), 0);
	ck_assert(qk_pathset_equal(&s, &t));
	/* cut anywhere it is damaged, or a shorter set */
	for (size_t n = 0; n < b.len; n++) {
		struct qk_pathset u = { 0 };

		if (!qk_pathset_read(&u, b.s, n))
			ck_assert_uint_lt(u.v.n, s.v.n);
		qk_pathset_release(&u);
	}
	/* and whatever byte is changed, nothing is read that is not there */
	for (size_t n = 4; n < b.len; n++) {
		struct qk_pathset u = { 0 };

		b.s[n] = (char)(b.s[n] ^ 0x55);
		qk_pathset_read(&u, b.s, b.len);
		b.s[n] = (char)(b.s[n] ^ 0x55);
		qk_pathset_release(&u);
	}
	qk_pathset_release(&s);
	qk_pathset_release(&t);
}
END_TEST

START_TEST(counts_what_is_there)
{
	struct qk_pathset s = { 0 };
	struct qk_digest first, now;

	qk_pathset_add(&s, "a", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "missing", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "d", QK_PATH_LOOK, 0);
	first = key(&s);
	same(first, key(&s));
	put("d/y", "of no interest");
	put("other", "neither");
	same(first, key(&s));
	put("missing", "");
	differ(first, key(&s));
	unlink("missing");
	same(first, key(&s));
	put("a", "two");
	differ(first, key(&s));
	put("a", "one");
	same(first, key(&s));
	chmod("a", 0755);
	differ(first, key(&s));
	chmod("a", 0640);
	same(first, key(&s));
	unlink("a");
	ck_assert_int_eq(symlink("other", "a"), 0);
	now = key(&s);
	differ(first, now);
	put("other", "behind the link: a path of its own, if it was followed");
	same(now, key(&s));
	qk_pathset_release(&s);
}
END_TEST

START_TEST(listing_without_its_own)
{
	struct qk_pathset s = { 0 };
	struct qk_digest first;

	qk_pathset_add(&s, "d", QK_PATH_LIST, 0);
	qk_pathset_add(&s, "d/made", QK_PATH_EXCEPT, 0);
	first = key(&s);
	put("d/made", "");
	same(first, key(&s));
	put("d/x", "contents do not count");
	same(first, key(&s));
	put("d/new", "");
	differ(first, key(&s));
	qk_remove_tree(AT_FDCWD, "d");
	differ(first, key(&s));
	qk_pathset_release(&s);
}
END_TEST

START_TEST(moves_with_the_workspace)
{
	struct qk_pathset s = { 0 };
	struct qk_digest first;

	qk_pathset_add(&s, "a", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "d", QK_PATH_LIST, 0);
	first = key(&s);
	close_view();
	ck_assert_int_eq(rename("../w", "../elsewhere"), 0);
	open_view();
	same(first, key(&s));
	/* but not what names its place, or hangs on a terminal */
	s.flags = QK_PATHSET_PLACE | QK_PATHSET_TERMINAL;
	first = key(&s);
	view.place = "/there";
	differ(first, key(&s));
	view.place = "/here";
	view.terminal = "00 ";
	differ(first, key(&s));
	qk_pathset_release(&s);
}
END_TEST

/* One case of an output that is made anew: how it was taken over, what stands there. */
static const struct {
	unsigned int how;
	bool there, made, empty;
	bool as_absent;
} owns[] = {
	{ 0, false, false, false, true },
	{ QK_OWN_READ, false, false, false, true },
	{ 0, true, true, false, false }, /* looked for in vain once: no word on what it does with one */
	{ QK_OWN_REPLACED, true, true, false, true },
	{ QK_OWN_REPLACED, true, false, false, false }, /* somebody's edit */
	{ QK_OWN_REPLACED | QK_OWN_READ, true, true, false, false },
	{ QK_OWN_REPLACED | QK_OWN_KEPT, true, true, false, false },
	{ QK_OWN_REPLACED | QK_OWN_KEPT, true, true, true, true },
};

START_TEST(own_before)
{
	struct qk_before b = { .there = owns[_i].there, .made = owns[_i].made, .empty = owns[_i].empty,
		.state = weak };
	struct qk_digest d, absent;

	qk_pathset_absent(&absent);
	qk_pathset_own(&b, owns[_i].how, &d);
	ck_assert_int_eq(qk_digest_eq(&d, &absent), owns[_i].as_absent);
	ck_assert_int_eq(qk_digest_eq(&d, &weak), !owns[_i].as_absent);
}
END_TEST

START_TEST(own_as_found)
{
	struct qk_pathset s = { 0 };
	struct qk_digest clean, state;

	qk_pathset_add(&s, "out", QK_PATH_OWN, QK_OWN_REPLACED);
	clean = key(&s);
	put("out", "made");
	differ(clean, key(&s));
	ck_assert(view.assumable);
	ck_assert_int_eq(qk_pathview_look(&view, "out", &state, &err), 0);
	qk_pathview_made(&view, "out", &state);
	same(clean, key(&s));
	ck_assert(!view.assumable);
	put("out", "edited");
	differ(clean, key(&s));
	/* assumed to be the result's own doing, which is for the caller to verify */
	view.assume = true;
	same(clean, key(&s));
	ck_assert_uint_eq(view.assumed.n, 1);
	ck_assert_str_eq(view.assumed.v[0], "out");
	qk_pathset_release(&s);
}
END_TEST

START_TEST(outside_by_stat)
{
	struct qk_pathset s = { 0 };
	struct timespec old[2] = { { 1000, 5 }, { 1000, 5 } };
	qk_autofree char *path = qk_asprintf("%s/outside", dir);
	struct qk_digest first;

	put(path, "abc");
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	qk_pathset_add(&s, path, QK_PATH_LOOK, 0);
	view.system = QK_SYSTEM_STAT;
	first = key(&s);
	put(path, "xyz");
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	same(first, key(&s));
	put(path, "xyz");
	differ(first, key(&s));
	view.system = QK_SYSTEM_CONTENT;
	first = key(&s);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	same(first, key(&s));
	qk_pathset_release(&s);
}
END_TEST

START_TEST(newest_eight)
{
	qk_autofree char *where = qk_asprintf("%s/store", dir);
	qk_autofree char *shell = qk_asprintf("find %s -path '*/sets/*' -type f -exec truncate -s -1 {} +", where);
	struct qk_pathsets sets;
	struct qk_store *store;

	ck_assert_msg(!qk_store_new(&store, where, 0, &err), "%s", err.msg);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 12; i++) {
			struct qk_pathset s = { 0 };
			char name[8];

			snprintf(name, sizeof(name), "p%d", i % 10);
			qk_pathset_add(&s, name, QK_PATH_LOOK, 0);
			ck_assert_msg(!qk_pathsets_add(store, &weak, &s, &err), "%s", err.msg);
			qk_pathset_release(&s);
		}
		qk_pathsets_load(&sets, store, &weak);
		ck_assert_uint_eq(sets.n, QK_PATHSETS_KEPT);
		ck_assert_str_eq(sets.v[0].v.v[0].path, "p1");
		ck_assert_str_eq(sets.v[1].v.v[0].path, "p0");
		ck_assert_str_eq(sets.v[7].v.v[0].path, "p4");
		qk_pathsets_release(&sets);
		/* damaged it is none, and gone */
		ck_assert_int_eq(system(shell), 0);
		qk_pathsets_load(&sets, store, &weak);
		ck_assert_uint_eq(sets.n, 0);
	}
	qk_store_free(store);
}
END_TEST

static const struct {
	const char *path, *text; /* text NULL: removed */
	const char *says;
} whys[] = {
	{ "a", "two", "a has changed" },
	{ "missing", "x", "missing was looked for in vain and is there now" },
	{ "a", NULL, "a is gone" },
	{ "d/new", "x", "the names in the directory d" },
	{ "d/x", "other", "its recording was not kept" },
};

START_TEST(says_why)
{
	static const char now[] = "key recipe 1\nword - gcc\nword - \"a b -O2\"\nenv CPATH /x\n";
	qk_autofree char *where = qk_asprintf("%s/store", dir), *why = NULL, *weak_why = NULL;
	qk_autofree char *path_why = NULL;
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_entry e = QK_ENTRY_INIT;
	struct qk_pathset s = { 0 };
	struct qk_store *store;
	struct qk_digest strong;

	ck_assert_msg(!qk_store_new(&store, where, 0, &err), "%s", err.msg);
	why = qk_why(store, &view, "last/a#0", now);
	ck_assert_str_eq(why, "it has no result yet");
	qk_pathset_add(&s, "d", QK_PATH_LIST, 0);
	qk_pathset_add(&s, "d/made", QK_PATH_EXCEPT, 0);
	qk_pathset_add(&s, "a", QK_PATH_LOOK, 0);
	qk_pathset_add(&s, "missing", QK_PATH_LOOK, 0);
	qk_buf_addstr(&text, now);
	ck_assert_int_eq(qk_pathset_key(&s, &weak, &view, false, &text, &strong, &err), 0);
	e.text = text.s;
	ck_assert_msg(!qk_store_put(store, &strong, &e, qk_filehash_rootfd(view.files), &err), "%s", err.msg);
	qk_filehash_remember(view.files, "last/a#0", &strong);
	put("d/made", "");
	if (whys[_i].text)
		put(whys[_i].path, whys[_i].text);
	else
		unlink(whys[_i].path);
	free(why);
	why = qk_why(store, &view, "last/a#0", now);
	ck_assert_msg(strstr(why, whys[_i].says) != NULL, "%s", why);
	/* what the command is comes before what it reads */
	weak_why = qk_why(store, &view, "last/a#0",
		"key recipe 1\nword - gcc\nword - \"a b -O0\"\nenv CPATH /x\n");
	ck_assert_str_eq(weak_why, "the command had -O2 where it has -O0");
	/* who has no command tells of paths alone */
	path_why = qk_why(store, &view, "last/a#0", NULL);
	if (strstr(whys[_i].says, "recording"))
		ck_assert_ptr_null(path_why);
	else
		ck_assert_str_eq(path_why, why);
	qk_pathset_release(&s);
	qk_store_free(store);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pathset");
	TCase *t = tcase_create("pathset");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, comes_back);
	tcase_add_test(t, counts_what_is_there);
	tcase_add_test(t, listing_without_its_own);
	tcase_add_test(t, moves_with_the_workspace);
	tcase_add_loop_test(t, own_before, 0, sizeof(owns) / sizeof(*owns));
	tcase_add_test(t, own_as_found);
	tcase_add_test(t, outside_by_stat);
	tcase_add_test(t, newest_eight);
	tcase_add_loop_test(t, says_why, 0, sizeof(whys) / sizeof(*whys));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
