#include "gmk-plugin/tasks/policy.h"

#include "base/buf.h"
#include "base/glob.h"
#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "keying/scratch.h"
#include "keying/store.h"
#include "keying/tokens.h"
#include "sandbox/policy.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct filling {
	struct qk_taskspec *s;
	struct qk_texts *only; /* NULL, or gets paths and patterns in place of rules */
	struct qk_ruletask *t;
	const struct qk_resolved *r;
	QK_VEC(size_t) inputs; /* positions of candidates that are; sorted once all are there */
	QK_VEC(const char *) by_effect; /* held so, and no input; those that exist */
};

static void rule(struct filling *f, const char *path, enum qk_scope scope, unsigned int rights,
	enum qk_reason reason)
{
	struct qk_taskrule r = { qk_arena_strdup(&f->s->arena, path), (uint8_t)scope, (uint8_t)rights,
		(uint8_t)reason };

	if (f->only)
		qk_vec_push(f->only, r.path);
	else
		qk_vec_push(&f->s->rules, r);
}

/* A glob, or a plain name that stands for a file or a whole directory. */
static void glob(struct filling *f, const char *text, unsigned int rights, enum qk_reason reason)
{
	size_t n = strlen(text);
	qk_autofree char *dir = NULL;

	if (*text == '!') /* what is taken away is not written either, but that is no wall's matter */
		return;
	if (!qk_glob_is_pattern(text)) {
		rule(f, text, QK_TREE, rights, reason);
		return;
	}
	/* DIR/ ** in whatever number is the directory with all in it */
	while (n > 3 && !strncmp(text + n - 3, "/**", 3))
		n -= 3;
	dir = qk_strndup(text, n);
	if (!qk_glob_is_pattern(dir))
		rule(f, dir, QK_TREE, rights, reason);
	else
		rule(f, text, QK_GLOB, rights, reason);
}

static void add_outputs(struct filling *f, const struct qk_task *t, unsigned int rights,
	enum qk_reason reason)
{
	for (size_t i = 0; i < t->outputs.n; i++) {
		qk_autofree char *below = qk_asprintf("%s/**", t->outputs.v[i]);

		glob(f, t->outputs.v[i], rights, reason);
		/* one that matches a directory means everything in it */
		if (qk_glob_is_pattern(t->outputs.v[i]) && *t->outputs.v[i] != '!')
			rule(f, below, QK_GLOB, rights, reason);
	}
}

/* --- ignored reads --- */

static void mark_reached(const struct qk_project *p, bool *reached)
{
	for (size_t i = 0; i < p->n_deps; i++) {
		const struct qk_project *d = p->deps[i].project;

		if (reached[d->index])
			continue;
		reached[d->index] = true;
		mark_reached(d, reached);
	}
}

/* ^glob: from the root of every project that the task's depends on. */
static void add_ignored_below(struct filling *f, const struct qk_task *t, const char *text)
{
	const struct qk_workspace *ws = qk_model.ws;
	qk_autofree bool *reached = qk_zalloc(ws->n_projects + 1);

	mark_reached(t->project, reached);
	for (size_t i = 0; i < ws->n_projects; i++) {
		const char *root = ws->projects[i].root;
		qk_autofree char *path = strcmp(root, ".") ? qk_asprintf("%s/%s", root, text)
							   : qk_strdup(text);

		if (reached[i])
			glob(f, path, QK_READ, QK_BY_IGNORE);
	}
}

/* What the target says, without what it entails. */
static void add_ignored_globs(struct filling *f, const struct qk_task *t)
{
	const struct qk_names *names = &t->target->qk.ignore_reads;

	for (size_t i = 0; i < names->n; i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;
		const char *text = names->v[i];

		if (*text == '^')
			add_ignored_below(f, t, text + 1);
		else if (qk_tokens_path(&b, text, t->project, t->options, NULL))
			glob(f, b.s, QK_READ, QK_BY_IGNORE);
	}
}

void qk_taskpolicy_ignored_globs(struct qk_strv *ret, const struct qk_task *t)
{
	struct qk_taskspec s = { 0 };
	struct filling f = { .s = &s, .only = &s.unrecorded };

	add_ignored_globs(&f, t);
	for (size_t i = 0; i < s.unrecorded.n; i++)
		qk_strv_push(ret, s.unrecorded.v[i]);
	qk_taskspec_release(&s);
}

