#include "sandbox/trace.h"

#include "base/path.h"
#include "base/record.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <uthash.h>

/*
 * Layout of a stored trace: fields as in base/record.h, in this order.
 *
 *   VERSION     number, 1
 *   INCOMPLETE  text, only in an incomplete trace
 *   ENTRY       u32 flags (little-endian), path; one per entry, in order of the first access
 *   MOVED       old path, NUL, new path; one per renamed directory, in order
 */
enum { TAG_VERSION = 1, TAG_INCOMPLETE, TAG_ENTRY, TAG_MOVED };
enum { FORMAT = 1, PATH_MAX_BYTES = 1 << 16 };

enum {
	ALL_FLAGS = 2 * QK_T_KEPT - 1,
	/* any of these says that something is there, unless REMOVED says that it is gone again */
	SEEN = QK_T_READ | QK_T_EXEC | QK_T_LISTED | QK_T_FOLLOWED | QK_T_PRESENT | QK_T_WRITTEN |
	       QK_T_META | QK_T_READ_OWN,
	LOOKS = QK_T_READ | QK_T_EXEC | QK_T_LISTED | QK_T_FOLLOWED | QK_T_PRESENT,
	TAKEN_OVER = QK_T_WANTED | QK_T_KEPT,
};

struct slot {
	const char *path;
	size_t at; /* in trace->entries */
	UT_hash_handle hh;
};

/* A directory that was renamed. What lies in it and was never touched by its new name has come
 * along with it: its contents are those of the old name. */
struct moved {
	const char *from, *to;
};

struct qk_trace_index {
	struct slot *slots;
	QK_VEC(struct moved) moved;
};

void qk_trace_init(struct qk_trace *t)
{
	*t = (struct qk_trace){ .index = qk_zalloc(sizeof(struct qk_trace_index)) };
}

void qk_trace_release(struct qk_trace *t)
{
	if (t->index) {
		HASH_CLEAR(hh, t->index->slots);
		qk_vec_release(&t->index->moved);
	}
	free(t->index);
	free(t->incomplete);
	qk_vec_release(&t->entries);
	qk_strv_release(&t->roots);
	qk_arena_release(&t->arena);
	*t = (struct qk_trace){ 0 };
}

static bool kept(const struct qk_trace *t, const char *path)
{
	for (size_t i = 0; i < t->roots.n; i++)
		if (qk_path_under(path, t->roots.v[i]))
			return true;
	return !t->roots.n;
}

static bool change_kept(const struct qk_trace *t, const char *path)
{
	return kept(t, path) || (t->changes_anywhere && !qk_path_under(path, "/dev") &&
		!qk_path_under(path, "/proc"));
}

static uint32_t *find(const struct qk_trace *t, const char *path)
{
	struct slot *s;

	HASH_FIND_STR(t->index->slots, path, s);
	return s ? &t->entries.v[s->at].flags : NULL;
}

/* The pointer is good until the next call that may add an entry. */
static uint32_t *find_or_add(struct qk_trace *t, const char *path)
{
	uint32_t *flags = find(t, path);
	struct qk_trace_entry e;
	struct slot *s;

	if (flags)
		return flags;
	e = (struct qk_trace_entry){ .path = qk_arena_strdup(&t->arena, path) };
	s = qk_arena_alloc(&t->arena, sizeof(*s));
	s->path = e.path;
	s->at = t->entries.n;
	qk_vec_push(&t->entries, e);
	HASH_ADD_KEYPTR(hh, t->index->slots, s->path, strlen(s->path), s);
	return &t->entries.v[s->at].flags;
}

const struct qk_trace_entry *qk_trace_find(const struct qk_trace *t, const char *path)
{
	struct slot *s;

	HASH_FIND_STR(t->index->slots, path, s);
	return s ? &t->entries.v[s->at] : NULL;
}

/* Appends to out the name that path had before directories were renamed; false if it had no other.
 */
