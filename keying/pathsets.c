/*
 * sets/ab/cd…: "qksets01", the digest of what follows (16 bytes), then one record (base/record.h)
 * with a field SET each, as keying/pathset.c has them.
 */
#include "keying/pathsets.h"

#include "base/fdio.h"
#include "base/record.h"
#include "keying/storedir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAG_SET = 1, HEAD = 8 + QK_DIGEST_SIZE, FILE_MAX = 1 << 27, DAY = 86400 };

static const char magic[] = "qksets01";

void qk_pathsets_release(struct qk_pathsets *sets)
{
	for (size_t i = 0; i < sets->n; i++)
		qk_pathset_release(&sets->v[i]);
	sets->n = 0;
}

/* The file's bytes; empty if it is not there or not whole. */
static void read_file(struct qk_store *s, const char *name, struct qk_buf *out)
{
	qk_autofd int fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct qk_digest d;
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < HEAD || st.st_size > FILE_MAX)
		return;
	size = (size_t)st.st_size;
	qk_buf_reserve(out, size);
	while (out->len < size) {
		ssize_t n = read(fd, out->s + out->len, size - out->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out->len += (size_t)n;
	}
	if (out->len == size) {
		qk_digest_bytes(out->s + HEAD, size - HEAD, &d);
		/* pruning goes by use; a day is fine enough, and most uses write nothing then */
		if (!memcmp(out->s, magic, 8) && !memcmp(out->s + 8, d.b, QK_DIGEST_SIZE)) {
			if (st.st_mtime + DAY < time(NULL))
				(void)futimens(fd, NULL);
			return;
		}
	}
	unlinkat(s->fd, name, 0);
	qk_buf_reset(out);
}

void qk_pathsets_load(struct qk_pathsets *sets, struct qk_store *s, const struct qk_digest *weak)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[QK_STOREDIR_NAME];
	struct qk_record rec;
	struct qk_field f;
	size_t pos = HEAD;

	*sets = (struct qk_pathsets){ .n = 0 };
	qk_storedir_name("sets", weak, name);
	read_file(s, name, &b);
	if (!b.len || qk_record_next(b.s, b.len, &pos, &rec) <= 0)
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

static int write_file(struct qk_store *s, const char *name, const struct qk_buf *b, struct qk_err *err)
{
	char temp[QK_STOREDIR_NAME];
	int fd = qk_storedir_temp(s, temp), r;

	if (fd < 0)
		return qk_fail(err, -fd, "create a file in '%s/tmp'", s->dir);
	r = qk_write_all(fd, b->s, b->len);
	if (!r && fchmod(fd, 0644))
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	if (!r)
		r = qk_storedir_publish(s, temp, name);
	if (r)
		unlinkat(s->fd, temp, 0);
	return r ? qk_fail(err, -r, "store: write '%s/%s'", s->dir, name) : 0;
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
	struct qk_digest d;
	size_t begin;
	int r = 0;

	/* shared, as for entries: no pruning meanwhile */
	qk_storedir_lock(s, LOCK_SH);
	qk_pathsets_load(&old, s, weak);
	if (!old.n || !qk_pathset_equal(&old.v[0], set)) {
		qk_buf_add(&b, magic, 8);
		qk_buf_add(&b, d.b, QK_DIGEST_SIZE);
		begin = qk_record_begin(&b);
		put_set(&b, set);
		for (size_t i = 0, n = 1; i < old.n && n < QK_PATHSETS_KEPT; i++) {
			if (qk_pathset_equal(&old.v[i], set))
				continue;
			put_set(&b, &old.v[i]);
			n++;
		}
		qk_record_end(&b, begin);
		qk_digest_bytes(b.s + HEAD, b.len - HEAD, &d);
		memcpy(b.s + 8, d.b, QK_DIGEST_SIZE);
		qk_storedir_name("sets", weak, name);
		r = write_file(s, name, &b, err);
		if (!r)
			qk_storedir_count(s, qk_storedir_blocks(b.len));
	}
	qk_pathsets_release(&old);
	qk_storedir_lock(s, LOCK_UN);
	return r;
}
