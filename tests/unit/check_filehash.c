#include "keying/digestcache.h"
#include "keying/filehash.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

static void setup(void)
{
	strcpy(dir, "/tmp/qk-filehash-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir(".qk", 0777), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	qk_remove_tree(AT_FDCWD, dir);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(qk_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static struct qk_filehash *open_hash(void)
{
	struct qk_filehash *f;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_filehash_new(&f, dir, ".qk/digests", &err), "%s", err.msg);
	return f;
}

static struct qk_filestate state_flags(const char *path, int flags)
{
	struct qk_filehash *f = open_hash();
	struct qk_filestate s;
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!qk_filehash_get(f, path, flags, &s, &err), "%s", err.msg);
	qk_filehash_free(f);
	return s;
}

static struct qk_filestate state(const char *path)
{
	return state_flags(path, 0);
}

static bool same(const struct qk_filestate *a, const struct qk_filestate *b)
{
	return qk_digest_eq(&a->digest, &b->digest);
}

/* Waits until the stamps of what was just written are older than a tick can be. */
static void settle(void)
{
	usleep(80 * 1000);
}

START_TEST(content_and_executable_bit)
{
	struct qk_filestate a, b, c, d;

	put("f", "one");
	a = state("f");
	ck_assert_int_eq(a.kind, QK_FILE_REGULAR);
	chmod("f", 0600);
	b = state("f");
	ck_assert(same(&a, &b));
	chmod("f", 0700);
	c = state("f");
	ck_assert(!same(&a, &c));
	ck_assert(c.executable);
	chmod("f", 0644);
	put("f", "two");
	d = state("f");
	ck_assert(!same(&a, &d));
	put("f", "one");
	utimensat(AT_FDCWD, "f", (struct timespec[2]){ { 1, 0 }, { 1, 0 } }, 0);
	b = state("f");
	ck_assert(same(&a, &b));
}
END_TEST

START_TEST(absent_is_a_state)
{
	struct qk_filestate a = state("no/such"), b;

	ck_assert_int_eq(a.kind, QK_FILE_ABSENT);
	put("empty", "");
	b = state("empty");
	ck_assert(!same(&a, &b));
	b = state("empty/below");
	ck_assert(same(&a, &b));
}
END_TEST

START_TEST(link_counts_by_text_and_target)
{
	struct qk_filestate dangling, led, other, followed, file;

	symlink("to", "l");
	dangling = state("l");
	ck_assert_int_eq(dangling.kind, QK_FILE_LINK);
	put("to", "x");
	led = state("l");
	ck_assert(!same(&dangling, &led));
	put("to", "y");
	other = state("l");
	ck_assert(!same(&led, &other));
	followed = state_flags("l", QK_FILEHASH_FOLLOW);
	file = state("to");
	ck_assert(same(&followed, &file));
	unlink("l");
	symlink("./to", "l");
	led = state("l");
	ck_assert(!same(&led, &other));
	unlink("l");
	symlink("l", "l");
	led = state("l");
	ck_assert_int_eq(led.kind, QK_FILE_LINK);
	led = state_flags("l", QK_FILEHASH_FOLLOW);
	ck_assert_int_eq(led.kind, QK_FILE_ABSENT);
}
END_TEST

START_TEST(link_to_directory_counts_the_tree)
{
	struct qk_filestate a, b;

	mkdir("d", 0777);
	mkdir("d/sub", 0777);
	put("d/sub/f", "x");
	put("elsewhere", "1");
	symlink("../../elsewhere", "d/sub/nested");
	symlink("..", "d/sub/up");
	symlink("d", "l");
	a = state("l");
	put("d/sub/f", "y");
	b = state("l");
	ck_assert(!same(&a, &b));
	put("d/sub/f", "x");
	b = state("l");
	ck_assert(same(&a, &b));
	put("elsewhere", "2");
	b = state("l");
	ck_assert(!same(&a, &b));
	put("elsewhere", "1");
	mkdir("d/empty", 0777);
	b = state("l");
	ck_assert(!same(&a, &b));
	ck_assert(!b.outside);
}
END_TEST

