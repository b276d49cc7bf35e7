#include "base/buf.h"
#include "base/path.h"
#include "base/record.h"
#include "base/vec.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* buf */

START_TEST(buf_is_always_a_string)
{
	struct qk_buf b = QK_BUF_INIT;
	char *s;

	ck_assert_str_eq(b.s, "");
	qk_buf_reset(&b);
	qk_buf_add(&b, NULL, 0);
	ck_assert_uint_eq(b.cap, 0); /* nothing was put in: nothing was allocated */
	qk_buf_addstr(&b, "ab");
	qk_buf_addch(&b, 'c');
	qk_buf_addf(&b, "%d%s", 42, "");
	ck_assert_str_eq(b.s, "abc42");
	qk_buf_truncate(&b, 2);
	ck_assert_str_eq(b.s, "ab");
	qk_buf_add(&b, "\0x", 2);
	ck_assert_uint_eq(b.len, 4);
	ck_assert_mem_eq(b.s, "ab\0x", 5);
	s = qk_buf_detach(&b);
	ck_assert_mem_eq(s, "ab\0x", 5);
	free(s);
	ck_assert_str_eq(b.s, "");
	s = qk_buf_detach(&b); /* of an empty one: still the caller's to free */
	ck_assert_str_eq(s, "");
	free(s);
	qk_buf_release(&b);
}
END_TEST

START_TEST(buf_grows_over_every_boundary)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, f = QK_BUF_INIT;

	for (int i = 0; i < 3000; i++) {
		qk_buf_addch(&b, (char)('a' + i % 26));
		qk_buf_reset(&f);
		qk_buf_addf(&f, "%s", b.s);
		ck_assert_uint_eq(f.len, (size_t)i + 1);
		ck_assert_int_eq(b.s[b.len], '\0');
	}
	ck_assert_str_eq(b.s, f.s);
}
END_TEST

/* vec */

START_TEST(strv_split_sort_uniq)
{
	qk_autostrv struct qk_strv sv = { 0 };
	static const char *const sorted[] = { "\xff", "a", "b", "b/c" };

	qk_strv_sort(&sv);
	qk_strv_uniq(&sv);
	qk_strv_split(&sv, "  b a\tb/c\n\xff  a\r\n");
	ck_assert_uint_eq(sv.n, 5);
	ck_assert_ptr_null(sv.v[sv.n]);
	ck_assert(qk_strv_has(&sv, "b/c") && !qk_strv_has(&sv, "c") && !qk_strv_has(&sv, ""));
	qk_strv_sort(&sv);
	qk_strv_uniq(&sv);
	ck_assert_uint_eq(sv.n, 4);
	ck_assert_ptr_null(sv.v[sv.n]);
	ck_assert_str_eq(sv.v[3], sorted[0]); /* bytewise: 0xff comes last */
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(sv.v[i], sorted[i + 1]);
	qk_strv_split(&sv, " \t\n");
	ck_assert_uint_eq(sv.n, 4);
}
END_TEST

/* path */

static const struct {
	const char *base, *path, *clean;
} cleaned[] = {
	{ "/w", "a", "/w/a" },
	{ "/w", "./a/./b/", "/w/a/b" },
	{ "/w", "a//b", "/w/a/b" },
	{ "/w", "", "/w" },
	{ "/w", ".", "/w" },
	{ "/w", "..", "/" },
	{ "/w", "../..", "/" },
	{ "/w", "../../a", "/a" },
	{ "/w/x", "../y/../z", "/w/z" },
	{ "/w", "/a/../b", "/b" },
	{ "/w", "/", "/" },
	{ "/w", "//", "/" },
	{ "/", "a", "/a" },
	{ "/", "..", "/" },
	{ "/w", "...", "/w/..." },
	{ "/w", "..a/.b", "/w/..a/.b" },
	{ "/w", "a/..", "/w" },
};

START_TEST(path_clean)
{
	qk_autofree char *got = qk_path_join(cleaned[_i].base, cleaned[_i].path);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	ck_assert_str_eq(got, cleaned[_i].clean);
	/* what stood in the buffer before is no part of the path */
	qk_buf_addstr(&b, "x/y");
	qk_path_clean(&b, cleaned[_i].base, cleaned[_i].path);
	ck_assert_str_eq(b.s + 3, cleaned[_i].clean);
	/* cleaning is idempotent */
	qk_buf_reset(&b);
	qk_path_clean(&b, "/", got);
	ck_assert_str_eq(b.s, got);
}
END_TEST