/* Ignored reads that cover an importer cover the manifests of projects it links to (A7). */
static void add_ignored(struct filling *f, const struct qk_task *t)
{
	qk_autostrv struct qk_strv globs = { 0 }, linked = { 0 };
	struct qk_packages *packages;

	if (!t->target->qk.ignore_reads.n)
		return;
	add_ignored_globs(f, t);
	packages = qk_model_packages(qk_model_task(t->id));
	if (!packages)
		return;
	qk_taskpolicy_ignored_globs(&globs, t);
	qk_packages_linked(packages, t, &globs, &linked);
	for (size_t i = 0; i < linked.n; i++) {
		qk_autofree char *manifest = qk_asprintf("%s/package.json", linked.v[i]);

		rule(f, manifest, QK_EXACT, QK_READ, QK_BY_IGNORE);
	}
}

void qk_taskpolicy_ignored(struct qk_taskspec *s, const struct qk_task *t)
{
	struct filling f = { .s = s, .only = &s->unrecorded };

	add_ignored(&f, t);
}

/* --- inputs --- */

static size_t position(const char *path)
{
	const struct qk_tracked *t = &qk_model.tracked;
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(t->v[mid], path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && !strcmp(t->v[lo], path) ? lo : t->n;
}

/* Marks the files of a group; what is no candidate (package.json ignored by Git) gets its rule. */
static void mark_group(struct filling *f, const struct qk_filegroup *g)
{
	for (size_t i = 0; i < g->n; i++) {
		size_t at = position(g->paths[i]);

		if (at < qk_model.tracked.n)
			qk_vec_push(&f->inputs, at);
		else
			rule(f, g->paths[i], QK_EXACT, QK_READ, QK_BY_INPUT);
	}
}

static bool holds_by_effect(const struct filling *f, const char *dir)
{
	for (size_t i = 0; i < f->by_effect.n; i++)
		if (!strcmp(dir, ".") || qk_path_under(f->by_effect.v[i], dir))
			return true;
	return false;
}

static int by_position(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

static void sort_inputs(struct filling *f)
{
	size_t n = 0;

	if (f->inputs.n)
		qsort(f->inputs.v, f->inputs.n, sizeof(*f->inputs.v), by_position);
	for (size_t i = 0; i < f->inputs.n; i++)
		if (!n || f->inputs.v[n - 1] != f->inputs.v[i])
			f->inputs.v[n++] = f->inputs.v[i];
	f->inputs.n = n;
}

static bool is_input(const struct filling *f, size_t at)
{
	return f->inputs.n &&
	       bsearch(&at, f->inputs.v, f->inputs.n, sizeof(at), by_position) != NULL;
}

/* Where the candidates end, from `from` on and before to, that begin with the first n bytes of it. */
static size_t end_of(size_t from, size_t to, size_t n)
{
	const char *const *v = (const char *const *)qk_model.tracked.v;
	size_t lo = from, hi = to;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strncmp(v[mid], v[from], n))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The first candidate, from `from` on, that begins with the first n bytes of candidate at. */
static size_t begin_of(size_t from, size_t at, size_t n)
{
	const char *const *v = (const char *const *)qk_model.tracked.v;
	size_t lo = from, hi = at;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strncmp(v[mid], v[at], n))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Where among the inputs, from `first` on, those end that lie before candidate `to`. */
static size_t inputs_before(const struct filling *f, size_t first, size_t to)
{
	size_t lo = first, hi = f->inputs.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->inputs.v[mid] < to)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The inputs [first, last) among the candidates [from, to), all of these below a directory whose name
 * is the first n bytes of each. A task has few of a workspace's files: the others are not gone through.
 */
static void compress(struct filling *f, size_t first, size_t last, size_t from, size_t to, size_t n)
{
	const char *const *v = (const char *const *)qk_model.tracked.v;
	size_t next, at, len;

	if (first == last)
		return;
	if (last - first == to - from) {
		qk_autofree char *dir = n ? qk_strndup(v[from], n) : qk_strdup(".");

		if (!holds_by_effect(f, dir)) {
			rule(f, dir, QK_TREE, QK_READ, QK_BY_INPUT);
			return;
		}
	}
	for (; first < last; first = next) {
		size_t start = n + (n > 0), begin;

		at = f->inputs.v[first];
		len = start + strcspn(v[at] + start, "/");
		if (!v[at][len]) {
			rule(f, v[at], QK_EXACT, QK_READ, QK_BY_INPUT);
			next = first + 1;
			continue;
		}
		begin = begin_of(from, at, len + 1);
		at = end_of(at, to, len + 1);
		next = inputs_before(f, first, at);
		compress(f, first, next, begin, at, len);
	}
}

/* The outputs of the task that a glob selects, as far as one pattern can say both. */
static void add_selected(struct filling *f, const struct qk_part *part)
{
	bool anywhere = !strncmp(part->value, "**/", 3);

	for (size_t i = 0; i < part->n_globs; i++) {
		const char *o = part->globs[i];
		qk_autofree char *both = qk_asprintf("%s/%s", o, part->value);

		if (*o == '!')
			continue;
		if (qk_glob_match(part->value, o))
			glob(f, o, QK_READ, QK_BY_DEPENDENCY);
		rule(f, anywhere && !qk_glob_is_pattern(o) ? both : part->value, QK_GLOB, QK_READ,
			QK_BY_DEPENDENCY);
	}
}

/* --- links among the inputs: what they lead to counts in the key, and so may be read --- */

enum { LINK_DEPTH = 16 };

static void add_target(struct filling *f, const char *path, int depth);

/* The links in a directory that may be read whole lead on. */
static void add_nested(struct filling *f, const char *dir, int depth)
{
	DIR *d = depth < LINK_DEPTH ? opendir(dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		qk_autofree char *path = qk_asprintf("%s/%s", dir, e->d_name);
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || lstat(path, &st))
			continue;
		if (S_ISLNK(st.st_mode))
			add_target(f, path, depth + 1);
		else if (S_ISDIR(st.st_mode))
			add_nested(f, path, depth + 1);
	}
	if (d)
		closedir(d);
}

/* path: absolute, a link. */
static void add_target(struct filling *f, const char *path, int depth)
{
	const char *below;
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(path, real) || stat(real, &st))
		return;
	below = qk_path_below(real, qk_model.host->root);
	if (!below || !*below)
		return;
	for (size_t i = 0; i < f->s->rules.n; i++)
		if (f->s->rules.v[i].scope == QK_TREE && !strcmp(f->s->rules.v[i].path, below))
			return;
	rule(f, below, S_ISDIR(st.st_mode) ? QK_TREE : QK_EXACT, QK_READ, QK_BY_INPUT);
	if (S_ISDIR(st.st_mode))
		add_nested(f, real, depth);
}

