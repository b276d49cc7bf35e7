#include "keying/sandboxspec.h"
#include "tests/unit/workspaces.h"

START_TEST(finds_projects)
{
	struct qk_workspace *ws;

	tree_file("nx.json", "{}");
	tree_file("package.json",
		"{\"name\":\"root\",\"workspaces\":[\"./packages/*\",\"!packages/out\"]}");
	tree_file("pnpm-workspace.yaml", "packages:\n  - 'tools/**'\n  - \"!**/test/**\"\n");
	tree_file("lerna.json", "{\"packages\":[\"lerna/*\"]}");
	tree_file("packages/a/package.json", "{\"name\":\"@s/a\"}");
	tree_file("packages/Unnamed/package.json", "{}");
	tree_file("packages/out/package.json", "{\"name\":\"out\"}");
	tree_file("packages/.dot/package.json", "{\"name\":\"dot\"}");
	tree_file("packages/a/deep/package.json", "{\"name\":\"deep\"}");
	tree_file("tools/x/y/package.json", "{\"name\":\"y\"}");
	tree_file("tools/test/z/package.json", "{\"name\":\"z\"}");
	tree_file("lerna/l/package.json", "{\"name\":\"l\"}");
	tree_file("libs/Core/project.json", "{}");
	tree_file("libs/named/project.json", "{\"name\":\"other\"}");
	tree_file("libs/both/project.json", "{}");
	tree_file("libs/both/package.json", "{\"name\":\"both-package\"}");
	tree_file("libs/nx-name/project.json", "{}");
	tree_file("libs/nx-name/package.json", "{\"name\":\"x\",\"nx\":{\"name\":\"from-nx\"}}");
	tree_file("libs/local/project.json", "{\"name\":\"shared\"}");
	tree_file("libs/local/project.local.json", "{\"name\":\"mine\"}");
	tree_file("libs/local-only/project.local.json", "{\"name\":\"nothing\"}");
	tree_file("libs/none/src/a.c", "");
	ws = load();
	check_projects(ws,
		"@s/a=packages/a both-package=libs/both core=libs/Core from-nx=libs/nx-name "
		"l=lerna/l mine=libs/local other=libs/named unnamed=packages/Unnamed y=tools/x/y");
	ck_assert(ws->has_pnpm_workspace);
	ck_assert(project(ws, "@s/a")->in_workspaces);
	ck_assert(!project(ws, "both-package")->in_workspaces);
	ck_assert_str_eq(project(ws, "both-package")->package_name, "both-package");
	ck_assert_ptr_null(qk_workspace_project(ws, "out"));
	qk_workspace_free(ws);
}
END_TEST

START_TEST(root_project)
{
	struct qk_workspace *ws;

	tree_file("package.json", "{\"name\":\"root\",\"nx\":{},\"scripts\":{\"build\":\"x\"}}");
	ws = load(); /* no nx.json at all */
	check_projects(ws, "root=.");
	ck_assert_str_eq(target(ws, "root", "build")->executor, "nx:run-script");
	qk_workspace_free(ws);
	tree_file("package.json", "{\"nx\":{}}");
	check_fails("package.json:1:1: the root project needs a \"name\"");
}
END_TEST

START_TEST(only_exclusions)
{
	struct qk_workspace *ws;

	tree_file("package.json", "{\"name\":\"root\",\"workspaces\":[\"!b\"]}");
	tree_file("a/x/package.json", "{\"name\":\"x\"}");
	tree_file("b/package.json", "{\"name\":\"b\"}");
	ws = load();
	ck_assert_ptr_nonnull(qk_workspace_project(ws, "x"));
	ck_assert_ptr_null(qk_workspace_project(ws, "b"));
	qk_workspace_free(ws);
}
END_TEST

