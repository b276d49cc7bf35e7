#include "tests/unit/tree.h"

#include "base/buf.h"
#include "base/vec.h"
#include "keying/taskgraph.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

static struct qk_workspace *ws;
static struct qk_taskgraph *graph;

static void release(void)
{
	qk_taskgraph_free(graph);
	qk_workspace_free(ws);
	tree_remove();
}

static void load(void)
{
	struct qk_err err = QK_ERR_INIT;

	qk_workspace_free(ws);
	ck_assert_msg(!qk_workspace_load(tree, &ws, &err), "%s", err.msg);
}

/* A project in libs/NAME with these targets and dependencies ("\"b\",\"c\""). */
static void project(const char *name, const char *targets, const char *deps)
{
	qk_autofree char *path = qk_asprintf("libs/%s/project.json", name);
	qk_autofree char *text =
		qk_asprintf("{\"name\":\"%s\",\"implicitDependencies\":[%s],\n\"targets\":{%s}}",
			name, deps, targets);

	tree_file(path, text);
}

/* The graph of the tasks named (all without any), under a configuration or NULL. */
static int build(const char *ids, const char *configuration, struct qk_err *err)
{
	const struct qk_target *targets[8];
	qk_autostrv struct qk_strv v = { 0 };
	const char *ignored;

	qk_taskgraph_free(graph);
	graph = NULL;
	qk_strv_split(&v, ids);
	for (size_t i = 0; i < v.n; i++)
		ck_assert_int_eq(qk_task_parse(ws, v.v[i], &targets[i], &ignored, NULL), 0);
	return qk_taskgraph_build(ws, v.n ? targets : NULL, v.n, configuration, &graph, err);
}

static void check_builds(const char *ids, const char *configuration)
{
	struct qk_err err = QK_ERR_INIT;

	ck_assert_msg(!build(ids, configuration, &err), "%s", err.msg);
	for (size_t i = 0; i < graph->n_tasks; i++) {
		const struct qk_task *t = graph->tasks[i];

		ck_assert_uint_eq(t->index, i);
		for (size_t j = 0; j < t->n_deps; j++)
			ck_assert_uint_lt(t->deps[j]->index, i);
		for (size_t j = 0; j < t->n_continuous; j++)
			ck_assert_uint_lt(t->continuous[j]->index, i);
	}
}

static const struct qk_task *task(const char *id)
{
	const struct qk_task *t = qk_taskgraph_task(graph, id);

	ck_assert_msg(t != NULL, "no task %s", id);
	return t;
}

/* The tasks before one, with '&' in front of those that only have to run. */
static void check_deps(const char *id, const char *want)
{
	const struct qk_task *t = task(id);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < t->n_deps; i++)
		qk_buf_addf(&b, "%s%s", b.len ? " " : "", t->deps[i]->id);
	for (size_t i = 0; i < t->n_continuous; i++)
		qk_buf_addf(&b, "%s&%s", b.len ? " " : "", t->continuous[i]->id);
	ck_assert_msg(!strcmp(b.s, want), "%s: %s", id, b.s);
}

static void check_json(const struct qk_json *v, const char *want)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_write(&b, v, false);
	ck_assert_str_eq(b.s, want);
}

static void check_warned(const char *text)
{
	for (const struct qk_warning *w = ws->warnings; w; w = w->next)
		if (!strcmp(w->text, text))
			return;
	ck_abort_msg("no warning '%s'", text);
}

#define RUN "\"command\":\"x\""

