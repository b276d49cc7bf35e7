#include "keying/packages.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/path.h"
#include "keying/inputforms.h"
#include "keying/pnpmdir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

static const char store[] = "node_modules/.pnpm/";

enum { SETTINGS_MAX = 16 << 20 };

/* A directory of the store and the snapshot it is of. */
struct place {
	UT_hash_handle hh;
	char *dir;
	const char *snapshot;
};

/* What one set of importers, or of names, reaches. */
struct held {
	UT_hash_handle hh;
	char *key;
	struct qk_lockreach reach;
};

struct qk_packages {
	struct qk_inputs *in;
	struct qk_strv snapshots, importers; /* all */
	struct place *places;
	struct held *held;
};

/* --- settings --- */

/* True if a line of the text says so, whatever quotes and blanks it has. */
static bool says(const struct qk_buf *text, const char *what)
{
	qk_autobuf struct qk_buf line = QK_BUF_INIT;

	for (const char *s = text->s; s && *s; s += strcspn(s, "\n"), s += *s == '\n') {
		qk_buf_reset(&line);
		for (const char *c = s; *c && *c != '\n' && *c != '#'; c++)
			if (!strchr(" \t\r\"',", *c))
				qk_buf_addch(&line, *c);
		if (line.s && !strcmp(line.s, what))
			return true;
	}
	return false;
}

static void read_setting(const struct qk_packages *p, const char *file, struct qk_buf *ret)
{
	qk_autofree char *path = qk_path_join(p->in->ws->root, file);

	if (qk_read_file(AT_FDCWD, path, SETTINGS_MAX, ret, NULL))
		qk_buf_reset(ret);
}

/* What pnpm has installed says it best; where that is not there, how it would. */
static bool is_hoisted(const struct qk_packages *p)
{
	static const struct {
		const char *file, *line;
	} settings[] = {
		{ "node_modules/.modules.yaml", "nodeLinker:hoisted" },
		{ "pnpm-workspace.yaml", "nodeLinker:hoisted" },
		{ ".npmrc", "node-linker=hoisted" },
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		qk_autobuf struct qk_buf text = QK_BUF_INIT;

		read_setting(p, settings[i].file, &text);
		if (says(&text, settings[i].line))
			return true;
	}
	return false;
}

/* virtual-store-dir-max-length, as it was when this was installed. */
static size_t name_max(const struct qk_packages *p)
{
	static const char key[] = "irtualStoreDirMaxLength\": ";
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	const char *at;
	unsigned long n;

	read_setting(p, "node_modules/.modules.yaml", &text);
	at = text.len ? strstr(text.s, key) : NULL;
	n = at ? strtoul(at + sizeof(key) - 1, NULL, 10) : 0;
	return n ? n : QK_PNPMDIR_MAX;
}

/* --- the store --- */

static void add_place(struct qk_packages *p, const char *snapshot, enum qk_pnpmdir_form form, size_t max)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct place *place;

	qk_pnpmdir_name(&b, snapshot, form, max);
	HASH_FIND_STR(p->places, b.s, place);
	if (place)
		return;
	place = qk_zalloc(sizeof(*place));
	place->dir = qk_buf_detach(&b);
	place->snapshot = snapshot;
	HASH_ADD_KEYPTR(hh, p->places, place->dir, strlen(place->dir), place);
}

struct qk_packages *qk_packages_new(struct qk_inputs *in)
{
	struct qk_packages *p;
	size_t max;

	if (!in->lock)
		return NULL;
	p = qk_zalloc(sizeof(*p));
	p->in = in;
	if (is_hoisted(p)) {
		free(p);
		return NULL;
	}
	max = name_max(p);
	qk_lockfile_all(in->lock, &p->importers, &p->snapshots);
	for (size_t i = 0; i < p->snapshots.n; i++)
		for (int form = 0; form < QK_PNPMDIR_FORMS; form++)
			add_place(p, p->snapshots.v[i], (enum qk_pnpmdir_form)form, max);
	return p;
}

void qk_packages_free(struct qk_packages *p)
{
	struct place *place, *next_place;
	struct held *held, *next_held;

	if (!p)
		return;
	HASH_ITER(hh, p->places, place, next_place) {
		HASH_DEL(p->places, place);
		free(place->dir);
		free(place);
	}
	HASH_ITER(hh, p->held, held, next_held) {
		HASH_DEL(p->held, held);
		qk_lockreach_release(&held->reach);
		free(held->key);
		free(held);
	}
	qk_strv_release(&p->snapshots);
	qk_strv_release(&p->importers);
	free(p);
}

/* The snapshot whose package.json that is, or NULL. */
static const char *snapshot_at(const struct qk_packages *p, const char *path)
{
	static const char modules[] = "/node_modules/";
	const char *dir = path + sizeof(store) - 1, *rest;
	struct place *place;
	size_t n;

	if (strncmp(path, store, sizeof(store) - 1) || strcmp(qk_path_base(path), "package.json"))
		return NULL;
	n = strcspn(dir, "/");
	rest = dir + n;
	if (strncmp(rest, modules, sizeof(modules) - 1) || rest[sizeof(modules) - 1] == '.')
		return NULL;
	HASH_FIND(hh, p->places, dir, n, place);
	return place ? place->snapshot : NULL;
}

