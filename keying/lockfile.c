#include "keying/lockfile.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>
#include <uthash.h>
#include <yaml.h>

const char *const qk_lockfile_names[] = {
	"pnpm-lock.yaml",
	"package-lock.json",
	"npm-shrinkwrap.json",
	"yarn.lock",
	"bun.lock",
	"bun.lockb",
	NULL,
};

enum { DEPTH_MAX = 64 }; /* of values in values */

/* An importer or a snapshot: what it counts as by itself, and what it leads to. */
struct node {
	UT_hash_handle hh;
	const char *key;
	struct qk_digest own; /* its fields, without those of what it leads to */
	const char **refs;    /* keys of snapshots; with LINK in front, of importers */
	size_t n_refs;
	int line;
};

struct qk_lockfile {
	struct qk_arena arena;
	const char *file;
	struct node *importers, *snapshots; /* by key */
	struct qk_digest settings; /* of everything that is neither of these nor packages */
};

static const char link_mark[] = "link:";

/* A document while it is read. left: how many more values may be folded. */
struct fold {
	yaml_document_t *doc;
	struct qk_hasher h;
	int left;
};

static const yaml_node_t *node_at(yaml_document_t *doc, int index)
{
	return yaml_document_get_node(doc, index);
}

static bool scalar_is(const yaml_node_t *n, const char *s)
{
	return n && n->type == YAML_SCALAR_NODE && !strcmp((const char *)n->data.scalar.value, s);
}

static const char *text_of(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

static const yaml_node_t *member(yaml_document_t *doc, const yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++)
		if (scalar_is(node_at(doc, p->key), key))
			return node_at(doc, p->value);
	return NULL;
}

static int fail_at(
	const struct qk_lockfile *l, const yaml_node_t *n, struct qk_err *err, const char *what)
{
	return qk_fail(err, -EINVAL, "%s:%zu:%zu: %s", l->file, n ? n->start_mark.line + 1 : 1,
		n ? n->start_mark.column + 1 : 1, what);
}

/*
 * Folds a value with everything in it. An alias makes a small text large work, and no lockfile has
 * one: without, nothing is folded more often than there are nodes.
 */
static void fold_value(struct fold *f, const yaml_node_t *n, int depth)
{
	struct qk_hasher *h = &f->h;

	if (!n || f->left <= 0 || depth > DEPTH_MAX) {
		f->left = n ? 0 : f->left;
		return;
	}
	f->left--;
	switch (n->type) {
	case YAML_SCALAR_NODE:
		qk_hasher_add(h, "s", 1);
		qk_hasher_field(h, n->data.scalar.value, n->data.scalar.length);
		break;
	case YAML_SEQUENCE_NODE:
		qk_hasher_add(h, "[", 1);
		for (int *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
			fold_value(f, node_at(f->doc, *i), depth + 1);
		qk_hasher_add(h, "]", 1);
		break;
	case YAML_MAPPING_NODE:
		qk_hasher_add(h, "{", 1);
		for (yaml_node_pair_t *p = n->data.mapping.pairs.start;
			p < n->data.mapping.pairs.top; p++) {
			fold_value(f, node_at(f->doc, p->key), depth + 1);
			fold_value(f, node_at(f->doc, p->value), depth + 1);
		}
		qk_hasher_add(h, "}", 1);
		break;
	default: break;
	}
}

size_t qk_lockfile_name(const char *key)
{
	const char *at = strchr(key + (*key == '@'), '@');

	return at ? (size_t)(at - key) : strlen(key);
}

/*
 * The snapshot key that `name: version` means. "1.2.3(peer@1)" belongs to name; "other@1.2.3" and
 * "@s/other@1.2.3" are keys of their own (aliases); "file:…" and URLs belong to name.
 */
static const char *resolve(struct qk_lockfile *l, const char *name, const char *version)
{
	const char *at = strchr(version, '@');
	size_t n = strcspn(version, "(:");

	if (*version == '@' || (at && (size_t)(at - version) < n))
		return qk_arena_strdup(&l->arena, version);
	return qk_arena_printf(&l->arena, "%s@%s", name, version);
}

static int add_ref(struct qk_lockfile *l, struct node *to, const char *dir, const char *name,
	const char *version)
{
	const char **refs;

	if (!(to->n_refs & (to->n_refs - 1))) {
		refs = qk_arena_alloc(&l->arena, (to->n_refs ? 2 * to->n_refs : 1) * sizeof(*refs));
		if (to->n_refs)
			memcpy(refs, to->refs, to->n_refs * sizeof(*refs));
		to->refs = refs;
	}
	if (!strncmp(version, link_mark, sizeof(link_mark) - 1)) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT, base = QK_BUF_INIT;

		/* Relative to the importer; in a snapshot, to the workspace root. */
		qk_buf_addf(&base, "/%s", dir && strcmp(dir, ".") ? dir : "");
		if (base.len > 1 && base.s[base.len - 1] == '/')
			qk_buf_truncate(&base, base.len - 1);
		qk_path_clean(&path, base.s, version + sizeof(link_mark) - 1);
		to->refs[to->n_refs++] =
			qk_arena_printf(&l->arena, "%s%s", link_mark, path.s[1] ? path.s + 1 : ".");
		return 0;
	}
	to->refs[to->n_refs++] = resolve(l, name, version);
	return 0;
}