START_TEST(link_out_of_the_root_is_told)
{
	struct qk_filestate s;

	symlink("/etc/passwd", "l");
	s = state("l");
	ck_assert(s.outside);
	mkdir("d", 0777);
	symlink("/usr", "d/l");
	s = state("d");
	ck_assert(s.outside);
	symlink("d", "in");
	s = state("in");
	ck_assert(s.outside);
	s = state("/etc/passwd");
	ck_assert(!s.outside);
	ck_assert_int_eq(s.kind, QK_FILE_REGULAR);
}
END_TEST

START_TEST(special_files_are_not_read)
{
	struct qk_filestate s;

	ck_assert_int_eq(mkfifo("fifo", 0666), 0);
	s = state("fifo");
	ck_assert_int_eq(s.kind, QK_FILE_SPECIAL);
}
END_TEST

static uint64_t files_read(struct qk_filehash *f, const char *path)
{
	uint64_t before, after, bytes;
	struct qk_filestate s;

	qk_filehash_cost(f, &before, &bytes);
	ck_assert_int_eq(qk_filehash_get(f, path, 0, &s, NULL), 0);
	qk_filehash_cost(f, &after, &bytes);
	return after - before;
}

START_TEST(settled_file_is_read_once)
{
	struct qk_filestate a, b;
	struct qk_filehash *f;

	put("f", "one");
	settle();
	a = state("f");
	f = open_hash();
	ck_assert_uint_eq(files_read(f, "f"), 0);
	ck_assert_int_eq(qk_filehash_get(f, "f", QK_FILEHASH_CACHED, &b, NULL), 0);
	ck_assert(same(&a, &b));
	/* The name in the cache is one, however the path is said. */
	{
		qk_autofree char *full = qk_asprintf("%s/f", dir);

		ck_assert_uint_eq(files_read(f, full), 0);
	}
	/* Same size, mtime put back: ctime tells. */
	{
		struct stat st;

		stat("f", &st);
		put("f", "two");
		utimensat(AT_FDCWD, "f", (struct timespec[2]){ st.st_atim, st.st_mtim }, 0);
	}
	ck_assert_int_eq(qk_filehash_get(f, "f", QK_FILEHASH_CACHED, &b, NULL), -EAGAIN);
	ck_assert_uint_eq(files_read(f, "f"), 1);
	qk_filehash_free(f);
}
END_TEST

START_TEST(fresh_file_is_not_believed)
{
	struct qk_filehash *f = open_hash();
	int tried = 0;

	/* Counts only where the first look came soon after the write, whatever else runs here. */
	for (int i = 0; i < 100 && !tried; i++) {
		struct timespec before = qk_digestcache_clock(), after;
		uint64_t first;

		put("f", i % 2 ? "one" : "two");
		first = files_read(f, "f");
		after = qk_digestcache_clock();
		if (after.tv_sec != before.tv_sec || after.tv_nsec - before.tv_nsec > 40000000)
			continue;
		tried++;
		ck_assert_uint_eq(first, 1);
		ck_assert_uint_eq(files_read(f, "f"), 1);
	}
	ck_assert_int_eq(tried, 1);
	qk_filehash_free(f);
}
END_TEST

START_TEST(ten_thousand_edits_in_the_same_tick)
{
	struct qk_filehash *f = open_hash();
	struct stat st;
	int fd, stale = 0;

	put("f", "A");
	settle();
	stat("f", &st);
	fd = open("f", O_WRONLY);
	for (int i = 0; i < 10000; i++) {
		char c = (char)('A' + i % 23);
		struct qk_digest want;
		struct qk_filestate s;

		ck_assert_int_eq(pwrite(fd, &c, 1, 0), 1);
		futimens(fd, (struct timespec[2]){ st.st_atim, st.st_mtim });
		ck_assert_int_eq(qk_filehash_get(f, "f", 0, &s, NULL), 0);
		qk_digest_bytes(&c, 1, &want);
		stale += !qk_digest_eq(&s.content, &want);
	}
	close(fd);
	ck_assert_int_eq(stale, 0);
	qk_filehash_free(f);
}
END_TEST

