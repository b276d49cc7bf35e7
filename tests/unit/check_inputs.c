#include "tests/unit/keyed.h"

/* All files that count by being declared, each once, in the order of their groups. */
static char *files_of(const char *id)
{
	struct qk_resolved *r = resolved(id);
	qk_autostrv struct qk_strv all = { 0 };
	struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < r->list.n; i++) {
		const struct qk_input *in = &r->list.v[i];

		if (in->kind != QK_INPUT_FILES || !in->whole || !strcmp(in->name, "held"))
			continue;
		for (size_t k = 0; k < in->files->n; k++)
			qk_strv_push(&all, in->files->paths[k]);
	}
	qk_strv_sort(&all);
	for (size_t i = 0; i < all.n; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", all.v[i]);
	return qk_buf_detach(&b);
}

/* Forms that select files, and what they select for app:build. */
static const struct {
	const char *inputs, *named, *files;
} forms[] = {
	{ "[\"default\"]", "",
		"libs/app/a.c libs/app/a.test.c libs/app/project.json libs/app/src/b.c" },
	{ "[\"{projectRoot}/**/*\",\"!{projectRoot}/**/*.test.c\"]", "",
		"libs/app/a.c libs/app/project.json libs/app/src/b.c" },
	/* In whatever order. */
	{ "[\"!{projectRoot}/**/*.test.c\",\"default\"]", "",
		"libs/app/a.c libs/app/project.json libs/app/src/b.c" },
	{ "[\"!{projectRoot}/*\"]", "", "libs/app/src/b.c" },
	{ "[\"{projectRoot}/src\"]", "", "libs/app/src/b.c" },
	{ "[\"{projectRoot}/a.c\"]", "", "libs/app/a.c" },
	{ "[\"{projectRoot}/gone.c\"]", "", "" },
	{ "[]", "", "" },
	{ "[\"{workspaceRoot}/shared.txt\"]", "", "shared.txt" },
	{ "[\"{workspaceRoot}/tools/**\"]", "", "tools/x/y.sh" },
	{ "[\"{workspaceRoot}/libs/*/*.c\",\"!{workspaceRoot}/libs/core/**\"]", "",
		"libs/app/a.c libs/app/a.test.c libs/lib/l.c libs/lib/l.test.c" },
	{ "[\"production\"]", "\"production\":[\"default\",\"!{projectRoot}/**/*.test.c\"]",
		"libs/app/a.c libs/app/project.json libs/app/src/b.c" },
	/* Transitively: core is lib's dependency. Outputs of lib and the nested project do not
	   count. */
	{ "[\"^production\"]", "\"production\":[\"default\",\"!{projectRoot}/**/*.test.c\"]",
		"libs/core/c.c libs/core/project.json libs/lib/l.c libs/lib/out/l.map "
		"libs/lib/project.json" },
	{ "[\"^{projectRoot}/*.c\"]", "", "libs/core/c.c libs/lib/l.c libs/lib/l.test.c" },
	{ "[{\"fileset\":\"{projectRoot}/a.c\"}]", "", "libs/app/a.c" },
	{ "[{\"fileset\":\"{projectRoot}/*.c\",\"dependencies\":true}]", "",
		"libs/core/c.c libs/lib/l.c libs/lib/l.test.c" },
	{ "[{\"input\":\"c\",\"dependencies\":true}]", "\"c\":[\"{projectRoot}/c.c\"]",
		"libs/core/c.c" },
	{ "[{\"input\":\"c\",\"projects\":[\"core\"]}]", "\"c\":[\"{projectRoot}/*.c\"]",
		"libs/core/c.c" },
	{ "[{\"input\":\"c\",\"projects\":\"lib\"}]", "\"c\":[\"{projectRoot}/l.c\"]",
		"libs/lib/l.c" },
	{ "[{\"input\":\"c\",\"projects\":\"self\"}]", "\"c\":[\"{projectRoot}/a.c\"]",
		"libs/app/a.c" },
	{ "[{\"input\":\"c\"}]", "\"c\":[\"{projectRoot}/a.c\"]", "libs/app/a.c" },
	{ "[\"default\"]",
		"\"default\":[\"{projectRoot}/src/**\",\"global\"],"
		"\"global\":[\"{workspaceRoot}/shared.txt\"]",
		"libs/app/src/b.c shared.txt" },
	/* None declared: default and ^default. */
	{ "null", "",
		"libs/app/a.c libs/app/a.test.c libs/app/project.json libs/app/src/b.c "
		"libs/core/c.c "
		"libs/core/project.json libs/lib/l.c libs/lib/l.test.c libs/lib/out/l.map "
		"libs/lib/project.json" },
};