/* Each form of dependsOn in project a, and the tasks it comes to. */
static const struct {
	const char *depends_on, *deps;
} forms[] = {
	{ "\"build\"", "a:build" },
	{ "\"build\",\"build\"", "a:build" },
	{ "\"t\"", "" },
	{ "\"^build\"", "b:build" },
	{ "\"^test\"", "d:test c:test" },
	{ "\"c:build\"", "c:build" },
	{ "\"e:x:y\"", "e:x:y" },
	{ "\"build:x\"", "a:build:x" },
	{ "\"e:x:none\"", "" },
	{ "\"nope:build\"", "" },
	{ "\"c:nope\"", "" },
	{ "\"gen-*\"", "a:gen-1 a:gen-2" },
	{ "\"^gen-*\"", "b:gen-1 c:gen-2" },
	{ "{\"target\":\"build\"}", "a:build" },
	{ "{\"target\":\"build\",\"projects\":\"self\"}", "a:build" },
	{ "{\"target\":\"build\",\"projects\":\"dependencies\"}", "b:build" },
	{ "{\"target\":\"build\",\"dependencies\":true}", "b:build" },
	{ "{\"target\":\"build\",\"projects\":\"c\"}", "c:build" },
	{ "{\"target\":\"build\",\"projects\":[\"b\",\"c\",\"d\"]}", "b:build c:build" },
	{ "{\"target\":\"build\",\"projects\":[\"tag:x\"]}", "c:build" },
	{ "{\"target\":\"build\",\"projects\":[\"*\",\"!a\",\"!tag:x\"]}", "b:build" },
	{ "{\"target\":\"gen-*\",\"projects\":[\"a\",\"b\"]}", "a:gen-1 b:gen-1 a:gen-2" },
	{ "{\"target\":\"build\",\"projects\":[\"none\"]}", "" },
	{ "\"serve\",\"build\",\"b:serve\"", "a:build &a:serve &b:serve" },
	{ "", "" },
};

static void project_of_forms(const char *depends_on)
{
	qk_autofree char *t = qk_asprintf(
		"\"t\":{" RUN ",\"dependsOn\":[%s]},\"build\":{" RUN "},\"build:x\":{" RUN "},"
		"\"gen-1\":{" RUN "},\"gen-2\":{" RUN "},\"serve\":{" RUN ",\"continuous\":true}",
		depends_on);

	project("a", t, "\"b\",\"d\"");
	project("b",
		"\"build\":{" RUN "},\"gen-1\":{" RUN "},\"serve\":{" RUN ",\"continuous\":true}",
		"\"c\"");
	project("c", "\"build\":{" RUN "},\"test\":{" RUN "},\"gen-2\":{" RUN "}", "");
	tree_file("libs/c/project.local.json", "{\"tags\":[\"x\"]}");
	project("d", "\"test\":{" RUN "}", "\"e\"");
	project("e", "\"x:y\":{" RUN "}", "");
	load();
}

START_TEST(every_form)
{
	project_of_forms(forms[_i].depends_on);
	check_builds("a:t", NULL);
	check_deps("a:t", forms[_i].deps);
	ck_assert_ptr_null(qk_taskgraph_task(graph, "nothing:of-this"));
	check_builds("", NULL);
	check_deps("a:t", forms[_i].deps);
	ck_assert_uint_eq(graph->n_tasks, 14);
}
END_TEST

START_TEST(slips_are_warned_about)
{
	project_of_forms("\"nope:build\",\"c:nope\",{\"target\":\"build\",\"projects\":[\"none\"]},"
			 "\"biuld\",\"^tset\"");
	check_builds("a:t", NULL);
	check_warned(
		"libs/a/project.json:2:44: \"dependsOn\": no project has a target \"nope:build\"");
	check_warned(
		"libs/a/project.json:2:57: \"dependsOn\": project \"c\" has no target \"nope\"");
	check_warned("libs/a/project.json:2:95: \"dependsOn\": its \"projects\" select none");
	check_warned("libs/a/project.json:2:105: \"dependsOn\": no project has a target \"biuld\"");
	check_warned("libs/a/project.json:2:113: \"dependsOn\": no project has a target \"tset\"");
}
END_TEST

START_TEST(through_projects_without_the_target)
{
	/* a -> b -> c -> d, b and c without build; c and b depend on each other too */
	project("a", "\"build\":{" RUN ",\"dependsOn\":[\"^build\",\"^gen\"]}", "\"b\"");
	project("b", "\"gen\":{" RUN "}", "\"c\"");
	project("c", "\"gen\":{" RUN "}", "\"d\",\"b\"");
	project("d", "\"build\":{" RUN "}", "\"a\"");
	load();
	check_builds("a:build", NULL);
	check_deps("a:build", "b:gen c:gen d:build");
}
END_TEST