/* --- what a key holds --- */

static bool has(const char *const *sorted, size_t n, const char *s)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strcmp(sorted[mid], s);

		if (!order)
			return true;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* An incomplete lockfile reaches nothing: the task has no key, and says why. */
static const struct held *reached(struct qk_packages *p, const char *const *dirs, size_t n,
	const char *const *names, size_t n_names)
{
	qk_autobuf struct qk_buf key = QK_BUF_INIT;
	struct held *h;

	for (size_t i = 0; i < n; i++)
		qk_buf_addf(&key, "%s\n", dirs[i]);
	qk_buf_addch(&key, '\n');
	for (size_t i = 0; i < n_names; i++)
		qk_buf_addf(&key, "%s\n", names[i]);
	HASH_FIND_STR(p->held, key.s, h);
	if (h)
		return h;
	h = qk_zalloc(sizeof(*h));
	h->key = qk_buf_detach(&key);
	qk_lockfile_reached(p->in->lock, dirs, n, names, n_names, &h->reach, NULL);
	HASH_ADD_KEYPTR(hh, p->held, h->key, strlen(h->key), h);
	return h;
}

static const struct held *held_by(
	struct qk_packages *p, const struct qk_task *t, const struct qk_resolved *r)
{
	const char *dirs[2] = { t->project->root, "." };
	QK_VEC(const char *) names = { 0 };
	const struct held *h;

	for (size_t i = 0; r->external_named && i < r->list.n; i++)
		if (r->list.v[i].kind == QK_INPUT_EXTERNAL)
			qk_vec_push(&names, r->list.v[i].name);
	h = reached(p, dirs, r->external_named ? 0 : 2, names.v, names.n);
	qk_vec_release(&names);
	return h;
}

/* True if the lockfile itself is an input: then all that is installed counts. */
static bool selects_lockfile(const struct qk_packages *p, const struct qk_resolved *r)
{
	for (size_t i = 0; i < r->list.n; i++) {
		const struct qk_input *in = &r->list.v[i];

		for (size_t k = 0; in->kind == QK_INPUT_FILES && k < in->files->n; k++)
			if (!strcmp(in->files->paths[k], p->in->lock_name))
				return true;
	}
	return false;
}

/* --- ignored reads --- */

/* True if everything in the directory is ignored. */
static bool covers(const struct qk_strv *ignored, const char *dir)
{
	qk_autofree char *near = qk_asprintf("%s/package.json", dir);
	qk_autofree char *deep = qk_asprintf("%s/\1/\1", dir); /* no name that somebody thought of */

	for (size_t i = 0; i < ignored->n; i++) {
		const char *text = ignored->v[i];

		if (!qk_glob_is_pattern(text) ? qk_path_under(dir, text)
					      : qk_glob_match(text, near) && qk_glob_match(text, deep))
			return true;
	}
	return false;
}

/* An importer that is neither the root's nor in the key. */
static bool is_others(const struct held *own, const char *dir)
{
	return strcmp(dir, ".") && !has(own->reach.importers.v, own->reach.importers.n, dir);
}

/* What the importers that are covered reach; NULL if none is. */
static const struct held *covered(struct qk_packages *p, const struct qk_task *t,
	const struct held *own, const struct qk_strv *ignored)
{
	QK_VEC(const char *) dirs = { 0 };
	const struct held *h = NULL;

	for (size_t i = 0; ignored->n && i < p->importers.n; i++) {
		const char *dir = p->importers.v[i];

		if (strcmp(dir, t->project->root) && is_others(own, dir) && covers(ignored, dir))
			qk_vec_push(&dirs, dir);
	}
	if (dirs.n)
		h = reached(p, dirs.v, dirs.n, NULL, 0);
	qk_vec_release(&dirs);
	return h;
}

void qk_packages_linked(struct qk_packages *p, const struct qk_task *t,
	const struct qk_strv *ignored, struct qk_strv *ret)
{
	const struct held *own = held_by(p, t, qk_inputs_task(p->in, t));
	const struct held *also = covered(p, t, own, ignored);

	for (size_t i = 0; also && i < also->reach.importers.n; i++) {
		const char *dir = also->reach.importers.v[i];

		if (is_others(own, dir) && !covers(ignored, dir))
			qk_strv_push(ret, dir);
	}
}

const char *qk_packages_unkeyed(struct qk_packages *p, const struct qk_task *t,
	const struct qk_strv *ignored, const char *path, bool *ret_hoisted)
{
	const char *snapshot = snapshot_at(p, path);
	const struct held *own, *also;
	struct qk_resolved *r;

	if (!snapshot)
		return NULL;
	r = qk_inputs_task(p->in, t);
	own = held_by(p, t, r);
	if (has(own->reach.snapshots.v, own->reach.snapshots.n, snapshot) || selects_lockfile(p, r))
		return NULL;
	also = covered(p, t, own, ignored);
	if (also && has(also->reach.snapshots.v, also->reach.snapshots.n, snapshot))
		return NULL;
	*ret_hoisted = !r->external_named;
	return qk_arena_strndup(&r->parts.arena, snapshot, qk_lockfile_name(snapshot));
}
