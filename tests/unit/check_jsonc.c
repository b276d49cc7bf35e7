#include "base/fdio.h"
#include "keying/jsonc.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct qk_arena arena;

static void release(void)
{
	qk_arena_release(&arena);
}

static const struct qk_json *parse(const char *text)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v = NULL;

	ck_assert_msg(!qk_json_parse(&arena, "t.json", text, strlen(text), &v, NULL, &err),
		"%s: %s", text, err.msg);
	return v;
}

/* What is read, written again without blanks. */
static const struct {
	const char *text, *again;
} good[] = {
	{ "null", "null" },
	{ " [ ] ", "[]" },
	{ "{}", "{}" },
	{ "[1, -0, 1.5e+3, 0.1]", "[1,-0,1.5e+3,0.1]" },
	{ "[true, false, null]", "[true,false,null]" },
	{ "{\"a\": {\"b\": [\"c\"]}}", "{\"a\":{\"b\":[\"c\"]}}" },
	/* beyond JSON */
	{ "\xef\xbb\xbf[1]", "[1]" },
	{ "// c\n[1, /* , */ 2,]", "[1,2]" },
	{ "/**/{\"a\":1,}//", "{\"a\":1}" },
	{ "[\"//\", \"/*\"] /* ** / **/", "[\"//\",\"/*\"]" },
	{ "[1\r\n,\t2]", "[1,2]" },
	/* strings */
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "\"\\u0041\\u00e9\\u20ac\\uD83D\\uDE00\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "\"x\\ud83dy\"", "\"x\xef\xbf\xbdy\"" },
	{ "\"\\ude00\\u0041\"", "\"\xef\xbf\xbd"
				"A\"" },
	{ "\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
				"A\"" },
	{ "\"\\u001f\x7f\"", "\"\\u001f\x7f\"" },
	{ "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\"", "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\"" },
	/* the last of equal keys, in the place of the first */
	{ "{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}" },
	{ "{\"a\":1,\"a\":2,\"a\":3}", "{\"a\":3}" },
	{ "{\"\":1}", "{\"\":1}" },
};

START_TEST(reads)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_write(&b, parse(good[_i].text), false);
	ck_assert_str_eq(b.s, good[_i].again);
}
END_TEST

static const struct {
	const char *text, *message;
} bad[] = {
	{ "", "t.json:1:1: expected a value, but the file ends" },
	{ "// only", "t.json:1:8: expected a value, but the file ends" },
	{ "{\n  \"a\": 1\n  \"b\": 2\n}", "t.json:3:3: expected ',' or '}'" },
	{ "[1 2]", "t.json:1:4: expected ',' or ']'" },
	{ "[1,,2]", "t.json:1:4: expected a value" },
	{ "[,]", "t.json:1:2: expected a value" },
	{ "{,}", "t.json:1:2: expected a key in double quotes" },
	{ "{\"a\" 1}", "t.json:1:6: expected ':'" },
	{ "{\"a\":}", "t.json:1:6: expected a value" },
	{ "{a:1}", "t.json:1:2: expected a key in double quotes" },
	{ "{'a':1}", "t.json:1:2: expected a key in double quotes" },
	{ "[1", "t.json:1:3: expected ',' or ']', but the file ends" },
	{ "{\"a\":1", "t.json:1:7: expected ',' or '}', but the file ends" },
	{ "[1]]", "t.json:1:4: expected the end of the file" },
	{ "\"abc", "t.json:1:1: a string that does not end" },
	{ "[\"abc\n\"]", "t.json:1:2: a string that does not end" },
	{ "\"\\", "t.json:1:2: a string that does not end" },
	{ "\"\\x\"", "t.json:1:2: an unknown escape in a string" },
	{ "\"\\u12g4\"", "t.json:1:2: expected four hexadecimal digits behind \\u" },
	{ "\"\\u12", "t.json:1:2: expected four hexadecimal digits behind \\u" },
	{ "\"\\u0000\"", "t.json:1:2: a NUL character in a string" },
	{ "\"a\tb\"", "t.json:1:3: a control character (0x09) in a string" },
	{ "\n [\"\xff\"]", "t.json:2:4: byte 0xff is not UTF-8" },
	{ "\"\xc3\"", "t.json:1:2: byte 0xc3 is not UTF-8" },
	{ "\"\xc0\x80\"", "t.json:1:2: byte 0xc0 is not UTF-8" },
	{ "\"\xed\xa0\x80\"", "t.json:1:2: byte 0xed is not UTF-8" },
	{ "\"\xf4\x90\x80\x80\"", "t.json:1:2: byte 0xf4 is not UTF-8" },
	{ "\xff", "t.json:1:1: expected a value, not byte 0xff" },
	{ "01", "t.json:1:1: not a number" },
	{ "-", "t.json:1:1: not a number" },
	{ "1.", "t.json:1:1: not a number" },
	{ "1e", "t.json:1:1: not a number" },
	{ "tru", "t.json:1:1: expected a value" },
	{ "truex", "t.json:1:5: expected the end of the file" },
	{ "[1, /* x\n\n", "t.json:1:5: a comment that does not end" },
	{ "[1 /", "t.json:1:4: expected ',' or ']'" },
	{ "/* a\n b */ {\n/**/]", "t.json:3:5: expected a key in double quotes" },
};