START_TEST(defaults_give_dependencies)
{
	tree_file("nx.json", "{\"targetDefaults\":{\"build\":{\"dependsOn\":[\"^build\"]},\"test\":"
			     "{\"dependsOn\":[\"build\"]}}}");
	project("a", "\"build\":{" RUN "},\"test\":{" RUN "}", "\"b\"");
	project("b",
		"\"build\":{" RUN ",\"dependsOn\":[]},\"test\":{" RUN
		",\"dependsOn\":[\"...\",\"lint\"]},\"lint\":{" RUN "}",
		"\"c\"");
	project("c", "\"build\":{" RUN "}", "");
	load();
	check_builds("a:test b:test", NULL);
	check_deps("a:test", "a:build");
	check_deps("a:build", "b:build");
	check_deps("b:build", "");
	check_deps("b:test", "b:build b:lint");
	ck_assert_ptr_null(qk_taskgraph_task(graph, "c:build"));
	ck_assert(task("a:test")->asked && !task("a:build")->asked);
}
END_TEST

START_TEST(configurations)
{
	project("a",
		"\"build\":{" RUN
		",\"dependsOn\":[\"^build\"],\"options\":{\"o\":1,\"p\":1},\"configurations\":"
		"{\"production\":{\"p\":2},\"debug\":{\"p\":3}},\"defaultConfiguration\":"
		"\"debug\"}",
		"\"b\"");
	project("b", "\"build\":{" RUN ",\"dependsOn\":[\"^build\"]}", "\"c\"");
	project("c", "\"build\":{" RUN ",\"configurations\":{\"production\":{}}}", "");
	load();
	check_builds("a:build", NULL);
	check_deps("a:build:debug", "b:build");
	check_deps("b:build", "c:build");
	check_json(task("a:build:debug")->options, "{\"o\":1,\"p\":3,\"command\":\"x\"}");
	check_builds("a:build", "production");
	check_deps("a:build:production", "b:build");
	check_deps("b:build", "c:build:production");
	check_json(task("a:build:production")->options, "{\"o\":1,\"p\":2,\"command\":\"x\"}");
	ck_assert_str_eq(task("c:build:production")->configuration, "production");
	ck_assert_ptr_null(task("b:build")->configuration);
	check_builds("a:build", "unknown");
	task("a:build:debug");
}
END_TEST

START_TEST(forwarding)
{
	project("a",
		"\"t\":{" RUN
		",\"options\":{\"x\":1},\"configurations\":{\"c\":{\"y\":2}},\"dependsOn\":["
		"{\"target\":\"p\",\"params\":\"forward\"},{\"target\":\"o\",\"options\":"
		"\"forward\"},"
		"{\"target\":\"n\",\"params\":\"ignore\",\"options\":\"ignore\"}]},"
		"\"p\":{" RUN
		",\"dependsOn\":[\"q\"]},\"o\":{\"executor\":\"e\",\"options\":{\"x\":0,\"z\":0}},"
		"\"n\":{\"executor\":\"e\",\"options\":{\"x\":0}},\"q\":{" RUN "}",
		"");
	load();
	check_builds("a:t", "c");
	ck_assert(task("a:t:c")->forwards_args);
	ck_assert(task("a:p")->forwards_args);
	ck_assert(!task("a:q")->forwards_args);
	ck_assert(!task("a:o")->forwards_args);
	check_json(task("a:o")->options, "{\"x\":1,\"z\":0,\"command\":\"x\",\"y\":2}");
	check_json(task("a:n")->options, "{\"x\":0}");
}
END_TEST

