#include "keying/tree.h"

#include "base/mem.h"
#include "base/path.h"
#include "base/record.h"
#include "base/vec.h"

#include <errno.h>
#include <limits.h>

enum tag {
	TAG_PATH = 1, /* begins an entry */
	TAG_KIND,
	TAG_MODE,
	TAG_SIZE,
	TAG_LINK,
	TAG_CONTENT,
	TAG_DATA,
	TAG_TWIN,
};

void qk_tree_release(struct qk_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].path);
		free(t->v[i].link);
		free(t->v[i].data);
		free(t->v[i].twin);
	}
	free(t->v);
	*t = (struct qk_tree){ 0 };
}

struct qk_treeent *qk_tree_add(struct qk_tree *t, const char *path)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 8;
		t->v = qk_realloc(t->v, t->cap, sizeof(*t->v));
	}
	t->v[t->n] = (struct qk_treeent){ .path = qk_strdup(path) };
	return &t->v[t->n++];
}

int qk_tree_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int compare(const void *a, const void *b)
{
	return qk_tree_compare(
		((const struct qk_treeent *)a)->path, ((const struct qk_treeent *)b)->path);
}

void qk_tree_sort(struct qk_tree *t)
{
	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), compare);
}

void qk_tree_uniq(struct qk_tree *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (n && !strcmp(t->v[n - 1].path, t->v[i].path)) {
			free(t->v[i].path);
			free(t->v[i].link);
			free(t->v[i].data);
			free(t->v[i].twin);
		} else {
			t->v[n++] = t->v[i];
		}
	}
	t->n = n;
}

const struct qk_treeent *qk_tree_find(const struct qk_tree *t, const char *path)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = qk_tree_compare(t->v[mid].path, path);

		if (!c)
			return &t->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool same_file(const struct qk_treeent *a, const struct qk_treeent *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

static int by_file(const void *a, const void *b)
{
	const struct qk_treeent *x = *(struct qk_treeent *const *)a, *y = *(struct qk_treeent *const *)b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x < y ? -1 : x > y;
}

void qk_tree_pair(struct qk_tree *t)
{
	QK_VEC(struct qk_treeent *) linked = { 0 };
	size_t first = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].ino && t->v[i].kind == QK_FILE_REGULAR)
			qk_vec_push(&linked, &t->v[i]);
	if (linked.n)
		qsort(linked.v, linked.n, sizeof(*linked.v), by_file);
	for (size_t i = 1; i < linked.n; i++) {
		if (!same_file(linked.v[i], linked.v[first]))
			first = i;
		else if (!linked.v[i]->twin)
			linked.v[i]->twin = qk_strdup(linked.v[first]->path);
	}
	qk_vec_release(&linked);
}

const struct qk_treeent *qk_tree_twin(const struct qk_tree *t, const struct qk_treeent *e)
{
	return e->twin ? qk_tree_find(t, e->twin) : NULL;
}

static bool same_twin(const struct qk_treeent *a, const struct qk_treeent *b)
{
	return a->twin && b->twin ? !strcmp(a->twin, b->twin) : a->twin == b->twin;
}

bool qk_tree_equal(const struct qk_tree *a, const struct qk_tree *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct qk_treeent *x = &a->v[i], *y = &b->v[i];

		if (strcmp(x->path, y->path) || x->kind != y->kind || x->mode != y->mode)
			return false;
		if (x->kind == QK_FILE_LINK && strcmp(x->link, y->link))
			return false;
		if (x->kind == QK_FILE_REGULAR &&
			(x->size != y->size || !qk_digest_eq(&x->content, &y->content) ||
				!same_twin(x, y)))
			return false;
	}
	return true;
}

void qk_tree_digest(const struct qk_tree *t, struct qk_digest *ret)
{
	struct qk_hasher h;

	qk_hasher_init(&h);
	for (size_t i = 0; i < t->n; i++) {
		const struct qk_treeent *e = &t->v[i];
		bool executable = e->kind == QK_FILE_REGULAR && e->mode & 0100;
		const char head[2] = { (char)('0' + e->kind), executable ? 'x' : '-' };

		qk_hasher_field(&h, e->path, strlen(e->path));
		qk_hasher_add(&h, head, sizeof(head));
		if (e->kind == QK_FILE_REGULAR)
			qk_hasher_add(&h, e->content.b, QK_DIGEST_SIZE);
		if (e->kind == QK_FILE_LINK)
			qk_hasher_field(&h, e->link, strlen(e->link));
	}
	qk_hasher_done(&h, ret);
}

