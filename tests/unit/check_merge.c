#include "keying/jsonc.h"
#include "keying/merge.h"
#include "keying/tokens.h"
#include "keying/workspace.h"

#include <check.h>
#include <errno.h>
#include <string.h>

static struct qk_arena arena;

static void release(void)
{
	qk_arena_release(&arena);
}

static const struct qk_json *parse(const char *text)
{
	const struct qk_json *v = NULL;
	struct qk_err err = QK_ERR_INIT;

	if (text)
		ck_assert_msg(!qk_json_parse(&arena, "t.json", text, strlen(text), &v, NULL, &err),
			"%s: %s", text, err.msg);
	return v;
}

static void check_json(const struct qk_json *got, const char *want, const char *what)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_write(&b, got, false);
	ck_assert_msg(!strcmp(b.s, want), "%s: %s", what, b.s);
}

static const struct {
	const char *below, *above, *kept, *dropped; /* a spread with nothing below: kept, dropped */
} values[] = {
	{ "1", "2", "2", "2" },
	{ "1", NULL, "1", "1" },
	{ NULL, "[1]", "[1]", "[1]" },
	{ "[1,2]", "[3]", "[3]", "[3]" },
	{ "[1,2]", "[0,\"...\",3]", "[0,1,2,3]", "[0,1,2,3]" },
	{ "[1]", "[\"...\",\"...\"]", "[1,1]", "[1,1]" },
	{ "7", "[\"...\",3]", "[3]", "[3]" },
	{ NULL, "[\"...\",3]", "[\"...\",3]", "[3]" },
	{ "{\"a\":1}", "{\"b\":2}", "{\"b\":2}", "{\"b\":2}" },
	{ "{\"a\":1,\"b\":1}", "{\"...\":true,\"b\":2}", "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}" },
	{ "{\"a\":1,\"b\":1}", "{\"b\":2,\"c\":2,\"...\":true}", "{\"b\":1,\"c\":2,\"a\":1}",
		"{\"b\":1,\"c\":2,\"a\":1}" },
	{ NULL, "{\"b\":2,\"...\":true}", "{\"b\":2,\"...\":true}", "{\"b\":2}" },
	{ "{\"a\":1}", "{\"...\":false}", "{\"...\":false}", "{\"...\":false}" },
};

START_TEST(merges_values)
{
	const struct qk_json *below = parse(values[_i].below), *above = parse(values[_i].above);

	check_json(qk_merge_value(&arena, below, above, true), values[_i].kept, values[_i].above);
	check_json(
		qk_merge_value(&arena, below, above, false), values[_i].dropped, values[_i].above);
}
END_TEST

