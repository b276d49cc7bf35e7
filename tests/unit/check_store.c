#include "tests/unit/storing.h"

START_TEST(round_trip)
{
	struct qk_store *s = open_store(0);
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_digest k = key_of("k"), a, b;

	make_outputs();
	ck_assert(!has(s, "k"));
	ck_assert_msg(!store_outputs(s, "k", "dist", "hello\n"), "%s", err.msg);
	ck_assert_int_eq(get(s, "k", &e), 1);
	ck_assert_str_eq(e.task, "app:build");
	ck_assert_str_eq(e.how, "enforce");
	ck_assert_uint_eq(e.output.len, 5 + 6);
	ck_assert_int_eq(qk_store_text(s, &k, &text, &err), 1);
	ck_assert_str_eq(text.s, "key task 1\nfile k\n");
	ck_assert(!has(s, "other"));
	qk_tree_digest(&e.tree, &a);

	qk_remove_tree(AT_FDCWD, "w/dist");
	ck_assert_msg(restore(s, "k", "dist") == QK_RESTORED_WRITTEN, "%s", err.msg);
	check_outputs();
	{
		struct qk_filehash *f = open_hash();
		struct qk_outputs o = outputs_of("dist");
		qk_autotree struct qk_tree t = { 0 };

		ck_assert_int_eq(qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &t, &err), 0);
		ck_assert_int_eq(qk_outputs_digests(&t, f, 0, &err), 0);
		ck_assert(qk_tree_equal(&t, &e.tree));
		qk_tree_digest(&t, &b);
		ck_assert(qk_digest_eq(&a, &b));
		qk_outputs_release(&o);
		qk_filehash_free(f);
	}
	qk_store_free(s);
}
END_TEST

START_TEST(in_place_is_left_alone)
{
	struct qk_store *s = open_store(0);
	struct stat before, after;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	stat("w/dist/sub/big", &before);
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_IN_PLACE);
	stat("w/dist/sub/big", &after);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	/* A mode, an extra file, a link's text: each is a difference. */
	chmod("w/dist/small", 0600);
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	check_outputs();
	puts_in("w/dist/extra", "");
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	ck_assert(!there("w/dist/extra"));
	unlink("w/dist/link");
	symlink("sub", "w/dist/link");
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	check_outputs();
	qk_store_free(s);
}
END_TEST

START_TEST(only_outputs_are_removed)
{
	struct qk_store *s = open_store(0);

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist !dist/keep", ""), 0);
	mkdir("w/dist/keep", 0777);
	puts_in("w/dist/keep/mine", "mine");
	puts_in("w/beside", "beside");
	puts_in("w/dist/small", "edited");
	chmod("w/dist/empty", 0);
	ck_assert_int_eq(restore(s, "k", "dist !dist/keep"), QK_RESTORED_WRITTEN);
	expect("w/dist/keep/mine", "mine");
	expect("w/beside", "beside");
	check_outputs();
	/* An entry of a task whose outputs were declared differently puts nothing elsewhere. */
	unlink("w/dist/small");
	ck_assert_int_eq(restore(s, "k", "other"), -EBADMSG);
	ck_assert(!there("w/dist/small"));
	qk_store_free(s);
}
END_TEST

START_TEST(never_through_a_link)
{
	struct qk_store *s = open_store(0);

	mkdir("w/p", 0777);
	mkdir("w/p/out", 0777);
	puts_in("w/p/out/f", "stored");
	ck_assert_int_eq(store_outputs(s, "k", "p/out/f p/out/d", ""), 0);
	mkdir("elsewhere", 0777);
	puts_in("elsewhere/f", "precious");
	qk_remove_tree(AT_FDCWD, "w/p/out");
	symlink("../../elsewhere", "w/p/out");
	ck_assert_int_lt(restore(s, "k", "p/out/f p/out/d"), 0);
	expect("elsewhere/f", "precious");
	/* The output itself a link: replaced, what it led to untouched. */
	unlink("w/p/out");
	mkdir("w/p/out", 0777);
	symlink("../../../elsewhere/f", "w/p/out/f");
	ck_assert_int_eq(restore(s, "k", "p/out/f p/out/d"), QK_RESTORED_WRITTEN);
	expect("w/p/out/f", "stored");
	expect("elsewhere/f", "precious");
	qk_store_free(s);
}
END_TEST

START_TEST(edited_output_does_not_reach_the_store)
{
	struct qk_store *s = open_store(0);
	int fd;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	qk_remove_tree(AT_FDCWD, "w/dist");
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	chmod("w/dist/sub/big", 0644);
	fd = open("w/dist/sub/big", O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "x", 1), 1);
	close(fd);
	qk_remove_tree(AT_FDCWD, "w/dist");
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	check_outputs();
	qk_store_free(s);
}
END_TEST