START_TEST(cycles)
{
	struct qk_err err = QK_ERR_INIT;

	project("a",
		"\"build\":{" RUN ",\"dependsOn\":[\"^build\"]},\"t\":{" RUN
		",\"dependsOn\":[\"build\"]}",
		"\"b\"");
	project("b", "\"build\":{" RUN ",\"dependsOn\":[\"^build\"]}", "\"c\"");
	project("c", "\"build\":{" RUN ",\"dependsOn\":[\"^build\"]}", "\"a\"");
	load();
	ck_assert_int_eq(build("a:t", NULL, &err), -EINVAL);
	ck_assert_ptr_null(graph);
	ck_assert_str_eq(err.msg, "libs/a/project.json:2:47: tasks wait for each other: "
				  "a:build -> b:build -> c:build -> a:build");
	/* through a task that has to run; and one task waiting for itself, which counts for nothing
	 */
	project("b", "\"build\":{" RUN ",\"continuous\":true,\"dependsOn\":[\"^build\",\"build\"]}",
		"\"a\"");
	load();
	ck_assert_int_eq(build("b:build", NULL, &err), -EINVAL);
	ck_assert(strstr(err.msg, "b:build -> a:build -> b:build"));
	project("b", "\"build\":{" RUN ",\"dependsOn\":[\"^build\",\"build\",\"b:build\"]}", "");
	load();
	check_builds("a:t", NULL);
	check_deps("b:build", "");
}
END_TEST

static const struct {
	const char *outputs, *root_outputs, *problem;
} outputs[] = {
	{ "\"outputs\":[\"{projectRoot}/dist\",\"!{projectRoot}/dist/x\",\"{workspaceRoot}/out/"
	  "{projectName}\"]",
		"libs/a/dist !libs/a/dist/x out/a", NULL },
	{ "\"outputs\":[\"{options.none}\",\"{options.dir}\"]", "made/here", NULL },
	{ "\"outputs\":[]", "", NULL },
	{ "\"cache\":true", "dist/libs/a libs/a/dist libs/a/build libs/a/public", NULL },
	{ "\"outputs\":[\"dist\",\"{projectRoot}/ok\"]", "libs/a/ok",
		"libs/a/project.json:2:60: output 'dist': it must begin with {projectRoot} or "
		"{workspaceRoot}" },
	{ "\"outputs\":[\"{projectRoot}/../../../x\"]", "",
		"libs/a/project.json:2:60: output '{projectRoot}/../../../x': it leads out of the "
		"workspace" },
	{ "\"outputs\":[\"{options.abs}\"]", "",
		"libs/a/project.json:2:60: output '{options.abs}': it is absolute" },
};

