#include "keying/capture.h"
#include "keying/outputs.h"
#include "keying/restore.h"
#include "keying/store.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/mem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[64];
static struct qk_err err;

static void setup(void)
{
	strcpy(dir, "/tmp/qk-store-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir("w", 0777) | mkdir("w/.qk", 0777) | mkdir("stage", 0777), 0);
	umask(022);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	qk_remove_tree(AT_FDCWD, dir);
}

static char *in_dir(const char *name)
{
	return qk_asprintf("%s/%s", dir, name);
}

static void put(const char *path, const char *text, size_t n, mode_t mode)
{
	int fd;

	chmod(path, 0600);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_msg(fd >= 0, "%s", path);
	ck_assert_int_eq(qk_write_all(fd, text, n), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void puts_in(const char *path, const char *text)
{
	put(path, text, strlen(text), 0644);
}

static void expect(const char *path, const char *text)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_msg(!qk_read_file(AT_FDCWD, path, 1 << 24, &b, &err), "%s", err.msg);
	ck_assert_str_eq(b.s, text);
}

static bool there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static struct qk_store *open_store(uint64_t limit)
{
	qk_autofree char *path = in_dir("cache");
	struct qk_store *s;

	ck_assert_msg(!qk_store_new(&s, path, limit, &err), "%s", err.msg);
	return s;
}

static struct qk_filehash *open_hash(void)
{
	qk_autofree char *root = in_dir("w");
	struct qk_filehash *f;

	ck_assert_int_eq(qk_filehash_new(&f, root, ".qk/digests", &err), 0);
	return f;
}

static struct qk_digest key_of(const char *s)
{
	struct qk_digest d;

	qk_digest_bytes(s, strlen(s), &d);
	return d;
}

static struct qk_outputs outputs_of(const char *globs)
{
	qk_autostrv struct qk_strv words = { 0 };
	struct qk_outputs o = { 0 };

	qk_strv_split(&words, globs);
	for (size_t i = 0; i < words.n; i++)
		ck_assert_int_eq(qk_outputs_add(&o, words.v[i], &err), 0);
	return o;
}

static int store_outputs(
	struct qk_store *s, const char *key, const char *globs, const char *printed)
{
	struct qk_filehash *f = open_hash();
	struct qk_outputs o = outputs_of(globs);
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	qk_autocapture struct qk_capture c = QK_CAPTURE_INIT;
	struct qk_digest k = key_of(key);
	int r = qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &e.tree, &err);

	if (!r)
		r = qk_outputs_digests(&e.tree, f, 0, &err);
	qk_capture_add(&c, 1, printed, strlen(printed));
	qk_buf_add(&e.output, c.data.s, c.data.len);
	e.task = qk_strdup("app:build");
	e.how = qk_strdup("enforce");
	e.text = qk_asprintf("key task 1\nfile %s\n", key);
	if (!r)
		r = qk_store_put(s, &k, &e, qk_filehash_rootfd(f), &err);
	qk_outputs_release(&o);
	qk_filehash_free(f);
	return r;
}

static int get(struct qk_store *s, const char *key, struct qk_entry *e)
{
	struct qk_digest k = key_of(key);

	return qk_store_get(s, &k, e, &err);
}

static bool has(struct qk_store *s, const char *key)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	int r = get(s, key, &e);

	ck_assert_int_ge(r, 0);
	return r;
}

/* Restores and says how; -1 if there is no such entry. */
static int restore(struct qk_store *s, const char *key, const char *globs)
{
	struct qk_filehash *f = open_hash();
	struct qk_outputs o = outputs_of(globs);
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	qk_autofree char *stage = in_dir("stage");
	struct qk_digest k = key_of(key);
	enum qk_restored how;
	int r = get(s, key, &e);

	if (r == 1) {
		r = qk_restore(s, &k, &e, &o, f, stage, &how, &err);
		r = r ? r : (int)how;
	} else {
		r = -1;
	}
	qk_outputs_release(&o);
	qk_filehash_free(f);
	return r;
}

/* --- capture --- */

