#include "keying/pnpmdir.h"
#include "keying/pnpmhash.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* The vectors of RFC 1321 and FIPS 180-4, and texts about where the padding takes a block more. */
static const struct {
	const char *text, *md5, *sha256;
} vectors[] = {
	{ "", "d41d8cd98f00b204e9800998ecf8427e",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "900150983cd24fb0d6963f7d28e17f72",
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		"57edf4a22be3c955ac49da2e2107b67a",
		"f371bc4a311f2b009eef952dd83ca80e2b60026c8e935592d0f9c308453c813e" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		"8215ef0796a20bcaaae116d3876c664a",
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabc",
		"0d7ae056b2f015cd7dc67494efd658f1", "595615dbe4f0f407ae397d08b4c2cb870cb9b0e11937416f950c5160acf9c005" },
};

static void hex(char *to, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		snprintf(to + 2 * i, 3, "%02x", p[i]);
}

START_TEST(digests)
{
	const char *text = vectors[_i].text;
	unsigned char md5[16], sha256[32];
	char got[65];

	qk_pnpmhash_md5(text, strlen(text), md5);
	hex(got, md5, 16);
	ck_assert_str_eq(got, vectors[_i].md5);
	qk_pnpmhash_sha256(text, strlen(text), sha256);
	hex(got, sha256, 32);
	ck_assert_str_eq(got, vectors[_i].sha256);
}
END_TEST

#define LONG "peer-with-a-long-name-so-that-the-directory-of-its-installation-has-to-be-cut"

/* Names that pnpm 9.15.9 and 10.34.9 gave the same workspace's packages; the last rows by their rule. */
static const struct {
	const char *key, *nine, *ten;
	size_t max;
} rows[] = {
	{ "is-odd@3.0.1", "is-odd@3.0.1", "is-odd@3.0.1", 120 },
	{ "phantom@file:vendor/phantom", "phantom@file+vendor+phantom", "phantom@file+vendor+phantom",
		120 },
	{ "Upper@file:vendor/Upper.tgz", "Upper@file+vendor+Upper.tgz_fel76l6mnxntwqsb6al7q2hwim",
		"Upper@file+vendor+Upper.tgz_880be29eaf249930c90f2d653ead73b0", 120 },
	{ LONG "@file:vendor/" LONG "(host@file:vendor/host)",
		LONG "@file+vendor+pee_ytzkuz5tezk4xv633tvbchrsz4",
		LONG "@file+vend_4b8a741faa6514f3438c01e869ac42fe", 120 },
	{ "@babel/core@7.0.0", "@babel+core@7.0.0", "@babel+core@7.0.0", 120 },
	{ "a@1.0.0(b@2.0.0(c@3.0.0))(@d/e@4.0.0)", "a@1.0.0_b@2.0.0_c@3.0.0__@d+e@4.0.0",
		"a@1.0.0_b@2.0.0_c@3.0.0__@d+e@4.0.0", 120 },
	{ "git@https://x.org/a.git#1", "git@https+++x.org+a.git#1", "git@https+++x.org+a.git+1", 120 },
};

START_TEST(names)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_pnpmdir_name(&b, rows[_i].key, QK_PNPMDIR_9, rows[_i].max);
	ck_assert_str_eq(b.s, rows[_i].nine);
	qk_buf_reset(&b);
	qk_pnpmdir_name(&b, rows[_i].key, QK_PNPMDIR_10, rows[_i].max);
	ck_assert_str_eq(b.s, rows[_i].ten);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pnpmdir");
	TCase *t = tcase_create("pnpmdir");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, digests, 0, sizeof(vectors) / sizeof(*vectors));
	tcase_add_loop_test(t, names, 0, sizeof(rows) / sizeof(*rows));
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
