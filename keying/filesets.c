#include "keying/filesets.h"

#include "base/glob.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/outputs.h"
#include "keying/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Outputs of targets, found by the literal directory (or path) their globs begin with. */
struct bucket {
	UT_hash_handle hh;
	const char *dir;
	QK_VEC(struct qk_outputs *) outputs;
};

struct memo {
	UT_hash_handle hh;
	const char *patterns;
	struct qk_filegroup *group;
};

struct qk_filesets {
	struct qk_arena arena;
	const struct qk_workspace *ws;
	struct bucket *buckets;
	QK_VEC(struct qk_outputs *) outputs; /* all, for releasing */
	const char **all;                    /* candidates in byte order */
	size_t n;
	const struct qk_project **owner; /* of each candidate, or NULL */
	struct memo *memos;
};

static void file_outputs(struct qk_filesets *f, struct qk_outputs *o)
{
	for (size_t i = 0; i < o->include.n; i++) {
		const char *glob = o->include.v[i];
		bool literal = !qk_glob_is_pattern(glob);
		char *dir = qk_arena_strndup(
			&f->arena, glob, literal ? strlen(glob) : qk_glob_literal_dir(glob));
		struct bucket *b;

		HASH_FIND_STR(f->buckets, dir, b);
		if (!b) {
			b = qk_arena_alloc(&f->arena, sizeof(*b));
			b->dir = dir;
			HASH_ADD_KEYPTR(hh, f->buckets, b->dir, strlen(b->dir), b);
		}
		qk_vec_push(&b->outputs, o);
	}
}

/* What cannot be resolved is told where the task's own declarations are read. */
static void add_glob(struct qk_outputs *o, const char *text, const struct qk_project *p,
	const struct qk_target *t)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (qk_tokens_path(&b, text, p, t->options, NULL))
		qk_outputs_add(o, b.s, NULL);
}

static void add_outputs(struct qk_filesets *f, const struct qk_project *p, struct qk_outputs *o)
{
	qk_vec_push(&f->outputs, o);
	/* Outputs that hold the whole project would leave it without inputs. */
	if (strcmp(p->root, ".") && qk_outputs_match(o, p->root))
		return;
	file_outputs(f, o);
}

/* Outputs, and beside them what else the task itself makes: warm paths and scratch directories. */
static void add_target(struct qk_filesets *f, const struct qk_project *p, const struct qk_target *t)
{
	struct qk_outputs *o, *own;
	uint32_t n = t->outputs && t->outputs->type == QK_JSON_ARRAY ? t->outputs->n : 0;

	if (n) {
		o = qk_zalloc(sizeof(*o));
		for (uint32_t i = 0; i < n; i++)
			if (t->outputs->items[i]->type == QK_JSON_STRING)
				add_glob(o, t->outputs->items[i]->s, p, t);
		add_outputs(f, p, o);
	}
	if (!t->qk.warm.n && !t->qk.scratch.n)
		return;
	own = qk_zalloc(sizeof(*own));
	for (size_t i = 0; i < t->qk.warm.n; i++)
		add_glob(own, t->qk.warm.v[i], p, t);
	for (size_t i = 0; i < t->qk.scratch.n; i++)
		add_glob(own, t->qk.scratch.v[i], p, t);
	add_outputs(f, p, own);
}

/* True if the path, or a directory above it, is an output of some target. */
static bool is_output(struct qk_filesets *f, const char *path)
{
	size_t n = strlen(path);
	struct bucket *b;

	for (;;) {
		HASH_FIND(hh, f->buckets, path, n, b);
		for (size_t i = 0; b && i < b->outputs.n; i++)
			if (qk_outputs_match(b->outputs.v[i], path))
				return true;
		if (!n)
			return false;
		while (n && path[n - 1] != '/')
			n--;
		n -= n > 0;
	}
}