static bool former_name(const struct qk_trace *t, const char *path, struct qk_buf *out)
{
	bool other = false;

	for (size_t i = t->index->moved.n; i--;) {
		const struct moved *m = &t->index->moved.v[i];
		const char *rest = qk_path_below(other ? out->s : path, m->to);
		qk_autofree char *tail = NULL;

		if (!rest || !*rest)
			continue;
		tail = qk_strdup(rest);
		qk_buf_reset(out);
		qk_buf_addstr(out, m->from);
		qk_buf_addch(out, '/');
		qk_buf_addstr(out, tail);
		other = true;
	}
	return other;
}

/* True if a directory on the way was made by the task: what is missing there is its own doing. */
static bool in_own_directory(const struct qk_trace *t, const char *path)
{
	qk_autofree char *dir = qk_strdup(path);

	for (size_t n; (n = qk_path_dirlen(dir)) > 1;) {
		const uint32_t *flags;

		dir[n] = '\0';
		flags = find(t, dir);
		if (flags && *flags & QK_T_CREATED && !(*flags & QK_T_REMOVED))
			return true;
	}
	return false;
}

/* Adds what a look at a path says. Of the task's own work a look says nothing new. */
static void look(uint32_t *flags, uint32_t what, bool keep)
{
	*flags &= ~(uint32_t)QK_T_REMOVED;
	if (!(*flags & QK_T_WRITTEN))
		*flags |= keep ? what : 0;
	else if (what != QK_T_PRESENT)
		*flags |= QK_T_READ_OWN;
}

/* existed: something stood there when this change came. */
static void change(uint32_t *flags, bool existed)
{
	if (!(*flags & QK_T_WRITTEN) && !existed)
		*flags |= QK_T_CREATED;
	*flags = (*flags | QK_T_WRITTEN) & ~(uint32_t)QK_T_REMOVED;
}

static bool changes(enum qk_event ev)
{
	switch (ev) {
	case QK_EV_WRITE:
	case QK_EV_CREATE:
	case QK_EV_MKDIR:
	case QK_EV_REMOVE:
	case QK_EV_RMDIR:
	case QK_EV_META: return true;
	default: return false;
	}
}

static void apply(struct qk_trace *t, enum qk_event ev, const char *path, bool came_along)
{
	uint32_t *flags;

	if (!(changes(ev) ? change_kept(t, path) : kept(t, path)))
		return;
	flags = find(t, path);
	if (ev == QK_EV_ABSENT &&
		(!t->lookups || (flags && *flags & SEEN) || in_own_directory(t, path)))
		return;
	if (ev == QK_EV_PRESENT && !flags && !t->lookups)
		return;
	if ((ev == QK_EV_WANT && !flags) || (ev == QK_EV_KEEP && !t->lookups))
		return;
	if (!flags)
		flags = find_or_add(t, path);
	switch (ev) {
	case QK_EV_READ: look(flags, QK_T_READ, true); break;
	case QK_EV_EXEC: look(flags, QK_T_READ | QK_T_EXEC, true); break;
	case QK_EV_LIST:
		look(flags, QK_T_LISTED, true);
		*flags |= QK_T_DIR;
		break;
	case QK_EV_FOLLOW: look(flags, QK_T_FOLLOWED, true); break;
	case QK_EV_PRESENT: look(flags, QK_T_PRESENT, t->lookups); break;
	case QK_EV_ABSENT: *flags |= QK_T_ABSENT; break;
	case QK_EV_WANT: *flags |= *flags & QK_T_ABSENT && !(*flags & QK_T_WRITTEN) ? QK_T_WANTED : 0; break;
	case QK_EV_META: *flags |= QK_T_META; /* fall through */
	case QK_EV_KEEP: *flags |= t->lookups && !(*flags & QK_T_WRITTEN) ? QK_T_KEPT : 0; break;
	case QK_EV_WRITE: change(flags, !came_along); break;
	case QK_EV_CREATE:
		change(flags, false);
		*flags &= ~(uint32_t)QK_T_DIR;
		break;
	case QK_EV_MKDIR:
		change(flags, false);
		*flags |= QK_T_DIR;
		break;
	case QK_EV_RMDIR: *flags |= QK_T_DIR; /* fall through */
	case QK_EV_REMOVE:
		change(flags, !came_along);
		*flags |= QK_T_REMOVED;
		break;
	}
}

