#include "cli/patches.h"

#include "base/fdio.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX = 16 << 20, CONTEXT = 3 };

int qk_patches_file(
	struct qk_patches *p, const char *name, struct qk_patch **ret, struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(p->root, name);
	struct qk_buf old = QK_BUF_INIT;
	int r;

	for (size_t i = 0; i < p->v.n; i++)
		if (!strcmp(p->v.v[i]->name, name)) {
			*ret = p->v.v[i];
			return 0;
		}
	r = qk_read_file(AT_FDCWD, path, FILE_MAX, &old, err);
	if (r) {
		qk_buf_release(&old);
		return r;
	}
	*ret = qk_zalloc(sizeof(**ret));
	**ret = (struct qk_patch){ qk_strdup(name), old, QK_BUF_INIT };
	qk_buf_add(&(*ret)->text, old.s, old.len);
	qk_vec_push(&p->v, *ret);
	return 0;
}

void qk_patches_release(struct qk_patches *p)
{
	for (size_t i = 0; i < p->v.n; i++) {
		free(p->v.v[i]->name);
		qk_buf_release(&p->v.v[i]->old);
		qk_buf_release(&p->v.v[i]->text);
		free(p->v.v[i]);
	}
	qk_vec_release(&p->v);
}

static bool is_changed(const struct qk_patch *f)
{
	return f->old.len != f->text.len || memcmp(f->old.s, f->text.s, f->text.len);
}

struct line {
	const char *s;
	size_t n; /* with its end, if it has one */
};

typedef QK_VEC(struct line) line_vec;

static void split(const struct qk_buf *text, line_vec *ret)
{
	for (size_t at = 0, n; at < text->len; at += n) {
		const char *end = memchr(text->s + at, '\n', text->len - at);

		n = end ? (size_t)(end - text->s) + 1 - at : text->len - at;
		qk_vec_push(ret, ((struct line){ text->s + at, n }));
	}
}

static bool same(const struct line *a, const struct line *b)
{
	return a->n == b->n && !memcmp(a->s, b->s, a->n);
}

static void print_lines(struct qk_buf *out, char sign, const line_vec *l, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		qk_buf_addch(out, sign);
		qk_buf_add(out, l->v[i].s, l->v[i].n);
		if (l->v[i].s[l->v[i].n - 1] != '\n')
			qk_buf_addstr(out, "\n\\ No newline at end of file\n");
	}
}

/* Between the lines that are the same at the beginning and at the end. */
static void show(struct qk_buf *out, const struct qk_patch *f)
{
	line_vec old = { 0 }, new = { 0 };
	size_t head = 0, tail = 0, from, after;

	split(&f->old, &old);
	split(&f->text, &new);
	while (head < old.n && head < new.n && same(&old.v[head], &new.v[head]))
		head++;
	while (tail < old.n - head && tail < new.n - head &&
		same(&old.v[old.n - 1 - tail], &new.v[new.n - 1 - tail]))
		tail++;
	from = head > CONTEXT ? head - CONTEXT : 0;
	after = tail < CONTEXT ? tail : CONTEXT;
	qk_buf_addf(out, "--- a/%s\n+++ b/%s\n@@ -%zu,%zu +%zu,%zu @@\n", f->name, f->name,
		old.n ? from + 1 : 0, old.n - tail + after - from, from + 1, new.n - tail + after - from);
	print_lines(out, ' ', &old, from, head);
	print_lines(out, '-', &old, head, old.n - tail);
	print_lines(out, '+', &new, head, new.n - tail);
	print_lines(out, ' ', &old, old.n - tail, old.n - tail + after);
	qk_vec_release(&old);
	qk_vec_release(&new);
}

void qk_patches_show(struct qk_buf *out, const struct qk_patches *p)
{
	for (size_t i = 0; i < p->v.n; i++)
		if (is_changed(p->v.v[i]))
			show(out, p->v.v[i]);
}

/* Replaces the file by text if it still holds `as`. */
static int replace(const struct qk_patches *p, const struct qk_patch *f, const struct qk_buf *as,
	const struct qk_buf *text, struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(p->root, f->name);
	qk_autobuf struct qk_buf now = QK_BUF_INIT;
	char real[PATH_MAX];
	struct stat st;
	int r;

	if (!realpath(path, real) || stat(real, &st))
		return qk_fail(err, errno, "'%s'", f->name);
	r = qk_read_file(AT_FDCWD, real, FILE_MAX, &now, err);
	if (r)
		return r;
	if (now.len != as->len || memcmp(now.s, as->s, now.len))
		return qk_fail(err, -EBUSY, "'%s' changed meanwhile", f->name);
	return qk_write_file(real, text->s, text->len, st.st_mode & 07777, err);
}

int qk_patches_write(const struct qk_patches *p, struct qk_err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < p->v.n && !r; i++)
		if (is_changed(p->v.v[i]))
			r = replace(p, p->v.v[i], &p->v.v[i]->old, &p->v.v[i]->text, err);
	if (!r)
		return 0;
	for (i--; i-- > 0;)
		if (is_changed(p->v.v[i]))
			replace(p, p->v.v[i], &p->v.v[i]->text, &p->v.v[i]->old, NULL);
	return r;
}
