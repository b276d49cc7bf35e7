#include "keying/taskstate.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

static const char magic[] = "qktasks1";

enum {
	MAGIC_LEN = sizeof(magic) - 1,
	FILE_MAX = 256 << 20,
	OUTDATED_MIN = 1000, /* records; below it writing anew is not worth while */
};

enum tag { TAG_ID = 1, TAG_RUN, TAG_KEY, TAG_COUNT, TAG_EXACT, TAG_GOOD, TAG_MOVED, TAG_STRONG };

struct entry {
	struct qk_taskstate s;
	UT_hash_handle hh;
};

struct qk_taskstates {
	struct qk_arena arena;
	char *path;
	int fd;
	off_t at; /* read up to here */
	size_t records, moved;
	struct entry *by_id;
};

static void put_digest(struct qk_buf *b, enum tag tag, const struct qk_digest *d)
{
	qk_record_put(b, tag, d->b, QK_DIGEST_SIZE);
}

static void write_state(const struct qk_taskstate *s, struct qk_buf *b)
{
	size_t begin = qk_record_begin(b);

	qk_record_putstr(b, TAG_ID, s->id);
	qk_record_putstr(b, TAG_RUN, s->run);
	if (s->has_key)
		put_digest(b, TAG_KEY, &s->key);
	if (s->has_outputs) {
		put_digest(b, TAG_COUNT, &s->count);
		put_digest(b, TAG_EXACT, &s->exact);
	}
	if (s->recorded)
		put_digest(b, TAG_STRONG, &s->strong);
	if (s->moved)
		qk_record_putnum(b, TAG_MOVED, 1);
	if (s->good)
		qk_record_putnum(b, TAG_GOOD, 1);
	qk_record_end(b, begin);
}