START_TEST(form)
{
	qk_autofree char *nx = qk_asprintf("{\"namedInputs\":{%s}}", forms[_i].named);
	qk_autofree char *got = NULL;

	workspace(nx, forms[_i].inputs);
	got = files_of("app:build");
	ck_assert_str_eq(got, forms[_i].files);
	ck_assert_ptr_null(resolved("app:build")->uncached);
}
END_TEST

/* What is changed after the first key, and whether app:build's key changes. */
static const struct {
	const char *inputs, *path, *text;
	bool changes;
} edits[] = {
	{ "[\"default\"]", "libs/app/a.c", "other", true },
	{ "[\"default\"]", "libs/app/new.c", "", true },
	{ "[\"default\"]", "libs/app/dist/made", "other", false },
	{ "[\"default\"]", "libs/lib/l.c", "other", false },
	{ "[\"{projectRoot}/a.c\"]", "libs/app/src/b.c", "other", false },
	/* K5: lib's declared outputs count by content, and only these. */
	{ "[\"{projectRoot}/a.c\"]", "libs/lib/out/l.o", "other", true },
	{ "[\"{projectRoot}/a.c\"]", "libs/lib/out/m.o", "", true },
	{ "[\"{projectRoot}/a.c\"]", "libs/lib/out/l.map", "other", false },
	{ "[\"{projectRoot}/a.c\"]", "libs/core/dist/x", "other", false },
	/* K3: held whole without being declared, and by effect only. */
	{ "[\"{projectRoot}/a.c\"]", "libs/app/package.json", "{\"name\":\"app\"}", true },
	{ "[\"{projectRoot}/a.c\"]", ".gitignore", "x", true },
	{ "[\"{projectRoot}/a.c\"]", "package.json", "{\"name\":\"root\"}", false },
	{ "[\"{projectRoot}/a.c\"]", "nx.json", "{\"parallel\":7}", false },
	{ "[\"{projectRoot}/a.c\"]", "nx.json",
		"{\"targetDefaults\":{\"build\":{\"options\":{\"cwd\":\"libs\"}}}}", true },
	{ "[\"{workspaceRoot}/nx.json\"]", "nx.json", "{\"parallel\":7}", true },
	/* A lockfile that is not read counts as a whole. */
	{ "[\"{projectRoot}/a.c\"]", "yarn.lock", "x", true },
	{ "[{\"json\":\"{workspaceRoot}/data.json\",\"fields\":[\"a.b\"]}]", "data.json",
		"{\"a\":{\"b\":1},\"c\":2}", true },
	{ "[{\"json\":\"{workspaceRoot}/shared.json\",\"fields\":[\"a\"]}]", "shared.txt", "x",
		false },
	{ "[{\"dependentTasksOutputFiles\":\"**/*.o\"}]", "libs/lib/out/l.o", "other", true },
};

START_TEST(edit)
{
	struct qk_digest a, b;

	workspace("{}", edits[_i].inputs);
	a = key("app:build");
	b = key("app:build");
	ck_assert(qk_digest_eq(&a, &b));
	tree_file(edits[_i].path, edits[_i].text);
	b = key("app:build");
	ck_assert_int_eq(!qk_digest_eq(&a, &b), edits[_i].changes);
}
END_TEST