static const struct timespec now = { 1000, 500000000 };
static const struct {
	struct timespec mtime, ctime;
	bool settled;
} settle_table[] = {
	{ { 900, 1 }, { 900, 1 }, true }, { { 1000, 400000000 }, { 1000, 400000000 }, true },
	{ { 1000, 470000000 }, { 1000, 470000000 }, true }, /* older than two ticks */
	{ { 1000, 480000000 }, { 1000, 480000000 }, false },
	{ { 1000, 500000000 }, { 1000, 500000000 }, false },
	{ { 900, 1 }, { 1000, 499999999 }, false }, /* touch -r, chmod, rename */
	{ { 1000, 499999999 }, { 900, 1 }, false }, /* a ctime that means creation */
	{ { 4600, 0 }, { 900, 1 }, true },          /* mtime an hour ahead */
	{ { 4600, 0 }, { 1000, 490000000 }, false },
	{ { 999, 0 }, { 999, 0 }, false }, /* whole seconds only: two-second ticks */
	{ { 998, 0 }, { 998, 0 }, true },
	{ { 900, 1 }, { 1001, 1 }, false }, /* the clock was set back */
};

START_TEST(settled_table)
{
	struct stat st = { .st_mtim = settle_table[_i].mtime, .st_ctim = settle_table[_i].ctime };

	ck_assert_int_eq(qk_digestcache_settled(&st, now), settle_table[_i].settled);
}
END_TEST

START_TEST(listing_sees_names_and_types)
{
	struct qk_filehash *f = open_hash();
	struct qk_digest a, b;

	mkdir("d", 0777);
	put("d/f", "x");
	ck_assert_int_eq(qk_filehash_listing(f, "d", &a, NULL), 0);
	put("d/f", "longer");
	ck_assert_int_eq(qk_filehash_listing(f, "d", &b, NULL), 0);
	ck_assert(qk_digest_eq(&a, &b));
	unlink("d/f");
	mkdir("d/f", 0777);
	ck_assert_int_eq(qk_filehash_listing(f, "d", &b, NULL), 0);
	ck_assert(!qk_digest_eq(&a, &b));
	settle();
	ck_assert_int_eq(qk_filehash_listing(f, "d", &a, NULL), 0);
	ck_assert(qk_digest_eq(&a, &b));
	put("d/g", "");
	ck_assert_int_eq(qk_filehash_listing(f, "d", &b, NULL), 0);
	ck_assert(!qk_digest_eq(&a, &b));
	ck_assert_int_eq(qk_filehash_listing(f, "gone", &b, NULL), -ENOENT);
	qk_filehash_free(f);
}
END_TEST

/* Stands in for a settled file's stat. */
static struct stat stat_of(int i)
{
	return (struct stat){ .st_ino = (ino_t)i + 1,
		.st_size = i,
		.st_mtim = { 1, 1 },
		.st_ctim = { 1, 1 },
		.st_mode = S_IFREG | 0644 };
}

static struct qk_digest digest_of(int i)
{
	struct qk_digest d;

	qk_digest_bytes(&i, sizeof(i), &d);
	return d;
}

static int count_found(struct qk_digestcache *c, int n)
{
	int found = 0;

	for (int i = 0; i < n; i++) {
		struct stat st = stat_of(i);
		struct qk_digest d, want = digest_of(i);
		char name[32];

		snprintf(name, sizeof(name), "file/%d", i);
		if (!qk_digestcache_find(c, name, &st, &d))
			continue;
		ck_assert(qk_digest_eq(&d, &want));
		found++;
	}
	return found;
}

static void put_all(struct qk_digestcache *c, int from, int to)
{
	for (int i = from; i < to; i++) {
		struct stat st = stat_of(i);
		struct qk_digest d = digest_of(i);
		char name[32];

		snprintf(name, sizeof(name), "file/%d", i);
		qk_digestcache_put(c, name, &st, now, &d);
	}
}

START_TEST(table_grows)
{
	struct qk_digestcache *c = qk_digestcache_new(".qk/digests");
	struct stat st;

	put_all(c, 0, 50000);
	ck_assert_int_eq(count_found(c, 50000), 50000);
	qk_digestcache_free(c);
	c = qk_digestcache_new(".qk/digests");
	ck_assert_int_eq(count_found(c, 50000), 50000);
	qk_digestcache_free(c);
	ck_assert_int_eq(stat(".qk/digests", &st), 0);
	ck_assert_int_le(st.st_size, 64 * 300000);
}
END_TEST

