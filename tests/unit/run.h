/*
 * A run directory made with the writers that runner and plugin use, and what a report makes of it,
 * as text. The tree's root is the workspace, and every make in it starts there.
 */
#ifndef QK_TESTS_UNIT_RUN_H
#define QK_TESTS_UNIT_RUN_H

#include "base/path.h"
#include "report/declare.h"
#include "report/findings.h"
#include "report/graph.h"
#include "report/result.h"
#include "tests/unit/tree.h"

#include <check.h>
#include <stdio.h>
#include <sys/stat.h>

static struct qk_session session;
static struct qk_graph *graph;
static enum qk_mode mode;
static enum qk_backend backend;
static char *pending[16]; /* "LIST=words" for the next request */

static inline void setup(void)
{
	tree_make();
	session = (struct qk_session){ .mode = QK_MODE_AUDIT, .recorder = QK_RECORDER_SECCOMP };
	session.recorder_note = session.backend_note = (char *)"";
	session.root = session.cwd = tree;
	session.state = qk_asprintf("%s/.qk", tree);
	session.run = qk_asprintf("%s/.qk/run/1-1.0", tree);
	ck_assert_int_eq(qk_mkdirs(session.run, NULL), 0);
	graph = qk_graph_new();
	mode = QK_MODE_AUDIT;
	backend = QK_BACKEND_NONE;
}

static inline void teardown(void)
{
	qk_graph_free(graph);
	free(session.state);
	free(session.run);
	tree_remove();
}

/* Declares something for the next request. */
static inline void has(enum qk_list list, const char *words)
{
	for (size_t i = 0;; i++) {
		if (pending[i])
			continue;
		pending[i] = qk_asprintf("%c%s", 'a' + (int)list, words);
		return;
	}
}

struct id {
	uint64_t pid, offset;
	struct qk_request req; /* as it was written */
	struct qk_strv words;
};

static inline void release_id(struct id *id)
{
	qk_request_release(&id->req);
	qk_strv_release(&id->words);
}

/* Writes the request of a recipe; what has() said belongs to it. parent may be NULL. */
static inline struct id request_of(uint64_t pid, const char *target, const struct id *parent)
{
	qk_autofree char *path = qk_asprintf("%s/requests.%d", session.run, (int)pid);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct id id = { .pid = pid };
	struct stat st;
	FILE *f = fopen(path, "a");

	ck_assert(f && !fstat(fileno(f), &st));
	id.offset = (uint64_t)st.st_size;
	id.req = (struct qk_request){
		.make_pid = pid,
		.offset = id.offset,
		.parent_pid = parent ? parent->pid : 0,
		.parent_offset = parent ? parent->offset : 0,
		.mode = mode,
		.backend = backend,
		.target = target,
		.cwd = tree,
		.root = tree,
		.state = session.state,
		.run = session.run,
		.shell = "/bin/sh",
		.make = "make",
	};
	for (size_t i = 0; i < 16 && pending[i]; i++) {
		size_t from = id.words.n;

		qk_strv_split(&id.words, pending[i] + 1);
		for (size_t k = from; k < id.words.n; k++)
			qk_vec_push(&id.req.lists[pending[i][0] - 'a'], id.words.v[k]);
		free(pending[i]);
		pending[i] = NULL;
	}
	qk_request_write(&id.req, &b);
	ck_assert_uint_eq(fwrite(b.s, 1, b.len, f), b.len);
	ck_assert_int_eq(fclose(f), 0);
	return id;
}

static inline struct id request(const char *target)
{
	return request_of(10, target, NULL);
}

static const struct {
	char letter;
	enum qk_event event;
} letters[] = { { 'r', QK_EV_READ }, { 'x', QK_EV_EXEC }, { 'w', QK_EV_WRITE }, { 'c', QK_EV_CREATE },
	{ 'd', QK_EV_MKDIR }, { '-', QK_EV_REMOVE }, { 'm', QK_EV_META }, { 'l', QK_EV_LIST },
	{ 'f', QK_EV_FOLLOW } };

static inline void record(struct qk_trace *t, const char *events)
{
	qk_autostrv struct qk_strv sv = { 0 };

	qk_strv_split(&sv, events);
	for (size_t i = 0; i < sv.n; i++) {
		qk_autofree char *path = qk_path_join(tree, sv.v[i] + 2);

		for (size_t k = 0; k < sizeof(letters) / sizeof(letters[0]); k++)
			if (letters[k].letter == sv.v[i][0])
				qk_trace_event(t, letters[k].event, path);
	}
}