START_TEST(refuses)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v = NULL;

	ck_assert_int_eq(
		qk_json_parse(&arena, "t.json", bad[_i].text, strlen(bad[_i].text), &v, NULL, &err),
		-EINVAL);
	ck_assert_str_eq(err.msg, bad[_i].message);
	ck_assert_ptr_null(v);
}
END_TEST

/* Every beginning of a good document is refused, and no byte of it is read past its end. */
START_TEST(cut_short)
{
	static const char text[] =
		"{\"a\":[1,{\"b\":\"\\u0041\\n\xc3\xa9\"}],/* c */\"d\":-1.5e3,\"e\":null}";

	for (size_t n = 0; n + 1 < sizeof(text); n++) {
		qk_autofree char *copy = qk_alloc(n);
		const struct qk_json *v = NULL;

		memcpy(copy, text, n);
		ck_assert_int_eq(qk_json_parse(&arena, "t", copy, n, &v, NULL, NULL), -EINVAL);
	}
}
END_TEST

START_TEST(places)
{
	const struct qk_json *v = parse("{\n  \"a\": [1,\n\t\"x\"],\n \"b\" : {}}");
	const struct qk_json_member *a = qk_json_member(v, "a");

	ck_assert_uint_eq(a->line, 2);
	ck_assert_uint_eq(a->column, 3);
	ck_assert_uint_eq(a->value->line, 2);
	ck_assert_uint_eq(a->value->column, 8);
	ck_assert_uint_eq(a->value->items[1]->line, 3);
	ck_assert_uint_eq(a->value->items[1]->column, 2);
	ck_assert_str_eq(qk_json_place(&arena, qk_json_get(v, "b")), "t.json:4:8");
}
END_TEST

START_TEST(repeats)
{
	static const char text[] = "{\"a\":1,\n\"b\":{\"c\":1,\"c\":2},\n\"a\":3}";
	const struct qk_json_repeat *rep = NULL;
	const struct qk_json *v;

	ck_assert_int_eq(qk_json_parse(&arena, "t.json", text, strlen(text), &v, &rep, NULL), 0);
	ck_assert_str_eq(rep->key, "a");
	ck_assert_uint_eq(rep->line, 3);
	ck_assert_uint_eq(rep->column, 1);
	ck_assert_str_eq(rep->next->key, "c");
	ck_assert_ptr_null(rep->next->next);
}
END_TEST

/* The same in an object large enough to be sorted for it. */
START_TEST(many_repeats)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const struct qk_json_repeat *rep = NULL;
	const struct qk_json *v;
	size_t n = 0;

	qk_buf_addch(&b, '{');
	for (int i = 0; i < 3000; i++)
		qk_buf_addf(&b, "\"k%d\":%d,", i % 1000, i);
	qk_buf_addch(&b, '}');
	ck_assert_int_eq(qk_json_parse(&arena, "t.json", b.s, b.len, &v, &rep, NULL), 0);
	ck_assert_uint_eq(v->n, 1000);
	for (int i = 0; i < 1000; i++) {
		qk_autofree char *want = qk_asprintf("%d", i + 2000);

		ck_assert_str_eq(v->members[i].value->s, want);
	}
	for (; rep; rep = rep->next)
		n++;
	ck_assert_uint_eq(n, 2000);
}
END_TEST

START_TEST(depth)
{
	char text[2 * QK_JSON_DEPTH_MAX + 3];
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v;

	memset(text, '[', QK_JSON_DEPTH_MAX);
	memset(text + QK_JSON_DEPTH_MAX, ']', QK_JSON_DEPTH_MAX);
	ck_assert_int_eq(
		qk_json_parse(&arena, "t.json", text, 2 * QK_JSON_DEPTH_MAX, &v, NULL, &err), 0);
	memset(text, '[', QK_JSON_DEPTH_MAX + 1);
	ck_assert_int_eq(
		qk_json_parse(&arena, "t.json", text, sizeof(text) - 1, &v, NULL, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t.json:1:201: nested more than 200 deep");
}
END_TEST

START_TEST(too_large)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v;

	ck_assert_int_eq(
		qk_json_parse(&arena, "t.json", "", (size_t)QK_JSON_SIZE_MAX + 1, &v, NULL, &err),
		-EFBIG);
	ck_assert_str_eq(err.msg, "t.json: larger than 100 MB");
}
END_TEST

/* 20 MB of the worst kinds: each would take minutes if anything were done twice. */
START_TEST(linear)
{
	enum { N = 10 * 1000 * 1000 };
	static const char *const units[] = { "[1],", "\"\\u0041\",", "/**/1,\n", "{\"a\":1}," };
	clock_t begin = clock();

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;
		struct qk_arena a = { 0 };
		const struct qk_json *v;

		qk_buf_addch(&b, '[');
		while (b.len < N / 4)
			qk_buf_addstr(&b, units[i]);
		qk_buf_addch(&b, ']');
		ck_assert_int_eq(qk_json_parse(&a, "t.json", b.s, b.len, &v, NULL, NULL), 0);
		qk_arena_release(&a);
	}
	{
		qk_autobuf struct qk_buf b = QK_BUF_INIT;
		const struct qk_json *v;

		qk_buf_addch(&b, '{');
		for (int i = 0; b.len < N; i++)
			qk_buf_addf(&b, "\"k%d\":1,", i);
		qk_buf_addch(&b, '}');
		ck_assert_int_eq(qk_json_parse(&arena, "t.json", b.s, b.len, &v, NULL, NULL), 0);
	}
	ck_assert(clock() - begin < 60 * CLOCKS_PER_SEC);
}
END_TEST