START_TEST(ignored_directories)
{
	struct qk_workspace *ws;

	tree_file("nx.json", "{}");
	tree_file(".gitignore", "# comment\ndist\n/tmp\n*.out/\n!keep.out/\ndeep/**\nfile.json\n");
	tree_file(".nxignore", "examples\n");
	tree_file("a/.gitignore", "/gen\nproject.json\n!sub/project.json\n");
	tree_file("b/project.json", "{\"name\":\"b\"}");
	tree_file("a/project.json", "{\"name\":\"a\"}");
	tree_file("a/sub/project.json", "{\"name\":\"sub\"}");
	tree_file("a/gen/project.json", "{\"name\":\"gen\"}");
	tree_file("dist/project.json", "{\"name\":\"dist\"}");
	tree_file("b/dist/x/project.json", "{\"name\":\"bdist\"}");
	tree_file("tmp/project.json", "{\"name\":\"tmp\"}");
	tree_file("b/tmp/project.json", "{\"name\":\"btmp\"}");
	tree_file("x.out/project.json", "{\"name\":\"out\"}");
	tree_file("keep.out/project.json", "{\"name\":\"keep\"}");
	tree_file("deep/x/project.json", "{\"name\":\"deep\"}");
	tree_file("examples/e/project.json", "{\"name\":\"e\"}");
	tree_file("node_modules/m/project.json", "{\"name\":\"m\"}");
	tree_file("b/node_modules/m/project.json", "{\"name\":\"m\"}");
	tree_file(".git/project.json", "{\"name\":\"git\"}");
	tree_file(".qk/x/project.json", "{\"name\":\"qk\"}");
	ws = load();
	check_projects(ws, "b=b btmp=b/tmp keep=keep.out sub=a/sub");
	qk_workspace_free(ws);
}
END_TEST

/* As git check-ignore answers for them. */
START_TEST(ignore_rules)
{
	static const struct {
		const char *rules, *path;
		bool is_dir, ignored;
	} t[] = {
		{ "a", "a", false, true },
		{ "a", "x/a", false, true },
		{ "/a", "x/a", false, false },
		{ "x/a", "x/a", false, true },
		{ "x/a", "y/x/a", false, false },
		{ "a/", "a", false, false },
		{ "a/", "a", true, true },
		{ "*.o\n!k.o", "d/k.o", false, false },
		{ "!k.o\n*.o", "d/k.o", false, true },
		{ "**/b", "a/b", false, true },
		{ "a/**", "a", true, false },
		{ "a/**", "a/x/y", false, true },
		{ "a/**/b", "a/b", false, true },
		{ "a\\ ", "a ", false, true },
		{ "a  ", "a", false, true },
		{ "a\r\nb\r\n", "b", false, true },
		{ "\\#a", "#a", false, true },
		{ "#a", "#a", false, false },
		{ "{a,b}", "a", false, false },
		{ "{a,b}", "{a,b}", false, true },
		{ "@(a)", "a", false, false },
		{ "@(a)", "@(a)", false, true },
		{ "[ab]x", "bx", false, true },
		{ "d/*", "d/e/f", false, false },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct qk_arena a = { 0 };
		const struct qk_ignore *rules =
			qk_ignore_add(&a, NULL, "", t[i].rules, strlen(t[i].rules));

		ck_assert_msg(qk_ignore_has(rules, t[i].path, t[i].is_dir) == t[i].ignored,
			"'%s' on '%s'", t[i].rules, t[i].path);
		qk_arena_release(&a);
	}
}
END_TEST

