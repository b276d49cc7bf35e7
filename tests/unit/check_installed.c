#include "tests/unit/keyed.h"

START_TEST(installed_packages)
{
	static const struct {
		const char *inputs;
		bool tool, dep, other;
	} rows[] = {
		{ "[]", true, true, false },
		{ "[{\"externalDependencies\":[]}]", false, false, false },
		{ "[{\"externalDependencies\":[\"other\"]}]", false, false, true },
		{ "[{\"externalDependencies\":[\"npm:dep\"]}]", false, true, false },
		{ "[\"{workspaceRoot}/pnpm-lock.yaml\",{\"externalDependencies\":[]}]", true, true,
			true },
	};
	struct qk_digest a, b;

	workspace("{}", rows[_i].inputs);
	lockfile(0, 0, 0);
	a = key("app:build");
	lockfile(1, 0, 0);
	b = key("app:build");
	ck_assert_int_eq(!qk_digest_eq(&a, &b), rows[_i].tool);
	lockfile(0, 1, 0);
	b = key("app:build");
	ck_assert_int_eq(!qk_digest_eq(&a, &b), rows[_i].dep);
	lockfile(0, 0, 1);
	b = key("app:build");
	ck_assert_int_eq(!qk_digest_eq(&a, &b), rows[_i].other);
}
END_TEST

/* What packages from the workspace's own directories and archives are made of counts as well. */
START_TEST(local_packages)
{
	static const char text[] =
		"lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n\n  libs/app:\n    dependencies:\n"
		"      dir:\n        specifier: 1\n        version: file:vendor/dir\n"
		"      tar:\n        specifier: 1\n        version: file:vendor/tar.tgz\n"
		"      x:\n        specifier: 1\n        version: link:../../vendor/[x]\n"
		"  libs/core:\n    dependencies:\n"
		"      out:\n        specifier: 1\n        version: %s\n\n"
		"snapshots:\n\n  dir@file:vendor/dir: {}\n\n  tar@file:vendor/tar.tgz: {}\n\n"
		"  out@file:../away: {}\n\n  out@file:vendor/out: {}\n\n  other@file:vendor/other: {}\n";
	static const struct {
		const char *file;
		bool own, named; /* counts where the project installs it; where other is named */
	} rows[] = {
		{ "vendor/dir/a/b.js", true, false },
		{ "vendor/tar.tgz", true, false },
		{ "vendor/[x]/b.js", true, false },
		{ "vendor/x/b.js", false, false },
		{ "vendor/other/b.js", false, true },
	};
	static const char *const from[] = { "link:../../../away", "file:../away", "file:vendor/out" };
	bool named = _i;

	workspace("{}", named ? "[{\"externalDependencies\":[\"other\"]}]" : "[]");
	for (size_t i = 0; i < 3; i++) {
		qk_autofree char *lockfile = qk_asprintf(text, from[i]);
		const char *uncached;

		tree_file("pnpm-lock.yaml", lockfile);
		load();
		uncached = resolved("core:build")->uncached;
		ck_assert_str_eq(uncached ? uncached : "",
			i < 2 ? "pnpm-lock.yaml installs '../away', which lies outside the workspace" : "");
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct qk_digest a, b;

		tree_file(rows[i].file, "one");
		a = key("app:build");
		tree_file(rows[i].file, "other");
		b = key("app:build");
		ck_assert_msg(qk_digest_eq(&a, &b) != (named ? rows[i].named : rows[i].own), "%s",
			rows[i].file);
	}
}
END_TEST

START_TEST(lockfile_trouble)
{
	const char *why;

	workspace("{}", "[{\"externalDependencies\":[\"nobody\"]}]");
	lockfile(0, 0, 0);
	load();
	ck_assert_str_eq(resolved("app:build")->uncached,
		"externalDependencies names 'nobody', which pnpm-lock.yaml does not install");
	tree_file("pnpm-lock.yaml", "lockfileVersion: '9.0'\n<<<<<<< ours\n");
	load();
	ck_assert_msg(!strncmp(resolved("core:build")->uncached, "pnpm-lock.yaml:", 15), "%s",
		resolved("core:build")->uncached);
	ck_assert_ptr_null(qk_inputs_whole_lockfile(inputs, &why));
	tree_file("pnpm-lock.yaml", "lockfileVersion: '6.0'\n");
	load();
	ck_assert_ptr_null(resolved("core:build")->uncached);
	ck_assert_str_eq(qk_inputs_whole_lockfile(inputs, &why), "pnpm-lock.yaml");
	ck_assert_str_eq(
		why, "pnpm-lock.yaml:1: lockfileVersion 6.0 is not 9: it counts as a whole");
}
END_TEST

/* Held whole and by effect only, for whoever makes the policy. */

int main(void)
{
	Suite *s = suite_create("installed");
	TCase *t = tcase_create("installed");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, installed_packages, 0, 5);
	tcase_add_loop_test(t, local_packages, 0, 2);
	tcase_add_test(t, lockfile_trouble);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
