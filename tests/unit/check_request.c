#include "keying/request.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* Tags as keying/request.c has them: the layout is a format, and a test of it spells it out. */
enum { MAGIC = 1, MAKE_PID, PARENT_PID, PARENT_OFFSET, MODE, RECORDER, BACKEND, OFF, USES_MAKE, TARGET,
	CWD, ROOT, STATE, RUN, SHELL, MAKE, MAKEFILES, LISTS = 64 };

static struct qk_request sample(void)
{
	return (struct qk_request){
		.make_pid = 1234,
		.parent_pid = 12,
		.parent_offset = 99,
		.mode = QK_MODE_ENFORCE,
		.recorder = 2,
		.backend = 3,
		.off = true,
		.uses_make = true,
		.target = "out/a b\n\xff",
		.cwd = "/w/sub",
		.root = "/w",
		.state = "/w/.qk",
		.run = "/w/.qk/run/1",
		.shell = "/bin/bash -e",
		.make = "/usr/bin/make",
		.makefiles = "",
	};
}

static void write_sample(struct qk_buf *b)
{
	struct qk_request r = sample();

	for (int l = 0; l < QK_N_LISTS; l++)
		for (int i = 0; i < l; i++)
			qk_vec_push(&r.lists[l], l % 2 ? "odd" : "");
	qk_request_write(&r, b);
	for (int l = 0; l < QK_N_LISTS; l++)
		qk_vec_release(&r.lists[l]);
}

/* Reads from memory that ends with the data. */
static int read_exactly(struct qk_request *r, const char *p, size_t n, struct qk_err *err)
{
	qk_autofree char *copy = qk_alloc(n);

	memcpy(copy, p, n);
	return qk_request_read(r, copy, n, 7, err);
}

START_TEST(round_trip)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, again = QK_BUF_INIT;
	struct qk_request r, want = sample();

	write_sample(&b);
	ck_assert_int_eq(read_exactly(&r, b.s, b.len, NULL), 0);
	ck_assert(r.make_pid == want.make_pid && r.offset == 7 && r.parent_pid == 12 &&
		  r.parent_offset == 99 && r.mode == want.mode && r.recorder == 2 && r.backend == 3 &&
		  r.off && r.uses_make);
	ck_assert_str_eq(r.target, want.target);
	ck_assert_str_eq(r.cwd, want.cwd);
	ck_assert_str_eq(r.root, want.root);
	ck_assert_str_eq(r.state, want.state);
	ck_assert_str_eq(r.run, want.run);
	ck_assert_str_eq(r.shell, want.shell);
	ck_assert_str_eq(r.make, want.make);
	ck_assert_str_eq(r.makefiles, "");
	for (int l = 0; l < QK_N_LISTS; l++) {
		ck_assert_uint_eq(r.lists[l].n, (size_t)l);
		for (int i = 0; i < l; i++)
			ck_assert_str_eq(r.lists[l].v[i], l % 2 ? "odd" : "");
	}
	qk_request_write(&r, &again);
	ck_assert(again.len == b.len && !memcmp(again.s, b.s, b.len));
	qk_request_release(&r);
}
END_TEST

START_TEST(what_is_unset_stays_unset)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_request r, want = sample();

	want.makefiles = NULL;
	want.parent_pid = 0;
	want.off = want.uses_make = false;
	qk_request_write(&want, &b);
	ck_assert_int_eq(read_exactly(&r, b.s, b.len, NULL), 0);
	ck_assert(!r.makefiles && !r.parent_pid && !r.parent_offset && !r.off && !r.uses_make);
	qk_request_release(&r);
}
END_TEST

START_TEST(cut_anywhere)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	write_sample(&b);
	for (size_t n = 0; n < b.len; n++) {
		struct qk_request r;

		ck_assert_int_eq(read_exactly(&r, b.s, n, NULL), -EBADMSG);
		qk_request_release(&r);
	}
}
END_TEST

