#include "keying/lockfile.h"

#include "keying/lockyaml.h"

#include <errno.h>
#include <string.h>

const char *const qk_lockfile_names[] = {
	"pnpm-lock.yaml",
	"package-lock.json",
	"npm-shrinkwrap.json",
	"yarn.lock",
	"bun.lock",
	"bun.lockb",
	NULL,
};

void qk_lockfile_free(struct qk_lockfile *l)
{
	if (!l)
		return;
	HASH_CLEAR(hh, l->importers);
	HASH_CLEAR(hh, l->snapshots);
	qk_arena_release(&l->arena);
	free(l);
}

size_t qk_lockfile_name(const char *key)
{
	const char *at = strchr(key + (*key == '@'), '@');

	return at ? (size_t)(at - key) : strlen(key);
}

bool qk_lockfile_has_importer(const struct qk_lockfile *l, const char *dir)
{
	struct qk_locknode *n;

	HASH_FIND_STR(l->importers, dir, n);
	return n;
}

/* Nodes reached so far, each once; the queue is the result. */
struct reach {
	const struct qk_lockfile *l;
	QK_VEC(const struct qk_locknode *) nodes;
	struct seen {
		UT_hash_handle hh;
		const struct qk_locknode *node;
	} * seen;
	struct qk_strv linked; /* directories that are no importers */
	struct qk_arena arena;
};

static void reach_release(struct reach *r)
{
	HASH_CLEAR(hh, r->seen);
	qk_vec_release(&r->nodes);
	qk_strv_release(&r->linked);
	qk_arena_release(&r->arena);
}

static void reach_add(struct reach *r, const struct qk_locknode *n)
{
	struct seen *s;

	HASH_FIND_PTR(r->seen, &n, s);
	if (s)
		return;
	s = qk_arena_alloc(&r->arena, sizeof(*s));
	s->node = n;
	HASH_ADD_PTR(r->seen, node, s);
	qk_vec_push(&r->nodes, n);
}

