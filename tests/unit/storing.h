/*
 * A store and a workspace under /tmp for the tests of both: files are put, outputs stored under a key
 * of a name, and restored.
 */
#ifndef QK_TESTS_STORING_H
#define QK_TESTS_STORING_H

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

static inline void setup(void)
{
	strcpy(dir, "/tmp/qk-store-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	ck_assert_int_eq(mkdir("w", 0777) | mkdir("w/.qk", 0777) | mkdir("stage", 0777), 0);
	umask(022);
}

static inline void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	qk_remove_tree(AT_FDCWD, dir);
}

static inline char *in_dir(const char *name)
{
	return qk_asprintf("%s/%s", dir, name);
}

static inline void put(const char *path, const char *text, size_t n, mode_t mode)
{
	int fd;

	chmod(path, 0600);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert_msg(fd >= 0, "%s", path);
	ck_assert_int_eq(qk_write_all(fd, text, n), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static inline void puts_in(const char *path, const char *text)
{
	put(path, text, strlen(text), 0644);
}

static inline void expect(const char *path, const char *text)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_msg(!qk_read_file(AT_FDCWD, path, 1 << 24, &b, &err), "%s", err.msg);
	ck_assert_str_eq(b.s, text);
}

static inline bool there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static inline struct qk_store *open_store(uint64_t limit)
{
	qk_autofree char *path = in_dir("cache");
	struct qk_store *s;

	ck_assert_msg(!qk_store_new(&s, path, limit, &err), "%s", err.msg);
	return s;
}

static inline struct qk_filehash *open_hash(void)
{
	qk_autofree char *root = in_dir("w");
	struct qk_filehash *f;

	ck_assert_int_eq(qk_filehash_new(&f, root, ".qk/digests", &err), 0);
	return f;
}

static inline struct qk_digest key_of(const char *s)
{
	struct qk_digest d;

	qk_digest_bytes(s, strlen(s), &d);
	return d;
}

static inline struct qk_outputs outputs_of(const char *globs)
{
	qk_autostrv struct qk_strv words = { 0 };
	struct qk_outputs o = { 0 };

	qk_strv_split(&words, globs);
	for (size_t i = 0; i < words.n; i++)
		ck_assert_int_eq(qk_outputs_add(&o, words.v[i], &err), 0);
	return o;
}

static inline int store_outputs(
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

static inline int get(struct qk_store *s, const char *key, struct qk_entry *e)
{
	struct qk_digest k = key_of(key);

	return qk_store_get(s, &k, e, &err);
}

static inline bool has(struct qk_store *s, const char *key)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	int r = get(s, key, &e);

	ck_assert_int_ge(r, 0);
	return r;
}

/* Restores and says how; -1 if there is no such entry. */
static inline int restore(struct qk_store *s, const char *key, const char *globs)
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


static char big[300001];

static inline void make_outputs(void)
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

static inline void check_outputs(void)
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

#endif