START_TEST(any_byte_damaged)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	write_sample(&b);
	for (size_t i = 0; i < b.len; i++) {
		for (int v = 0; v < 256; v++) {
			char was = b.s[i];
			struct qk_request r;
			int ret;

			b.s[i] = (char)v;
			ret = read_exactly(&r, b.s, b.len, NULL);
			ck_assert(ret == 0 || ret == -EBADMSG);
			ck_assert(ret || (r.target && r.cwd[0] == '/' && r.mode <= QK_MODE_ENFORCE));
			qk_request_release(&r);
			b.s[i] = was;
		}
	}
}
END_TEST

/* A whole request, but for one field: left out (n < 0), or with n other bytes. */
static const struct {
	int tag, n;
	const char *bytes;
	const char *complaint; /* NULL = it is good all the same */
} fields[] = {
	{ MAGIC, -1, NULL, "not a request of this version" },
	{ MAGIC, 12, "qk request 2", "not a request of this version" },
	{ MODE, -1, NULL, "request: no mode that is known" },
	{ MODE, 4, "\1\0\0\0", "request: field 5 holds no number" },
	{ MODE, 8, "\3\0\0\0\0\0\0", "request: no mode that is known" },
	{ MODE, 8, "\0\0\0\0\1\0\0", "request: no mode that is known" },
	{ MODE, 8, "\1\0\0\0\0\0\0", NULL },
	{ MAKE_PID, 0, "", "request: field 2 holds no number" },
	{ OFF, 1, "\1", "request: field 8 holds no number" },
	{ OFF, -1, NULL, NULL },
	{ TARGET, -1, NULL, "request: a field is missing" },
	{ TARGET, 3, "a\0b", "request: field 10 holds a NUL" },
	{ CWD, -1, NULL, "request: a field is missing" },
	{ CWD, 3, "rel", "request: a directory is not absolute" },
	{ CWD, 0, "", "request: a directory is not absolute" },
	{ ROOT, -1, NULL, "request: a field is missing" },
	{ ROOT, 1, ".", "request: a directory is not absolute" },
	{ STATE, -1, NULL, "request: a field is missing" },
	{ STATE, 3, ".qk", "request: a directory is not absolute" },
	{ RUN, -1, NULL, "request: a field is missing" },
	{ RUN, 1, "1", "request: a directory is not absolute" },
	{ SHELL, -1, NULL, "request: a field is missing" },
	{ SHELL, 0, "", NULL },
	{ MAKE, -1, NULL, "request: a field is missing" },
	{ MAKEFILES, -1, NULL, NULL },
	{ LISTS, 2, "\0x", "request: field 64 holds a NUL" },
	{ LISTS + 1000, 2, "xy", NULL }, /* of a later version */
	{ 60, 2, "xy", NULL },
};

START_TEST(field)
{
	static const struct {
		int tag;
		const char *text; /* NULL = the number 1 */
	} whole[] = { { MAGIC, "qk request 1" }, { MAKE_PID, NULL }, { MODE, NULL }, { OFF, NULL },
		{ TARGET, "t" }, { CWD, "/w" }, { ROOT, "/w" }, { STATE, "/w/.qk" }, { RUN, "/w/.qk/run/1" },
		{ SHELL, "sh" }, { MAKE, "make" }, { MAKEFILES, "m" }, { LISTS, "p" } };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_request r;
	size_t begin = qk_record_begin(&b);
	bool put = false;
	int ret;

	for (int i = 0; i < COUNT(whole); i++) {
		unsigned int tag = (unsigned int)whole[i].tag;

		if (whole[i].tag == fields[_i].tag) {
			put = true;
			if (fields[_i].n >= 0)
				qk_record_put(&b, tag, fields[_i].bytes, (size_t)fields[_i].n);
		} else if (whole[i].text) {
			qk_record_putstr(&b, tag, whole[i].text);
		} else {
			qk_record_putnum(&b, tag, 1);
		}
	}
	if (!put)
		qk_record_put(&b, (unsigned int)fields[_i].tag, fields[_i].bytes, (size_t)fields[_i].n);
	qk_record_end(&b, begin);
	ret = read_exactly(&r, b.s, b.len, &err);
	ck_assert_str_eq(err.msg, fields[_i].complaint ? fields[_i].complaint : "");
	ck_assert_int_eq(ret, fields[_i].complaint ? -EBADMSG : 0);
	qk_request_release(&r);
}
END_TEST