/* One `dependencies`-like mapping: name: version, or name: { specifier, version }. */
static int add_refs(struct qk_lockfile *l, struct fold *f, struct node *to, const char *dir,
	const yaml_node_t *map, struct qk_err *err)
{
	if (!map)
		return 0;
	if (map->type != YAML_MAPPING_NODE)
		return fail_at(l, map, err, "a mapping of packages was expected");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = node_at(f->doc, p->key), *v = node_at(f->doc, p->value);
		const char *name = text_of(k), *version = text_of(v);

		if (v && v->type == YAML_MAPPING_NODE)
			version = text_of(member(f->doc, v, "version"));
		if (!name || !version)
			return fail_at(l, v ? v : k, err, "a package's version was expected");
		/* How it was asked for (specifier) changes nothing that is installed. */
		qk_hasher_field(&f->h, name, strlen(name));
		qk_hasher_field(&f->h, version, strlen(version));
		add_ref(l, to, dir, name, version);
	}
	return 0;
}

static struct node *new_node(struct qk_lockfile *l, const yaml_node_t *key)
{
	struct node *n = qk_arena_alloc(&l->arena, sizeof(*n));

	n->key = qk_arena_strdup(&l->arena, text_of(key));
	n->line = (int)key->start_mark.line + 1;
	return n;
}

static int read_importers(
	struct qk_lockfile *l, struct fold *f, const yaml_node_t *map, struct qk_err *err)
{
	static const char *const kinds[] = { "dependencies", "devDependencies",
		"optionalDependencies" };

	if (!map || map->type != YAML_MAPPING_NODE)
		return fail_at(l, map, err, "'importers' must be a mapping");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = node_at(f->doc, p->key), *v = node_at(f->doc, p->value);
		struct node *n, *old;

		if (!text_of(k) || !v || (v->type != YAML_MAPPING_NODE && !scalar_is(v, "")))
			return fail_at(l, k, err, "an importer must be a mapping");
		n = new_node(l, k);
		qk_hasher_init(&f->h);
		for (size_t i = 0; i < 3; i++) {
			int r;

			qk_hasher_field(&f->h, kinds[i], strlen(kinds[i]));
			r = add_refs(l, f, n, n->key, member(f->doc, v, kinds[i]), err);
			if (r)
				return r;
		}
		qk_hasher_done(&f->h, &n->own);
		HASH_FIND_STR(l->importers, n->key, old);
		if (old)
			return fail_at(l, k, err, "an importer is given twice");
		HASH_ADD_KEYPTR(hh, l->importers, n->key, strlen(n->key), n);
	}
	return 0;
}

/* Digests of `packages` entries (integrity, engines, patches), by key. */
struct package {
	UT_hash_handle hh;
	const char *key;
	struct qk_digest d;
};

static int read_packages(struct qk_lockfile *l, struct fold *f, const yaml_node_t *map,
	struct package **ret, struct qk_err *err)
{
	if (!map || scalar_is(map, ""))
		return 0;
	if (map->type != YAML_MAPPING_NODE)
		return fail_at(l, map, err, "'packages' must be a mapping");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = node_at(f->doc, p->key);
		struct package *package, *old;

		if (!text_of(k))
			return fail_at(l, k, err, "a package's name was expected");
		package = qk_arena_alloc(&l->arena, sizeof(*package));
		package->key = qk_arena_strdup(&l->arena, text_of(k));
		qk_hasher_init(&f->h);
		fold_value(f, node_at(f->doc, p->value), 0);
		qk_hasher_done(&f->h, &package->d);
		HASH_FIND_STR(*ret, package->key, old);
		if (!old)
			HASH_ADD_KEYPTR(hh, *ret, package->key, strlen(package->key), package);
	}
	return 0;
}

/* What `packages` says about a snapshot: its key there has no peers behind it. */
static void fold_package(struct package *packages, const char *key, struct qk_hasher *h)
{
	struct package *p;
	const char *peers = strchr(key, '(');
	size_t n = peers ? (size_t)(peers - key) : strlen(key);

	HASH_FIND(hh, packages, key, n, p);
	if (p)
		qk_hasher_add(h, p->d.b, QK_DIGEST_SIZE);
}

