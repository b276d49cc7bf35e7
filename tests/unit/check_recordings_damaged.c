/*
 * Whatever is read back of recordings, with bytes flipped, cut short or made longer: never a crash, and
 * never a result that was not stored under that key. The same in every run: the generator has its seed.
 */
#include "keying/grouptext.h"
#include "keying/pathset.h"
#include "keying/pathsets.h"
#include "keying/storedir.h"
#include "keying/taskstate.h"
#include "keying/why.h"
#include "sandbox/trace.h"
#include "tests/unit/storing.h"

enum { ROUNDS = 4000 };

static uint64_t state = 88172645463325252ULL;

static size_t below(size_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state % n);
}

/* A copy with one thing wrong with it. */
static void mutate(const struct qk_buf *whole, struct qk_buf *ret)
{
	qk_buf_reset(ret);
	qk_buf_add(ret, whole->s, whole->len);
	switch (below(4)) {
	case 0: ret->s[below(ret->len)] ^= (char)(1 << below(8)); break;
	case 1: qk_buf_truncate(ret, below(ret->len)); break;
	case 2:
		for (size_t i = 0; i < 4; i++)
			ret->s[below(ret->len)] = (char)below(256);
		break;
	default: {
		size_t at = below(ret->len), n = below(ret->len - at) + 1;

		memmove(ret->s + at, ret->s + at + n - 1, ret->len - at - n + 1);
		qk_buf_truncate(ret, ret->len - n + 1);
	}
	}
}

static const struct qk_digest weak = { { 7, 7 } };

static void fill_set(struct qk_pathset *s)
{
	qk_pathset_add(s, "src/a.c", QK_PATH_LOOK, 0);
	qk_pathset_add(s, "src/include/a.h", QK_PATH_LOOK, 0);
	qk_pathset_add(s, "src/include", QK_PATH_LIST, 0);
	qk_pathset_add(s, "src/include/made", QK_PATH_EXCEPT, 0);
	qk_pathset_add(s, "src/a.o", QK_PATH_OWN, QK_OWN_REPLACED);
	qk_pathset_add(s, "/usr/include/none.h", QK_PATH_LOOK, 0);
}

START_TEST(path_set)
{
	struct qk_pathset s = { 0 };
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT, again = QK_BUF_INIT;

	fill_set(&s);
	qk_pathset_write(&s, &whole);
	for (int i = 0; i < ROUNDS; i++) {
		struct qk_pathset back = { 0 };

		mutate(&whole, &bad);
		if (!qk_pathset_read(&back, bad.s, bad.len)) {
			/* what is taken is a set: written and read it is the same */
			struct qk_pathset twice = { 0 };

			qk_buf_reset(&again);
			qk_pathset_write(&back, &again);
			ck_assert_int_eq(qk_pathset_read(&twice, again.s, again.len), 0);
			ck_assert(qk_pathset_equal(&back, &twice));
			qk_pathset_release(&twice);
		}
		qk_pathset_release(&back);
	}
	qk_pathset_release(&s);
}
END_TEST

static void write_over(const char *path, const struct qk_buf *b)
{
	unlink(path);
	ck_assert_int_eq(qk_write_file(path, b->s, b->len, 0644, NULL), 0);
}

/* Whatever of a sealed file is changed, nothing of it is believed. */
START_TEST(sealed_files)
{
	qk_autofree char *at = in_dir("store");
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT;
	qk_autofree char *path = NULL;
	char name[QK_STOREDIR_NAME];
	struct qk_pathset s = { 0 };
	struct qk_store *store;

	ck_assert_int_eq(qk_store_new(&store, at, 0, &err), 0);
	fill_set(&s);
	ck_assert_int_eq(qk_pathsets_add(store, &weak, &s, &err), 0);
	qk_storedir_name("sets", &weak, name);
	path = qk_asprintf("%s/v1/%s", at, name);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &whole, &err), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct qk_pathsets sets;
		bool same;

		mutate(&whole, &bad);
		same = bad.len == whole.len && !memcmp(bad.s, whole.s, bad.len);
		write_over(path, &bad);
		qk_pathsets_load(&sets, store, &weak);
		ck_assert_uint_eq(sets.n, same);
		qk_pathsets_release(&sets);
	}
	qk_pathset_release(&s);
	qk_store_free(store);
}
END_TEST

/* The same bytes under a seal that fits: what a program gone wrong might write. */
START_TEST(sealed_nonsense)
{
	qk_autofree char *at = in_dir("store"), *digests = in_dir("digests");
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT, sealed = QK_BUF_INIT;
	qk_autofree char *path = NULL;
	struct qk_pathview view = { 0 };
	char name[QK_STOREDIR_NAME];
	struct qk_pathset s = { 0 };
	struct qk_store *store;
	struct qk_entry e = QK_ENTRY_INIT;
	struct qk_digest none;

	ck_assert_int_eq(qk_store_new(&store, at, 0, &err), 0);
	ck_assert_int_eq(qk_filehash_new(&view.files, "w", digests, &err), 0);
	fill_set(&s);
	ck_assert_int_eq(qk_pathsets_add(store, &weak, &s, &err), 0);
	qk_storedir_name("sets", &weak, name);
	path = qk_asprintf("%s/v1/%s", at, name);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &whole, &err), 0);
	memmove(whole.s, whole.s + QK_STOREDIR_HEAD, whole.len - QK_STOREDIR_HEAD);
	qk_buf_truncate(&whole, whole.len - QK_STOREDIR_HEAD);
	for (int i = 0; i < ROUNDS; i++) {
		struct qk_pathsets sets;

		mutate(&whole, &bad);
		qk_buf_reset(&sealed);
		qk_storedir_begin(&sealed, "qksets01");
		qk_buf_add(&sealed, bad.s, bad.len);
		ck_assert_int_eq(qk_storedir_write(store, name, &sealed, &err), 0);
		qk_pathsets_load(&sets, store, &weak);
		ck_assert_uint_le(sets.n, QK_PATHSETS_KEPT);
		for (size_t k = 0; k < sets.n; k++) {
			struct qk_digest strong;

			if (!qk_pathset_key(&sets.v[k], &weak, &view, true, NULL, &strong, NULL))
				ck_assert_int_eq(qk_store_get(store, &strong, &e, NULL), 0);
		}
		qk_pathsets_release(&sets);
	}
	memset(&none, 9, sizeof(none));
	ck_assert(!qk_grouptext_get(store, &none, &bad));
	qk_pathview_release(&view);
	qk_filehash_free(view.files);
	qk_pathset_release(&s);
	qk_store_free(store);
}
END_TEST