void qk_tree_write(const struct qk_tree *t, struct qk_buf *out)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct qk_treeent *e = &t->v[i];

		qk_record_putstr(out, TAG_PATH, e->path);
		qk_record_putnum(out, TAG_KIND, e->kind);
		qk_record_putnum(out, TAG_MODE, e->mode);
		if (e->kind == QK_FILE_LINK)
			qk_record_putstr(out, TAG_LINK, e->link);
		if (e->kind != QK_FILE_REGULAR)
			continue;
		qk_record_putnum(out, TAG_SIZE, e->size);
		qk_record_put(out, TAG_CONTENT, e->content.b, QK_DIGEST_SIZE);
		if (e->data)
			qk_record_put(out, TAG_DATA, e->data, e->size);
		if (e->twin)
			qk_record_putstr(out, TAG_TWIN, e->twin);
	}
}

int qk_tree_read(struct qk_tree *t, const struct qk_field *f)
{
	struct qk_treeent *e = t->n ? &t->v[t->n - 1] : NULL;

	if (f->tag == TAG_PATH) {
		qk_autofree char *path = qk_strndup(f->p, f->n);

		if (memchr(f->p, '\0', f->n) || f->n >= PATH_MAX)
			return -EBADMSG;
		qk_tree_add(t, path);
		return 0;
	}
	if (f->tag > TAG_TWIN)
		return 0;
	if (!e)
		return -EBADMSG;
	switch (f->tag) {
	case TAG_KIND: e->kind = (enum qk_filekind)qk_field_num(f); break;
	case TAG_MODE: e->mode = (mode_t)(qk_field_num(f) & 07777); break;
	case TAG_SIZE: e->size = qk_field_num(f); break;
	case TAG_LINK:
		if (e->link || memchr(f->p, '\0', f->n))
			return -EBADMSG;
		e->link = qk_strndup(f->p, f->n);
		break;
	case TAG_TWIN:
		if (e->twin || memchr(f->p, '\0', f->n))
			return -EBADMSG;
		e->twin = qk_strndup(f->p, f->n);
		break;
	case TAG_CONTENT:
		if (f->n != QK_DIGEST_SIZE)
			return -EBADMSG;
		memcpy(e->content.b, f->p, QK_DIGEST_SIZE);
		break;
	case TAG_DATA:
		if (e->data || f->n != e->size)
			return -EBADMSG;
		e->data = qk_strndup("", 0);
		e->data = qk_realloc(e->data, f->n + 1, 1);
		memcpy(e->data, f->p, f->n);
		e->data[f->n] = '\0';
		break;
	}
	return 0;
}

static bool is_clean(const char *path)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (!*path || *path == '/')
		return false;
	qk_path_clean(&b, "/", path);
	return !strcmp(b.s + 1, path) && strcmp(path, "..") && strncmp(path, "../", 3);
}

/* Either outside the tree, or before it, and the same file in all. */
static bool twin_fits(const struct qk_tree *t, const struct qk_treeent *e)
{
	const struct qk_treeent *twin = qk_tree_twin(t, e);

	if (!e->twin)
		return true;
	if (e->kind != QK_FILE_REGULAR || !is_clean(e->twin))
		return false;
	return !twin || (twin < e && twin->kind == QK_FILE_REGULAR && !twin->twin && twin->mode == e->mode &&
				twin->size == e->size && qk_digest_eq(&twin->content, &e->content));
}

int qk_tree_check(const struct qk_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct qk_treeent *e = &t->v[i], *before = i ? &t->v[i - 1] : NULL;

		if (!is_clean(e->path) || (before && qk_tree_compare(before->path, e->path) >= 0))
			return -EBADMSG;
		if (e->kind != QK_FILE_REGULAR && e->kind != QK_FILE_LINK && e->kind != QK_FILE_DIR)
			return -EBADMSG;
		if ((e->kind == QK_FILE_LINK) != !!e->link || !twin_fits(t, e))
			return -EBADMSG;
		/* In tree order whatever lies below a path follows it at once. */
		if (before && before->kind != QK_FILE_DIR && qk_path_under(e->path, before->path))
			return -EBADMSG;
	}
	return 0;
}
