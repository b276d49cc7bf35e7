#include "keying/dotenv.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Text, and what one name means after it: values as dotenv and dotenv-expand give them. */
static const struct {
	const char *text, *name, *value; /* NULL: not set */
} table[] = {
	{ "A=1", "A", "1" },
	{ "A=1\nB=2\n", "B", "2" },
	{ "  A  =  with blanks  ", "A", "with blanks" },
	{ "export A=1", "A", "1" },
	{ "exportA=1", "exportA", "1" },
	{ "A=1 # comment", "A", "1" },
	{ "# A=1", "A", NULL },
	{ "A='# no comment' # one", "A", "# no comment" },
	{ "A=\"one\\ntwo\"", "A", "one\ntwo" },
	{ "A='one\\ntwo'", "A", "one\\ntwo" },
	{ "A=\"one\ntwo\"\nB=3", "A", "one\ntwo" },
	{ "A=\"one\ntwo\"\nB=3", "B", "3" },
	{ "A=`\"'`", "A", "\"'" },
	{ "A=\"unclosed", "A", "\"unclosed" },
	{ "A=", "A", "" },
	{ "A", "A", NULL },
	{ "=1", "", NULL },
	{ "A: 1", "A", "1" },
	{ "A:1", "A", NULL },
	{ "A=1\r\nB=2\r\n", "A", "1" },
	{ "A=1\nA=2", "A", "2" },
	{ "SET=file", "SET", "environment" },
	{ "A=$SET", "A", "environment" },
	{ "A=${SET}x", "A", "environmentx" },
	{ "A=${NONE:-default}", "A", "default" },
	{ "A=${NONE-default}", "A", "default" },
	{ "A=${NONE}", "A", "" },
	{ "A=\\$SET", "A", "$SET" },
	{ "A=$B\nB=$C\nC=c", "A", "c" },
	{ "A=$A", "A", "" },
	{ "A=$B\nB=$A", "A", "" },
	{ "A=${unclosed", "A", "${unclosed" },
	{ "A=100$", "A", "100$" },
};

START_TEST(values)
{
	qk_autostrv struct qk_strv env = { 0 };
	struct qk_dotenv d = { 0 };
	const char *value;

	qk_strv_push(&env, "SET=environment");
	qk_dotenv_parse(&d, table[_i].text, strlen(table[_i].text));
	qk_dotenv_apply(&d, &env);
	value = qk_env_get(&env, table[_i].name);
	if (table[_i].value)
		ck_assert_str_eq(value ? value : "(not set)", table[_i].value);
	else
		ck_assert_ptr_null(value);
	qk_dotenv_release(&d);
}
END_TEST

START_TEST(setting)
{
	qk_autostrv struct qk_strv env = { 0 };

	qk_env_set(&env, "A", "1");
	qk_env_set(&env, "AB", "2");
	qk_env_set(&env, "A", "3");
	ck_assert_str_eq(qk_env_get(&env, "A"), "3");
	ck_assert_str_eq(qk_env_get(&env, "AB"), "2");
	ck_assert_ptr_null(qk_env_get(&env, "B"));
	ck_assert_uint_eq(env.n, 2);
}
END_TEST

/* Any bytes are read to the end, whatever they mean. */
START_TEST(any_bytes)
{
	static const char pieces[] = "A=\"'`$\\{}:- #\n\r\t\0export ";

	for (unsigned int seed = 0; seed < 2000; seed++) {
		qk_autostrv struct qk_strv env = { 0 };
		struct qk_dotenv d = { 0 };
		char text[64];
		unsigned int x = seed;

		for (size_t i = 0; i < sizeof(text); i++) {
			x = x * 1103515245 + 12345;
			text[i] = pieces[(x >> 16) % (sizeof(pieces) - 1)];
		}
		qk_dotenv_parse(&d, text, sizeof(text));
		qk_dotenv_apply(&d, &env);
		ck_assert_uint_eq(d.names.n, d.values.n);
		qk_dotenv_release(&d);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dotenv");
	TCase *c = tcase_create("dotenv");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(c, values, 0, sizeof(table) / sizeof(table[0]));
	tcase_add_test(c, setting);
	tcase_add_test(c, any_bytes);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
