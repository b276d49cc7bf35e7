/* A workspace of three projects in the test's tree, its inputs resolved and its keys folded. */
#ifndef QK_TESTS_UNIT_KEYED_H
#define QK_TESTS_UNIT_KEYED_H

#include "tests/unit/tree.h"

#include "base/buf.h"
#include "base/vec.h"
#include "keying/inputs.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static struct qk_workspace *ws;
static struct qk_taskgraph *graph;
static struct qk_tracked tracked;
static struct qk_inputs *inputs;
static struct qk_filehash *hash;

static inline void forget(void)
{
	qk_inputs_free(inputs);
	qk_taskgraph_free(graph);
	qk_workspace_free(ws);
	qk_tracked_release(&tracked);
	qk_filehash_free(hash);
	inputs = NULL;
	graph = NULL;
	ws = NULL;
	hash = NULL;
}

static inline void load(void)
{
	struct qk_err err = QK_ERR_INIT;

	forget();
	ck_assert_msg(!qk_workspace_load(tree, &ws, &err), "%s", err.msg);
	ck_assert_msg(!qk_taskgraph_build(ws, NULL, 0, NULL, &graph, &err), "%s", err.msg);
	ck_assert_msg(!qk_tracked_load(&tracked, tree, &err), "%s", err.msg);
	ck_assert_msg(!qk_filehash_new(&hash, tree, NULL, &err), "%s", err.msg);
	inputs = qk_inputs_new(ws, graph, &tracked, tree, NULL);
}

static inline struct qk_resolved *resolved(const char *id)
{
	const struct qk_task *t = qk_taskgraph_task(graph, id);

	ck_assert_msg(t, "%s", id);
	return qk_inputs_task(inputs, t);
}

/* app -> lib -> core; what the targets declare as inputs is the test's. */
static inline void workspace(const char *nx, const char *app_inputs)
{
	qk_autofree char *app =
		qk_asprintf("{\"name\":\"app\",\"implicitDependencies\":[\"lib\"],\n"
			    "\"targets\":{\"build\":{\"cache\":true,\"command\":\"cc\",\n"
			    "\"dependsOn\":[\"^build\"],\"outputs\":[\"{projectRoot}/dist\"],\n"
			    "\"inputs\":%s}}}",
			app_inputs);

	tree_make();
	tree_file("nx.json", nx);
	tree_file("libs/app/project.json", app);
	tree_file("libs/lib/project.json",
		"{\"name\":\"lib\",\"implicitDependencies\":[\"core\"],\"targets\":{\"build\":"
		"{\"command\":\"cc\",\"dependsOn\":[\"^build\"],\"outputs\":[\"{projectRoot}/out/"
		"*.o\"],"
		"\"inputs\":[\"default\"]}}}");
	tree_file("libs/core/project.json", "{\"name\":\"core\",\"targets\":{\"build\":{"
					    "\"command\":\"cc\",\"inputs\":[\"default\"]}}}");
	tree_file("libs/app/a.c", "app");
	tree_file("libs/app/a.test.c", "test");
	tree_file("libs/app/src/b.c", "b");
	tree_file("libs/app/dist/made", "made");
	tree_file("libs/lib/l.c", "lib");
	tree_file("libs/lib/l.test.c", "lib");
	tree_file("libs/lib/out/l.o", "object");
	tree_file("libs/lib/out/l.map", "map");
	tree_file("libs/core/c.c", "core");
	tree_file("libs/core/nested/project.json", "{\"name\":\"nested\"}");
	tree_file("shared.txt", "shared");
	tree_file("tools/x/y.sh", "y");
	load();
}

static inline void teardown(void)
{
	forget();
	tree_remove();
}

/* Folds the key; tasks depended on count by their name here. */
static inline struct qk_digest key_text(const char *id, struct qk_buf *text)
{
	struct qk_resolved *r = resolved(id);
	struct qk_err err = QK_ERR_INIT;
	struct qk_part *part;
	struct qk_digest d;

	ck_assert_msg(!r->uncached, "%s", r->uncached);
	ck_assert_msg(!qk_parts_hash(&r->parts, hash, 0, &err), "%s", err.msg);
	while ((part = qk_parts_unknown(&r->parts))) {
		if (part->kind == QK_PART_RUNTIME) {
			ck_assert_msg(!qk_runtime_run(part->name, tree, &part->digest, &err), "%s",
				err.msg);
		} else {
			ck_assert_int_eq(part->kind, QK_PART_TASK);
			qk_digest_bytes(part->name, strlen(part->name), &part->digest);
		}
		part->known = true;
	}
	qk_parts_fold(&r->parts, "task", text, &d);
	return d;
}

static inline struct qk_digest key(const char *id)
{
	load();
	return key_text(id, NULL);
}

static const char lock[] =
	"lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    devDependencies:\n"
	"      tool:\n        specifier: 1\n        version: 1.0.%d\n\n  libs/app:\n"
	"    dependencies:\n      dep:\n        specifier: 1\n        version: 2.0.%d\n\n"
	"snapshots:\n\n  tool@1.0.%d: {}\n\n  dep@2.0.%d: {}\n\n  other@3.0.%d: {}\n";

static inline void lockfile(int tool, int dep, int other)
{
	char text[1024];

	snprintf(text, sizeof(text), lock, tool, dep, tool, dep, other);
	tree_file("pnpm-lock.yaml", text);
}

#endif