/* Goes on until nothing new is reached. */
static int reach_all(struct reach *r, struct qk_err *err)
{
	const size_t mark = sizeof(QK_LOCKFILE_LINK) - 1;

	for (size_t i = 0; i < r->nodes.n; i++) {
		const struct qk_locknode *n = r->nodes.v[i], *to;

		for (size_t k = 0; k < n->n_refs; k++) {
			const char *ref = n->refs[k];

			if (!strncmp(ref, QK_LOCKFILE_LINK, mark)) {
				HASH_FIND_STR(r->l->importers, ref + mark, to);
				if (to)
					reach_add(r, to);
				else
					qk_strv_push(&r->linked, ref + mark);
				continue;
			}
			HASH_FIND_STR(r->l->snapshots, ref, to);
			if (!to)
				return qk_fail(err, -EINVAL,
					"%s:%d: '%s' needs '%s', which is in no snapshot",
					r->l->file, n->line, n->key, ref);
			reach_add(r, to);
		}
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct qk_locknode *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

/* What was reached, in an order that does not hang on where one began. */
static void reach_fold(struct reach *r, struct qk_hasher *h)
{
	if (r->nodes.n)
		qsort(r->nodes.v, r->nodes.n, sizeof(*r->nodes.v), by_key);
	for (size_t i = 0; i < r->nodes.n; i++) {
		qk_hasher_field(h, r->nodes.v[i]->key, strlen(r->nodes.v[i]->key));
		qk_hasher_add(h, r->nodes.v[i]->own.b, QK_DIGEST_SIZE);
	}
}

static int reach_importers(struct reach *r, const char *const *dirs, size_t n, struct qk_err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct qk_locknode *importer;

		HASH_FIND_STR(r->l->importers, dirs[i], importer);
		if (importer)
			reach_add(r, importer);
	}
	return reach_all(r, err);
}

/* Where a snapshot is installed from, "vendor/x" of "x@file:vendor/x(peer@1.0.0)", if that is no registry. */
static void add_local(struct qk_strv *to, const char *key)
{
	static const char mark[] = "@file:";
	const char *at = key + qk_lockfile_name(key);

	if (!strncmp(at, mark, sizeof(mark) - 1)) {
		at += sizeof(mark) - 1;
		qk_strv_take(to, qk_strndup(at, strcspn(at, "(")));
	}
}

/* Folds what was reached, with the settings, and tells what of it is local. */
static void reach_count(struct reach *r, struct qk_digest *ret, struct qk_strv *ret_local)
{
	struct qk_hasher h;

	qk_hasher_init(&h);
	qk_hasher_add(&h, r->l->settings.b, QK_DIGEST_SIZE);
	reach_fold(r, &h);
	qk_hasher_done(&h, ret);
	for (size_t i = 0; i < r->nodes.n; i++)
		if (r->nodes.v[i]->is_snapshot)
			add_local(ret_local, r->nodes.v[i]->key);
	for (size_t i = 0; i < r->linked.n; i++)
		qk_strv_push(ret_local, r->linked.v[i]);
	qk_strv_sort(ret_local);
	qk_strv_uniq(ret_local);
}

int qk_lockfile_importers(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	struct qk_digest *ret, struct qk_strv *ret_local, struct qk_err *err)
{
	struct reach reach = { .l = l };
	int r = reach_importers(&reach, dirs, n, err);

	if (!r)
		reach_count(&reach, ret, ret_local);
	reach_release(&reach);
	return r;
}

/* All installed versions of a package; false if there is none. */
static bool reach_name(struct reach *r, const char *name)
{
	size_t n = strlen(name);
	bool found = false;

	for (struct qk_locknode *s = r->l->snapshots; s; s = s->hh.next) {
		if (qk_lockfile_name(s->key) != n || memcmp(s->key, name, n))
			continue;
		found = true;
		reach_add(r, s);
	}
	return found;
}

int qk_lockfile_packages(const struct qk_lockfile *l, const char *const *names, size_t n,
	struct qk_digest *ret, struct qk_strv *ret_local, const char **ret_unknown,
	struct qk_err *err)
{
	struct reach reach = { .l = l };
	int r;

	*ret_unknown = NULL;
	for (size_t i = 0; i < n; i++)
		if (!reach_name(&reach, names[i]) && !*ret_unknown)
			*ret_unknown = names[i];
	r = reach_all(&reach, err);
	if (!r)
		reach_count(&reach, ret, ret_local);
	reach_release(&reach);
	return r;
}

int qk_lockfile_reached(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	const char *const *names, size_t n_names, struct qk_lockreach *ret, struct qk_err *err)
{
	struct reach reach = { .l = l };
	int r;

	*ret = (struct qk_lockreach){ 0 };
	for (size_t i = 0; i < n_names; i++)
		reach_name(&reach, names[i]);
	r = reach_importers(&reach, dirs, n, err);
	if (!r && reach.nodes.n)
		qsort(reach.nodes.v, reach.nodes.n, sizeof(*reach.nodes.v), by_key);
	for (size_t i = 0; i < reach.nodes.n && !r; i++) {
		const struct qk_locknode *node = reach.nodes.v[i];

		if (node->is_snapshot)
			qk_vec_push(&ret->snapshots, node->key);
		else
			qk_vec_push(&ret->importers, node->key);
	}
	reach_release(&reach);
	return r;
}

void qk_lockreach_release(struct qk_lockreach *r)
{
	qk_vec_release(&r->snapshots);
	qk_vec_release(&r->importers);
}

void qk_lockfile_all(
	const struct qk_lockfile *l, struct qk_strv *ret_importers, struct qk_strv *ret_snapshots)
{
	for (const struct qk_locknode *n = l->importers; n; n = n->hh.next)
		qk_strv_push(ret_importers, n->key);
	for (const struct qk_locknode *n = l->snapshots; n; n = n->hh.next)
		qk_strv_push(ret_snapshots, n->key);
	qk_strv_sort(ret_importers);
	qk_strv_sort(ret_snapshots);
}
