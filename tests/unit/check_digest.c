#include "keying/digest.h"
#include "keying/key.h"

#include "base/mem.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Published vectors: XXH3 128-bit of the empty string and of "a", as `xxhsum -H2` prints them. */
static const struct {
	const char *text, *hex;
} vectors[] = {
	{ "", "99aa06d3014798d86001c324468d497f" },
	{ "a", "a96faf705af16834e6c632b61e964e1f" },
	{ "abc", "06b05ab6733a618578af5f94892f3950" },
};

START_TEST(published_vectors)
{
	struct qk_digest d, streamed, parsed;
	char hex[QK_DIGEST_HEX];
	struct qk_hasher h;

	qk_digest_bytes(vectors[_i].text, strlen(vectors[_i].text), &d);
	qk_digest_hex(&d, hex);
	ck_assert_str_eq(hex, vectors[_i].hex);

	qk_hasher_init(&h);
	for (const char *s = vectors[_i].text; *s; s++)
		qk_hasher_add(&h, s, 1);
	qk_hasher_done(&h, &streamed);
	ck_assert(qk_digest_eq(&d, &streamed));

	ck_assert_int_eq(qk_digest_parse(hex, &parsed), 0);
	ck_assert(qk_digest_eq(&d, &parsed));
}
END_TEST

START_TEST(hex_is_exact)
{
	struct qk_digest d;

	ck_assert_int_eq(qk_digest_parse("", &d), -EINVAL);
	ck_assert_int_eq(qk_digest_parse("99aa06d3014798d86001c324468d497", &d), -EINVAL);
	ck_assert_int_eq(qk_digest_parse("99aa06d3014798d86001c324468d497f0", &d), -EINVAL);
	ck_assert_int_eq(qk_digest_parse("99AA06d3014798d86001c324468d497f", &d), -EINVAL);
}
END_TEST

/* A file is hashed to the same digest whether it fits the block, fills it, or goes past it. */
START_TEST(file_equals_bytes)
{
	static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, 131072, 200001 };
	size_t n = sizes[_i];
	qk_autofree char *bytes = qk_alloc(n + 1);
	char name[] = "/tmp/qk-digest-XXXXXX";
	qk_autofd int fd = mkstemp(name);
	struct qk_digest a, b;

	ck_assert_int_ge(fd, 0);
	unlink(name);
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	lseek(fd, 0, SEEK_SET);
	qk_digest_bytes(bytes, n, &a);
	ck_assert_int_eq(qk_digest_fd(fd, &b), 0);
	ck_assert(qk_digest_eq(&a, &b));
	ck_assert_int_eq(qk_digest_fd(-1, &b), -EBADF);
}
END_TEST

static struct qk_digest key_of(
	const char *kind, const char *const f[][3], int n, struct qk_buf *text)
{
	struct qk_digest d;
	struct qk_key k;

	qk_key_init(&k, kind, text);
	for (int i = 0; i < n; i++)
		qk_key_add(&k, f[i][0], f[i][1], f[i][2]);
	qk_key_done(&k, &d);
	return d;
}

/* Every row differs from every other one in a way that careless joining would not see. */
START_TEST(fields_cannot_be_confused)
{
	static const char *const rows[][2][3] = {
		{ { "env", "A", "bc" }, { "env", "D", "e" } },
		{ { "env", "Ab", "c" }, { "env", "D", "e" } },
		{ { "env", "D", "e" }, { "env", "A", "bc" } },
		{ { "env", "A", "" }, { "env", "D", "e" } },
		{ { "env", "A", NULL }, { "env", "D", "e" } },
		{ { "env", "A", "-" }, { "env", "D", "e" } },
		{ { "file", "A", "bc" }, { "env", "D", "e" } },
		{ { "env", "A", "bc\nenv D e" }, { "env", "D", "e" } },
	};
	enum { N = sizeof(rows) / sizeof(*rows) };
	struct qk_digest d[N + 1];
	struct qk_buf text[N + 1];

	for (int i = 0; i < N; i++) {
		text[i] = (struct qk_buf)QK_BUF_INIT;
		d[i] = key_of("task", rows[i], 2, &text[i]);
	}
	text[N] = (struct qk_buf)QK_BUF_INIT;
	d[N] = key_of("recipe", rows[0], 2, &text[N]);
	for (int i = 0; i <= N; i++)
		for (int j = 0; j < i; j++) {
			ck_assert(!qk_digest_eq(&d[i], &d[j]));
			ck_assert_str_ne(text[i].s, text[j].s);
		}
	for (int i = 0; i <= N; i++)
		qk_buf_release(&text[i]);
}
END_TEST

START_TEST(text_does_not_change_the_key)
{
	static const char *const f[][3] = { { "env", "A", "x" } };
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_digest a = key_of("task", f, 1, NULL), b = key_of("task", f, 1, &text);

	ck_assert(qk_digest_eq(&a, &b));
	ck_assert_str_eq(text.s, "key task 1\nenv A x\n");
}
END_TEST

START_TEST(text_is_one_line_a_field)
{
	static const char *const f[][3] = {
		{ "env", "A", "two words\nand \"more\"\\ \t\xff" },
		{ "env", "unset", NULL },
		{ "env", "dash", "-" },
		{ "env", "empty", "" },
	};
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	key_of("task", f, 4, &text);
	ck_assert_str_eq(text.s, "key task 1\n"
				 "env A \"two words\\nand \\\"more\\\"\\\\ \\t\\xff\"\n"
				 "env unset -\n"
				 "env dash \"-\"\n"
				 "env empty \"\"\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("digest");
	TCase *t = tcase_create("digest");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, published_vectors, 0, sizeof(vectors) / sizeof(*vectors));
	tcase_add_test(t, hex_is_exact);
	tcase_add_loop_test(t, file_equals_bytes, 0, 7);
	tcase_add_test(t, fields_cannot_be_confused);
	tcase_add_test(t, text_does_not_change_the_key);
	tcase_add_test(t, text_is_one_line_a_field);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