void qk_trace_event(struct qk_trace *t, enum qk_event ev, const char *path)
{
	qk_autobuf struct qk_buf former = QK_BUF_INIT;
	bool came_along = t->index->moved.n && !find(t, path) && former_name(t, path, &former);

	switch (ev) {
	case QK_EV_READ:
	case QK_EV_EXEC:
	case QK_EV_LIST:
	case QK_EV_FOLLOW:
	case QK_EV_PRESENT:
	case QK_EV_ABSENT:
	case QK_EV_WANT:
	case QK_EV_KEEP: apply(t, ev, came_along ? former.s : path, false); break;
	default: apply(t, ev, path, came_along); break;
	}
}

/* What stands at `from` leaves it; whose contents were not the task's own have been read by that.
 */
static void leave(struct qk_trace *t, const char *from, bool is_dir)
{
	uint32_t *flags;

	if (!change_kept(t, from))
		return;
	flags = find_or_add(t, from);
	if (!(*flags & QK_T_WRITTEN))
		*flags |= is_dir ? QK_T_LISTED : QK_T_READ;
	*flags |= QK_T_WRITTEN | QK_T_REMOVED;
	if (is_dir)
		*flags |= QK_T_DIR;
}

static void arrive(struct qk_trace *t, const char *to, bool is_dir, bool replaced)
{
	uint32_t *flags;

	if (!change_kept(t, to))
		return;
	flags = find_or_add(t, to);
	change(flags, replaced);
	*flags = is_dir ? *flags | QK_T_DIR : *flags & ~(uint32_t)QK_T_DIR;
}

struct mover {
	char *from, *to;
	bool is_dir;
};

/* Pushes the known, still existing paths beneath `from` with the names they get. */
static void collect(const struct qk_trace *t, const char *from, const char *to, void *into)
{
	QK_VEC(struct mover) *list = into;

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];
		const char *rest = qk_path_below(e->path, from);

		if (rest && *rest && e->flags & SEEN && !(e->flags & QK_T_REMOVED)) {
			struct mover m = { qk_strdup(e->path), qk_asprintf("%s/%s", to, rest),
				(e->flags & QK_T_DIR) != 0 };

			qk_vec_push(list, m);
		}
	}
}

static void remember_move(struct qk_trace *t, const char *from, const char *to)
{
	struct moved m = { qk_arena_strdup(&t->arena, from), qk_arena_strdup(&t->arena, to) };

	qk_vec_push(&t->index->moved, m);
}

void qk_trace_rename(struct qk_trace *t, const char *from, const char *to, bool is_dir,
	bool replaced, bool exchange)
{
	QK_VEC(struct mover) list = { 0 };
	const uint32_t *there = find(t, to);
	bool to_is_dir = there && *there & QK_T_DIR;

	if (!strcmp(from, to))
		return;
	if (is_dir)
		collect(t, from, to, &list);
	if (exchange)
		collect(t, to, from, &list);
	to_is_dir = to_is_dir || (exchange && list.n && qk_path_under(list.v[list.n - 1].from, to));

	/* all leave before any arrives, so that an exchange is the same two moves */
	leave(t, from, is_dir);
	if (exchange)
		leave(t, to, to_is_dir);
	for (size_t i = 0; i < list.n; i++)
		leave(t, list.v[i].from, list.v[i].is_dir);
	arrive(t, to, is_dir, replaced || exchange);
	if (exchange)
		arrive(t, from, to_is_dir, true);
	for (size_t i = 0; i < list.n; i++) {
		arrive(t, list.v[i].to, list.v[i].is_dir, false);
		free(list.v[i].from);
		free(list.v[i].to);
	}
	qk_vec_release(&list);
	if (is_dir && !exchange)
		remember_move(t, from, to);
}