START_TEST(special_file_is_not_stored)
{
	struct qk_store *s = open_store(0);

	mkdir("w/dist", 0777);
	mkfifo("w/dist/fifo", 0644);
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), -EINVAL);
	ck_assert_str_eq(err.msg, "output 'dist/fifo' is a device, socket or fifo");
	ck_assert(!has(s, "k"));
	qk_store_free(s);
}
END_TEST

START_TEST(changed_after_reading_is_not_stored)
{
	struct qk_store *s = open_store(0);
	struct qk_filehash *f = open_hash();
	struct qk_outputs o = outputs_of("dist");
	struct qk_digest k = key_of("k");

	make_outputs();
	for (int i = 0; i < 2; i++) {
		qk_autoentry struct qk_entry e = QK_ENTRY_INIT;

		ck_assert_int_eq(qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &e.tree, &err), 0);
		ck_assert_int_eq(qk_outputs_digests(&e.tree, f, 0, &err), 0);
		if (i)
			puts_in("w/dist/small", "SMALL\n");
		else
			put("w/dist/sub/big", big, sizeof(big) - 2, 0444);
		ck_assert_int_eq(qk_store_put(s, &k, &e, qk_filehash_rootfd(f), &err), -EBUSY);
		ck_assert(!has(s, "k"));
	}
	qk_outputs_release(&o);
	qk_filehash_free(f);
	qk_store_free(s);
}
END_TEST

/* Every file of the store, damaged in each of three ways: a miss, and gone. */
static void for_each_file(const char *pattern, void (*damage)(const char *path, int how), int how)
{
	qk_autofree char *glob = in_dir(pattern);
	qk_autostrv struct qk_strv paths = { 0 };

	ck_assert_int_eq(qk_glob_walk(glob, &paths, &err), 0);
	ck_assert_uint_gt(paths.n, 0);
	for (size_t i = 0; i < paths.n; i++) {
		chmod(paths.v[i], 0644);
		damage(paths.v[i], how);
	}
}

static void damage(const char *path, int how)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	int fd = open(path, O_WRONLY);

	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 24, &b, &err), 0);
	if (how == 0)
		ck_assert_int_eq(ftruncate(fd, (off_t)b.len / 2), 0);
	else if (how == 1)
		ck_assert_int_eq(ftruncate(fd, 0), 0);
	else {
		b.s[b.len / 2] ^= 1;
		ck_assert_int_eq(pwrite(fd, b.s, b.len, 0), (ssize_t)b.len);
	}
	close(fd);
}

START_TEST(damaged_blob_is_a_miss_and_nothing_is_touched)
{
	struct qk_store *s = open_store(0);

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	puts_in("w/dist/small", "what was there before");
	for_each_file("cache/v1/blobs/*/*", damage, _i);
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_NOTHING);
	expect("w/dist/small", "what was there before");
	ck_assert(!has(s, "k"));
	puts_in("w/dist/small", "small\n");
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	qk_remove_tree(AT_FDCWD, "w/dist");
	ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
	check_outputs();
	qk_store_free(s);
}
END_TEST

START_TEST(damaged_entry_is_a_miss)
{
	struct qk_store *s = open_store(0);
	struct qk_digest k = key_of("k");
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	for_each_file("cache/v1/entries/*/*", damage, _i);
	ck_assert(!has(s, "k"));
	ck_assert_int_eq(qk_store_text(s, &k, &text, &err), 0);
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	ck_assert(has(s, "k"));
	qk_store_free(s);
}
END_TEST

/* Any one bit turned over in an entry: never a hit that differs. */
START_TEST(every_bit_of_an_entry_counts)
{
	struct qk_store *s = open_store(0);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autostrv struct qk_strv paths = { 0 };
	qk_autofree char *glob = in_dir("cache/v1/entries/*/*");

	mkdir("w/dist", 0777);
	puts_in("w/dist/a", "1");
	ck_assert_int_eq(store_outputs(s, "k", "dist", "x"), 0);
	ck_assert_int_eq(qk_glob_walk(glob, &paths, &err), 0);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, paths.v[0], 1 << 20, &b, &err), 0);
	for (size_t i = 0; i < b.len - strlen("key task 1\nfile k\n"); i++) {
		b.s[i] ^= 4;
		ck_assert_int_eq(qk_write_file(paths.v[0], b.s, b.len, 0644, &err), 0);
		/* The digest of the text is checked when the text is asked for. */
		if (has(s, "k")) {
			struct qk_digest k = key_of("k");
			qk_autobuf struct qk_buf text = QK_BUF_INIT;

			ck_assert_int_eq(qk_store_text(s, &k, &text, &err), 0);
		}
		b.s[i] ^= 4;
	}
	ck_assert_int_eq(qk_write_file(paths.v[0], b.s, b.len, 0644, &err), 0);
	ck_assert(has(s, "k"));
	/* Put under another key's name. */
	{
		struct qk_digest k = key_of("other");
		char hex[QK_DIGEST_HEX];
		qk_autofree char *d = NULL, *f = NULL;

		qk_digest_hex(&k, hex);
		d = qk_asprintf("cache/v1/entries/%.2s", hex);
		f = qk_asprintf("%s/%s", d, hex + 2);
		mkdir(d, 0777);
		ck_assert_int_eq(rename(paths.v[0], f), 0);
		ck_assert(!has(s, "other"));
	}
	qk_store_free(s);
}
END_TEST