static int read_snapshots(struct qk_lockfile *l, struct fold *f, const yaml_node_t *map,
	struct package *packages, struct qk_err *err)
{
	if (!map || scalar_is(map, ""))
		return 0;
	if (map->type != YAML_MAPPING_NODE)
		return fail_at(l, map, err, "'snapshots' must be a mapping");
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *k = node_at(f->doc, p->key), *v = node_at(f->doc, p->value);
		struct node *n, *old;
		int r;

		if (!text_of(k) || !v || v->type != YAML_MAPPING_NODE)
			return fail_at(l, k, err, "a snapshot must be a mapping");
		n = new_node(l, k);
		qk_hasher_init(&f->h);
		qk_hasher_field(&f->h, n->key, strlen(n->key));
		fold_package(packages, n->key, &f->h);
		fold_value(f, v, 0);
		r = add_refs(l, f, n, NULL, member(f->doc, v, "dependencies"), err);
		if (!r)
			r = add_refs(l, f, n, NULL, member(f->doc, v, "optionalDependencies"), err);
		if (r)
			return r;
		qk_hasher_done(&f->h, &n->own);
		HASH_FIND_STR(l->snapshots, n->key, old);
		if (!old)
			HASH_ADD_KEYPTR(hh, l->snapshots, n->key, strlen(n->key), n);
	}
	return 0;
}

/*
 * Settings decide how what is installed is laid out: they count for everybody. What merely says
 * how the rest came about (overrides, catalogs, checksums of hooks) shows in the rest.
 */
static void fold_settings(struct qk_lockfile *l, struct fold *f, const yaml_node_t *root)
{
	static const char *const passed[] = { "importers", "packages", "snapshots", "overrides",
		"catalogs", "time", "patchedDependencies", "packageExtensionsChecksum",
		"pnpmfileChecksum", "ignoredOptionalDependencies" };
	qk_hasher_init(&f->h);
	for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
		p++) {
		bool pass = false;

		for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
			pass = pass || scalar_is(node_at(f->doc, p->key), passed[i]);
		if (pass)
			continue;
		fold_value(f, node_at(f->doc, p->key), 0);
		fold_value(f, node_at(f->doc, p->value), 0);
	}
	qk_hasher_done(&f->h, &l->settings);
}

static int read_document(struct qk_lockfile *l, yaml_document_t *doc, struct qk_err *err)
{
	struct fold fold = { .doc = doc, .left = (int)(doc->nodes.top - doc->nodes.start) };
	const yaml_node_t *root = yaml_document_get_root_node(doc);
	struct package *packages = NULL;
	const yaml_node_t *version;
	int r;

	if (!root)
		return qk_fail(err, -EINVAL, "%s:1:1: the lockfile is empty", l->file);
	if (root->type != YAML_MAPPING_NODE)
		return fail_at(l, root, err, "a lockfile must be a mapping");
	version = member(doc, root, "lockfileVersion");
	if (!version)
		return fail_at(l, root, err, "'lockfileVersion' is missing");
	if (!text_of(version) ||
		(strcmp(text_of(version), "9") && strncmp(text_of(version), "9.", 2)))
		return qk_fail(err, -EOPNOTSUPP, "%s:%zu: lockfileVersion %s is not 9", l->file,
			version->start_mark.line + 1, text_of(version) ? text_of(version) : "?");
	fold_settings(l, &fold, root);
	r = read_importers(l, &fold, member(doc, root, "importers"), err);
	if (!r)
		r = read_packages(l, &fold, member(doc, root, "packages"), &packages, err);
	if (!r)
		r = read_snapshots(l, &fold, member(doc, root, "snapshots"), packages, err);
	HASH_CLEAR(hh, packages);
	if (!r && fold.left <= 0)
		r = fail_at(l, root, err, "aliases, or values nested too deep");
	return r;
}

static int parse_fail(const struct qk_lockfile *l, const yaml_parser_t *p, struct qk_err *err)
{
	const yaml_mark_t *at = &p->problem_mark;

	return qk_fail(err, -EINVAL, "%s:%zu:%zu: %s", l->file, at->line + 1, at->column + 1,
		p->problem ? p->problem : "no YAML");
}

/* Loads the next document; *ret_root is NULL at the end of the text. */
static int next_document(const struct qk_lockfile *l, yaml_parser_t *p, yaml_document_t *doc,
	const yaml_node_t **ret_root, struct qk_err *err)
{
	if (!yaml_parser_load(p, doc))
		return parse_fail(l, p, err);
	*ret_root = yaml_document_get_root_node(doc);
	return 0;
}