static const struct {
	const char *from, *path, *relative;
} relatives[] = {
	{ "/w", "/w/a", "a" },
	{ "/w", "/w", "." },
	{ "/w", "/", ".." },
	{ "/w/a", "/", "../.." },
	{ "/", "/", "." },
	{ "/", "/a/b", "a/b" },
	{ "/w/a", "/w/b/c", "../b/c" },
	{ "/w/a", "/w/ab", "../ab" },
	{ "/w/ab", "/w/a", "../a" },
	{ "/w/a/b", "/w/a", ".." },
	{ "/w/a/b/c", "/x", "../../../../x" },
};

START_TEST(path_relative)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autofree char *back = NULL;

	qk_buf_addstr(&b, "=");
	qk_path_relative(&b, relatives[_i].from, relatives[_i].path);
	ck_assert_str_eq(b.s + 1, relatives[_i].relative);
	back = qk_path_join(relatives[_i].from, b.s + 1);
	ck_assert_str_eq(back, relatives[_i].path);
}
END_TEST

START_TEST(path_under)
{
	ck_assert(qk_path_under("/w/a", "/w") && qk_path_under("/w", "/w"));
	ck_assert(qk_path_under("/w", "/") && qk_path_under("/", "/"));
	ck_assert(!qk_path_under("/wa", "/w") && !qk_path_under("/", "/w") && !qk_path_under("/w", "/w/a"));
	ck_assert_str_eq(qk_path_below("/w/a/b", "/w"), "a/b");
	ck_assert_str_eq(qk_path_below("/w", "/w"), "");
	ck_assert_str_eq(qk_path_below("/w", "/"), "w");
	ck_assert_str_eq(qk_path_base("/w/a"), "a");
	ck_assert_str_eq(qk_path_base("a"), "a");
	ck_assert_uint_eq(qk_path_dirlen("/a/b"), 2);
	ck_assert_uint_eq(qk_path_dirlen("/a"), 1);
	ck_assert_uint_eq(qk_path_dirlen("a"), 0);
}
END_TEST

/* record */

static void two_records(struct qk_buf *b)
{
	size_t begin = qk_record_begin(b);

	qk_record_putstr(b, 1, "magic");
	qk_record_putnum(b, 7, UINT64_C(0x0123456789abcdef));
	qk_record_put(b, 65535, "\0\n", 2);
	qk_record_end(b, begin);
	begin = qk_record_begin(b);
	qk_record_putstr(b, 2, "");
	qk_record_end(b, begin);
}

START_TEST(record_layout)
{
	static const char bytes[] = "\x21\0\0\0"
				    "\1\0\5\0\0\0magic"
				    "\7\0\x08\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01"
				    "\xff\xff\2\0\0\0\0\n";
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record r;
	struct qk_field f;
	size_t pos = 0;

	two_records(&b);
	ck_assert_uint_eq(b.len, sizeof(bytes) - 1 + 4 + 6);
	ck_assert_mem_eq(b.s, bytes, sizeof(bytes) - 1);
	ck_assert_int_eq(qk_record_next(b.s, b.len, &pos, &r), 1);
	ck_assert_int_eq(qk_field_next(&r, &f), 1);
	ck_assert(f.tag == 1 && qk_field_is(&f, "magic") && !qk_field_is(&f, "magi"));
	ck_assert_uint_eq(qk_field_num(&f), 0); /* five bytes are no number */
	ck_assert_int_eq(qk_field_next(&r, &f), 1);
	ck_assert_uint_eq(qk_field_num(&f), UINT64_C(0x0123456789abcdef));
	ck_assert_int_eq(qk_field_next(&r, &f), 1);
	ck_assert(f.tag == 65535 && f.n == 2 && !memcmp(f.p, "\0\n", 2));
	ck_assert_int_eq(qk_field_next(&r, &f), 0);
	ck_assert_int_eq(qk_record_next(b.s, b.len, &pos, &r), 1);
	ck_assert(qk_field_next(&r, &f) == 1 && f.tag == 2 && !f.n && qk_field_is(&f, ""));
	ck_assert_int_eq(qk_record_next(b.s, b.len, &pos, &r), 0);
}
END_TEST