struct qk_filesets *qk_filesets_new(const struct qk_workspace *ws, const struct qk_tracked *t)
{
	struct qk_filesets *f = qk_zalloc(sizeof(*f));
	qk_autofree char *cache =
		ws->cache_directory ? qk_path_join(ws->root, ws->cache_directory) : NULL;
	const char *cache_below = cache ? qk_path_below(cache, ws->root) : NULL;

	f->ws = ws;
	for (size_t i = 0; i < ws->n_projects; i++)
		for (size_t k = 0; k < ws->projects[i].n_targets; k++)
			add_target(f, &ws->projects[i], &ws->projects[i].targets[k]);
	f->all = qk_alloc((t->n + 1) * sizeof(*f->all));
	f->owner = qk_alloc((t->n + 1) * sizeof(*f->owner));
	for (size_t i = 0; i < t->n; i++) {
		if (is_output(f, t->v[i]) ||
			(cache_below && *cache_below && qk_path_under(t->v[i], cache_below)))
			continue;
		f->owner[f->n] = qk_workspace_owner(ws, t->v[i]);
		f->all[f->n++] = t->v[i];
	}
	return f;
}

void qk_filesets_free(struct qk_filesets *f)
{
	if (!f)
		return;
	for (struct bucket *b = f->buckets; b; b = b->hh.next)
		qk_vec_release(&b->outputs);
	HASH_CLEAR(hh, f->buckets);
	HASH_CLEAR(hh, f->memos);
	for (size_t i = 0; i < f->outputs.n; i++) {
		qk_outputs_release(f->outputs.v[i]);
		free(f->outputs.v[i]);
	}
	qk_vec_release(&f->outputs);
	free(f->all);
	free(f->owner);
	qk_arena_release(&f->arena);
	free(f);
}

static size_t first_not_before(const struct qk_filesets *f, const char *path)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(f->all[mid], path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The candidates below dir ("" for all): the range [*from, *to). */
static void range_of(const struct qk_filesets *f, const char *dir, size_t *from, size_t *to)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	*from = 0;
	*to = f->n;
	if (!*dir || !strcmp(dir, "."))
		return;
	qk_buf_addf(&b, "%s/", dir);
	*from = first_not_before(f, b.s);
	b.s[b.len - 1]++; /* the byte after '/' */
	*to = first_not_before(f, b.s);
}

static bool matches(const char *glob, const char *path)
{
	if (qk_glob_is_pattern(glob))
		return qk_glob_match(glob, path);
	return !strcmp(glob, ".") || qk_path_under(path, glob);
}

/* True for the patterns that mean everything below root. */
static bool is_everything(const char *glob, const char *root)
{
	const char *rest = strcmp(root, ".") ? qk_path_below(glob, root) : glob;

	return rest &&
	       (!strcmp(rest, "**/*") || !strcmp(rest, "**") || !*rest || !strcmp(rest, "."));
}

static bool taken_away(const struct qk_fileset *sets, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (sets[i].negated && matches(sets[i].glob, path))
			return true;
	return false;
}

typedef QK_VEC(size_t) index_vec;

static void choose(const struct qk_filesets *f, const struct qk_project *p, const char *glob,
	bool any, index_vec *chosen)
{
	bool everything = !any && is_everything(glob, p->root);
	qk_autofree char *dir = NULL;
	size_t from, to, exact;

	dir = qk_strndup(glob, qk_glob_is_pattern(glob) ? qk_glob_literal_dir(glob) : strlen(glob));
	range_of(f, dir, &from, &to);
	for (size_t i = from; i < to; i++)
		if ((any || f->owner[i] == p) && (everything || matches(glob, f->all[i])))
			qk_vec_push(chosen, i);
	/* The path itself lies outside the range of what is below it. */
	exact = first_not_before(f, dir);
	if (*dir && exact < f->n && !strcmp(f->all[exact], dir) && (any || f->owner[exact] == p) &&
		matches(glob, dir))
		qk_vec_push(chosen, exact);
}