START_TEST(reads_files)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v = NULL;
	char path[] = "/tmp/qk-jsonc-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(qk_write_all(fd, "{\"a\":\n]", 7), 0);
	ck_assert_int_eq(qk_json_read(&arena, path, "nx.json", &v, NULL, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "nx.json:2:1: expected a value");
	ck_assert_int_eq(ftruncate(fd, (off_t)QK_JSON_SIZE_MAX + 1), 0);
	ck_assert_int_eq(qk_json_read(&arena, path, "nx.json", &v, NULL, &err), -EFBIG);
	ck_assert_str_eq(err.msg, "nx.json: larger than 100 MB");
	unlink(path);
	close(fd);
	ck_assert_int_eq(qk_json_read(&arena, path, "nx.json", &v, NULL, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "nx.json: No such file or directory");
}
END_TEST

START_TEST(typed_members)
{
	const struct qk_json *v =
		parse("{\"s\":\"x\",\"b\":true,\n\"a\":[\"y\",1],\"n\":null,\"o\":{}}");
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *got = NULL;
	const char *s = "unset";
	bool b = false;

	ck_assert_int_eq(qk_json_get_string(v, "s", &s, &err), 0);
	ck_assert_str_eq(s, "x");
	ck_assert_int_eq(qk_json_get_bool(v, "b", &b, &err), 0);
	ck_assert(b);
	s = "unset";
	ck_assert_int_eq(qk_json_get_string(v, "none", &s, &err), 0);
	ck_assert_int_eq(qk_json_get_string(v, "n", &s, &err), 0);
	ck_assert_str_eq(s, "unset");
	ck_assert_int_eq(qk_json_get_string(v, "b", &s, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t.json:1:14: \"b\" must be a string, not true or false");
	ck_assert_int_eq(qk_json_get_bool(v, "s", &b, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t.json:1:6: \"s\" must be true or false, not a string");
	ck_assert_int_eq(qk_json_get_array(v, "o", &got, &err), -EINVAL);
	ck_assert_int_eq(qk_json_get_object(v, "a", &got, &err), -EINVAL);
	ck_assert_ptr_null(got);
	ck_assert_int_eq(qk_json_get_object(v, "o", &got, &err), 0);
	ck_assert_uint_eq(got->type, QK_JSON_OBJECT);
	ck_assert_int_eq(qk_json_get_array(v, "a", &got, &err), 0);
	ck_assert_uint_eq(got->n, 2);
	ck_assert_int_eq(qk_json_get_strings(v, "a", &got, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t.json:2:10: \"a\" must hold strings, not a number");
	ck_assert_ptr_null(qk_json_get(NULL, "a"));
	ck_assert_ptr_null(qk_json_get(qk_json_get(v, "s"), "a"));
}
END_TEST

START_TEST(equality)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} t[] = {
		{ "{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1.0}", true },
		{ "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
		{ "{\"a\":1,\"b\":1}", "{\"a\":1,\"c\":1}", false },
		{ "[1,2]", "[2,1]", false },
		{ "[1]", "[1,1]", false },
		{ "\"1\"", "1", false },
		{ "true", "false", false },
		{ "null", "null", true },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		ck_assert_msg(
			qk_json_equal(parse(t[i].a), parse(t[i].b)) == t[i].equal, "%s", t[i].a);
	ck_assert(!qk_json_equal(parse("1"), NULL));
}
END_TEST

START_TEST(writes_sorted)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_write(&b, parse("{\"b\":{\"d\":1,\"c\":2},\"a\":[{\"f\":1,\"e\":2}]}"), true);
	ck_assert_str_eq(b.s, "{\"a\":[{\"e\":2,\"f\":1}],\"b\":{\"c\":2,\"d\":1}}");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jsonc");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, NULL, release);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, reads, 0, sizeof(good) / sizeof(*good));
	tcase_add_loop_test(tc, refuses, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(tc, cut_short);
	tcase_add_test(tc, places);
	tcase_add_test(tc, repeats);
	tcase_add_test(tc, many_repeats);
	tcase_add_test(tc, depth);
	tcase_add_test(tc, too_large);
	tcase_add_test(tc, linear);
	tcase_add_test(tc, reads_files);
	tcase_add_test(tc, typed_members);
	tcase_add_test(tc, equality);
	tcase_add_test(tc, writes_sorted);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