static int read_text(struct qk_lockfile *l, yaml_parser_t *p, struct qk_err *err)
{
	const yaml_node_t *root = NULL;
	yaml_document_t doc;
	int r = next_document(l, p, &doc, &root, err);

	if (r)
		return r;
	r = read_document(l, &doc, err);
	yaml_document_delete(&doc);
	if (r)
		return r;
	r = next_document(l, p, &doc, &root, err);
	if (r)
		return r;
	if (root)
		r = qk_fail(err, -EOPNOTSUPP, "%s:%zu: more than one document", l->file,
			root->start_mark.line + 1);
	yaml_document_delete(&doc);
	return r;
}

int qk_lockfile_parse(
	const char *file, const char *text, size_t n, struct qk_lockfile **ret, struct qk_err *err)
{
	struct qk_lockfile *l;
	yaml_parser_t p;
	int r;

	if (!yaml_parser_initialize(&p))
		return qk_fail(err, ENOMEM, "%s", file);
	l = qk_zalloc(sizeof(*l));
	l->file = qk_arena_strdup(&l->arena, file);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	r = read_text(l, &p, err);
	yaml_parser_delete(&p);
	if (r)
		qk_lockfile_free(l);
	else
		*ret = l;
	return r;
}

void qk_lockfile_free(struct qk_lockfile *l)
{
	if (!l)
		return;
	HASH_CLEAR(hh, l->importers);
	HASH_CLEAR(hh, l->snapshots);
	qk_arena_release(&l->arena);
	free(l);
}

bool qk_lockfile_has_importer(const struct qk_lockfile *l, const char *dir)
{
	struct node *n;

	HASH_FIND_STR(l->importers, dir, n);
	return n;
}

/* Nodes reached so far, each once; the queue is the result. */
struct reach {
	const struct qk_lockfile *l;
	QK_VEC(const struct node *) nodes;
	struct seen {
		UT_hash_handle hh;
		const struct node *node;
	} * seen;
	struct qk_arena arena;
};

static void reach_release(struct reach *r)
{
	HASH_CLEAR(hh, r->seen);
	qk_vec_release(&r->nodes);
	qk_arena_release(&r->arena);
}

static void reach_add(struct reach *r, const struct node *n)
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
	const size_t mark = sizeof(link_mark) - 1;

	for (size_t i = 0; i < r->nodes.n; i++) {
		const struct node *n = r->nodes.v[i], *to;

		for (size_t k = 0; k < n->n_refs; k++) {
			const char *ref = n->refs[k];

			if (!strncmp(ref, link_mark, mark)) {
				/* A directory outside the workspace has no importer: files, no
				 * packages. */
				HASH_FIND_STR(r->l->importers, ref + mark, to);
				if (to)
					reach_add(r, to);
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
	return strcmp((*(const struct node *const *)a)->key, (*(const struct node *const *)b)->key);
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
		const struct node *importer;

		HASH_FIND_STR(r->l->importers, dirs[i], importer);
		if (importer)
			reach_add(r, importer);
	}
	return reach_all(r, err);
}

int qk_lockfile_importers(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	struct qk_digest *ret, struct qk_err *err)
{
	struct reach reach = { .l = l };
	struct qk_hasher h;
	int r = reach_importers(&reach, dirs, n, err);

	qk_hasher_init(&h);
	qk_hasher_add(&h, l->settings.b, QK_DIGEST_SIZE);
	reach_fold(&reach, &h);
	qk_hasher_done(&h, ret);
	reach_release(&reach);
	return r;
}

int qk_lockfile_packages(const struct qk_lockfile *l, const char *const *names, size_t n,
	struct qk_digest *ret, const char **ret_unknown, struct qk_err *err)
{
	struct reach reach = { .l = l };
	struct qk_hasher h;
	int r;

	*ret_unknown = NULL;
	qk_hasher_init(&h);
	qk_hasher_add(&h, l->settings.b, QK_DIGEST_SIZE);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(names[i]);
		bool found = false;

		for (struct node *s = l->snapshots; s; s = s->hh.next) {
			if (qk_lockfile_name(s->key) != len || memcmp(s->key, names[i], len))
				continue;
			found = true;
			reach_add(&reach, s);
		}
		if (!found && !*ret_unknown)
			*ret_unknown = names[i];
	}
	r = reach_all(&reach, err);
	reach_fold(&reach, &h);
	qk_hasher_done(&h, ret);
	reach_release(&reach);
	return r;
}

int qk_lockfile_reached(const struct qk_lockfile *l, const char *const *dirs, size_t n,
	struct qk_strv *ret, struct qk_err *err)
{
	struct reach reach = { .l = l };
	int r = reach_importers(&reach, dirs, n, err);

	for (size_t i = 0; i < reach.nodes.n && !r; i++) {
		struct node *s;

		HASH_FIND_STR(l->snapshots, reach.nodes.v[i]->key, s);
		if (s == reach.nodes.v[i])
			qk_strv_push(ret, s->key);
	}
	qk_strv_sort(ret);
	reach_release(&reach);
	return r;
}