START_TEST(nx_json_layers)
{
	struct qk_workspace *ws;

	tree_file("nx.json", "{\"extends\":\"nx-base/presets/"
			     "x\",\"namedInputs\":{\"default\":[\"d\"],\"p\":[\"q\"]},"
			     "\"targetDefaults\":{\"build\":{\"cache\":true}},\"parallel\":3}");
	tree_file("node_modules/nx-base/presets/x.json",
		"{\"cacheDirectory\":\"from-base\",\"namedInputs\":{\"lost\":[\"x\"]},\"parallel\":"
		"9}");
	tree_file("nx.local.json",
		"{\"namedInputs\":{\"p\":[\"...\",\"local\"]},\"targetDefaults\":{\"test\":{}},"
		"\"parallel\":\"7\"}");
	ws = load();
	ck_assert_str_eq(ws->cache_directory, "from-base");
	ck_assert_int_eq(ws->parallel, 7);
	ck_assert(ws->has_nx_local);
	check_json(ws->named_inputs, "{\"default\":[\"d\"],\"p\":[\"q\",\"local\"]}");
	check_json(ws->target_defaults, "{\"build\":{\"cache\":true},\"test\":{}}");
	ck_assert(strstr(ws->extends_path, "/node_modules/nx-base/presets/x.json"));
	qk_workspace_free(ws);
	tree_file("nx.local.json", "{}");
	tree_file("nx.json", "{\n \"extends\": \"./none.json\"\n}");
	check_fails("nx.json:2:13: \"extends\": './none.json' is not found");
	tree_file("nx.json",
		"{\"extends\":\"nx/presets/npm.json\",\"tasksRunnerOptions\":{\"default\":"
		"{\"options\":{\"cacheDirectory\":\"old\",\"parallel\":2}}}}");
	ws = load();
	ck_assert_str_eq(ws->cache_directory, "old");
	ck_assert_int_eq(ws->parallel, 2);
	qk_workspace_free(ws);
	tree_file("nx.json", "{\"parallel\":0}");
	check_fails("nx.json:1:13: \"parallel\" must be a whole number from 1 up, not 0");
	tree_file("nx.json",
		"{\"parallel\":false,\"plugins\":[\"@nx/js\",{\"plugin\":\"@nx/vite\"}]}");
	ws = load();
	ck_assert_int_eq(ws->parallel, 1);
	check_warned(ws,
		"nx.json:1:49: plugin \"@nx/vite\": qk runs no plugins of Nx, so the targets and "
		"dependencies it would add are missing");
	qk_workspace_free(ws);
}
END_TEST

START_TEST(layers_of_a_project)
{
	const struct qk_target *t;
	struct qk_workspace *ws;

	tree_file("nx.json",
		"{\"targetDefaults\":{\"build\":{\"inputs\":[\"default\"],\"cache\":true}}}");
	tree_file("p/package.json",
		"{\"name\":\"p\",\"version\":\"1.0.0\",\"keywords\":[\"k\"],"
		"\"scripts\":{\"build\":\"x\",\"test\":\"y\",\"lint\":\"z\",\"docs\":\"d\"},"
		"\"nx\":{\"tags\":[\"t\"],\"namedInputs\":{\"n\":[\"1\"],\"m\":[\"1\"]},"
		"\"targets\":{\"build\":{\"outputs\":[\"{projectRoot}/"
		"o\"]},\"lint\":{\"command\":\"eslint\"}}}}");
	tree_file("p/project.json", "{\"tags\":[\"t\",\"u\"],\"namedInputs\":{\"n\":[\"2\"]},"
				    "\"sourceRoot\":\"p/src\",\n"
				    " \"targets\":{\"build\":{\"inputs\":[\"...\",\"extra\"]},\n"
				    "  \"test\":{\"command\":\"run {projectRoot} "
				    "{projectName}\",\"options\":{\"cwd\":\"{workspaceRoot}\"}}}}");
	tree_file("p/project.local.json",
		"{\"targets\":{\"build\":{\"cache\":false},\"only-here\":{\"command\":\"l\"}}}");
	ws = load();
	t = target(ws, "p", "build");
	ck_assert_str_eq(t->executor, "nx:run-script");
	check_json(t->options, "{\"script\":\"build\"}");
	check_json(t->inputs, "[\"default\",\"extra\"]");
	ck_assert_str_eq(t->inputs->items[1]->file, "p/project.json");
	ck_assert_uint_eq(t->inputs->items[1]->line, 2);
	check_json(t->outputs, "[\"{projectRoot}/o\"]");
	ck_assert(!t->cache && t->cache_given);
	ck_assert_ptr_eq(t->project, project(ws, "p"));
	t = target(ws, "p", "test");
	ck_assert_str_eq(t->executor, "nx:run-commands");
	check_json(t->options, "{\"cwd\":\"\",\"command\":\"run p p\"}");
	t = target(ws, "p", "lint");
	check_json(t->options, "{\"command\":\"eslint\"}");
	check_json(target(ws, "p", "docs")->options, "{\"script\":\"docs\"}");
	ck_assert(!target(ws, "p", "docs")->cache_given);
	target(ws, "p", "only-here");
	check_json(project(ws, "p")->named_inputs, "{\"n\":[\"2\"],\"m\":[\"1\"]}");
	check_json(project(ws, "p")->source_root, "\"p/src\"");
	ck_assert_uint_eq(project(ws, "p")->tags.n, 4);
	ck_assert_str_eq(project(ws, "p")->tags.v[0], "npm:public");
	ck_assert_str_eq(project(ws, "p")->tags.v[1], "npm:k");
	ck_assert_str_eq(project(ws, "p")->tags.v[3], "u");
	qk_workspace_free(ws);
}
END_TEST