void qk_trace_lost(struct qk_trace *t, const char *fmt, ...)
{
	struct qk_buf b = QK_BUF_INIT;
	va_list ap;

	if (t->incomplete)
		return;
	va_start(ap, fmt);
	qk_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	t->incomplete = qk_buf_detach(&b);
}

/* The flags of one path after b's accesses followed a's. */
static uint32_t follow_up(uint32_t a, uint32_t b)
{
	uint32_t r;

	if (a & QK_T_WRITTEN) { /* what the later command saw was the earlier one's work */
		if (b & (LOOKS & ~(uint32_t)QK_T_PRESENT))
			b |= QK_T_READ_OWN;
		b &= ~(uint32_t)(LOOKS | TAKEN_OVER | QK_T_ABSENT | QK_T_CREATED);
	} else if (a & SEEN) {
		b &= ~(uint32_t)(QK_T_ABSENT | QK_T_WANTED);
	}
	r = a | b;
	if (b & (SEEN & ~(uint32_t)QK_T_META) && !(b & QK_T_REMOVED))
		r &= ~(uint32_t)QK_T_REMOVED;
	if (b & QK_T_WRITTEN && !(b & QK_T_DIR))
		r &= ~(uint32_t)QK_T_DIR;
	return r;
}

void qk_trace_append(struct qk_trace *t, const struct qk_trace *later)
{
	size_t known = t->index->moved.n;

	/* What the earlier command touched in a directory that the later one renamed came along. */
	for (size_t i = 0; i < later->index->moved.n; i++) {
		const struct moved *m = &later->index->moved.v[i];
		QK_VEC(struct mover) list = { 0 };

		collect(t, m->from, m->to, &list);
		for (size_t j = 0; j < list.n; j++) {
			leave(t, list.v[j].from, list.v[j].is_dir);
			arrive(t, list.v[j].to, list.v[j].is_dir, false);
			free(list.v[j].from);
			free(list.v[j].to);
		}
		qk_vec_release(&list);
	}
	for (size_t i = 0; i < later->entries.n; i++) {
		const struct qk_trace_entry *e = &later->entries.v[i];
		qk_autobuf struct qk_buf former = QK_BUF_INIT;
		uint32_t b = e->flags;
		uint32_t *flags;

		if (known && !find(t, e->path) && former_name(t, e->path, &former)) {
			/* looks go to the former name, changes stay with the new one */
			uint32_t looks = b & (LOOKS | QK_T_ABSENT), dir = b & QK_T_DIR;

			if (looks && kept(t, former.s)) {
				flags = find_or_add(t, former.s);
				*flags |= looks | dir;
			}
			if (!(b & (QK_T_WRITTEN | QK_T_META)))
				continue;
			b = (b & ~looks) | (b & QK_T_WRITTEN ? QK_T_CREATED : 0);
		}
		if (b == QK_T_ABSENT && in_own_directory(t, e->path))
			continue;
		flags = find_or_add(t, e->path);
		*flags = follow_up(*flags, b);
	}
	for (size_t i = 0; i < later->index->moved.n; i++)
		remember_move(t, later->index->moved.v[i].from, later->index->moved.v[i].to);
	if (later->incomplete)
		qk_trace_lost(t, "%s", later->incomplete);
}

void qk_trace_narrow(struct qk_trace *t, const char *root)
{
	const uint32_t looks = QK_T_PRESENT | QK_T_ABSENT | TAKEN_OVER;
	size_t n = 0;

	HASH_CLEAR(hh, t->index->slots);
	for (size_t i = 0; i < t->entries.n; i++) {
		struct qk_trace_entry e = t->entries.v[i];
		struct slot *s;

		e.flags &= ~looks;
		if (!qk_path_under(e.path, root) || !(e.flags & ~(uint32_t)(QK_T_DIR | QK_T_REMOVED)))
			continue;
		s = qk_arena_alloc(&t->arena, sizeof(*s));
		s->path = e.path;
		s->at = n;
		t->entries.v[n++] = e;
		HASH_ADD_KEYPTR(hh, t->index->slots, s->path, strlen(s->path), s);
	}
	t->entries.n = n;
}