static int by_index(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

static struct qk_filegroup *select_group(struct qk_filesets *f, const struct qk_project *p,
	const struct qk_fileset *sets, size_t n, bool any)
{
	struct qk_filegroup *g = qk_arena_alloc(&f->arena, sizeof(*g));
	index_vec chosen = { 0 };
	bool positive = false;
	const char **paths;

	for (size_t i = 0; i < n; i++) {
		positive = positive || !sets[i].negated;
		if (!sets[i].negated && sets[i].of_workspace == any)
			choose(f, p, sets[i].glob, any, &chosen);
	}
	if (!positive)
		choose(f, p, p->root, any, &chosen);
	if (chosen.n)
		qsort(chosen.v, chosen.n, sizeof(*chosen.v), by_index);
	paths = qk_arena_alloc(&f->arena, (chosen.n + 1) * sizeof(*paths));
	for (size_t i = 0; i < chosen.n; i++) {
		const char *path = f->all[chosen.v[i]];

		if ((!i || chosen.v[i - 1] != chosen.v[i]) && !taken_away(sets, n, path))
			paths[g->n++] = path;
	}
	g->paths = paths;
	qk_vec_release(&chosen);
	return g;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The patterns behind the project they are of in an order of their own, each once. */
static char *describe(const struct qk_project *p, const struct qk_fileset *sets, size_t n, bool any)
{
	qk_autostrv struct qk_strv texts = { 0 };
	struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < n; i++)
		if (sets[i].negated || sets[i].of_workspace == any)
			qk_strv_take(&texts,
				qk_asprintf("%s%s", sets[i].negated ? "!" : "", sets[i].glob));
	if (texts.n)
		qsort(texts.v, texts.n, sizeof(*texts.v), by_text);
	qk_strv_uniq(&texts);
	qk_buf_addstr(&b, any ? "workspace:" : p->name);
	if (!any)
		qk_buf_addch(&b, ':');
	for (size_t i = 0; i < texts.n; i++)
		qk_buf_addf(&b, " %s", texts.v[i]);
	return qk_buf_detach(&b);
}

static struct qk_filegroup *memoized(struct qk_filesets *f, const struct qk_project *p,
	const struct qk_fileset *sets, size_t n, bool any)
{
	qk_autofree char *patterns = describe(p, sets, n, any);
	struct memo *m;

	HASH_FIND_STR(f->memos, patterns, m);
	if (m)
		return m->group;
	m = qk_arena_alloc(&f->arena, sizeof(*m));
	m->patterns = qk_arena_strdup(&f->arena, patterns);
	m->group = select_group(f, p, sets, n, any);
	m->group->name = m->patterns;
	HASH_ADD_KEYPTR(hh, f->memos, m->patterns, strlen(m->patterns), m);
	return m->group;
}

void qk_filesets_select(struct qk_filesets *f, const struct qk_project *p,
	const struct qk_fileset *sets, size_t n, struct qk_filegroup **ret_own,
	struct qk_filegroup **ret_any)
{
	bool own = false, any = false;

	for (size_t i = 0; i < n; i++) {
		own = own || (!sets[i].negated && !sets[i].of_workspace);
		any = any || (!sets[i].negated && sets[i].of_workspace);
	}
	*ret_own = n && (own || !any) ? memoized(f, p, sets, n, false) : NULL;
	*ret_any = any ? memoized(f, p, sets, n, true) : NULL;
}

struct qk_filegroup *qk_filesets_group(
	struct qk_filesets *f, const char *name, const char *const *paths, size_t n)
{
	struct qk_filegroup *g = qk_arena_alloc(&f->arena, sizeof(*g));
	const char **own = qk_arena_alloc(&f->arena, (n + 1) * sizeof(*own));

	for (size_t i = 0; i < n; i++)
		own[i] = qk_arena_strdup(&f->arena, paths[i]);
	g->name = qk_arena_strdup(&f->arena, name);
	g->paths = own;
	g->n = n;
	return g;
}