START_TEST(target_defaults)
{
	const struct qk_target *t;
	struct qk_workspace *ws;

	tree_file("nx.json",
		"{\"targetDefaults\":{"
		"\"build\":{\"cache\":true,\"options\":{\"a\":1,\"b\":1},\"configurations\":{\"c\":"
		"{\"x\":1}}},"
		"\"my:gen\":{\"inputs\":[\"gen\"],\"cache\":true},"
		"\"e2e-*\":{\"inputs\":[\"short\"]},\"e2e-ci-*\":{\"inputs\":[\"long\"]},"
		"\"lint\":[{\"cache\":true,\"inputs\":[\"all\"]},"
		"{\"filter\":{\"projects\":\"tag:x\"},\"inputs\":[\"...\",\"tagged\"]},"
		"{\"filter\":{\"executor\":\"my:lint\"},\"options\":{\"mine\":1}},"
		"{\"filter\":{\"plugin\":\"@nx/eslint\"},\"inputs\":[\"never\"]}],"
		"\"cmd\":{\"command\":\"from defaults\",\"cache\":true},"
		"\"named\":{\"options\":{\"command\":\"d\",\"cwd\":\"x\"}},"
		"\"noop\":{\"dependsOn\":[\"build\"]}}}");
	tree_file("p/project.json",
		"{\"name\":\"p\",\"tags\":[\"x\"],\"targets\":{"
		"\"build\":{\"executor\":\"my:build\",\"options\":{\"b\":2}},"
		"\"gen\":{\"executor\":\"my:gen\"},"
		"\"e2e-ci-1\":{\"command\":\"x\"},\"e2e-1\":{\"command\":\"x\"},"
		"\"lint\":{\"executor\":\"my:lint\"},"
		"\"cmd\":{\"command\":\"own\"},\"named\":{\"command\":\"own\"},\"noop\":{},\"nothing\":{}}}");
	tree_file("q/project.json",
		"{\"name\":\"q\",\"targets\":{\"lint\":{\"command\":\"x\"},\"cmd\":{}}}");
	ws = load();
	t = target(ws, "p", "build");
	check_json(t->options, "{\"a\":1,\"b\":2}");
	check_json(t->configurations, "{\"c\":{\"x\":1}}");
	ck_assert(t->cache);
	check_json(target(ws, "p", "gen")->inputs, "[\"gen\"]");
	check_json(target(ws, "p", "e2e-ci-1")->inputs, "[\"long\"]");
	check_json(target(ws, "p", "e2e-1")->inputs, "[\"short\"]");
	check_json(target(ws, "p", "lint")->inputs, "[\"all\",\"tagged\"]");
	check_json(target(ws, "p", "lint")->options, "{\"mine\":1}");
	check_json(target(ws, "q", "lint")->inputs, "[\"all\"]");
	check_json(target(ws, "q", "lint")->options, "{\"command\":\"x\"}");
	check_json(target(ws, "p", "cmd")->options, "{\"command\":\"own\"}");
	ck_assert(!target(ws, "p", "cmd")->cache);
	check_json(target(ws, "p", "named")->options, "{\"command\":\"own\",\"cwd\":\"x\"}");
	check_json(target(ws, "q", "cmd")->options, "{\"command\":\"from defaults\"}");
	ck_assert_str_eq(target(ws, "p", "noop")->executor, "nx:noop");
	ck_assert_ptr_null(qk_project_target(project(ws, "p"), "nothing"));
	qk_workspace_free(ws);
}
END_TEST

