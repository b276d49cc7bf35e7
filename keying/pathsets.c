/*
 * sets/ab/cd…: a sealed file (keying/storedir.h) "qksets01" with one record (base/record.h)
 * with a field SET each, as keying/pathset.c has them.
 */
#include "keying/pathsets.h"

#include "base/record.h"
#include "keying/storedir.h"

#include <sys/file.h>
#include <unistd.h>

enum { TAG_SET = 1 };

static const char magic[] = "qksets01";

void qk_pathsets_release(struct qk_pathsets *sets)
{
	for (size_t i = 0; i < sets->n; i++)
		qk_pathset_release(&sets->v[i]);
	sets->n = 0;
}

void qk_pathsets_load(struct qk_pathsets *sets, struct qk_store *s, const struct qk_digest *weak)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[QK_STOREDIR_NAME];
	struct qk_record rec;
	struct qk_field f;
	size_t pos = QK_STOREDIR_HEAD;

	*sets = (struct qk_pathsets){ .n = 0 };
	qk_storedir_name("sets", weak, name);
	if (!qk_storedir_read(s, name, magic, &b) || qk_record_next(b.s, b.len, &pos, &rec) <= 0)
		return;
	while (sets->n < QK_PATHSETS_KEPT && qk_field_next(&rec, &f) > 0) {
		if (f.tag != TAG_SET)
			continue;
		if (qk_pathset_read(&sets->v[sets->n], f.p, f.n))
			qk_pathset_release(&sets->v[sets->n]);
		else
			sets->n++;
	}
}

bool qk_pathsets_exist(const char *dir, const struct qk_digest *weak)
{
	char name[QK_STOREDIR_NAME];
	qk_autofree char *path = NULL;

	qk_storedir_name("sets", weak, name);
	path = qk_asprintf("%s/v1/%s", dir, name);
	return !access(path, F_OK);
}

static void put_set(struct qk_buf *out, const struct qk_pathset *set)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_pathset_write(set, &b);
	qk_record_put(out, TAG_SET, b.s, b.len);
}

int qk_pathsets_add(struct qk_store *s, const struct qk_digest *weak, const struct qk_pathset *set,
	struct qk_err *err)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[QK_STOREDIR_NAME];
	struct qk_pathsets old;
	size_t begin;
	int r = 0;

	/* shared, as for entries: no pruning meanwhile */
	qk_storedir_lock(s, LOCK_SH);
	qk_pathsets_load(&old, s, weak);
	if (!old.n || !qk_pathset_equal(&old.v[0], set)) {
		qk_storedir_begin(&b, magic);
		begin = qk_record_begin(&b);
		put_set(&b, set);
		for (size_t i = 0, n = 1; i < old.n && n < QK_PATHSETS_KEPT; i++) {
			if (qk_pathset_equal(&old.v[i], set))
				continue;
			put_set(&b, &old.v[i]);
			n++;
		}
		qk_record_end(&b, begin);
		qk_storedir_name("sets", weak, name);
		r = qk_storedir_write(s, name, &b, err);
	}
	qk_pathsets_release(&old);
	qk_storedir_lock(s, LOCK_UN);
	return r;
}
