#include "base/fdio.h"
#include "base/mem.h"
#include "keying/taskstate.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/qk-taskstate-XXXXXX";
static char path[64];

static void make_dir(void)
{
	strcpy(dir, "/tmp/qk-taskstate-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tasks", dir);
}

static void remove_dir(void)
{
	qk_remove_tree(AT_FDCWD, dir);
}

static void append(const char *id, unsigned char key, bool good)
{
	struct qk_taskstate s = { .id = id, .run = "r1", .has_key = true, .good = good };

	s.key.b[0] = key;
	ck_assert_int_eq(qk_taskstate_append(path, &s), 0);
}

START_TEST(last_counts)
{
	struct qk_taskstates *all;
	const struct qk_taskstate *s;

	append("a:b", 1, true);
	append("a:c", 2, false);
	append("a:b", 3, true);
	all = qk_taskstates_new(path);
	s = qk_taskstates_find(all, "a:b");
	ck_assert_uint_eq(s->key.b[0], 3);
	ck_assert(s->good && s->has_key && !s->has_outputs);
	ck_assert(!qk_taskstates_find(all, "a:c")->good);
	ck_assert_ptr_null(qk_taskstates_find(all, "a:d"));
	append("a:d", 4, true);
	ck_assert_ptr_null(qk_taskstates_find(all, "a:d"));
	qk_taskstates_refresh(all);
	ck_assert_uint_eq(qk_taskstates_find(all, "a:d")->key.b[0], 4);
	qk_taskstates_free(all);
}
END_TEST

START_TEST(moved_is_counted)
{
	struct qk_taskstate s = { .id = "a:b", .run = "r", .moved = true };
	struct qk_taskstates *all = qk_taskstates_new(path);

	ck_assert_uint_eq(qk_taskstates_moved(all), 0);
	ck_assert_int_eq(qk_taskstate_append(path, &s), 0);
	qk_taskstates_refresh(all);
	ck_assert_uint_eq(qk_taskstates_moved(all), 1);
	qk_taskstates_free(all);
}
END_TEST

/* A record cut short, and anything else that is no record, costs what follows it and nothing more. */
START_TEST(damaged)
{
	struct qk_taskstates *all;
	struct stat st;
	int fd;

	append("a:b", 1, true);
	append("a:c", 2, true);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size - 3), 0);
	all = qk_taskstates_new(path);
	ck_assert_ptr_nonnull(qk_taskstates_find(all, "a:b"));
	ck_assert_ptr_null(qk_taskstates_find(all, "a:c"));
	/* the file was mended: what comes now is found */
	append("a:c", 5, true);
	qk_taskstates_refresh(all);
	ck_assert_uint_eq(qk_taskstates_find(all, "a:c")->key.b[0], 5);
	qk_taskstates_free(all);
	fd = open(path, O_WRONLY | O_TRUNC);
	ck_assert_int_eq(write(fd, "another file", 12), 12);
	close(fd);
	all = qk_taskstates_new(path);
	ck_assert_ptr_null(qk_taskstates_find(all, "a:b"));
	append("a:b", 6, true);
	qk_taskstates_refresh(all);
	ck_assert_uint_eq(qk_taskstates_find(all, "a:b")->key.b[0], 6);
	qk_taskstates_free(all);
}
END_TEST

START_TEST(written_anew_when_mostly_outdated)
{
	struct qk_taskstates *all, *other;
	struct stat before, after;

	for (int i = 0; i < 1200; i++)
		append(i % 2 ? "a:b" : "a:c", (unsigned char)i, true);
	ck_assert_int_eq(stat(path, &before), 0);
	other = qk_taskstates_new("/nonexistent/tasks");
	ck_assert_ptr_null(qk_taskstates_find(other, "a:b"));
	qk_taskstates_free(other);
	all = qk_taskstates_new(path);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_lt(after.st_size, before.st_size / 100);
	ck_assert_uint_eq(qk_taskstates_find(all, "a:b")->key.b[0], 1199 % 256);
	/* whoever has the old file open finds the new one */
	append("a:e", 9, true);
	qk_taskstates_refresh(all);
	ck_assert_ptr_nonnull(qk_taskstates_find(all, "a:e"));
	qk_taskstates_free(all);
}
END_TEST

START_TEST(many_writers)
{
	struct qk_taskstates *all;
	int status;

	for (int p = 0; p < 8; p++)
		if (!fork()) {
			for (int i = 0; i < 100; i++) {
				qk_autofree char *id = qk_asprintf("p%d:%d", p, i);

				append(id, (unsigned char)p, true);
			}
			_exit(0);
		}
	while (wait(&status) > 0)
		ck_assert_int_eq(status, 0);
	all = qk_taskstates_new(path);
	for (int p = 0; p < 8; p++)
		for (int i = 0; i < 100; i++) {
			qk_autofree char *id = qk_asprintf("p%d:%d", p, i);

			ck_assert_ptr_nonnull(qk_taskstates_find(all, id));
		}
	qk_taskstates_free(all);
}
END_TEST

START_TEST(exact_tells_modes)
{
	qk_autotree struct qk_tree a = { 0 }, b = { 0 };
	struct qk_digest x, y;

	qk_tree_add(&a, "f")->kind = QK_FILE_REGULAR;
	qk_tree_add(&b, "f")->kind = QK_FILE_REGULAR;
	a.v[0].mode = b.v[0].mode = 0644;
	qk_taskstate_exact(&a, &x);
	qk_taskstate_exact(&b, &y);
	ck_assert(qk_digest_eq(&x, &y));
	b.v[0].mode = 0640;
	qk_taskstate_exact(&b, &y);
	ck_assert(!qk_digest_eq(&x, &y));
	b.v[0].mode = 0644;
	b.v[0].content.b[3] = 1;
	qk_taskstate_exact(&b, &y);
	ck_assert(!qk_digest_eq(&x, &y));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("taskstate");
	TCase *c = tcase_create("taskstate");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(c, make_dir, remove_dir);
	tcase_add_test(c, last_counts);
	tcase_add_test(c, moved_is_counted);
	tcase_add_test(c, damaged);
	tcase_add_test(c, written_anew_when_mostly_outdated);
	tcase_add_test(c, many_writers);
	tcase_add_test(c, exact_tells_modes);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