START_TEST(included_scripts_and_patterns)
{
	struct qk_workspace *ws;

	tree_file("package.json", "{\"workspaces\":[\"p\"]}");
	tree_file("p/package.json",
		"{\"name\":\"p\",\"scripts\":{\"a\":\"x\",\"b:c\":\"y\",\"d e\":\"z\"}}");
	tree_file("q/package.json", "{\"name\":\"q\",\"scripts\":{\"a\":\"x\",\"b\":\"y\"},\"nx\":{"
				    "\"includedScripts\":[\"b\"]}}");
	tree_file("q/project.json",
		"{\"targets\":{\"b\":{},\"c-1\":{\"command\":\"x\"},\"c-2\":{\"command\":\"x\"},"
		"\"c-*\":{\"cache\":true}}}");
	ws = load();
	ck_assert_uint_eq(project(ws, "p")->n_targets, 2);
	target(ws, "p", "b:c");
	check_warned(
		ws, "p/package.json:1:42: script \"d e\" is no target: make cannot hold its name");
	ck_assert_ptr_null(qk_project_target(project(ws, "q"), "a"));
	ck_assert_ptr_null(qk_project_target(project(ws, "q"), "c-*"));
	ck_assert(target(ws, "q", "c-1")->cache && target(ws, "q", "c-2")->cache);
	ck_assert(!target(ws, "q", "b")->cache);
	qk_workspace_free(ws);
}
END_TEST

START_TEST(project_graph)
{
	struct qk_workspace *ws;

	tree_file("package.json", "{\"workspaces\":[\"p/*\"]}");
	tree_file("p/a/package.json",
		"{\"name\":\"a\",\"version\":\"1.2.3\",\"dependencies\":{\"a\":\"*\",\"b\":"
		"\"workspace:^\",\"none\":\"*\"},"
		"\"devDependencies\":{\"c\":\"*\"},\"peerDependencies\":{\"d\":\">=1\"},"
		"\"optionalDependencies\":{\"e\":\"file:../e\"}}");
	tree_file("p/b/package.json",
		"{\"name\":\"b\",\"dependencies\":{\"a\":\"^2\",\"c\":\"file:../d\"}}");
	tree_file("p/c/package.json", "{\"name\":\"c\",\"dependencies\":{\"a\":\"~1.2.0\"},"
				      "\"devDependencies\":{\"d\":\"9\"}}");
	tree_file("p/d/package.json", "{\"name\":\"d\",\"version\":\"1.0.0\",\"dependencies\":{"
				      "\"a\":\"9\"},\"devDependencies\":{\"a\":\"*\"}}");
	tree_file("p/e/package.json", "{\"name\":\"e\",\"dependencies\":{\"b\":\"*\",\"c\":\"*\"},"
				      "\"nx\":{\"implicitDependencies\":[\"!b\",\"a\",\"nope\"]}}");
	tree_file("l/x/project.json", "{\"name\":\"x\",\"tags\":[\"t\"],\"implicitDependencies\":["
				      "\"y-*\",\"!y-2\",\"x\"]}");
	tree_file("l/y1/project.json", "{\"name\":\"y-1\",\"implicitDependencies\":[\"tag:t\"]}");
	tree_file("l/y2/project.json", "{\"name\":\"y-2\",\"implicitDependencies\":[\"l/y1\"]}");
	tree_file("l/z/project.json", "{\"name\":\"z\",\"implicitDependencies\":[\"!x\"]}");
	ws = load();
	check_deps(ws, "a", "b c d e");
	check_deps(ws, "b", "");
	check_deps(ws, "c", "a");
	check_deps(ws, "d", "");
	check_deps(ws, "e", "a c");
	check_deps(ws, "x", "y-1");
	check_deps(ws, "y-1", "x");
	check_deps(ws, "y-2", "y-1");
	check_deps(ws, "z", "");
	check_warned(ws, "p/e/package.json:1:85: \"implicitDependencies\": \"nope\" is no project");
	ck_assert_str_eq(project(ws, "a")->deps[0].at->s, "workspace:^");
	ck_assert(!project(ws, "a")->deps[0].implicit);
	ck_assert(project(ws, "x")->deps[0].implicit);
	qk_workspace_free(ws);
}
END_TEST