START_TEST(capture_replays_in_order)
{
	qk_autocapture struct qk_capture c = QK_CAPTURE_INIT;
	qk_autobuf struct qk_buf both = QK_BUF_INIT;
	int p[2];

	qk_capture_add(&c, 1, "a", 1);
	qk_capture_add(&c, 1, "b\0c", 3);
	qk_capture_add(&c, 2, "E", 1);
	qk_capture_add(&c, 2, "", 0);
	qk_capture_add(&c, 1, "\xff\n", 2);
	ck_assert_uint_eq(c.data.len, 3 * 5 + 4 + 1 + 2);
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(qk_capture_replay(c.data.s, c.data.len, p[1], p[1]), 0);
	close(p[1]);
	qk_buf_reserve(&both, 64);
	both.len = (size_t)read(p[0], both.s, 64);
	ck_assert_uint_eq(both.len, 7);
	ck_assert_mem_eq(both.s, "ab\0cE\xff\n", 7);
	/* Each stream to its own. */
	int q[2];
	char one[8];

	ck_assert_int_eq(pipe(q), 0);
	qk_capture_replay(c.data.s, c.data.len, open("/dev/null", O_WRONLY), q[1]);
	ck_assert_int_eq(read(q[0], one, 8), 1);
	ck_assert_int_eq(one[0], 'E');
}
END_TEST

START_TEST(damaged_capture_is_refused)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {
		{ "\1", 1 },
		{ "\1\0\0\0\0", 5 },
		{ "\3\1\0\0\0a", 6 },
		{ "\1\2\0\0\0a", 6 },
		{ "\1\1\0\0\0ab", 7 },
		{ "\1\377\377\377\377a", 6 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(qk_capture_check(bad[i].bytes, bad[i].n), -EBADMSG);
	ck_assert_int_eq(qk_capture_check("", 0), 0);
}
END_TEST

/* --- outputs --- */

static const struct {
	const char *globs, *path;
	bool match;
} match_table[] = {
	{ "dist", "dist", true },
	{ "dist", "dist/a/b", true },
	{ "dist", "distant", false },
	{ "dist/", "dist/a", true },
	{ "./dist", "dist/a", true },
	{ "dist/**", "dist/a/b", true },
	{ "dist/*.js", "dist/a.js", true },
	{ "dist/*.js", "dist/a.css", false },
	{ "dist !dist/cache", "dist/cache/x", false },
	{ "dist !dist/cache", "dist/cached", true },
	{ "dist !dist/**/*.map", "dist/a/b.map", false },
	{ "{a,b}/out", "b/out/x", true },
	{ "!dist", "dist", false },
};

START_TEST(match)
{
	struct qk_outputs o = outputs_of(match_table[_i].globs);

	ck_assert_int_eq(qk_outputs_match(&o, match_table[_i].path), match_table[_i].match);
	qk_outputs_release(&o);
}
END_TEST

START_TEST(outputs_stay_in_the_workspace)
{
	static const char *const bad[] = { "/etc", "../x", "a/../../b", ".", "", "!../x", "a/.." };
	struct qk_outputs o = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(qk_outputs_add(&o, bad[i], &err), -EINVAL);
	ck_assert_uint_eq(o.include.n + o.exclude.n, 0);
}
END_TEST

static void list_is(const char *globs, const char *want)
{
	struct qk_filehash *f = open_hash();
	struct qk_outputs o = outputs_of(globs);
	qk_autotree struct qk_tree t = { 0 };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_msg(!qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &t, &err), "%s", err.msg);
	for (size_t i = 0; i < t.n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", t.v[i].path);
	ck_assert_str_eq(b.s, want);
	qk_outputs_release(&o);
	qk_filehash_free(f);
}

START_TEST(list)
{
	mkdir("w/p", 0777);
	mkdir("w/p/dist", 0777);
	mkdir("w/p/dist/a", 0777);
	mkdir("w/p/dist/empty", 0777);
	mkdir("w/p/dist/node_modules", 0777);
	mkdir("w/p/node_modules", 0777);
	puts_in("w/p/dist/a/x.js", "x");
	puts_in("w/p/dist/a-b", "x");
	puts_in("w/p/dist/node_modules/y.js", "y");
	puts_in("w/p/node_modules/z.js", "z");
	puts_in("w/p/src.js", "s");
	symlink("/etc", "w/p/dist/link");
	list_is("none", "");
	list_is("p/dist", "p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty p/dist/link "
			  "p/dist/node_modules p/dist/node_modules/y.js");
	list_is("p/dist/**", "p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty p/dist/link "
			     "p/dist/node_modules p/dist/node_modules/y.js");
	list_is("p/dist p/dist/a !p/dist/node_modules !p/dist/*k",
		"p/dist p/dist/a p/dist/a/x.js p/dist/a-b p/dist/empty");
	list_is("p/*.js", "p/src.js");
	list_is("**/*.js", "p/dist/a/x.js p/src.js");
	list_is("p/dist/link", "p/dist/link");
	{
		struct qk_filehash *f = open_hash();
		struct qk_outputs o = outputs_of("p/dist/link/passwd");
		qk_autotree struct qk_tree t = { 0 };

		ck_assert_int_eq(qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &t, &err), -ELOOP);
		qk_outputs_release(&o);
		qk_filehash_free(f);
	}
}
END_TEST