START_TEST(large_output_is_replayed)
{
	struct qk_store *s = open_store(0);
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", big), 0);
	ck_assert_int_eq(get(s, "k", &e), 1);
	ck_assert_uint_eq(e.output.len, 5 + sizeof(big) - 1);
	ck_assert_mem_eq(e.output.s + 5, big, sizeof(big) - 1);
	qk_store_free(s);
}
END_TEST

static void store_one(struct qk_store *s, const char *key, char fill)
{
	qk_autofree char *bytes = qk_alloc(100000);

	memset(bytes, fill, 100000);
	mkdir("w/dist", 0777);
	put("w/dist/f", bytes, 100000, 0644);
	ck_assert_msg(!store_outputs(s, key, "dist", ""), "%s", err.msg);
}

/* Makes the entry's last use older by so many seconds. */
static void age(struct qk_store *s, const char *key, int seconds)
{
	struct qk_digest k = key_of(key);
	char hex[QK_DIGEST_HEX];
	qk_autofree char *path = NULL;
	struct timespec t[2] = { { time(NULL) - seconds, 0 }, { time(NULL) - seconds, 0 } };

	(void)s;
	qk_digest_hex(&k, hex);
	path = qk_asprintf("cache/v1/entries/%.2s/%s", hex, hex + 2);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, t, 0), 0);
}

START_TEST(pruned_by_last_use)
{
	struct qk_store *s = open_store(0);
	struct qk_store_usage u;

	store_one(s, "a", 'a');
	store_one(s, "b", 'b');
	store_one(s, "c", 'c');
	store_one(s, "b2", 'b'); /* shares its blob with b */
	age(s, "a", 300);
	age(s, "b", 400);
	age(s, "c", 200);
	age(s, "b2", 100);
	ck_assert(has(s, "a")); /* of use now */
	puts_in("cache/v1/tmp/left", "from a crash");
	ck_assert_int_eq(qk_store_prune(s, 0, &u, &err), 0);
	ck_assert_uint_eq(u.entries, 4);
	ck_assert_uint_eq(u.blobs, 3);
	ck_assert(!there("cache/v1/tmp/left"));
	ck_assert_int_eq(qk_store_prune(s, u.bytes - 1, &u, &err), 0);
	ck_assert(!has(s, "b"));
	ck_assert_uint_eq(u.entries, 3);
	ck_assert_uint_eq(u.blobs, 3);
	ck_assert_int_eq(qk_store_prune(s, u.bytes - 1, &u, &err), 0);
	ck_assert_uint_eq(u.entries, 2);
	ck_assert_uint_eq(u.blobs, 2);
	ck_assert(has(s, "a") && has(s, "b2") && !has(s, "c"));
	ck_assert_int_eq(restore(s, "b2", "dist"), QK_RESTORED_IN_PLACE);
	ck_assert_int_eq(restore(s, "a", "dist"), QK_RESTORED_WRITTEN);
	qk_store_free(s);
}
END_TEST

START_TEST(bounded_by_itself)
{
	struct qk_store *s = open_store(1 << 20);
	struct qk_store_usage u;

	for (int i = 0; i < 40; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%d", i);
		store_one(s, key, (char)(' ' + i));
		if (i)
			age(s, key, 1000 - i);
		ck_assert(i < 39 || has(s, key));
	}
	ck_assert_int_eq(qk_store_prune(s, 0, &u, &err), 0);
	ck_assert_uint_le(u.bytes, 1 << 20);
	ck_assert_uint_ge(u.entries, 5);
	qk_store_free(s);
}
END_TEST