START_TEST(outputs_of_a_task)
{
	qk_autofree char *t = qk_asprintf(
		"\"build\":{\"executor\":\"e\",\"options\":{},%s,\"configurations\":{\"c\":"
		"{\"dir\":\"made/here\",\"abs\":\"/x\"}}}",
		outputs[_i].outputs);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const struct qk_task *got;

	project("a", t, "");
	load();
	check_builds("a:build", "c");
	got = task("a:build:c");
	for (size_t i = 0; i < got->outputs.n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", got->outputs.v[i]);
	ck_assert_str_eq(b.s, outputs[_i].root_outputs);
	ck_assert_ptr_null(got->outputs.v[got->outputs.n]);
	ck_assert_pstr_eq(got->outputs_problem, outputs[_i].problem);
}
END_TEST

START_TEST(outputs_without_a_declaration)
{
	project("a",
		"\"x\":{\"executor\":\"e\",\"options\":{\"outputPath\":\"o/p\"}},\"y\":{" RUN "},"
		"\"z\":{\"executor\":\"e\",\"options\":{\"outputPath\":[\"o\",\"p\"]}}",
		"");
	tree_file("project.json", "{\"name\":\"top\",\"targets\":{\"build\":{" RUN "}}}");
	load();
	check_builds("", NULL);
	ck_assert_str_eq(task("a:x")->outputs.v[0], "o/p");
	ck_assert_uint_eq(task("a:y")->outputs.n, 0);
	ck_assert_str_eq(task("a:z")->outputs.v[1], "p");
	ck_assert_uint_eq(task("top:build")->outputs.n, 3);
	ck_assert_str_eq(task("top:build")->outputs.v[0], "dist");
	ck_assert_str_eq(task("top:build")->outputs.v[2], "public");
}
END_TEST

static const struct {
	const char *id, *message;
} names[] = {
	{ "a:build", NULL },
	{ "a:build:c", NULL },
	{ "a:build:x:d", NULL },
	{ "b:c:t", NULL },
	{ "none:build", "'none:build': no such project" },
	{ "a", "'a' is a project: which target of it?" },
	{ "a:none", "'a:none': project 'a' has no target 'none'" },
	{ "a:build:none", "'a:build:none': target 'build' has no configuration 'none'" },
	{ "", "'': no such project" },
};

START_TEST(taking_ids_apart)
{
	struct qk_err err = QK_ERR_INIT;
	const struct qk_target *t = NULL;
	const char *c = NULL;
	int r;

	project("a",
		"\"build\":{" RUN ",\"configurations\":{\"c\":{}}},\"build:x\":{" RUN
		",\"configurations\":{\"d\":{}}}",
		"");
	project("b", "\"t\":{" RUN "}", "");
	tree_file("libs/bc/project.json", "{\"name\":\"b:c\",\"targets\":{\"t\":{" RUN "}}}");
	load();
	r = qk_task_parse(ws, names[_i].id, &t, &c, &err);
	if (names[_i].message) {
		ck_assert_int_eq(r, -ENOENT);
		ck_assert_str_eq(err.msg, names[_i].message);
	} else {
		qk_autofree char *again = qk_asprintf(
			"%s:%s%s%s", t->project->name, t->name, c ? ":" : "", c ? c : "");

		ck_assert_int_eq(r, 0);
		ck_assert_str_eq(again, names[_i].id);
	}
}
END_TEST

static const struct {
	const char *item, *message;
} faults[] = {
	{ "1", "libs/a/project.json:2:44: \"dependsOn\" must hold strings and objects, not a "
	       "number" },
	{ "{}", "libs/a/project.json:2:44: an item of \"dependsOn\" needs a \"target\"" },
	{ "{\"target\":1}", "libs/a/project.json:2:54: \"target\" must be a string, not a number" },
	{ "{\"target\":\"b\",\"projects\":1}",
		"libs/a/project.json:2:69: \"projects\" must be an array, not a number" },
	{ "{\"target\":\"b\",\"params\":\"x\"}", "libs/a/project.json:2:67: \"params\" must be "
						 "\"forward\" or \"ignore\", not \"x\"" },
	{ "{\"target\":\"b\",\"dependencies\":\"x\"}",
		"libs/a/project.json:2:73: \"dependencies\" must be true or false, not a string" },
};

START_TEST(names_the_fault)
{
	qk_autofree char *t = qk_asprintf("\"b\":{" RUN ",\"dependsOn\":[%s]}", faults[_i].item);
	struct qk_err err = QK_ERR_INIT;

	project("a", t, "");
	load();
	ck_assert_int_eq(build("", NULL, &err), -EINVAL);
	ck_assert_str_eq(err.msg, faults[_i].message);
}
END_TEST

/* A chain as long as workspaces get: no recursion, no quadratic work. */
START_TEST(long_chain)
{
	enum { N = 3000 };
	char name[16], dep[16];

	tree_file("nx.json", "{\"targetDefaults\":{\"build\":{\"dependsOn\":[\"^build\"]}}}");
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		snprintf(dep, sizeof(dep), "\"p%d\"", i + 1);
		project(name, "\"build\":{" RUN "}", i + 1 < N ? dep : "");
	}
	load();
	check_builds("p0:build", NULL);
	ck_assert_uint_eq(graph->n_tasks, N);
	check_deps("p0:build", "p1:build");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("taskgraph");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, tree_make, release);
	tcase_add_loop_test(tc, every_form, 0, sizeof(forms) / sizeof(*forms));
	tcase_add_test(tc, slips_are_warned_about);
	tcase_add_test(tc, through_projects_without_the_target);
	tcase_add_test(tc, defaults_give_dependencies);
	tcase_add_test(tc, configurations);
	tcase_add_test(tc, forwarding);
	tcase_add_test(tc, cycles);
	tcase_add_loop_test(tc, outputs_of_a_task, 0, sizeof(outputs) / sizeof(*outputs));
	tcase_add_test(tc, outputs_without_a_declaration);
	tcase_add_loop_test(tc, taking_ids_apart, 0, sizeof(names) / sizeof(*names));
	tcase_add_loop_test(tc, names_the_fault, 0, sizeof(faults) / sizeof(*faults));
	tcase_add_test(tc, long_chain);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