static const struct {
	const char *below, *above, *merged;
} targets[] = {
	{ NULL, "{\"executor\":\"a:b\"}", "{\"executor\":\"a:b\"}" },
	{ "{\"cache\":true,\"inputs\":[\"x\"]}", "{\"executor\":\"a:b\",\"inputs\":[\"y\"]}",
		"{\"cache\":true,\"inputs\":[\"y\"],\"executor\":\"a:b\"}" },
	{ "{\"executor\":\"a:b\",\"cache\":true}", "{\"executor\":\"a:c\"}",
		"{\"executor\":\"a:c\"}" },
	{ "{\"options\":{\"p\":1,\"q\":[1]}}", "{\"options\":{\"q\":[\"...\",2],\"r\":3}}",
		"{\"options\":{\"p\":1,\"q\":[1,2],\"r\":3}}" },
	{ "{\"configurations\":{\"x\":{\"p\":1,\"q\":1},\"y\":{}}}",
		"{\"configurations\":{\"x\":{\"q\":2},\"z\":{\"p\":3}}}",
		"{\"configurations\":{\"x\":{\"p\":1,\"q\":2},\"y\":{},\"z\":{\"p\":3}}}" },
	{ "{\"configurations\":{\"x\":{\"p\":1}}}",
		"{\"configurations\":{\"x\":{\"p\":2},\"...\":true,\"z\":{}}}",
		"{\"configurations\":{\"x\":{\"p\":1},\"z\":{}}}" },
	{ "{\"cache\":true,\"parallelism\":false}",
		"{\"cache\":false,\"...\":true,\"parallelism\":true}",
		"{\"cache\":true,\"parallelism\":true}" },
	{ "{\"executor\":\"nx:run-commands\",\"options\":{\"command\":\"a\"},\"cache\":true}",
		"{\"executor\":\"nx:run-commands\",\"options\":{\"command\":\"b\"}}",
		"{\"executor\":\"nx:run-commands\",\"options\":{\"command\":\"b\"}}" },
	{ "{\"executor\":\"nx:run-commands\",\"options\":{\"cwd\":\"d\"},\"cache\":true}",
		"{\"executor\":\"nx:run-commands\",\"options\":{\"command\":\"b\"}}",
		"{\"executor\":\"nx:run-commands\",\"options\":{\"cwd\":\"d\",\"command\":\"b\"},"
		"\"cache\":true}" },
	{ "{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"a\"},\"cache\":true}",
		"{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"a\"}}",
		"{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"a\"},\"cache\":true}" },
	{ "{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"a\"},\"cache\":true}",
		"{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"b\"}}",
		"{\"executor\":\"nx:run-script\",\"options\":{\"script\":\"b\"}}" },
	{ "{\"qk:ultracache\":{\"mode\":\"on\",\"ignoreReads\":[\"a\"]}}",
		"{\"qk:ultracache\":{\"ignoreReads\":[\"...\",\"b\"]}}",
		"{\"qk:ultracache\":{\"ignoreReads\":[\"a\",\"b\"]}}" },
	{ "{\"qk:sandbox\":{\"scratch\":[\"a\"]}}", "{\"qk:sandbox\":false}",
		"{\"qk:sandbox\":false}" },
};

START_TEST(merges_targets)
{
	check_json(
		qk_merge_target(&arena, parse(targets[_i].below), parse(targets[_i].above), true),
		targets[_i].merged, targets[_i].above);
}
END_TEST

START_TEST(shorthand)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *v;

	ck_assert_int_eq(
		qk_merge_shorthand(&arena,
			parse("{\"command\":\"make\",\"cache\":true,\"options\":{\"cwd\":\"d\"}}"),
			&v, &err),
		0);
	check_json(v,
		"{\"cache\":true,\"executor\":\"nx:run-commands\",\"options\":{\"cwd\":\"d\","
		"\"command\":\"make\"}}",
		"shorthand");
	ck_assert_int_eq(qk_merge_shorthand(
				 &arena, parse("{\"command\":\"a\",\"executor\":\"b\"}"), &v, &err),
		-EINVAL);
	ck_assert_str_eq(
		err.msg, "t.json:1:12: a target has either \"command\" or \"executor\", not both");
	ck_assert_int_eq(qk_merge_shorthand(&arena, parse("{\"command\":[]}"), &v, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "t.json:1:12: \"command\" must be a string, not an array");
}
END_TEST

START_TEST(tokens_in_options)
{
	const struct qk_json *v =
		parse("{\"a\":\"{workspaceRoot}/x/{projectRoot}/{projectName}\","
		      "\"b\":[{\"c\":\"{projectName}{other}\"}],\"d\":\"plain\"}");
	struct qk_err err = QK_ERR_INIT;
	const struct qk_json *got;

	ck_assert_int_eq(qk_tokens_in_options(&arena, v, "libs/p", "p", &got, &err), 0);
	check_json(got, "{\"a\":\"x/libs/p/p\",\"b\":[{\"c\":\"p{other}\"}],\"d\":\"plain\"}",
		"options");
	ck_assert_uint_eq(qk_json_get(got, "a")->column, 6);
	v = parse("[\"plain\"]");
	ck_assert_int_eq(qk_tokens_in_options(&arena, v, "libs/p", "p", &got, &err), 0);
	ck_assert_ptr_eq(got, v);
	ck_assert_int_eq(
		qk_tokens_in_options(&arena, parse("[\"x{workspaceRoot}\"]"), "p", "p", &got, &err),
		-EINVAL);
	ck_assert_str_eq(
		err.msg, "t.json:1:2: {workspaceRoot} may only be at the beginning of an option");
}
END_TEST