/* Which candidates are links: looked at once for all tasks. */
static const bool *links(void)
{
	static bool *is_link;

	if (is_link)
		return is_link;
	is_link = qk_zalloc(qk_model.tracked.n + 1);
	for (size_t i = 0; i < qk_model.tracked.n; i++) {
		struct stat st;

		is_link[i] = !lstat(qk_model.tracked.v[i], &st) && S_ISLNK(st.st_mode);
	}
	return is_link;
}

static void add_links(struct filling *f)
{
	const bool *is_link = links();

	for (size_t i = 0; i < f->inputs.n; i++)
		if (is_link[f->inputs.v[i]]) {
			qk_autofree char *path = qk_path_join(
				qk_model.host->root, qk_model.tracked.v[f->inputs.v[i]]);

			add_target(f, path, 0);
		}
}

static void add_inputs(struct filling *f)
{
	struct qk_arena *a = &f->s->arena;

	for (size_t i = 0; i < f->r->list.n; i++) {
		const struct qk_input *in = &f->r->list.v[i];

		if (in->kind == QK_INPUT_FILES)
			mark_group(f, in->files);
		if (in->kind == QK_INPUT_JSON)
			rule(f, in->name, QK_EXACT, QK_READ, QK_BY_INPUT);
	}
	sort_inputs(f);
	for (size_t i = 0; i < f->r->list.n; i++) {
		const struct qk_input *in = &f->r->list.v[i];
		size_t at = in->kind == QK_INPUT_FILE ? position(in->name) : 0;
		qk_autofree char *path = NULL;

		if (in->kind != QK_INPUT_FILE || (at < qk_model.tracked.n && is_input(f, at)))
			continue;
		path = qk_path_join(qk_model.host->root, in->name);
		if (!access(path, F_OK))
			qk_vec_push(&f->by_effect, qk_arena_strdup(a, in->name));
	}
	compress(f, 0, f->inputs.n, 0, qk_model.tracked.n, 0);
	add_links(f);
	for (size_t i = 0; i < f->r->parts.list.n; i++) {
		const struct qk_part *part = &f->r->parts.list.v[i];

		if (part->kind != QK_PART_OUTPUTS)
			continue;
		if (part->value) {
			add_selected(f, part);
			continue;
		}
		for (size_t k = 0; k < part->n_globs; k++)
			glob(f, part->globs[k], QK_READ, QK_BY_DEPENDENCY);
	}
	qk_vec_release(&f->inputs);
	qk_vec_release(&f->by_effect);
}