START_TEST(json_fields)
{
	static const struct {
		const char *item, *before, *after;
		bool changes;
	} rows[] = {
		{ "\"fields\":[\"a.b\"]", "{\"a\":{\"b\":1},\"c\":1}", "{\"c\":2,\"a\":{\"b\":1}}",
			false },
		{ "\"fields\":[\"a.b\"]", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", true },
		{ "\"fields\":[\"a.b\"]", "{\"a\":{\"b\":null}}", "{\"a\":{}}", true },
		{ "\"fields\":[\"a.b\"]", "{\"a.b\":1}", "{\"a.b\":2}", true },
		{ "\"fields\":[\"l.1\"]", "{\"l\":[1,2]}", "{\"l\":[3,2]}", false },
		{ "\"fields\":[\"l.1\"]", "{\"l\":[1,2]}", "{\"l\":[1,3]}", true },
		{ "\"excludeFields\":[\"version\"]", "{\"version\":1,\"x\":1}",
			"{\"version\":2,\"x\":1}", false },
		{ "\"excludeFields\":[\"version\"]", "{\"version\":1,\"x\":1}",
			"{\"version\":1,\"x\":2}", true },
		{ "\"excludeFields\":[\"a.b\"]", "{\"a\":{\"b\":1,\"c\":1}}",
			"{\"a\":{\"b\":2,\"c\":1}}", false },
		{ "\"excludeFields\":[\"a.b\"]", "{\"a\":{\"b\":1,\"c\":1}}",
			"{\"a\":{\"b\":1,\"c\":2}}", true },
		{ "\"x\":0", "{\"a\":1,\"b\":2}", "{\"b\":2, /* no difference */ \"a\":1}", false },
		{ "\"x\":0", "{\"a\":1}", "{\"a\":2}", true },
	};
	const char *before = rows[_i].before, *after = rows[_i].after;
	qk_autofree char *item =
		qk_asprintf("[{\"json\":\"{projectRoot}/d.json\",%s}]", rows[_i].item);
	struct qk_digest a, b;

	workspace("{}", item);
	tree_file("libs/app/d.json", before);
	a = key("app:build");
	tree_file("libs/app/d.json", after);
	b = key("app:build");
	ck_assert_int_eq(!qk_digest_eq(&a, &b), rows[_i].changes);
}
END_TEST

START_TEST(environment_and_commands)
{
	struct qk_digest a, b;
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	unsetenv("QK_TEST_A");
	workspace("{}", "[{\"env\":\"QK_TEST_A\"},{\"runtime\":\"cat shared.txt\"}]");
	a = key("app:build");
	setenv("QK_TEST_A", "", 1);
	b = key("app:build");
	ck_assert(!qk_digest_eq(&a, &b));
	setenv("QK_TEST_A", "two words", 1);
	load();
	a = key_text("app:build", &text);
	ck_assert_ptr_nonnull(strstr(text.s, "\nenv QK_TEST_A \"two words\"\n"));
	ck_assert_ptr_nonnull(strstr(text.s, "\nruntime \"cat shared.txt\" "));
	tree_file("shared.txt", "changed");
	b = key("app:build");
	ck_assert(!qk_digest_eq(&a, &b));
}
END_TEST

/* core declares no outputs: it counts by its key, lib by its outputs (K5). */
START_TEST(tasks_depended_on)
{
	static const struct {
		const char *id, *part;
		enum qk_part_kind kind;
	} rows[] = {
		{ "app:build", "lib:build", QK_PART_OUTPUTS },
		{ "lib:build", "core:build", QK_PART_TASK },
	};

	workspace("{}", "[]");
	for (size_t i = 0; i < 2; i++) {
		struct qk_resolved *r = resolved(rows[i].id);
		const struct qk_part *p = &r->parts.list.v[r->parts.list.n - 1];

		ck_assert_int_eq(p->kind, rows[i].kind);
		ck_assert_str_eq(p->name, rows[i].part);
	}
}
END_TEST

START_TEST(failing_command_gives_no_digest)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest d;

	ck_assert_int_eq(qk_runtime_run("echo x; exit 3", "/", &d, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "runtime input 'echo x; exit 3' exited with 3");
	ck_assert_int_eq(qk_runtime_run("kill -9 $$", "/", &d, &err), -EINVAL);
	ck_assert_int_lt(qk_runtime_run("true", "/no/such", &d, &err), 0);
}
END_TEST

/* The whole text of a key, as `qk show hash` prints it. */
START_TEST(key_as_text)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, detail = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	static const char *const want[] = { "key task 1\n", "\ntask core:build nx:run-commands\n",
		"\noptions \"\" ", "\nfiles held ", "\nfiles \"core: libs/core/**/*\" " };
	const char *s;

	workspace("{}", "[]");
	key_text("core:build", &b);
	s = b.s;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		s = strstr(s, want[i]);
		ck_assert_msg(s, "%s in %s", want[i], b.s);
	}
	for (size_t i = 0; i < resolved("core:build")->list.n; i++) {
		const struct qk_input *in = &resolved("core:build")->list.v[i];

		if (in->kind == QK_INPUT_FILES && !strncmp(in->name, "core", 4))
			ck_assert_int_eq(qk_filegroup_text(in->files, hash, &detail, &err), 0);
	}
	ck_assert_msg(!strncmp(detail.s, "file libs/core/c.c ", 19), "%s", detail.s);
}
END_TEST