static void fill_tree(struct qk_tree *t)
{
	struct qk_treeent *e = qk_tree_add(t, "a");

	e->kind = QK_FILE_REGULAR;
	e->mode = 0644;
	qk_digest_bytes("", 0, &e->content);
	e = qk_tree_add(t, "b");
	e->kind = QK_FILE_REGULAR;
	e->mode = 0644;
	e->twin = qk_strdup("a");
	qk_digest_bytes("", 0, &e->content);
	e = qk_tree_add(t, "d");
	e->kind = QK_FILE_DIR;
	e->mode = 0755;
	e = qk_tree_add(t, "d/l");
	e->kind = QK_FILE_LINK;
	e->mode = 0777;
	e->link = qk_strdup("../a");
}

/* A tree of a result, hard links among it: what passes the check can be written and read again. */
START_TEST(tree)
{
	qk_autotree struct qk_tree t = { 0 };
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT;
	size_t begin = qk_record_begin(&whole), taken = 0;

	fill_tree(&t);
	ck_assert_int_eq(qk_tree_check(&t), 0);
	qk_tree_write(&t, &whole);
	qk_record_end(&whole, begin);
	for (int i = 0; i < ROUNDS; i++) {
		qk_autotree struct qk_tree back = { 0 };
		struct qk_record rec;
		struct qk_field f;
		size_t pos = 0;
		int r = 0;

		mutate(&whole, &bad);
		if (qk_record_next(bad.s, bad.len, &pos, &rec) != 1)
			continue;
		while (!r && qk_field_next(&rec, &f) == 1)
			r = qk_tree_read(&back, &f);
		if (r || qk_tree_check(&back))
			continue;
		taken++;
		for (size_t k = 0; k < back.n; k++) {
			const struct qk_treeent *twin = qk_tree_twin(&back, &back.v[k]);

			ck_assert(back.v[k].path[0] != '/' && !strstr(back.v[k].path, ".."));
			ck_assert(!twin || (twin < &back.v[k] && qk_digest_eq(&twin->content, &back.v[k].content)));
		}
	}
	ck_assert_uint_gt(taken, 0);
}
END_TEST

/* What the last run left of a task: a damaged file tells less, never of a key that nobody had. */
START_TEST(task_states)
{
	qk_autofree char *path = in_dir("tasks");
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT;
	struct qk_taskstate s = { .id = "app:build", .run = "1", .has_key = true, .good = true, .recorded = true };

	memset(&s.key, 5, sizeof(s.key));
	memset(&s.strong, 6, sizeof(s.strong));
	ck_assert_int_eq(qk_taskstate_append(path, &s), 0);
	s.id = "lib:build";
	ck_assert_int_eq(qk_taskstate_append(path, &s), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, &whole, &err), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct qk_taskstates *all;

		mutate(&whole, &bad);
		write_over(path, &bad);
		all = qk_taskstates_new(path);
		(void)qk_taskstates_find(all, "app:build");
		(void)qk_taskstates_find(all, "lib:build");
		qk_taskstates_free(all);
	}
}
END_TEST

/* The trace that a command's process leaves. */
START_TEST(traces)
{
	qk_autobuf struct qk_buf whole = QK_BUF_INIT, bad = QK_BUF_INIT;
	struct qk_trace t;

	qk_trace_init(&t);
	t.lookups = true;
	qk_trace_event(&t, QK_EV_READ, "/w/a");
	qk_trace_event(&t, QK_EV_ABSENT, "/w/b");
	qk_trace_event(&t, QK_EV_LIST, "/w/d");
	qk_trace_event(&t, QK_EV_CREATE, "/w/c");
	qk_trace_rename(&t, "/w/c", "/w/e", false, false, false);
	qk_trace_write(&t, &whole);
	for (int i = 0; i < ROUNDS; i++) {
		struct qk_trace back, joined;

		qk_trace_init(&back);
		qk_trace_init(&joined);
		back.lookups = joined.lookups = true;
		mutate(&whole, &bad);
		if (!qk_trace_read(&back, bad.s, bad.len, NULL)) {
			qk_trace_append(&joined, &back);
			qk_trace_narrow(&joined, "/w");
		}
		qk_trace_release(&joined);
		qk_trace_release(&back);
	}
	qk_trace_release(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("damaged recordings");
	TCase *c = tcase_create("mutated");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, path_set);
	tcase_add_test(c, sealed_files);
	tcase_add_test(c, sealed_nonsense);
	tcase_add_test(c, tree);
	tcase_add_test(c, task_states);
	tcase_add_test(c, traces);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
