#include "keying/lockyaml.h"

#include "base/buf.h"
#include "base/path.h"
#include "keying/yamldepth.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 64 }; /* of values in values */

static const char link_mark[] = QK_LOCKFILE_LINK;

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

static int add_ref(struct qk_lockfile *l, struct qk_locknode *to, const char *dir, const char *name,
	const char *version)
{
	static const char root[] = "/root";
	const char **refs;

	if (!(to->n_refs & (to->n_refs - 1))) {
		refs = qk_arena_alloc(&l->arena, (to->n_refs ? 2 * to->n_refs : 1) * sizeof(*refs));
		if (to->n_refs)
			memcpy(refs, to->refs, to->n_refs * sizeof(*refs));
		to->refs = refs;
	}
	if (!strncmp(version, link_mark, sizeof(link_mark) - 1)) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT, base = QK_BUF_INIT;

		const char *below;

		/* Relative to the importer; in a snapshot, to the root: here as if that were /root. */
		qk_buf_addf(&base, "%s/%s", root, dir && strcmp(dir, ".") ? dir : "");
		qk_path_clean(&path, base.s, version + sizeof(link_mark) - 1);
		below = qk_path_below(path.s, root);
		to->refs[to->n_refs++] = qk_arena_printf(&l->arena, "%s%s%s", link_mark,
			below ? "" : "../", below ? (*below ? below : ".") : path.s + 1);
		return 0;
	}
	to->refs[to->n_refs++] = resolve(l, name, version);
	return 0;
}

/* One `dependencies`-like mapping: name: version, or name: { specifier, version }. */
static int add_refs(struct qk_lockfile *l, struct fold *f, struct qk_locknode *to, const char *dir,
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

static struct qk_locknode *new_node(struct qk_lockfile *l, const yaml_node_t *key)
{
	struct qk_locknode *n = qk_arena_alloc(&l->arena, sizeof(*n));

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
		struct qk_locknode *n, *old;

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
		struct qk_locknode *n, *old;
		int r;

		if (!text_of(k) || !v || v->type != YAML_MAPPING_NODE)
			return fail_at(l, k, err, "a snapshot must be a mapping");
		n = new_node(l, k);
		n->is_snapshot = true;
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
	int r = qk_yaml_check_depth(file, text, n, err);

	if (r)
		return r;
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
