#include "tests/unit/workspaces.h"

/* One project.json, and what is said about it. */
static const struct {
	const char *text, *message;
} faults[] = {
	{ "{\n  \"name\": \"p\"\n  \"targets\": {}\n}", "p/project.json:3:3: expected ',' or '}'" },
	{ "[]", "p/project.json:1:1: expected an object, not an array" },
	{ "{\"name\":1}", "p/project.json:1:9: \"name\" must be a string, not a number" },
	{ "{\"name\":\"a b\"}", "p/project.json:1:9: make cannot hold the project name \"a b\"" },
	{ "{\"name\":\"a=b\"}", "p/project.json:1:9: make cannot hold the project name \"a=b\"" },
	{ "{\"targets\":[]}", "p/project.json:1:12: \"targets\" must be an object, not an array" },
	{ "{\"targets\":{\"a\":1}}",
		"p/project.json:1:17: target \"a\" must be an object, not a number" },
	{ "{\"targets\":{\"a%\":{\"command\":\"x\"}}}",
		"p/project.json:1:13: make cannot hold the target name \"a%\"" },
	{ "{\"targets\":{\"a-*\":{\"command\":\"x\"}}}",
		"p/project.json:1:13: make cannot hold the target name \"a-*\"" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"executor\":\"y\"}}}",
		"p/project.json:1:28: a target has either \"command\" or \"executor\", not both" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"cache\":\"yes\"}}}",
		"p/project.json:1:40: \"cache\" must be true or false, not a string" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"outputs\":[1]}}}",
		"p/project.json:1:43: \"outputs\" must hold strings, not a number" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"inputs\":\"default\"}}}",
		"p/project.json:1:41: \"inputs\" must be an array, not a string" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"cache\":true,\"continuous\":true}}}",
		"p/project.json:1:40: target \"a\" is continuous: it cannot be cached" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"configurations\":{\"c\":1}}}}",
		"p/project.json:1:54: configuration \"c\" must be an object, not a number" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"configurations\":{\"c d\":{}}}}}",
		"p/project.json:1:50: make cannot hold the configuration name \"c d\"" },
	{ "{\"targets\":{\"a\":{\"command\":\"x/{workspaceRoot}\"}}}",
		"p/project.json:1:28: {workspaceRoot} may only be at the beginning of an option" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":true}}}",
		"p/project.json:1:45: \"qk:sandbox\" must be false or an object, not true" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"scratch\":\"s\"}}}}",
		"p/project.json:1:56: \"scratch\" must be an array, not a string" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"allow\":{\"read\":\".\"}}}}}",
		"p/project.json:1:62: \"qk:sandbox\".allow.read must be an array of strings, not a "
		"string" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":[]}}}",
		"p/project.json:1:45: \"qk:sandbox\" must be false or an object, not an array" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"allow\":{\"reed\":[]}}}}}",
		"p/project.json:1:62: unknown field \"qk:sandbox\".allow.reed" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"deny\":{\"read\":[]}}}}}",
		"p/project.json:1:61: unknown field \"qk:sandbox\".deny.read" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"deny\":{\"network\":[\"https://x.org\"]}}}}}",
		"p/project.json:1:65: \"qk:sandbox\".deny.network: 'https://x.org': a host is wanted, not a URL" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"allow\":{\"localBinding\":[70000]}}}}}",
		"p/project.json:1:71: \"qk:sandbox\".allow.localBinding: '70000': a port is a number from 1 to 65535" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"allow\":{\"pty\":[]}}}}}",
		"p/project.json:1:61: \"qk:sandbox\".allow.pty must be true or false, not an array of other things" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:sandbox\":{\"allow\":{\"network\":[1]}}}}}",
		"p/project.json:1:65: \"qk:sandbox\".allow.network must be an array of strings or "
		"true or false, "
		"not an array of other things" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:ultracache\":{\"mode\":\"of\"}}}}",
		"p/project.json:1:56: \"qk:ultracache\".mode must be \"on\", \"record\" or "
		"\"off\", not \"of\"" },
	{ "{\"targets\":{\"a\":{\"command\":\"x\",\"qk:warm\":\".c\"}}}",
		"p/project.json:1:42: \"qk:warm\" must be an object or an array, not a string" },
	{ "{\"implicitDependencies\":\"x\"}",
		"p/project.json:1:25: \"implicitDependencies\" must be an array, not a string" },
};

START_TEST(names_the_fault)
{
	tree_file("p/project.json", faults[_i].text);
	check_fails(faults[_i].message);
}
END_TEST

