/* A tree under /tmp for the fast lane's tests, with the probe as lane, and where the library lies. */
#ifndef QK_TESTS_LANED_H
#define QK_TESTS_LANED_H

#include "base/fdio.h"
#include "base/path.h"
#include "sandbox/fastlane-program.h"
#include "sandbox/fastlane.h"
#include "sandbox/run.h"
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char build[4096]; /* the directory that probes/ lies in */
static char *library, *root;

static inline void put(const char *path, const char *text, mode_t mode)
{
	ck_assert_int_eq(qk_write_file(path, text, strlen(text), mode, NULL), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
}

/* Copies a probe; false if it was not built here. */
static inline bool take_probe(const char *name, const char *to)
{
	qk_autofree char *from = qk_asprintf("%s/probes/%s", build, name);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (qk_read_file(AT_FDCWD, from, 1 << 26, &b, NULL))
		return false;
	ck_assert_int_eq(qk_write_file(to, b.s, b.len, 0755, NULL), 0);
	return true;
}

static inline void set_up(void)
{
	char made[] = "/tmp/qk-lane-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(made));
	ck_assert_int_eq(chmod(made, 0755), 0);
	root = realpath(made, NULL);
	ck_assert_int_eq(chdir(root), 0);
	put("a", "aaa\n", 0644);
	put("b", "bbb\n", 0644);
	put("plain-script", "cat \"$1\"\n", 0755);
	ck_assert(!mkdir("d", 0755));
	put("d/f", "f\n", 0644);
	ck_assert(!symlink("a", "k") && !symlink("d", "kd"));
	ck_assert(take_probe("lane", "lane"));
}

static inline void tear_down(void)
{
	ck_assert(!chdir("/") && !qk_remove_tree(AT_FDCWD, root));
	free(root);
}

/* Finds the library beside the test program; false, said aloud, where this host cannot use it. */
static inline bool find_library(const char *argv0)
{
	struct qk_lane_choice choice = { 0 };
	struct qk_err err = QK_ERR_INIT;
	enum qk_recorder_kind k;
	char why[256];

	if (!realpath(argv0, build))
		exit(2);
	*strrchr(build, '/') = '\0';
	library = qk_path_join(build, "../lib/qk/fastlane.so");
	choice.library = library;
	if (!qk_recorder_choose_lane("seccomp", &k, &choice, NULL, why, sizeof(why), &err) && choice.works)
		return true;
	fprintf(stderr, "skipped: %s%s\n", err.msg, choice.why);
	return false;
}

#endif