static const struct {
	const char *value; /* %s = a file with a request at 100, %zu = its length */
	const char *complaint;
} values[] = {
	{ "%s:100:%zu", NULL },
	{ "%s:100:%zux", "not FILE:OFFSET:LENGTH" },
	{ "%s:-100:%zu", "not FILE:OFFSET:LENGTH" },
	{ "%s: 100:%zu", "not FILE:OFFSET:LENGTH" },
	{ "%s:100:", "not FILE:OFFSET:LENGTH" },
	{ "%s::%zu", "not FILE:OFFSET:LENGTH" },
	{ "%s", "not FILE:OFFSET:LENGTH" },
	{ ":", "not FILE:OFFSET:LENGTH" },
	{ "::", "not FILE:OFFSET:LENGTH" },
	{ ":1:1", "not FILE:OFFSET:LENGTH" },
	{ "1:1", "not FILE:OFFSET:LENGTH" },
	{ "%s:99999999999999999999:1", "not FILE:OFFSET:LENGTH" },
	{ "%s:0:1073741825", "not FILE:OFFSET:LENGTH" },
	{ "%s:18446744073709551615:%zu", "Invalid argument" },
	{ "%s:0:%zu", "not a request of this version" },
	{ "%s:101:%zu", "not a request of this version" },
	{ "%s:100:20", "not a request of this version" },
	{ "%s:100:0", "not a request of this version" },
	{ "%s:100000:%zu", "not a request of this version" },
	{ "%s.none:100:%zu", "No such file or directory" },
	{ "/:100:%zu", "Is a directory" },
};

START_TEST(value)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	qk_autofree char *path = NULL, *text = NULL;
	struct qk_request r;
	char zeros[100] = "";
	int ret;

	tree_make();
	path = qk_asprintf("%s/a:b:1", tree); /* colons of its own */
	qk_buf_add(&b, zeros, 100);
	write_sample(&b);
	ck_assert_int_eq(qk_write_file(path, b.s, b.len, 0600, NULL), 0);
	if (!strncmp(values[_i].value, "%s", 2))
		text = qk_asprintf("%s%s", path, values[_i].value + 2);
	else
		text = qk_strdup(values[_i].value);
	if (strstr(text, "%zu")) {
		char *at = strstr(text, "%zu"), *old = text;

		*at = '\0';
		text = qk_asprintf("%s%zu%s", old, b.len - 100, at + 3);
		free(old);
	}
	ret = qk_request_load(&r, text, &err);
	if (values[_i].complaint) {
		ck_assert_int_lt(ret, 0);
		ck_assert_msg(strstr(err.msg, values[_i].complaint) != NULL, "%s: %s", text, err.msg);
	} else {
		ck_assert_msg(!ret, "%s", err.msg);
		ck_assert_uint_eq(r.offset, 100);
	}
	qk_request_release(&r);
	tree_remove();
}
END_TEST

START_TEST(many_prerequisites)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_request r = sample(), got;

	for (int i = 0; i < 20000; i++)
		qk_vec_push(&r.lists[QK_LIST_PREREQS], "some/directory/some/file.h");
	qk_request_write(&r, &b);
	qk_vec_release(&r.lists[QK_LIST_PREREQS]);
	ck_assert_int_eq(read_exactly(&got, b.s, b.len, NULL), 0);
	ck_assert_uint_eq(got.lists[QK_LIST_PREREQS].n, 20000);
	qk_request_release(&got);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request");
	TCase *tc = tcase_create("request");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60); /* so many reads take a while beside other work */
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, what_is_unset_stays_unset);
	tcase_add_test(tc, cut_anywhere);
	tcase_add_test(tc, any_byte_damaged);
	tcase_add_loop_test(tc, field, 0, COUNT(fields));
	tcase_add_loop_test(tc, value, 0, COUNT(values));
	tcase_add_test(tc, many_prerequisites);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