START_TEST(faults_in_other_files)
{
	tree_file("nx.json", "{\"targetDefaults\":{\"a\":1}}");
	tree_file("p/project.json", "{\"name\":\"p\",\"targets\":{\"a\":{\"command\":\"x\"}}}");
	check_fails("nx.json:1:24: \"targetDefaults\" must hold objects, not a number");
	tree_file("nx.json", "{,}");
	check_fails("nx.json:1:2: expected a key in double quotes");
	tree_file("nx.json", "{}");
	tree_file("nx.local.json", "{");
	check_fails("nx.local.json:1:2: expected a key in double quotes, but the file ends");
	tree_file("nx.local.json", "{}");
	tree_file("q/project.json", "{\n \"name\": \"p\"}");
	check_fails("q/project.json:2:10: project name \"p\" is taken: p/project.json:1:9");
	tree_file("q/project.json", "{\"name\":\"q\"}");
	tree_file("package.json", "{\"workspaces\":[1]}");
	check_fails("package.json:1:16: \"workspaces\" must hold strings, not a number");
	tree_file("package.json", "{}");
	tree_file("pnpm-workspace.yaml", "packages:\n  - a\n b: [\n");
	{
		struct qk_err err = QK_ERR_INIT;
		struct qk_workspace *ws;

		ck_assert_int_eq(qk_workspace_load(tree, &ws, &err), -EINVAL);
		ck_assert(!strncmp(err.msg, "pnpm-workspace.yaml:", 20));
	}
	tree_file("pnpm-workspace.yaml", "packages:\n  a: b\n");
	check_fails("pnpm-workspace.yaml:2:3: \"packages\" must be a sequence");
	tree_file("pnpm-workspace.yaml", "packages:\n  - [a]\n");
	check_fails("pnpm-workspace.yaml:2:5: \"packages\" must hold strings");
	tree_file("pnpm-workspace.yaml", "- packages\n");
	check_fails("pnpm-workspace.yaml:1:1: expected a mapping");
	tree_file("pnpm-workspace.yaml", "packages: text\n");
	check_fails("pnpm-workspace.yaml:1:11: \"packages\" must be a sequence");
	tree_file("pnpm-workspace.yaml", "");
	qk_workspace_free(load());
	tree_file("pnpm-workspace.yaml", "packages:\n");
	qk_workspace_free(load());
}
END_TEST

/* A yaml of the usual kind, and one that only nests. */
START_TEST(pnpm_workspace)
{
	qk_autobuf struct qk_buf deep = QK_BUF_INIT;
	struct qk_workspace *ws;

	tree_file("pnpm-workspace.yaml", "catalog:\n  packages: [x]\n  react: 18\n"
					 "onlyBuiltDependencies: [a, {b: c}]\n"
					 "packages: [\"a\", 'b/*']\nother:\n  - c\n");
	tree_file("a/package.json", "{\"name\":\"a\"}");
	tree_file("b/b/package.json", "{\"name\":\"b\"}");
	tree_file("c/package.json", "{\"name\":\"c\"}");
	tree_file("x/package.json", "{\"name\":\"x\"}");
	ws = load();
	check_projects(ws, "a=a b=b/b");
	qk_workspace_free(ws);
	qk_buf_addstr(&deep, "packages:\n - ");
	for (int i = 0; i < 200 * 1000; i++)
		qk_buf_addch(&deep, '[');
	tree_file("pnpm-workspace.yaml", deep.s);
	check_fails("pnpm-workspace.yaml:2:1004: nested more than 1000 deep");
	tree_file("pnpm-workspace.yaml", deep.s + strlen("packages:\n - "));
	check_fails("pnpm-workspace.yaml:1:1001: nested more than 1000 deep");
	deep.s[0] = 'x';
	tree_file("pnpm-workspace.yaml", deep.s);
	check_fails("pnpm-workspace.yaml:2:1004: nested more than 1000 deep");
}
END_TEST

START_TEST(repeated_keys)
{
	struct qk_workspace *ws;

	tree_file("p/project.json", "{\"name\":\"p\",\n\"tags\":[],\n\"tags\":[\"x\"]}");
	ws = load();
	check_warned(ws, "p/project.json:3:1: \"tags\" is given twice: the last one counts");
	ck_assert_uint_eq(project(ws, "p")->tags.n, 1);
	qk_workspace_free(ws);
}
END_TEST

START_TEST(source_imports)
{
	static const char text[] =
		": Nx takes imports in sources for dependencies of projects here: what "
		"no package.json says, qk needs in \"implicitDependencies\"";
	qk_autofree char *from_package = qk_asprintf("package.json:1:30%s", text);
	qk_autofree char *from_config = qk_asprintf("nx.json:1:28%s", text);
	struct qk_workspace *ws;

	tree_file("package.json", "{\"devDependencies\":{\"@nx/js\":\"22\"}}");
	ws = load();
	check_warned(ws, from_package);
	ck_assert_ptr_nonnull(ws->package);
	qk_workspace_free(ws);
	tree_file("nx.json", "{\"pluginsConfig\":{\"@nx/js\":{\"analyzeSourceFiles\":false}}}");
	ws = load();
	ck_assert_ptr_null(ws->warnings);
	qk_workspace_free(ws);
	tree_file("package.json", "{}");
	tree_file("nx.json", "{\"pluginsConfig\":{\"@nx/js\":{}}}");
	ws = load();
	check_warned(ws, from_config);
	qk_workspace_free(ws);
	tree_file("nx.json", "{}");
	ws = load();
	ck_assert_ptr_null(ws->warnings);
	qk_workspace_free(ws);
}
END_TEST

START_TEST(no_such_directory)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_workspace *ws;

	ck_assert_int_eq(qk_workspace_load("/nonexistent/ws", &ws, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "open '/nonexistent/ws': No such file or directory");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("workspace faults");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, tree_make, tree_remove);
	tcase_add_loop_test(tc, names_the_fault, 0, sizeof(faults) / sizeof(*faults));
	tcase_add_test(tc, faults_in_other_files);
	tcase_add_test(tc, pnpm_workspace);
	tcase_add_test(tc, repeated_keys);
	tcase_add_test(tc, source_imports);
	tcase_add_test(tc, no_such_directory);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
