#include "keying/jsonedit.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[] = { "targets", "build", "inputs", NULL };
static const char *const base[] = { "\"...\"" };
static const char *const items[] = { "\"x\"", "\"y\"" };

static const struct {
	const char *text, *wanted;
} edits[] = {
	{ "{\"targets\":{\"build\":{\"inputs\":[\"a\"]}}}", "{\"targets\":{\"build\":{\"inputs\":[\"a\", \"x\", \"y\"]}}}" },
	{ "{\"targets\":{\"build\":{\"inputs\":[]}}}", "{\"targets\":{\"build\":{\"inputs\":[\"x\", \"y\"]}}}" },
	/* a trailing comma stays one */
	{ "{\"targets\":{\"build\":{\"inputs\":[\"a\", ]}}}", "{\"targets\":{\"build\":{\"inputs\":[\"a\", \"x\", \"y\", ]}}}" },
	/* lines of their own, comments where they were */
	{ "{ \"targets\": { \"build\": { \"inputs\": [\n\t\t\"b\", // why\n\t\t{ \"env\": \"A\" } // [last]\n\t] } } }\n",
		"{ \"targets\": { \"build\": { \"inputs\": [\n\t\t\"b\", // why\n\t\t{ \"env\": \"A\" }, // [last]\n"
		"\t\t\"x\",\n\t\t\"y\"\n\t] } } }\n" },
	{ "{ \"targets\": { \"build\": { \"inputs\": [\n  \"a\", /* one\n  two */ // three\n] } } }",
		"{ \"targets\": { \"build\": { \"inputs\": [\n  \"a\", /* one\n  two */ // three\n  \"x\",\n  \"y\",\n] } } }" },
	{ "{ \"targets\": { \"build\": { \"inputs\": [\r\n  \"a\"\r\n] } } }",
		"{ \"targets\": { \"build\": { \"inputs\": [\r\n  \"a\",\r\n  \"x\",\r\n  \"y\"\r\n] } } }" },
	/* brackets in strings are none */
	{ "{\"targets\":{\"build\":{\"inputs\":[\"]\\\"]\" /* ] */]}}}",
		"{\"targets\":{\"build\":{\"inputs\":[\"]\\\"]\", \"x\", \"y\" /* ] */]}}}" },
	/* what is missing is made */
	{ "{}", "{ \"targets\": { \"build\": { \"inputs\": [\"...\", \"x\", \"y\"] } } }" },
	{ "{ \"targets\": {\n\t\t// none yet\n\t} }",
		"{ \"targets\": { \"build\": { \"inputs\": [\"...\", \"x\", \"y\"] }\n\t\t// none yet\n\t} }" },
	{ "{\n  \"targets\": {\n    \"build\": {\n      \"command\": \"c\"\n    }\n  }\n}\n",
		"{\n  \"targets\": {\n    \"build\": {\n      \"command\": \"c\",\n      \"inputs\": [\"...\", \"x\", \"y\"]\n    }\n  }\n}\n" },
	/* a byte order mark, and of keys given twice the last */
	{ "\xef\xbb\xbf{\"targets\":{\"build\":{\"inputs\":[1],\"inputs\":[2]}}}",
		"\xef\xbb\xbf{\"targets\":{\"build\":{\"inputs\":[1],\"inputs\":[2, \"x\", \"y\"]}}}" },
};

START_TEST(the_rest_stays)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	qk_buf_addstr(&text, edits[_i].text);
	ck_assert_msg(!qk_jsonedit_append(&text, "f", keys, base, 1, items, 2, &err), "%s", err.msg);
	ck_assert_str_eq(text.s, edits[_i].wanted);
}
END_TEST

static const struct {
	const char *text, *why;
} faults[] = {
	{ "{", "f:1:2:" },
	{ "[]", "f:1:1: must be an object, not an array" },
	{ "{ \"targets\": { \"build\": { \"inputs\": 3 } } }", "f:1:37: must be an array" },
	{ "{ \"targets\": { \"build\": [] } }", "f:1:25: must be an object" },
};

START_TEST(what_cannot_be_edited_stays)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	qk_buf_addstr(&text, faults[_i].text);
	ck_assert_int_eq(qk_jsonedit_append(&text, "f", keys, base, 1, items, 2, &err), -EINVAL);
	ck_assert_msg(strstr(err.msg, faults[_i].why) == err.msg, "%s", err.msg);
	ck_assert_str_eq(text.s, faults[_i].text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("jsonedit");
	TCase *tc = tcase_create("jsonedit");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, the_rest_stays, 0, sizeof(edits) / sizeof(edits[0]));
	tcase_add_loop_test(tc, what_cannot_be_edited_stays, 0, sizeof(faults) / sizeof(faults[0]));
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
