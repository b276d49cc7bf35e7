#include "report/tasks.h"

#include "base/fdio.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { REQUESTS_MAX = 1 << 30 };

struct reading {
	struct qk_tasks *ts;
	const struct qk_session *session;
	struct by_id *ids;
};

/* All requests by identity, whether or not a result came. */
struct by_id {
	struct id {
		uint64_t make_pid, offset;
	} id;
	struct qk_task *task;
	UT_hash_handle hh;
};

static void trouble(struct qk_tasks *ts, const char *msg)
{
	if (!ts->trouble)
		ts->trouble = qk_strdup(msg);
}

static void add_request(struct reading *rd, const char *p, size_t n, uint64_t offset)
{
	struct qk_task *t = qk_zalloc(sizeof(*t));
	struct qk_err err = QK_ERR_INIT;
	qk_autobuf struct qk_buf name = QK_BUF_INIT;
	qk_autofree char *path = NULL;
	struct by_id *by;

	qk_trace_init(&t->trace);
	if (qk_request_read(&t->req, p, n, offset, &err)) {
		trouble(rd->ts, err.msg);
		qk_request_release(&t->req);
		qk_trace_release(&t->trace);
		free(t);
		return;
	}
	path = qk_path_join(t->req.cwd, t->req.target);
	qk_path_relative(&name, rd->session->cwd, path);
	t->name = t->req.task ? t->req.target : qk_arena_strdup(&t->req.arena, name.s);
	t->trace.lookups = false;
	by = qk_arena_alloc(&rd->ts->arena, sizeof(*by));
	by->id.make_pid = t->req.make_pid;
	by->id.offset = offset;
	by->task = t;
	HASH_ADD(hh, rd->ids, id, sizeof(by->id), by);
	qk_vec_push(&rd->ts->v, t);
}

static void read_requests(struct reading *rd, const char *path)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_record rec;
	size_t pos = 0, at;
	int more;

	if (qk_read_file(AT_FDCWD, path, REQUESTS_MAX, &b, &err)) {
		trouble(rd->ts, err.msg);
		return;
	}
	for (at = 0; (more = qk_record_next(b.s, b.len, &pos, &rec)) > 0; at = pos)
		add_request(rd, b.s + at, pos - at, at);
	if (more < 0)
		trouble(rd->ts, "a request is damaged");
}

static void note_verdict(struct qk_task *t, const char *path, const struct qk_judged *j)
{
	struct qk_task_verdict *v;

	HASH_FIND_STR(t->verdicts, path, v);
	if (!v) {
		v = qk_arena_alloc(&t->req.arena, sizeof(*v));
		v->path = qk_arena_strdup(&t->req.arena, path);
		v->judged = *j;
		HASH_ADD_KEYPTR(hh, t->verdicts, v->path, strlen(v->path), v);
		return;
	}
	if (j->read.answer > v->judged.read.answer)
		v->judged.read = j->read;
	if (j->write.answer > v->judged.write.answer)
		v->judged.write = j->write;
	v->judged.leads |= j->leads;
}

static void add_result(struct qk_result *r, void *arg)
{
	struct reading *rd = arg;
	struct qk_task *t;
	struct by_id *by;
	struct id id = { r->make_pid, r->offset };

	HASH_FIND(hh, rd->ids, &id, sizeof(id), by);
	if (!by) {
		trouble(rd->ts, "a result without its request");
		return;
	}
	t = by->task;
	switch (r->fate) {
	case QK_FATE_SUBMAKE: t->submakes++; return;
	case QK_FATE_UNSANDBOXED: t->unsandboxed++; break;
	case QK_FATE_REFUSED: t->refused++; break;
	case QK_FATE_RESTORED: t->restored++; return;
	case QK_FATE_RAN: break;
	}
	t->lines++;
	if (r->why && !t->why)
		t->why = qk_strdup(r->why);
	if (r->uncached && !t->uncached)
		t->uncached = qk_strdup(r->uncached);
	t->failed |= r->status != 0;
	if (r->trace.incomplete)
		qk_trace_lost(&t->trace, "%s", r->trace.incomplete);
	qk_trace_append(&t->trace, &r->trace);
	for (size_t i = 0; i < r->trace.entries.n; i++)
		note_verdict(t, r->trace.entries.v[i].path, &r->judged.v[i]);
	for (size_t i = 0; i < r->declared.n; i++) {
		struct qk_judged j = { .read = { QK_ALLOWED, QK_BY_DEPFILE } };

		note_verdict(t, r->declared.v[i], &j);
	}
	for (size_t i = 0; i < r->left.n; i++)
		qk_strv_push(&t->left, r->left.v[i]);
	/* each line lists what then lay in the layer: where they share it the last one's word holds */
	if (!r->own_layer)
		qk_strv_release(&t->stray);
	for (size_t i = 0; i < r->stray.n; i++)
		qk_strv_push(&t->stray, r->stray.v[i]);
}

/* The prerequisites that requests name, for makes whose own graph could not be read. */
static void graph_from_requests(struct qk_tasks *ts)
{
	for (size_t i = 0; i < ts->v.n; i++) {
		const struct qk_request *r = &ts->v.v[i]->req;

		for (enum qk_list l = QK_LIST_PREREQS; l <= QK_LIST_ORDER; l++)
			for (size_t k = 0; k < r->lists[l].n; k++)
				qk_graph_add(ts->graph, r->make_pid, r->target, r->lists[l].v[k]);
		/* whoever waits for a sibling waits for this recipe */
		for (size_t k = 0; k < r->lists[QK_LIST_SIBLINGS].n; k++)
			qk_graph_add(ts->graph, r->make_pid, r->lists[QK_LIST_SIBLINGS].v[k], r->target);
	}
}