/* Inputs nobody can resolve: the reason, and the dependents' too. */
static const struct {
	const char *inputs, *reason;
} unresolved[] = {
	{ "[\"nobody\"]", "libs/app/project.json:4:11: there is no input named 'nobody'" },
	{ "[\"^nobody\"]", "libs/app/project.json:4:11: there is no input named 'nobody'" },
	{ "[\"src/**\"]", "libs/app/project.json:4:11: input 'src/**' is no named input, and "
			  "begins with neither "
			  "{projectRoot} nor {workspaceRoot}" },
	{ "[3]", "libs/app/project.json:4:11: an input must be a string or an object" },
	{ "[{\"foo\":1}]",
		"libs/app/project.json:4:11: an input of a form that is not known: foo" },
	{ "[\"loop\"]", "nx.json:1:24: input 'loop' leads back to itself" },
	{ "[{\"workingDirectory\":\"x\"}]", "libs/app/project.json:4:31: workingDirectory must be "
					    "\"absolute\" or \"relative\"" },
	{ "[{\"json\":\"{workspaceRoot}/broken.json\"}]", "broken.json:2:1: " },
	{ "[{\"json\":\"{workspaceRoot}/out.json\"}]",
		"libs/app/project.json:4:19: json input 'out.json' leads out of the workspace" },
};

START_TEST(unresolvable)
{
	qk_autofree char *link = NULL;

	workspace("{\"namedInputs\":{\"loop\":[\"loop\"]}}", unresolved[_i].inputs);
	tree_file("broken.json", "{\"a\": 1,\n");
	tree_file("libs/top/project.json",
		"{\"name\":\"top\",\"implicitDependencies\":[\"app\"],\"targets\":{\"build\":"
		"{\"command\":\"x\",\"dependsOn\":[\"^build\"],\"inputs\":[]}}}");
	link = qk_asprintf("%s/out.json", tree);
	ck_assert_int_eq(symlink("/proc/sys/kernel/ostype", link), 0);
	load();
	ck_assert_ptr_nonnull(resolved("app:build")->uncached);
	if (strncmp(unresolved[_i].reason, "broken", 6))
		ck_assert_str_eq(resolved("app:build")->uncached, unresolved[_i].reason);
	else
		ck_assert_msg(!strncmp(resolved("app:build")->uncached, "broken.json:", 12), "%s",
			resolved("app:build")->uncached);
	ck_assert_ptr_nonnull(strstr(resolved("top:build")->uncached, "it depends on app:build"));
	ck_assert_ptr_null(resolved("lib:build")->uncached);
}
END_TEST