START_TEST(processes_share_a_store)
{
	struct qk_store *s;

	make_outputs();
	for (int k = 0; k < 4; k++)
		if (!fork()) {
			s = open_store(3 << 20);
			for (int i = 0; i < 50; i++) {
				char key[16];

				snprintf(key, sizeof(key), "%d", (i + k * 7) % 25);
				if (store_outputs(s, key, "dist", key))
					_exit(1);
				if (i % 10 == 9 && qk_store_prune(s, 1 << 19, NULL, &err))
					_exit(2);
				/* A miss if it was pruned, never anything else. */
				qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
				int r = get(s, key, &e);

				if (r < 0 || (r && e.tree.n != 10))
					_exit(3);
			}
			_exit(0);
		}
	for (int k = 0; k < 4; k++) {
		int status;

		wait(&status);
		ck_assert_int_eq(status, 0);
	}
	s = open_store(0);
	ck_assert_int_eq(store_outputs(s, "0", "dist", ""), 0);
	qk_remove_tree(AT_FDCWD, "w/dist");
	ck_assert_int_eq(restore(s, "0", "dist"), QK_RESTORED_WRITTEN);
	check_outputs();
	qk_store_free(s);
}
END_TEST

START_TEST(one_at_a_time_claims_a_key)
{
	struct qk_store *s = open_store(0);
	struct qk_digest k = key_of("k");
	int made = open("made", O_RDWR | O_CREAT | O_APPEND, 0644);
	struct stat st;

	for (int i = 0; i < 8; i++)
		if (!fork()) {
			struct qk_store *mine = open_store(0);
			int fd = qk_store_claim(mine, &k);

			if (fd < 0)
				_exit(1);
			if (!has(mine, "k")) {
				if (write(made, "x", 1) != 1)
					_exit(2);
				mkdir("w/dist", 0777);
				puts_in("w/dist/f", "x");
				if (store_outputs(mine, "k", "dist", ""))
					_exit(3);
			}
			qk_store_yield(mine, &k, fd);
			_exit(0);
		}
	for (int i = 0; i < 8; i++) {
		int status;

		wait(&status);
		ck_assert_int_eq(status, 0);
	}
	fstat(made, &st);
	ck_assert_int_eq(st.st_size, 1);
	qk_store_free(s);
}
END_TEST

static const struct {
	const char *text;
	int64_t bytes; /* -1: refused */
} sizes[] = {
	{ "0", 0 },
	{ "1000", 1000 },
	{ "2K", 2048 },
	{ "500M", 500LL << 20 },
	{ "2g", 2LL << 30 },
	{ "1.5GiB", 3LL << 29 },
	{ "1 T", 1LL << 40 },
	{ "7B", 7 },
	{ "", -1 },
	{ "G", -1 },
	{ "-1", -1 },
	{ "2X", -1 },
	{ "2GG", -1 },
	{ "99999999999999999999T", -1 },
	{ "1e", -1 },
};

START_TEST(size_texts)
{
	uint64_t n;
	int r = qk_store_parse_size(sizes[_i].text, &n, &err);

	if (sizes[_i].bytes < 0) {
		ck_assert_int_eq(r, -EINVAL);
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_uint_eq(n, (uint64_t)sizes[_i].bytes);
	}
}
END_TEST

START_TEST(store_directory)
{
	static const struct {
		const char *env, *configured, *want;
	} rows[] = {
		{ NULL, NULL, "/w/.qk/cache" },
		{ "", "", "/w/.qk/cache" },
		{ NULL, "node_modules/.cache/nx", "/w/node_modules/.cache/nx" },
		{ "/c", "x", "/c" },
		{ "c", "x", "/w/c" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		qk_autofree char *got = qk_store_dir("/w", rows[i].env, rows[i].configured);

		ck_assert_str_eq(got, rows[i].want);
	}
}
END_TEST

START_TEST(unwritable_place_is_said)
{
	struct qk_store *s;

	ck_assert_int_lt(qk_store_new(&s, "/proc/no/such", 0, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "/proc/no/such"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("store");
	TCase *t = tcase_create("store");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, in_place_is_left_alone);
	tcase_add_test(t, only_outputs_are_removed);
	tcase_add_test(t, never_through_a_link);
	tcase_add_test(t, edited_output_does_not_reach_the_store);
	tcase_add_test(t, special_file_is_not_stored);
	tcase_add_test(t, changed_after_reading_is_not_stored);
	tcase_add_loop_test(t, damaged_blob_is_a_miss_and_nothing_is_touched, 0, 3);
	tcase_add_loop_test(t, damaged_entry_is_a_miss, 0, 3);
	tcase_add_test(t, every_bit_of_an_entry_counts);
	tcase_add_test(t, large_output_is_replayed);
	tcase_add_test(t, pruned_by_last_use);
	tcase_add_test(t, bounded_by_itself);
	tcase_add_test(t, processes_share_a_store);
	tcase_add_test(t, one_at_a_time_claims_a_key);
	tcase_add_loop_test(t, size_texts, 0, sizeof(sizes) / sizeof(*sizes));
	tcase_add_test(t, store_directory);
	tcase_add_test(t, unwritable_place_is_said);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