/* Reads all; -EBADMSG, or the number of fields. Never looks past n (the copy ends there). */
static int walk(const char *p, size_t n)
{
	qk_autofree char *copy = qk_alloc(n);
	struct qk_record r;
	struct qk_field f;
	size_t pos = 0;
	int more, fields = 0, some;

	memcpy(copy, p, n);
	while ((more = qk_record_next(copy, n, &pos, &r)) > 0) {
		while ((some = qk_field_next(&r, &f)) > 0)
			fields++;
		if (some)
			return some;
		ck_assert(pos <= n);
	}
	return more ? more : fields;
}

START_TEST(record_cut_anywhere)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t first;

	two_records(&b);
	first = b.len - 10;
	for (size_t n = 0; n <= b.len; n++)
		ck_assert_int_eq(walk(b.s, n), !n ? 0 : n == first ? 3 : n == b.len ? 4 : -EBADMSG);
}
END_TEST

START_TEST(record_any_byte_damaged)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	two_records(&b);
	for (size_t i = 0; i < b.len; i++) {
		for (int v = 0; v < 256; v++) {
			char was = b.s[i];
			int r;

			b.s[i] = (char)v;
			r = walk(b.s, b.len); /* must stay inside, whatever it makes of it */
			ck_assert(r == -EBADMSG || r >= 0);
			b.s[i] = was;
		}
	}
	memset(b.s, 0xff, 4); /* a length past every limit */
	ck_assert_int_eq(walk(b.s, b.len), -EBADMSG);
}
END_TEST

/* mem */

START_TEST(arena)
{
	struct qk_arena a = { 0 };
	char *small = qk_arena_strdup(&a, "small"), *large = qk_arena_alloc(&a, 1 << 20);

	for (size_t i = 0; i < 1 << 20; i++)
		ck_assert_int_eq(large[i], 0);
	memset(large, 'x', 1 << 20);
	for (int i = 0; i < 20000; i++) {
		char *s = qk_arena_printf(&a, "%d", i);

		ck_assert_uint_eq((uintptr_t)s % _Alignof(max_align_t), 0);
		ck_assert_int_eq(atoi(s), i);
	}
	ck_assert_str_eq(small, "small");
	qk_arena_release(&a);
	ck_assert_ptr_null(a.head);
	qk_arena_release(&a);
}
END_TEST

/* err */

START_TEST(errors)
{
	struct qk_err err = QK_ERR_INIT;
	qk_autofree char *longer = qk_alloc(3000);

	ck_assert_int_eq(qk_fail(&err, ENOENT, "open '%s'", "x"), -ENOENT);
	ck_assert_str_eq(err.msg, "open 'x': No such file or directory");
	ck_assert_int_eq(qk_wrap(&err, "restoring '%s'", "t"), -ENOENT);
	ck_assert_str_eq(err.msg, "restoring 't': open 'x': No such file or directory");
	ck_assert_int_eq(qk_fail(&err, -EINVAL, "plain"), -EINVAL);
	ck_assert_str_eq(err.msg, "plain");
	ck_assert_int_eq(qk_fail(NULL, -EINVAL, "plain"), -EINVAL);
	ck_assert_int_lt(qk_fail(&err, 0, "no errno at all"), 0);
	memset(longer, 'y', 2999);
	longer[2999] = '\0';
	ck_assert_int_eq(qk_fail(&err, EPERM, "%s", longer), -EPERM);
	ck_assert_uint_eq(strlen(err.msg), sizeof(err.msg) - 1);
	ck_assert_int_eq(qk_wrap(&err, "%s", longer), -EPERM);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("base");
	TCase *tc = tcase_create("base");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_test(tc, buf_is_always_a_string);
	tcase_add_test(tc, buf_grows_over_every_boundary);
	tcase_add_test(tc, strv_split_sort_uniq);
	tcase_add_loop_test(tc, path_clean, 0, COUNT(cleaned));
	tcase_add_loop_test(tc, path_relative, 0, COUNT(relatives));
	tcase_add_test(tc, path_under);
	tcase_add_test(tc, record_layout);
	tcase_add_test(tc, record_cut_anywhere);
	tcase_add_test(tc, record_any_byte_damaged);
	tcase_add_test(tc, arena);
	tcase_add_test(tc, errors);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
