/*
 * A workspace and an upper layer made by hand, so that every form overlayfs may leave is met on any
 * host. One test program includes this.
 */
#ifndef QK_TESTS_LAYERED_H
#define QK_TESTS_LAYERED_H

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/lift.h"
#include "sandbox/settle.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char top[] = "/tmp/check_settle.XXXXXX";
static char root[64], upper[64];
static struct qk_policy policy;
static struct qk_settled settled;
static struct qk_strv lifted;
static struct qk_err err;

/* Paths in the tests start with "w/" (workspace) or "u/" (upper layer). */
static const char *at(const char *path)
{
	static char full[4][512];
	static int turn;
	char *s = full[turn++ % 4];

	snprintf(s, sizeof(*full), "%s/%s", *path == 'w' ? root : upper, path + 2);
	return s;
}

static void put(const char *path, const char *text)
{
	qk_autofree char *dir = qk_strndup(at(path), qk_path_dirlen(at(path)));

	ck_assert_int_eq(qk_mkdirs(dir, NULL), 0);
	ck_assert_int_eq(qk_write_file(at(path), text, strlen(text), 0644, NULL), 0);
}

static void whiteout(const char *path)
{
	qk_autofree char *dir = qk_strndup(at(path), qk_path_dirlen(at(path)));

	ck_assert_int_eq(qk_mkdirs(dir, NULL), 0);
	ck_assert_int_eq(mknod(at(path), S_IFCHR | 0666, makedev(0, 0)), 0);
}

static void mark(const char *path, const char *name)
{
	ck_assert_int_eq(setxattr(at(path), name, "y", 1, 0), 0);
}

/* The contents of a file, "" if empty, NULL if there is no such file. */
static const char *text_of(const char *path)
{
	static struct qk_buf b = QK_BUF_INIT;

	qk_buf_reset(&b);
	return qk_read_file(AT_FDCWD, at(path), 1 << 20, &b, NULL) ? NULL : b.s;
}

static bool there(const char *path)
{
	struct stat st;

	return !lstat(at(path), &st);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(lstat(at(path), &st), 0);
	return st;
}

static void date(const char *path, time_t when)
{
	struct timespec t[2] = { { when, 0 }, { when, 5 } };

	ck_assert_int_eq(utimensat(AT_FDCWD, at(path), t, AT_SYMLINK_NOFOLLOW), 0);
}

static void output(const char *path, enum qk_scope scope)
{
	qk_policy_add(&policy, root, path, scope, QK_READ | QK_WRITE, QK_BY_OUTPUT);
}

static int settle(void)
{
	int lower_fd = open(root, O_PATH | O_DIRECTORY), upper_fd = open(upper, O_RDONLY), r;

	qk_policy_resolve(&policy);
	qk_settled_release(&settled);
	r = qk_settle(&policy, lower_fd, upper_fd, &lifted, &settled, &err);
	close(lower_fd);
	close(upper_fd);
	qk_strv_sort(&settled.stray);
	qk_strv_sort(&settled.applied);
	return r;
}

static void settle_well(void)
{
	int r = settle();

	ck_assert_msg(!r, "%s", err.msg);
}

static const char *joined(const struct qk_strv *v)
{
	static struct qk_buf b = QK_BUF_INIT;

	qk_buf_reset(&b);
	for (size_t i = 0; i < v->n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", qk_path_below(v->v[i], root));
	return b.s;
}

static void setup(void)
{
	char state[80];

	strcpy(top + strlen(top) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(root, sizeof(root), "%s/w", top);
	snprintf(upper, sizeof(upper), "%s/u", top);
	snprintf(state, sizeof(state), "%s/.qk", root);
	mkdir(root, 0755);
	mkdir(upper, 0755);
	qk_policy_init(&policy, root, state);
	output("out", QK_TREE);
	output("made.txt", QK_EXACT);
	output("build/obj/a.o", QK_EXACT);
}

static void teardown(void)
{
	qk_policy_release(&policy);
	qk_settled_release(&settled);
	qk_strv_release(&lifted);
	qk_remove_tree(AT_FDCWD, top);
}

#endif
