#include "report/shared.h"

#include <string.h>
#include <uthash.h>

enum { AT_LEAST = 3 };

struct path {
	char *key; /* the kind's number, a blank, the path */
	const char *path;
	enum qk_kind kind;
	size_t tasks;
	QK_VEC(struct qk_finding *) findings;
	UT_hash_handle hh;
};

static bool can_be_shared(enum qk_kind kind)
{
	return kind == QK_KIND_READ || kind == QK_KIND_GRANTED || kind == QK_KIND_WRITE ||
	       kind == QK_KIND_PACKAGE || kind == QK_KIND_HOISTED;
}

/* "a.o: x.h" and "b.o: x.h" as "a.o b.o: x.h"; NULL if their right sides differ. */
static const char *joined_fix(struct qk_arena *arena, const struct path *p)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *right = NULL;

	for (size_t i = 0; i < p->findings.n; i++) {
		const char *fix = p->findings.v[i]->fix, *colon = fix ? strstr(fix, ": ") : NULL;

		if (!colon || (right && strcmp(right, colon)))
			return NULL;
		right = colon;
		if (i)
			qk_buf_addch(&b, ' ');
		qk_buf_add(&b, fix, (size_t)(colon - fix));
	}
	qk_buf_addstr(&b, right);
	return qk_arena_strndup(arena, b.s, b.len);
}

static int most_first(const void *a, const void *b)
{
	const struct qk_report_shared *x = a, *y = b;

	if (x->kind != y->kind)
		return (int)x->kind - (int)y->kind;
	if (x->tasks != y->tasks)
		return x->tasks < y->tasks ? 1 : -1;
	return strcmp(x->path, y->path);
}

void qk_shared_find(struct qk_report *rep)
{
	struct path *paths = NULL, *p, *next;
	size_t beyond = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		struct qk_report_task *t = &rep->tasks.v[i];

		beyond += qk_report_went_beyond(t);
		for (size_t k = 0; k < t->findings.n; k++) {
			struct qk_finding *f = &t->findings.v[k];
			qk_autofree char *key = NULL;

			if (!can_be_shared(f->kind))
				continue;
			key = qk_asprintf("%d %s", (int)f->kind, f->path);
			HASH_FIND_STR(paths, key, p);
			if (!p) {
				p = qk_zalloc(sizeof(*p));
				p->key = qk_steal(&key);
				p->path = f->path;
				p->kind = f->kind;
				HASH_ADD_KEYPTR(hh, paths, p->key, strlen(p->key), p);
			}
			p->tasks++;
			qk_vec_push(&p->findings, f);
		}
	}
	HASH_ITER(hh, paths, p, next) {
		if (p->tasks >= AT_LEAST && 4 * p->tasks >= beyond) {
			struct qk_report_shared s = { p->kind, p->path, p->tasks,
				joined_fix(&rep->arena, p) };

			for (size_t i = 0; i < p->findings.n; i++)
				p->findings.v[i]->shared = true;
			qk_vec_push(&rep->shared, s);
		}
		HASH_DEL(paths, p);
		qk_vec_release(&p->findings);
		free(p->key);
		free(p);
	}
	if (rep->shared.n)
		qsort(rep->shared.v, rep->shared.n, sizeof(*rep->shared.v), most_first);
}