void qk_trace_write(const struct qk_trace *t, struct qk_buf *out)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_record_putnum(out, TAG_VERSION, FORMAT);
	if (t->incomplete)
		qk_record_putstr(out, TAG_INCOMPLETE, t->incomplete);
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];

		qk_buf_reset(&b);
		for (int shift = 0; shift < 32; shift += 8)
			qk_buf_addch(&b, (char)(e->flags >> shift));
		qk_buf_addstr(&b, e->path);
		qk_record_put(out, TAG_ENTRY, b.s, b.len);
	}
	for (size_t i = 0; i < t->index->moved.n; i++) {
		qk_buf_reset(&b);
		qk_buf_addstr(&b, t->index->moved.v[i].from);
		qk_buf_addch(&b, '\0');
		qk_buf_addstr(&b, t->index->moved.v[i].to);
		qk_record_put(out, TAG_MOVED, b.s, b.len);
	}
}

/* n bytes at p as an absolute clean path without NUL, a new string; NULL if they are none. */
static char *checked_path(const char *p, size_t n)
{
	qk_autobuf struct qk_buf clean = QK_BUF_INIT;
	qk_autofree char *s = NULL;

	if (!n || n > PATH_MAX_BYTES || p[0] != '/' || memchr(p, '\0', n))
		return NULL;
	s = qk_strndup(p, n);
	qk_path_clean(&clean, "/", s);
	return strcmp(clean.s, s) ? NULL : qk_steal(&s);
}

static bool read_entry(struct qk_trace *t, const struct qk_field *f)
{
	qk_autofree char *path = NULL;
	uint32_t flags = 0;

	if (f->n < 5)
		return false;
	for (int i = 0; i < 4; i++)
		flags |= (uint32_t)(unsigned char)f->p[i] << 8 * i;
	path = checked_path(f->p + 4, f->n - 4);
	if (!path || flags & ~(uint32_t)ALL_FLAGS || find(t, path))
		return false;
	*find_or_add(t, path) = flags;
	return true;
}

static bool read_moved(struct qk_trace *t, const struct qk_field *f)
{
	const char *nul = memchr(f->p, '\0', f->n);
	qk_autofree char *from = NULL, *to = NULL;

	if (!nul)
		return false;
	from = checked_path(f->p, (size_t)(nul - f->p));
	to = checked_path(nul + 1, f->n - (size_t)(nul - f->p) - 1);
	if (!from || !to)
		return false;
	remember_move(t, from, to);
	return true;
}

int qk_trace_read(struct qk_trace *t, const char *p, size_t n, struct qk_err *err)
{
	struct qk_record r = { p, p + n };
	struct qk_field f;
	int more = qk_field_next(&r, &f);

	if (more <= 0 || f.tag != TAG_VERSION || qk_field_num(&f) != FORMAT)
		return qk_fail(err, -EBADMSG, "stored trace: not of this version");
	while ((more = qk_field_next(&r, &f)) > 0) {
		bool good = true;

		if (f.tag == TAG_ENTRY)
			good = read_entry(t, &f);
		else if (f.tag == TAG_MOVED)
			good = read_moved(t, &f);
		else if (f.tag == TAG_INCOMPLETE)
			qk_trace_lost(t, "%.*s", (int)(f.n < 1000 ? f.n : 1000), f.p);
		if (!good)
			return qk_fail(err, -EBADMSG, "stored trace: damaged entry");
	}
	if (more < 0)
		return qk_fail(err, -EBADMSG, "stored trace: cut short");
	return 0;
}
