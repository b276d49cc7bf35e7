#include "report/kinds.h"

#include "base/path.h"

#include <string.h>

const struct qk_kind_info qk_kinds[QK_N_KINDS] = {
	[QK_KIND_READ] = { "undeclaredReads", true, true, "read outside its inputs, not a prerequisite:",
		"read outside its inputs, not a prerequisite: refused:",
		{ "read outside its inputs:", "read outside its inputs: refused:" } },
	[QK_KIND_DEPENDENCY] = { "dependencyReads", true, true, "read in projects it depends on:",
		"read in projects it depends on: refused:", { NULL, NULL } },
	[QK_KIND_GRANTED] = { "undeclaredReads", true, true,
		"read outside its inputs, not a prerequisite (QK_ALLOW_READ opens it under enforce):",
		"read outside its inputs, not a prerequisite (opened by QK_ALLOW_READ):", { NULL, NULL } },
	[QK_KIND_TSCONFIG] = { "tsconfigReads", true, true, "TypeScript configuration read outside its inputs:",
		"TypeScript configuration read outside its inputs: refused:", { NULL, NULL } },
	[QK_KIND_ORDERING] = { "ordering", true, true,
		"read, made by a recipe it does not wait for (breaks under -j):",
		"read, made by a recipe it does not wait for (breaks under -j):",
		{ "read, made by a task it does not depend on:",
			"read, made by a task it does not depend on:" } },
	[QK_KIND_WRITE] = { "strayWrites", true, true, "written outside its outputs:",
		"written outside its outputs and not kept:", { NULL, NULL } },
	[QK_KIND_WRITERS] = { "multipleWriters", true, true, "written by another recipe too:",
		"written by another recipe too:",
		{ "written by another task too:", "written by another task too:" } },
	[QK_KIND_LEFT] = { "leftRunning", true, true, "left running:", "left running and ended:", { NULL, NULL } },
	[QK_KIND_GIT_WRITE] = { "strayWrites", false, false, "written in .git:", "written in .git:", { NULL, NULL } },
	[QK_KIND_UNKEYED] = { "unkeyedReads", false, false, "read, not in its key:", "read, not in its key:", { NULL, NULL } },
	[QK_KIND_PACKAGE] = { "unkeyedPackages", false, true,
		"read among installed packages, outside its key (to be named in externalDependencies):", NULL, { NULL, NULL } },
	[QK_KIND_HOISTED] = { "hoistedPackages", false, true,
		"read among installed packages, found by hoisting (to be declared by the package that imports it):",
		NULL, { NULL, NULL } },
	[QK_KIND_MANIFEST] = { "manifestReads", false, false, "workspace manifest read:",
		"workspace manifest read:", { NULL, NULL } },
	[QK_KIND_TOOLCHAIN] = { "toolchainReads", false, false, "toolchain configuration read:",
		"toolchain configuration read:", { NULL, NULL } },
	[QK_KIND_UNUSED] = { "unusedInputs", false, false, "not touched:", "not touched:", { NULL, NULL } },
};

enum qk_kind qk_kind_of_read(const char *path, struct qk_verdict v)
{
	static const char *const toolchain[] = { ".tool-versions", "mise.toml", ".nvmrc", ".node-version",
		".npmrc", ".pnpmfile.cjs", "rust-toolchain", "rust-toolchain.toml" };
	const char *base = qk_path_base(path);
	size_t n = strlen(base);

	if (v.answer == QK_TOLERATED)
		return v.reason == QK_BY_GRANT ? QK_KIND_GRANTED : QK_KIND_UNKEYED;
	for (size_t i = 0; i < sizeof(toolchain) / sizeof(toolchain[0]); i++)
		if (!strcmp(base, toolchain[i]))
			return QK_KIND_TOOLCHAIN;
	if (n > 5 && !strncmp(base, "tsconfig", 8) && !strcmp(base + n - 5, ".json"))
		return QK_KIND_TSCONFIG;
	return QK_KIND_READ;
}