START_TEST(link_out_of_the_workspace_cannot_be_counted)
{
	struct qk_err err = QK_ERR_INIT;
	qk_autofree char *link = NULL;

	workspace("{}", "[\"default\"]");
	link = qk_asprintf("%s/libs/app/l", tree);
	ck_assert_int_eq(symlink("/etc/passwd", link), 0);
	load();
	ck_assert_int_eq(qk_parts_hash(&resolved("app:build")->parts, hash, 0, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "input 'libs/app/l' leads out of the workspace");
}
END_TEST

START_TEST(outputs_that_hold_the_project)
{
	workspace("{}", "[\"default\"],\"outputs\":[\"{projectRoot}\"]");
	ck_assert_ptr_nonnull(strstr(resolved("app:build")->uncached, "holds the whole project"));
}
END_TEST

START_TEST(what_is_held)
{
	static const char *const by_effect[] = { "nx.json", "nx.local.json", "pnpm-workspace.yaml",
		"libs/app/project.json", "libs/app/project.local.json", "package.json",
		"pnpm-lock.yaml" };
	struct qk_resolved *r;
	size_t found = 0;

	workspace("{}", "[]");
	lockfile(0, 0, 0);
	load();
	r = resolved("app:build");
	for (size_t i = 0; i < r->list.n; i++)
		for (size_t k = 0; k < 7; k++)
			if (r->list.v[i].kind == QK_INPUT_FILE && !r->list.v[i].whole &&
				!strcmp(r->list.v[i].name, by_effect[k]))
				found++;
	ck_assert_uint_eq(found, 7);
}
END_TEST

START_TEST(parts_travel)
{
	qk_autobuf struct qk_buf out = QK_BUF_INIT, a = QK_BUF_INIT, b = QK_BUF_INIT;
	struct qk_parts back = { 0 };
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest x, y;
	struct qk_record rec;
	struct qk_field f;
	size_t begin, pos = 0;

	workspace("{}", "[\"default\",\"^default\",{\"env\":\"PATH\"},{\"runtime\":\"echo 1\"}]");
	begin = qk_record_begin(&out);
	qk_parts_write(&resolved("app:build")->parts, &out);
	qk_record_end(&out, begin);
	x = key_text("app:build", &a);
	ck_assert_int_eq(qk_record_next(out.s, out.len, &pos, &rec), 1);
	while (qk_field_next(&rec, &f) == 1)
		ck_assert_int_eq(qk_parts_read(&back, &f), 0);
	ck_assert_int_eq(qk_parts_hash(&back, hash, 0, &err), 0);
	for (struct qk_part *p; (p = qk_parts_unknown(&back)); p->known = true)
		ck_assert_int_eq(qk_runtime_run(p->name, tree, &p->digest, &err), 0);
	qk_parts_fold(&back, "task", &b, &y);
	ck_assert_str_eq(a.s, b.s);
	ck_assert(qk_digest_eq(&x, &y));
	qk_parts_release(&back);
}
END_TEST

START_TEST(nothing_is_read_when_only_the_cache_is_asked)
{
	struct qk_err err = QK_ERR_INIT;

	workspace("{}", "[\"default\"]");
	ck_assert_int_eq(
		qk_parts_hash(&resolved("app:build")->parts, hash, QK_FILEHASH_CACHED, &err),
		-EAGAIN);
	ck_assert_ptr_nonnull(qk_parts_unknown(&resolved("app:build")->parts));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inputs");
	TCase *t = tcase_create("inputs");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, form, 0, sizeof(forms) / sizeof(*forms));
	tcase_add_loop_test(t, edit, 0, sizeof(edits) / sizeof(*edits));
	tcase_add_loop_test(t, json_fields, 0, 12);
	tcase_add_test(t, environment_and_commands);
	tcase_add_test(t, tasks_depended_on);
	tcase_add_test(t, key_as_text);
	tcase_add_loop_test(t, unresolvable, 0, sizeof(unresolved) / sizeof(*unresolved));
	tcase_add_test(t, link_out_of_the_workspace_cannot_be_counted);
	tcase_add_test(t, outputs_that_hold_the_project);
	tcase_add_test(t, what_is_held);
	tcase_add_test(t, parts_travel);
	tcase_add_test(t, nothing_is_read_when_only_the_cache_is_asked);
	suite_add_tcase(s, t);
	t = tcase_create("commands");
	tcase_add_test(t, failing_command_gives_no_digest);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
