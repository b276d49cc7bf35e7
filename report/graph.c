#include "report/graph.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/record.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <uthash.h>

enum { TAG_NAME = 1, TAG_NEEDS = 2, GRAPH_MAX = 1 << 30 };

struct node {
	char *key; /* "PID name" */
	const char *name;
	uint64_t make_pid;
	QK_VEC(struct node *) needs;
	unsigned int seen; /* the last search that came by */
	UT_hash_handle hh;
};

struct qk_graph {
	struct qk_arena arena;
	struct node *nodes;
	unsigned int search;       /* the number of the last search */
	const struct node *origin; /* where it began: its marks answer for every goal; NULL = none holds */
};

struct qk_graph *qk_graph_new(void)
{
	return qk_zalloc(sizeof(struct qk_graph));
}

struct qk_graph *qk_graph_free(struct qk_graph *g)
{
	struct node *n, *next;

	if (!g)
		return NULL;
	HASH_ITER(hh, g->nodes, n, next)
		qk_vec_release(&n->needs);
	HASH_CLEAR(hh, g->nodes);
	qk_arena_release(&g->arena);
	free(g);
	return NULL;
}

static struct node *find(struct qk_graph *g, uint64_t make_pid, const char *name, bool add)
{
	qk_autofree char *key = qk_asprintf("%llu %s", (unsigned long long)make_pid, name);
	struct node *n;

	HASH_FIND_STR(g->nodes, key, n);
	if (n || !add)
		return n;
	n = qk_arena_alloc(&g->arena, sizeof(*n));
	n->key = qk_arena_strdup(&g->arena, key);
	n->name = strchr(n->key, ' ') + 1;
	n->make_pid = make_pid;
	HASH_ADD_KEYPTR(hh, g->nodes, n->key, strlen(n->key), n);
	return n;
}

void qk_graph_add(struct qk_graph *g, uint64_t make_pid, const char *target, const char *prerequisite)
{
	struct node *from = find(g, make_pid, target, true);
	struct node *to = find(g, make_pid, prerequisite, true);

	g->origin = NULL;
	if (from != to && (!from->needs.n || from->needs.v[from->needs.n - 1] != to))
		qk_vec_push(&from->needs, to);
}

/* Marks what start waits for, directly or over others; start itself if it is in a circle. */
static void search_from(struct qk_graph *g, struct node *start)
{
	QK_VEC(struct node *) todo = { 0 };

	g->search++;
	g->origin = start;
	qk_vec_push(&todo, start);
	while (todo.n) {
		struct node *n = todo.v[--todo.n];

		for (size_t i = 0; i < n->needs.n; i++) {
			struct node *m = n->needs.v[i];

			if (m->seen == g->search)
				continue;
			m->seen = g->search;
			qk_vec_push(&todo, m);
		}
	}
	qk_vec_release(&todo);
}

bool qk_graph_waits(struct qk_graph *g, uint64_t make_pid, const char *from, const char *to)
{
	struct node *start = find(g, make_pid, from, false), *goal = find(g, make_pid, to, false);

	if (!start || !goal)
		return false;
	if (g->origin != start)
		search_from(g, start);
	return goal->seen == g->search;
}

int qk_graph_write(const struct qk_graph *g, uint64_t make_pid, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/graph.%llu", run, (unsigned long long)make_pid);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct node *n, *next;

	HASH_ITER(hh, g->nodes, n, next) {
		size_t begin;

		if (n->make_pid != make_pid || !n->needs.n)
			continue;
		begin = qk_record_begin(&b);
		qk_record_putstr(&b, TAG_NAME, n->name);
		for (size_t i = 0; i < n->needs.n; i++)
			qk_record_putstr(&b, TAG_NEEDS, n->needs.v[i]->name);
		qk_record_end(&b, begin);
	}
	return qk_write_file(path, b.s, b.len, 0666, err);
}

int qk_graph_read(struct qk_graph *g, uint64_t make_pid, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/graph.%llu", run, (unsigned long long)make_pid);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	size_t pos = 0;
	int more, ret = qk_read_file(AT_FDCWD, path, GRAPH_MAX, &b, err);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	while ((more = qk_record_next(b.s, b.len, &pos, &rec)) > 0) {
		qk_autofree char *name = NULL;
		struct qk_field f;

		while ((more = qk_field_next(&rec, &f)) > 0) {
			qk_autofree char *s = qk_strndup(f.p, f.n);

			if (f.tag == TAG_NAME) {
				free(name);
				name = qk_steal(&s);
			} else if (f.tag == TAG_NEEDS && name) {
				qk_graph_add(g, make_pid, name, s);
			}
		}
		if (more < 0)
			break;
	}
	return more < 0 ? qk_fail(err, -EBADMSG, "'%s': damaged", path) : 0;
}