START_TEST(processes_share_the_table)
{
	struct qk_digestcache *c;

	qk_digestcache_free(qk_digestcache_new(".qk/digests"));
	for (int k = 0; k < 4; k++)
		if (!fork()) {
			c = qk_digestcache_new(".qk/digests");
			put_all(c, k * 500, (k + 1) * 500);
			_exit(0);
		}
	for (int k = 0; k < 4; k++)
		wait(NULL);
	c = qk_digestcache_new(".qk/digests");
	ck_assert_int_ge(count_found(c, 2000), 1990); /* two may have raced for one slot */
	qk_digestcache_free(c);
}
END_TEST

START_TEST(damage_is_a_miss)
{
	struct qk_digestcache *c = qk_digestcache_new(".qk/digests");
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	int found;

	put_all(c, 0, 1000);
	qk_digestcache_free(c);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, ".qk/digests", 1 << 30, &b, NULL), 0);
	/* A byte of every third slot; count_found checks that no wrong digest comes out. */
	for (size_t i = 64; i + 64 <= b.len; i += 3 * 64)
		b.s[i + i / 64 % 64] ^= 0x40;
	ck_assert_int_eq(qk_write_file(".qk/digests", b.s, b.len, 0644, NULL), 0);
	c = qk_digestcache_new(".qk/digests");
	found = count_found(c, 1000);
	ck_assert_int_gt(found, 300);
	ck_assert_int_lt(found, 1000);
	put_all(c, 0, 1000);
	ck_assert_int_eq(count_found(c, 1000), 1000);
	/* Cut short, in use: nothing found, nothing broken. */
	ck_assert_int_eq(truncate(".qk/digests", 64), 0);
	ck_assert_int_eq(count_found(c, 1000), 0);
	qk_digestcache_free(c);
	c = qk_digestcache_new(".qk/digests");
	put_all(c, 0, 1000);
	ck_assert_int_eq(count_found(c, 1000), 1000);
	qk_digestcache_free(c);
}
END_TEST

START_TEST(no_cache_is_no_error)
{
	struct qk_filehash *f;
	struct qk_filestate s;

	put("f", "x");
	ck_assert_int_eq(qk_filehash_new(&f, dir, "/proc/no/such", NULL), 0);
	ck_assert_int_eq(qk_filehash_get(f, "f", 0, &s, NULL), 0);
	ck_assert_int_eq(qk_filehash_get(f, "f", QK_FILEHASH_CACHED, &s, NULL), -EAGAIN);
	qk_filehash_free(f);
	ck_assert_int_eq(qk_filehash_new(&f, "/no/such", NULL, NULL), -ENOENT);
}
END_TEST

START_TEST(unreadable_file_is_an_error)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_filehash *f;
	struct qk_filestate s;

	put("f", "x");
	chmod("f", 0);
	chmod(dir, 0755);
	if (!geteuid())
		ck_assert_int_eq(seteuid(65534), 0);
	f = open_hash();
	ck_assert_int_eq(qk_filehash_get(f, "f", 0, &s, &err), -EACCES);
	ck_assert_str_eq(err.msg, "open 'f': Permission denied");
	qk_filehash_free(f);
	ck_assert_int_eq(seteuid(getuid()), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("filehash");
	TCase *t = tcase_create("filehash");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, content_and_executable_bit);
	tcase_add_test(t, absent_is_a_state);
	tcase_add_test(t, link_counts_by_text_and_target);
	tcase_add_test(t, link_to_directory_counts_the_tree);
	tcase_add_test(t, link_out_of_the_root_is_told);
	tcase_add_test(t, special_files_are_not_read);
	tcase_add_test(t, settled_file_is_read_once);
	tcase_add_test(t, fresh_file_is_not_believed);
	tcase_add_test(t, ten_thousand_edits_in_the_same_tick);
	tcase_add_loop_test(t, settled_table, 0, sizeof(settle_table) / sizeof(*settle_table));
	tcase_add_test(t, listing_sees_names_and_types);
	tcase_add_test(t, table_grows);
	tcase_add_test(t, processes_share_the_table);
	tcase_add_test(t, damage_is_a_miss);
	tcase_add_test(t, no_cache_is_no_error);
	tcase_add_test(t, unreadable_file_is_an_error);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