/* --- store --- */

static char big[300001];

static void make_outputs(void)
{
	memset(big, 'b', sizeof(big) - 1);
	mkdir("w/dist", 0777);
	mkdir("w/dist/sub", 0777);
	mkdir("w/dist/empty", 0777);
	chmod("w/dist/empty", 0750);
	puts_in("w/dist/small", "small\n");
	puts_in("w/dist/none", "");
	put("w/dist/sub/tool", "#!/bin/sh\n", 10, 0755);
	put("w/dist/sub/big", big, sizeof(big) - 1, 0444);
	put("w/dist/odd \n\t\"\\$'\xff", "odd", 3, 0600);
	symlink("sub/tool", "w/dist/link");
	symlink("nowhere", "w/dist/dangling");
	chmod("w/dist/sub", 0555);
}

static void check_outputs(void)
{
	struct stat st;
	char text[32] = "";

	expect("w/dist/small", "small\n");
	expect("w/dist/none", "");
	expect("w/dist/sub/tool", "#!/bin/sh\n");
	expect("w/dist/sub/big", big);
	expect("w/dist/odd \n\t\"\\$'\xff", "odd");
	ck_assert_int_eq(readlink("w/dist/link", text, 31), 8);
	ck_assert_str_eq(text, "sub/tool");
	ck_assert_int_eq(readlink("w/dist/dangling", text, 31), 7);
	ck_assert(
		!stat("w/dist/empty", &st) && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0750);
	ck_assert(!stat("w/dist/sub", &st) && (st.st_mode & 07777) == 0555);
	ck_assert(!stat("w/dist/sub/tool", &st) && (st.st_mode & 07777) == 0755);
	ck_assert(!stat("w/dist/sub/big", &st) && (st.st_mode & 07777) == 0444);
	ck_assert(!stat("w/dist/odd \n\t\"\\$'\xff", &st) && (st.st_mode & 07777) == 0600);
	ck_assert_uint_eq(st.st_nlink, 1);
}

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

static int write_proc(const char *path, const char *text)
{
	qk_autofd int fd = open(path, O_WRONLY);

	return fd < 0 ? -1 : qk_write_all(fd, text, strlen(text));
}

/* A mount namespace with this user still being itself. */
static int own_mounts(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	qk_autofree char *uids = qk_asprintf("%u %u 1", uid, uid);
	qk_autofree char *gids = qk_asprintf("%u %u 1", gid, gid);

	if (!uid)
		return unshare(CLONE_NEWNS);
	if (unshare(CLONE_NEWNS | CLONE_NEWUSER))
		return -1;
	return write_proc("/proc/self/setgroups", "deny") ||
	       write_proc("/proc/self/uid_map", uids) || write_proc("/proc/self/gid_map", gids);
}

START_TEST(full_disk)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		qk_autofree char *cache = in_dir("cache");
		struct qk_store *s;

		mkdir(cache, 0777);
		if (own_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
			mount("none", cache, "tmpfs", 0, "size=256k"))
			_exit(77);
		s = open_store(0);
		make_outputs();
		if (store_outputs(s, "k", "dist", "") != -ENOSPC)
			_exit(1);
		if (has(s, "k"))
			_exit(2);
		/* What does not fit leaves nothing under a final name and no temporary. */
		qk_autostrv struct qk_strv left = { 0 };
		qk_autofree char *glob = in_dir("cache/v1/{tmp,blobs/*,entries/*}/*");

		if (qk_glob_walk(glob, &left, &err) || left.n)
			_exit(3);
		/* And what fits goes on being stored. */
		if (store_outputs(s, "small", "dist/small", "") || !has(s, "small"))
			_exit(4);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		fprintf(stderr, "SKIP full_disk: no mount namespace to be had here\n");
		return;
	}
	ck_assert_int_eq(status, 0);
}
END_TEST

/*
 * Kills a storing process right before its n-th system call, for every n: a seccomp filter hands
 * all its system calls to us, and we count.
 */