int qk_taskstate_append(const char *path, const struct qk_taskstate *s)
{
	qk_autofd int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (fd < 0 && errno == ENOENT) {
		qk_autofree char *fresh = qk_asprintf("%s.%d", path, (int)getpid());

		/* it appears with its header, and never in place of one that somebody made meanwhile */
		if (!qk_write_file(fresh, magic, MAGIC_LEN, 0666, NULL)) {
			(void)!link(fresh, path);
			unlink(fresh);
		}
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	write_state(s, &b);
	return write(fd, b.s, b.len) == (ssize_t)b.len ? 0 : -EIO;
}

void qk_taskstate_exact(const struct qk_tree *t, struct qk_digest *ret)
{
	struct qk_hasher h;

	qk_hasher_init(&h);
	for (size_t i = 0; i < t->n; i++) {
		const struct qk_treeent *e = &t->v[i];
		const uint32_t head[2] = { (uint32_t)e->kind, (uint32_t)e->mode };

		qk_hasher_field(&h, e->path, strlen(e->path));
		qk_hasher_add(&h, head, sizeof(head));
		if (e->kind == QK_FILE_LINK)
			qk_hasher_field(&h, e->link, strlen(e->link));
		if (e->twin)
			qk_hasher_field(&h, e->twin, strlen(e->twin));
		if (e->kind == QK_FILE_REGULAR)
			qk_hasher_add(&h, e->content.b, QK_DIGEST_SIZE);
	}
	qk_hasher_done(&h, ret);
}

static bool take_digest(const struct qk_field *f, struct qk_digest *ret)
{
	if (f->n != QK_DIGEST_SIZE)
		return false;
	memcpy(ret->b, f->p, QK_DIGEST_SIZE);
	return true;
}

static void take_record(struct qk_taskstates *s, struct qk_record *rec)
{
	struct qk_taskstate t = { 0 };
	bool count = false, exact = false;
	struct qk_field f;
	struct entry *e;

	while (qk_field_next(rec, &f) > 0)
		switch ((enum tag)f.tag) {
		case TAG_ID: t.id = qk_arena_strndup(&s->arena, f.p, f.n); break;
		case TAG_RUN: t.run = qk_arena_strndup(&s->arena, f.p, f.n); break;
		case TAG_KEY: t.has_key = take_digest(&f, &t.key); break;
		case TAG_STRONG: t.recorded = take_digest(&f, &t.strong); break;
		case TAG_COUNT: count = take_digest(&f, &t.count); break;
		case TAG_EXACT: exact = take_digest(&f, &t.exact); break;
		case TAG_MOVED: t.moved = qk_field_num(&f) == 1; break;
		case TAG_GOOD: t.good = qk_field_num(&f) == 1; break;
		}
	if (!t.id || !t.run)
		return;
	t.has_outputs = count && exact;
	s->records++;
	s->moved += t.moved;
	HASH_FIND_STR(s->by_id, t.id, e);
	if (e) {
		t.id = e->s.id;
		e->s = t;
		return;
	}
	e = qk_arena_alloc(&s->arena, sizeof(*e));
	e->s = t;
	HASH_ADD_KEYPTR(hh, s->by_id, e->s.id, strlen(e->s.id), e);
}

void qk_taskstates_refresh(struct qk_taskstates *s)
{
	qk_autofree char *data = NULL;
	struct qk_record rec;
	size_t pos = 0, n;
	struct stat st, now;
	ssize_t got;

	/* another make may have written it anew */
	if (s->fd >= 0 && !stat(s->path, &now) && !fstat(s->fd, &st) && now.st_ino != st.st_ino) {
		close(s->fd);
		s->fd = -1;
	}
	if (s->fd < 0) {
		char head[MAGIC_LEN];

		s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
		if (s->fd < 0)
			return;
		s->at = MAGIC_LEN;
		if (pread(s->fd, head, MAGIC_LEN, 0) != MAGIC_LEN || memcmp(head, magic, MAGIC_LEN))
			s->at = FILE_MAX; /* not ours, or of another version */
	}
	if (fstat(s->fd, &st) || st.st_size <= s->at || st.st_size > FILE_MAX)
		return;
	n = (size_t)(st.st_size - s->at);
	data = qk_alloc(n);
	got = pread(s->fd, data, n, s->at);
	while (got > 0 && qk_record_next(data, (size_t)got, &pos, &rec) > 0)
		take_record(s, &rec);
	s->at += (off_t)pos;
}

/* Each task once, in a file that takes the old one's place; records appended meanwhile are lost. */
static void write_anew(struct qk_taskstates *s)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct entry *e, *next;

	qk_buf_add(&b, magic, MAGIC_LEN);
	HASH_ITER(hh, s->by_id, e, next)
		write_state(&e->s, &b);
	if (qk_write_file(s->path, b.s, b.len, 0666, NULL))
		return;
	close(s->fd);
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
	s->at = (off_t)b.len;
	s->records = HASH_COUNT(s->by_id);
}

struct qk_taskstates *qk_taskstates_new(const char *path)
{
	struct qk_taskstates *s = qk_zalloc(sizeof(*s));
	struct stat st;

	s->path = qk_strdup(path);
	s->fd = -1;
	qk_taskstates_refresh(s);
	/* what follows a record cut short would never be read */
	if (s->fd >= 0 && !fstat(s->fd, &st) &&
		(st.st_size != s->at || (s->records > OUTDATED_MIN &&
						s->records > 4 * HASH_COUNT(s->by_id))))
		write_anew(s);
	return s;
}

void qk_taskstates_free(struct qk_taskstates *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	HASH_CLEAR(hh, s->by_id);
	qk_arena_release(&s->arena);
	free(s->path);
	free(s);
}

size_t qk_taskstates_moved(const struct qk_taskstates *s)
{
	return s->moved;
}

const struct qk_taskstate *qk_taskstates_find(const struct qk_taskstates *s, const char *id)
{
	struct entry *e;

	HASH_FIND_STR(s->by_id, id, e);
	return e ? &e->s : NULL;
}