/* True if the parents of t lead back to t: no run of make does that, but a damaged log may say so. */
static bool is_own_ancestor(const struct qk_task *t)
{
	for (const struct qk_task *p = t->parent; p; p = p->parent)
		if (p == t)
			return true;
	return false;
}

static void find_parents(struct reading *rd)
{
	for (size_t i = 0; i < rd->ts->v.n; i++) {
		struct qk_task *t = rd->ts->v.v[i];
		struct id id = { t->req.parent_pid, t->req.parent_offset };
		struct by_id *by;

		HASH_FIND(hh, rd->ids, &id, sizeof(id), by);
		t->parent = by ? by->task : NULL;
		if (is_own_ancestor(t))
			t->parent = NULL;
	}
}

/* Appends the requests that led to t, from the top make's down, as bytes that sort in their order. */
static void put_place(struct qk_buf *b, const struct qk_task *t)
{
	if (t->parent)
		put_place(b, t->parent);
	for (int shift = 56; shift >= 0; shift -= 8)
		qk_buf_addch(b, (char)(t->req.make_pid >> shift));
	for (int shift = 56; shift >= 0; shift -= 8)
		qk_buf_addch(b, (char)(t->req.offset >> shift));
}

struct placed {
	struct qk_task *task;
	char *place;
	size_t n;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int diff = memcmp(x->place, y->place, x->n < y->n ? x->n : y->n);

	return diff ? diff : (x->n > y->n) - (x->n < y->n);
}

/*
 * Each make's tasks in the order in which it started them, where the recipe that started the make
 * stands: makes that run side by side do not mix, and a run reads the same every time.
 */
static void sort_tasks(struct qk_tasks *ts)
{
	qk_autofree struct placed *all = qk_zalloc(ts->v.n * sizeof(*all));
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < ts->v.n; i++) {
		qk_buf_reset(&b);
		put_place(&b, ts->v.v[i]);
		all[i] = (struct placed){ ts->v.v[i], qk_arena_strndup(&ts->arena, b.s, b.len), b.len };
	}
	qsort(all, ts->v.n, sizeof(*all), by_place);
	for (size_t i = 0; i < ts->v.n; i++)
		ts->v.v[i] = all[i].task;
}

void qk_tasks_read(struct qk_tasks *ts, const struct qk_session *session)
{
	struct reading rd = { .ts = ts, .session = session };
	struct qk_err err = QK_ERR_INIT;
	DIR *d = opendir(session->run);
	struct dirent *e;

	*ts = (struct qk_tasks){ .graph = qk_graph_new() };
	while (d && (e = readdir(d))) {
		qk_autofree char *path = qk_asprintf("%s/%s", session->run, e->d_name);

		if (!strncmp(e->d_name, "requests.", 9))
			read_requests(&rd, path);
		else if (!strncmp(e->d_name, "graph.", 6) &&
			 qk_graph_read(ts->graph, strtoull(e->d_name + 6, NULL, 10), session->run, &err))
			trouble(ts, err.msg);
	}
	if (d)
		closedir(d);
	else
		trouble(ts, strerror(errno));
	graph_from_requests(ts);
	if (qk_result_each(session->run, add_result, &rd, &err))
		trouble(ts, err.msg);
	find_parents(&rd);
	sort_tasks(ts);
	HASH_CLEAR(hh, rd.ids);
}

void qk_tasks_release(struct qk_tasks *ts)
{
	for (size_t i = 0; i < ts->v.n; i++) {
		struct qk_task *t = ts->v.v[i];

		HASH_CLEAR(hh, t->verdicts);
		qk_trace_release(&t->trace);
		qk_strv_release(&t->left);
		qk_strv_release(&t->stray);
		free(t->uncached);
		qk_request_release(&t->req);
		free(t->why);
		free(t);
	}
	qk_vec_release(&ts->v);
	ts->graph = qk_graph_free(ts->graph);
	qk_arena_release(&ts->arena);
	free(ts->trouble);
}

const struct qk_judged *qk_task_judged(const struct qk_task *t, const char *path)
{
	static const struct qk_judged unknown;
	struct qk_task_verdict *v;

	HASH_FIND_STR(t->verdicts, path, v);
	return v ? &v->judged : &unknown;
}

bool qk_tasks_ordered(const struct qk_tasks *ts, const struct qk_task *a, const struct qk_task *b,
	const struct qk_task **ret_a, const struct qk_task **ret_b)
{
	/* in the nearest make that both descend from, the two recipes that lead to them */
	for (const struct qk_task *x = a; x; x = x->parent) {
		for (const struct qk_task *y = b; y; y = y->parent) {
			uint64_t make = x->req.make_pid;

			if (make != y->req.make_pid)
				continue;
			*ret_a = x;
			*ret_b = y;
			return x == y || !strcmp(x->req.target, y->req.target) ||
			       qk_graph_waits(ts->graph, make, x->req.target, y->req.target) ||
			       qk_graph_waits(ts->graph, make, y->req.target, x->req.target);
		}
	}
	return true; /* of different runs of make: nothing is known */
}