static void check_selects(const struct qk_workspace *ws, const char *patterns, const char *want)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autostrv struct qk_strv v = { 0 };
	bool chosen[16] = { false };

	qk_strv_split(&v, patterns);
	qk_workspace_select(ws, (const char *const *)v.v, v.n, chosen);
	for (size_t i = 0; i < ws->n_projects; i++)
		if (chosen[i])
			qk_buf_addf(&b, "%s%s", b.len ? " " : "", ws->projects[i].name);
	ck_assert_msg(!strcmp(b.s, want), "%s: %s", patterns, b.s);
}

START_TEST(selecting)
{
	static const char *const t[][2] = {
		{ "core", "core" },
		{ "ui", "@s/ui" },
		{ "UI", "@s/ui" },
		{ "cor", "" },
		{ "core-e2e", "core-e2e" },
		{ "core*", "core core-e2e core_x" },
		{ "x", "core_x" },
		{ "@s/*", "@s/ui" },
		{ "libs/*", "@s/ui core" },
		{ "libs/a", "core" },
		{ "directory:apps/**", "core-e2e core_x" },
		{ "name:libs/*", "" },
		{ "tag:one", "@s/ui core" },
		{ "tag:sc:*", "core_x" },
		{ "tag:none", "" },
		{ "* !tag:one", "core-e2e core_x" },
		{ "!tag:one", "core-e2e core_x" },
		{ "!core core", "@s/ui core core-e2e core_x" },
		{ "", "" },
	};
	struct qk_workspace *ws;

	tree_file("libs/a/project.json", "{\"name\":\"core\",\"tags\":[\"one\"]}");
	tree_file("libs/b/project.json", "{\"name\":\"@s/ui\",\"tags\":[\"one\",\"two\"]}");
	tree_file("apps/c/project.json", "{\"name\":\"core-e2e\"}");
	tree_file("apps/d/project.json", "{\"name\":\"core_x\",\"tags\":[\"sc:y\"]}");
	ws = load();
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++)
		check_selects(ws, t[i][0], t[i][1]);
	ck_assert_str_eq(qk_workspace_owner(ws, "libs/a/src/x.c")->name, "core");
	ck_assert_str_eq(qk_workspace_owner(ws, "libs/a")->name, "core");
	ck_assert_ptr_null(qk_workspace_owner(ws, "libs/ab"));
	ck_assert_ptr_null(qk_workspace_owner(ws, "x.c"));
	qk_workspace_free(ws);
	tree_file("project.json", "{\"name\":\"top\"}");
	ws = load();
	ck_assert_str_eq(qk_workspace_owner(ws, "libs/ab/x.c")->name, "top");
	ck_assert_str_eq(qk_workspace_owner(ws, ".")->name, "top");
	qk_workspace_free(ws);
}
END_TEST