static int listen_to_self(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static void send_fd(int sock, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (fd < 0)
		m.msg_controllen = 0;
	if (sendmsg(sock, &m, 0) != 1)
		abort();
}

static int receive_fd(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* True if the child was killed at its n-th call; false if it was done before. -1: no listener. */
static int kill_at(int n, void (*work)(void))
{
	int sock[2], listener, status, calls = 0;
	pid_t pid;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sock), 0);
	pid = fork();
	if (!pid) {
		close(sock[0]);
		send_fd(sock[1], listen_to_self());
		work();
		syscall(SYS_exit_group, 0);
	}
	close(sock[1]);
	listener = receive_fd(sock[0]);
	close(sock[0]);
	while (listener >= 0) {
		struct pollfd p = { listener, POLLIN, 0 };
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { 0 };

		if (poll(&p, 1, -1) < 1 || !(p.revents & POLLIN))
			break;
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			break;
		if (++calls == n) {
			kill(pid, SIGKILL);
			break;
		}
		answer.id = call.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	waitpid(pid, &status, 0);
	if (listener < 0)
		return -1;
	close(listener);
	ck_assert(WIFSIGNALED(status) || status == 0);
	return WIFSIGNALED(status);
}

static void work_store(void)
{
	struct qk_store *s = open_store(0);

	if (store_outputs(s, "k", "dist", big))
		abort();
}

START_TEST(killed_at_every_system_call)
{
	int kills = 0, hits = 0;

	make_outputs();
	for (int n = 1;; n++) {
		struct qk_store *s;
		int r;

		qk_remove_tree(AT_FDCWD, "cache");
		r = kill_at(n, work_store);
		if (r < 0) {
			fprintf(stderr,
				"SKIP killed_at_every_system_call: no seccomp listener here\n");
			return;
		}
		if (!r)
			break;
		kills++;
		s = open_store(0);
		if (has(s, "k")) {
			hits++;
			qk_remove_tree(AT_FDCWD, "w/dist");
			ck_assert_int_eq(restore(s, "k", "dist"), QK_RESTORED_WRITTEN);
			check_outputs();
		}
		/* And the next one stores and prunes as if nothing had been. */
		ck_assert_int_eq(qk_store_prune(s, 0, NULL, &err), 0);
		ck_assert_int_eq(store_outputs(s, "k", "dist", big), 0);
		ck_assert(has(s, "k"));
		qk_store_free(s);
	}
	ck_assert_int_gt(kills, 60);
	ck_assert_int_gt(hits, 0);
	ck_assert_int_lt(hits, kills / 2);
}
END_TEST

static void work_restore(void)
{
	struct qk_store *s = open_store(0);

	if (restore(s, "k", "dist") != QK_RESTORED_WRITTEN)
		abort();
}

START_TEST(killed_while_restoring)
{
	struct qk_store *s = open_store(0);
	int kills = 0, written = 0;

	make_outputs();
	ck_assert_int_eq(store_outputs(s, "k", "dist", ""), 0);
	for (int n = 1;; n++) {
		struct stat st;
		int r;

		qk_remove_tree(AT_FDCWD, "w/dist");
		mkdir("w/dist", 0777);
		puts_in("w/dist/small", "old");
		r = kill_at(n, work_restore);
		if (r < 0) {
			fprintf(stderr, "SKIP killed_while_restoring: no seccomp listener here\n");
			return;
		}
		if (!r)
			break;
		kills++;
		/* Whatever has its name has all its bytes. */
		if (!lstat("w/dist/sub/big", &st))
			ck_assert_int_eq(st.st_size, sizeof(big) - 1);
		if (!lstat("w/dist/small", &st))
			ck_assert(st.st_size == 3 || st.st_size == 6);
		r = restore(s, "k", "dist");
		ck_assert(r == QK_RESTORED_WRITTEN || r == QK_RESTORED_IN_PLACE);
		written += r == QK_RESTORED_WRITTEN;
		check_outputs();
	}
	ck_assert_int_gt(kills, 60);
	ck_assert_int_gt(written, kills / 2);
	qk_store_free(s);
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
	tcase_add_test(t, capture_replays_in_order);
	tcase_add_test(t, damaged_capture_is_refused);
	tcase_add_loop_test(t, match, 0, sizeof(match_table) / sizeof(*match_table));
	tcase_add_test(t, outputs_stay_in_the_workspace);
	tcase_add_test(t, list);
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
	tcase_add_test(t, full_disk);
	tcase_add_test(t, killed_at_every_system_call);
	tcase_add_test(t, killed_while_restoring);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