void qk_taskpolicy_fill(struct qk_taskspec *s, struct qk_ruletask *t, bool all)
{
	struct filling f = { .s = s, .t = t };

	add_outputs(&f, t->task, QK_READ | QK_WRITE, QK_BY_OUTPUT);
	if (!all)
		return;
	f.r = qk_model_inputs(t);
	if (f.r)
		add_inputs(&f);
	for (size_t i = 0; i < s->warm.n; i++)
		glob(&f, s->warm.v[i], QK_READ | QK_WRITE, QK_BY_WARM);
	for (size_t i = 0; i < s->scratch.n; i++)
		rule(&f, s->scratch.v[i], QK_TREE, QK_READ | QK_WRITE, QK_BY_SCRATCH);
	add_ignored(&f, t->task);
}

/* --- scratch --- */

/* The clean path of scratch entry k of the task; NULL with *ret_why (allocated) if it cannot be one. */
static const char *scratch_path(
	struct qk_arena *a, const struct qk_task *t, size_t k, char **ret_why)
{
	const struct qk_workspace *ws = qk_model.ws;
	qk_autofree char *store =
		qk_store_dir(ws->root, getenv("QK_CACHE_DIR"), ws->cache_directory);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *why = NULL;

	if (qk_tokens_path(&b, t->target->qk.scratch.v[k], t->project, t->options, &why))
		*ret_why = qk_scratch_refuse(ws, store, b.s);
	else
		*ret_why = qk_strdup(why);
	return *ret_why ? NULL : qk_arena_strndup(a, b.s, b.len);
}

/* The warm paths of the task, into s; why one cannot be, or NULL. */
static const char *warm_problem(struct qk_taskspec *s, const struct qk_task *t)
{
	const struct qk_declared *d = &t->target->qk;
	qk_autofree char *store =
		qk_store_dir(qk_model.ws->root, getenv("QK_CACHE_DIR"), qk_model.ws->cache_directory);

	for (size_t k = 0; k < d->warm.n; k++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;
		const char *why = NULL;
		qk_autofree char *refused = NULL;

		if (qk_tokens_path(&b, d->warm.v[k], t->project, t->options, &why))
			why = refused = qk_warm_refuse(qk_model.ws, store, b.s);
		if (why)
			return qk_arena_printf(&s->arena, "%s: warm path '%s': %s",
				qk_json_place(&s->arena, d->warm_at->items[k]), d->warm.v[k], why);
		qk_vec_push(&s->warm, qk_arena_strndup(&s->arena, b.s, b.len));
	}
	return NULL;
}

const char *qk_taskpolicy_problem(struct qk_taskspec *s, const struct qk_task *t)
{
	const struct qk_declared *d = &t->target->qk;

	for (size_t k = 0; k < d->scratch.n; k++) {
		qk_autofree char *why = NULL;
		const char *path = scratch_path(&s->arena, t, k, &why);

		if (!path)
			return qk_arena_printf(&s->arena, "%s: scratch directory '%s': %s",
				qk_json_place(&s->arena, d->scratch_at->items[k]), d->scratch.v[k],
				why);
		qk_vec_push(&s->scratch, path);
	}
	return warm_problem(s, t);
}

/* A scratch directory of this run and the task it is of. */
struct claimed {
	const char *path;
	const struct qk_task *task;
};

void qk_taskpolicy_claim_scratch(const struct qk_task *t)
{
	static QK_VEC(struct claimed) all;
	struct qk_arena *a = &qk_model.arena;

	for (size_t k = 0; k < t->target->qk.scratch.n; k++) {
		qk_autofree char *why = NULL;
		struct claimed own = { scratch_path(a, t, k, &why), t };

		if (!own.path)
			continue;
		for (size_t i = 0; i < all.n; i++) {
			const struct claimed *other = &all.v[i];

			if (other->task != t && (qk_path_under(own.path, other->path) ||
							qk_path_under(other->path, own.path)))
				qk_gmkx_fatal("qk: %s: scratch directory '%s' of %s is, holds or "
					      "lies in '%s' of %s, and each is emptied before its "
					      "task runs",
					qk_json_place(a, t->target->qk.scratch_at->items[k]),
					own.path, t->id, other->path, other->task->id);
		}
		qk_vec_push(&all, own);
	}
}