struct outcome {
	enum qk_fate fate;
	int status;
	const char *why, *incomplete;
	const char *declared, *left, *stray; /* words */
};

static inline void add_paths(struct qk_strv *to, const char *words)
{
	qk_autostrv struct qk_strv sv = { 0 };

	qk_strv_split(&sv, words ? words : "");
	for (size_t i = 0; i < sv.n; i++)
		qk_strv_take(to, qk_path_join(tree, sv.v[i]));
}

/* One line of the recipe: what it did ("r:a.c c:a.o"), judged as its runner would. */
static inline void line_with(const struct id *id, const char *events, struct outcome o)
{
	struct qk_result r;
	struct qk_policy p;

	qk_policy_init(&p, tree, session.state);
	qk_declare(&p, &id->req);
	qk_policy_resolve(&p);
	qk_result_init(&r, id->pid, id->offset);
	r.fate = o.fate;
	r.status = o.status;
	r.why = o.why ? qk_strdup(o.why) : NULL;
	qk_strv_push(&r.trace.roots, tree);
	record(&r.trace, events);
	if (o.incomplete)
		qk_trace_lost(&r.trace, "%s", o.incomplete);
	add_paths(&r.declared, o.declared);
	add_paths(&r.stray, o.stray);
	qk_strv_split(&r.left, o.left ? o.left : "");
	qk_result_judge(&r, &p);
	ck_assert_int_eq(qk_result_append(&r, session.run, NULL), 0);
	qk_result_release(&r);
	qk_policy_release(&p);
}

static inline void line(const struct id *id, const char *events)
{
	line_with(id, events, (struct outcome){ 0 });
}

/* A recipe of one line. */
static inline void task(const char *target, const char *events)
{
	struct id id = request(target);

	line(&id, events);
	release_id(&id);
}

static inline void needs(const char *target, const char *prerequisite)
{
	qk_graph_add(graph, 10, target, prerequisite);
}

/* The report as text: "TASK [STANDING: why]:", then a line per finding. */
static inline void render(const struct qk_report *rep, struct qk_buf *out)
{
	static const char *const standings[] = { "", " unaudited", " unsandboxed", " refused", " restored" };

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];

		qk_buf_addf(out, "%s%s%s%s%s\n", t->name, standings[t->standing], t->why ? ": " : "",
			t->why ? t->why : "", t->failed ? " failed" : "");
		for (size_t k = 0; k < t->findings.n; k++) {
			const struct qk_finding *f = &t->findings.v[k];

			qk_buf_addf(out, "  %s%s %s", qk_kinds[f->kind].key, f->shared ? "*" : "", f->path);
			for (const char **o = f->others; o && *o; o++)
				qk_buf_addf(out, " by %s", *o);
			qk_buf_addf(out, "%s%s\n", f->fix ? " | " : "", f->fix ? f->fix : "");
		}
	}
	for (size_t i = 0; i < rep->notices.n; i++)
		qk_buf_addf(out, "notice %s %s %s\n", rep->notices.v[i].task, rep->notices.v[i].variable,
			rep->notices.v[i].pattern);
	for (size_t i = 0; i < rep->shared.n; i++)
		qk_buf_addf(out, "shared %s %zu | %s\n", rep->shared.v[i].path, rep->shared.v[i].tasks,
			rep->shared.v[i].fix ? rep->shared.v[i].fix : "");
}

/* What the run directory says; trouble is the beginning of what could not be read, or NULL. */
static inline void reports_with(const char *expected, const char *trouble)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_report rep;

	ck_assert_int_eq(qk_graph_write(graph, 10, session.run, NULL), 0);
	qk_report_read(&rep, &session, NULL);
	render(&rep, &b);
	ck_assert_str_eq(b.s, expected);
	ck_assert_msg(!rep.trouble == !trouble, "%s", rep.trouble ? rep.trouble : "none");
	if (trouble)
		ck_assert_msg(strstr(rep.trouble, trouble) != NULL, "%s", rep.trouble);
	qk_report_release(&rep);
}

static inline void reports(const char *expected)
{
	reports_with(expected, NULL);
}

#endif