START_TEST(qk_fields)
{
	const struct qk_target *t;
	const struct qk_sandboxspec *g;
	struct qk_workspace *ws;

	tree_file("p/project.json", "{\"name\":\"p\",\"qk:top\":1,\"targets\":{"
				    "\"a\":{\"command\":\"x\",\"qk:sandbox\":false,\"qk:"
				    "ultracache\":{},\"qk:warm\":[\".cache\"]},\n"
				    "\"b\":{\"command\":\"x\",\"qk:sandbox\":{\"scratch\":[\"{"
				    "projectRoot}/s\"],\"weakerWhenNested\":true,"
				    "\"allow\":{\"read\":[\".\"],\"network\":true,\"localBinding\":"
				    "[3000],\"pty\":true},"
				    "\"deny\":{\"network\":[\"x.org\"]},\"ignore\":{\"read\":["
				    "\"y\"]},\"scrach\":[]},\n"
				    "\"qk:ultracache\":{\"mode\":\"record\",\"ignoreReads\":[\"^"
				    "src/**\"],\"uncheckedOutputs\":[\"u\"],\"m\":1},"
				    "\"qk:other\":{}},\n"
				    "\"c\":{\"command\":\"x\"}}}");
	ws = load();
	t = target(ws, "p", "a");
	ck_assert(t->qk.sandbox_off);
	ck_assert(!t->qk.grants->is_explicit);
	ck_assert_int_eq(t->qk.ultracache, QK_ULTRACACHE_ON);
	ck_assert_str_eq(t->qk.warm.v[0], ".cache");
	ck_assert_ptr_null(t->qk.warm.v[1]);
	t = target(ws, "p", "b");
	ck_assert(!t->qk.sandbox_off && t->qk.grants->weaker_when_nested);
	ck_assert_uint_eq(t->qk.scratch.n, 1);
	ck_assert_str_eq(t->qk.scratch.v[0], "{projectRoot}/s");
	ck_assert_uint_eq(t->qk.scratch_at->items[0]->line, 2);
	g = t->qk.grants;
	ck_assert(g->is_explicit && g->network_open && g->pty && !g->git_config && !g->local_binding);
	ck_assert_uint_eq(g->read.n, 1);
	ck_assert_str_eq(g->read.v[0], ".");
	ck_assert_uint_eq(g->read_at->items[0]->line, 2);
	ck_assert_uint_eq(g->local_ports.n, 1);
	ck_assert_str_eq(g->local_ports.v[0], "3000");
	ck_assert_str_eq(g->deny_network.v[0], "x.org");
	ck_assert_str_eq(g->ignore_read.v[0], "y");
	ck_assert_uint_eq(g->write.n + g->network.n + g->ignore_write.n, 0);
	ck_assert_int_eq(t->qk.ultracache, QK_ULTRACACHE_RECORD);
	ck_assert_str_eq(t->qk.ignore_reads.v[0], "^src/**");
	ck_assert_str_eq(t->qk.unchecked_outputs.v[0], "u");
	check_warned(ws, "p/project.json:1:22: unknown field \"qk:top\"");
	check_warned(ws, "p/project.json:2:221: unknown field \"qk:sandbox\".scrach");
	check_warned(ws, "p/project.json:3:89: unknown field \"qk:ultracache\".m");
	check_warned(ws, "p/project.json:3:103: unknown field \"qk:other\"");
	t = target(ws, "p", "c");
	ck_assert_int_eq(t->qk.ultracache, QK_ULTRACACHE_UNSET);
	ck_assert_ptr_null(t->qk.sandbox);
	qk_workspace_free(ws);
}
END_TEST

START_TEST(default_warned_about_once)
{
	struct qk_workspace *ws;
	int n = 0;

	tree_file("nx.json", "{\"targetDefaults\":{\"a\":{\"qk:x\":1}}}");
	tree_file("p/project.json", "{\"targets\":{\"a\":{\"command\":\"x\"}}}");
	tree_file("q/project.json", "{\"targets\":{\"a\":{\"command\":\"x\"}}}");
	ws = load();
	for (const struct qk_warning *w = ws->warnings; w; w = w->next)
		n++;
	ck_assert_int_eq(n, 1);
	qk_workspace_free(ws);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("workspace");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, tree_make, tree_remove);
	tcase_add_test(tc, finds_projects);
	tcase_add_test(tc, root_project);
	tcase_add_test(tc, only_exclusions);
	tcase_add_test(tc, ignored_directories);
	tcase_add_test(tc, ignore_rules);
	tcase_add_test(tc, nx_json_layers);
	tcase_add_test(tc, layers_of_a_project);
	tcase_add_test(tc, target_defaults);
	tcase_add_test(tc, included_scripts_and_patterns);
	tcase_add_test(tc, project_graph);
	tcase_add_test(tc, selecting);
	tcase_add_test(tc, qk_fields);
	tcase_add_test(tc, default_warned_about_once);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