static const struct {
	const char *text, *root, *path, *why;
} paths[] = {
	{ "{projectRoot}/dist", "libs/p", "libs/p/dist", NULL },
	{ "{projectRoot}/dist", ".", "dist", NULL },
	{ "{projectRoot}", ".", ".", NULL },
	{ "{workspaceRoot}/dist/{projectRoot}", "libs/p", "dist/libs/p", NULL },
	{ "{workspaceRoot}/dist/{projectName}", "libs/p", "dist/name", NULL },
	{ "{workspaceRoot}/dist/{project.name}", "libs/p", "dist/name", NULL },
	{ "!{projectRoot}/dist/**/*.map", "libs/p", "!libs/p/dist/**/*.map", NULL },
	{ "{options.outputPath}", "libs/p", "out/p", NULL },
	{ "{projectRoot}/{options.deep.er}", "libs/p", "libs/p/down", NULL },
	{ "{options.none}", "libs/p", NULL, "a token in it has no value" },
	{ "{options.empty}", "libs/p", NULL, "a token in it has no value" },
	{ "{options.none ?? {projectRoot}/dist}", "libs/p", "libs/p/dist", NULL },
	{ "{options.none ?? options.outputPath ?? x}", "libs/p", "out/p", NULL },
	{ "{projectRoot}/{a,b}", "libs/p", "libs/p/{a,b}", NULL },
	{ "{projectRoot}/{a,{projectName}}", "libs/p", "libs/p/{a,name}", NULL },
	{ "{projectRoot}/../q/dist", "libs/p", "libs/q/dist", NULL },
	{ "{projectRoot}/../../../x", "libs/p", NULL, "it leads out of the workspace" },
	{ "/tmp/x", "libs/p", NULL, "it is absolute" },
	{ "{options.abs}", "libs/p", NULL, "it is absolute" },
	{ "{projectRoot", "libs/p", "{projectRoot", NULL },
};

START_TEST(tokens_in_paths)
{
	struct qk_project p = { .name = "name", .root = paths[_i].root };
	const struct qk_json *options =
		parse("{\"outputPath\":\"out/"
		      "p\",\"deep\":{\"er\":\"down\"},\"empty\":\"\",\"abs\":\"/tmp/x\"}");
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *why = "unset";

	ck_assert_msg(qk_tokens_path(&b, paths[_i].text, &p, options, &why) == !!paths[_i].path,
		"%s: %s", paths[_i].text, b.s);
	ck_assert_str_eq(b.s, paths[_i].path ? paths[_i].path : "");
	ck_assert_pstr_eq(why, paths[_i].why);
}
END_TEST

START_TEST(tokens_in_text)
{
	struct qk_project p = { .name = "name", .root = "libs/p" };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_tokens_text(&b, "{workspaceRoot}/{projectRoot} {options.x} {foo}", &p, NULL, "/w");
	ck_assert_str_eq(b.s, "/w/libs/p {options.x} {foo}");
}
END_TEST

/* Braces that open and never close, and tokens in tokens: neither takes long, nor the stack. */
START_TEST(hostile_tokens)
{
	enum { N = 200 * 1000 };
	struct qk_project p = { .name = "name", .root = "libs/p" };
	qk_autobuf struct qk_buf text = QK_BUF_INIT, out = QK_BUF_INIT;

	for (int i = 0; i < N; i++)
		qk_buf_addstr(&text, "{options.a ?? ");
	qk_tokens_text(&out, text.s, &p, NULL, "/w");
	ck_assert_str_eq(out.s, text.s);
	for (int i = 0; i < N; i++)
		qk_buf_addch(&text, '}');
	qk_buf_reset(&out);
	qk_tokens_text(&out, text.s, &p, NULL, "/w");
	ck_assert_uint_gt(out.len, N);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("merge");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, NULL, release);
	tcase_add_loop_test(tc, merges_values, 0, sizeof(values) / sizeof(*values));
	tcase_add_loop_test(tc, merges_targets, 0, sizeof(targets) / sizeof(*targets));
	tcase_add_test(tc, shorthand);
	tcase_add_test(tc, tokens_in_options);
	tcase_add_loop_test(tc, tokens_in_paths, 0, sizeof(paths) / sizeof(*paths));
	tcase_add_test(tc, tokens_in_text);
	tcase_add_test(tc, hostile_tokens);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
