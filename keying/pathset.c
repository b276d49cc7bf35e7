/*
 * A set on disk: u32 flags, then per entry
 *
 *   u8 class | how << 4, u16 length shared with the path before, u16 length of the rest, the rest
 *
 * Little-endian. Successive look-ups share most of their paths, so that a set takes about a quarter
 * of its names.
 */
#include "keying/pathset.h"

#include "keying/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

enum { HEAD = 5, PRETENDED = 9 /* beside the classes, in what is known */ };

void qk_pathset_release(struct qk_pathset *s)
{
	qk_vec_release(&s->v);
	qk_arena_release(&s->arena);
	s->flags = 0;
}

void qk_pathset_add(struct qk_pathset *s, const char *path, enum qk_pathclass class, unsigned int how)
{
	struct qk_pathset_entry e = { qk_arena_strdup(&s->arena, path), (uint8_t)class, (uint8_t)how };

	qk_vec_push(&s->v, e);
}

bool qk_pathset_equal(const struct qk_pathset *a, const struct qk_pathset *b)
{
	if (a->flags != b->flags || a->v.n != b->v.n)
		return false;
	for (size_t i = 0; i < a->v.n; i++) {
		const struct qk_pathset_entry *x = &a->v.v[i], *y = &b->v.v[i];

		if (x->class != y->class || x->how != y->how || strcmp(x->path, y->path))
			return false;
	}
	return true;
}

static void put_number(struct qk_buf *out, uint32_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		qk_buf_addch(out, (char)(v >> 8 * i));
}

static uint32_t get_number(const char *p, int bytes)
{
	uint32_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint32_t)(unsigned char)p[i] << 8 * i;
	return v;
}

void qk_pathset_write(const struct qk_pathset *s, struct qk_buf *out)
{
	const char *last = "";

	put_number(out, s->flags, 4);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct qk_pathset_entry *e = &s->v.v[i];
		size_t same = 0, len = strlen(e->path);

		while (last[same] && last[same] == e->path[same])
			same++;
		qk_buf_addch(out, (char)(e->class | e->how << 4));
		put_number(out, (uint32_t)same, 2);
		put_number(out, (uint32_t)(len - same), 2);
		qk_buf_add(out, e->path + same, len - same);
		last = e->path;
	}
}

int qk_pathset_read(struct qk_pathset *s, const char *p, size_t n)
{
	const char *end = p + n;
	char path[PATH_MAX];
	size_t have = 0;

	if (n < 4 || n > QK_PATHSET_MAX)
		return -EBADMSG;
	s->flags = get_number(p, 4);
	for (p += 4; p < end;) {
		struct qk_pathset_entry e;
		size_t same, rest;

		if (end - p < HEAD)
			return -EBADMSG;
		e.class = (uint8_t)(*p & 15);
		e.how = (uint8_t)((unsigned char)*p >> 4);
		same = get_number(p + 1, 2);
		rest = get_number(p + 3, 2);
		p += HEAD;
		if (e.class > QK_PATH_OWN || same > have || same + rest >= sizeof(path) ||
			rest > (size_t)(end - p) || !(same + rest) || memchr(p, '\0', rest))
			return -EBADMSG;
		memcpy(path + same, p, rest);
		have = same + rest;
		path[have] = '\0';
		p += rest;
		e.path = qk_arena_strndup(&s->arena, path, have);
		qk_vec_push(&s->v, e);
	}
	return 0;
}

struct qk_pathview_known {
	struct qk_digest state;
	UT_hash_handle hh;
	char id[]; /* class, path */
};

void qk_pathview_release(struct qk_pathview *v)
{
	HASH_CLEAR(hh, v->known);
	qk_strv_release(&v->assumed);
	qk_arena_release(&v->arena);
}

/* In what is known, a class and a path are one string. */
static size_t id_of(char *id, const char *path, unsigned int class)
{
	size_t n = strlen(path);

	if (n + 2 > PATH_MAX)
		n = PATH_MAX - 2;
	id[0] = (char)('0' + class);
	memcpy(id + 1, path, n);
	id[n + 1] = '\0';
	return n + 1;
}

static bool recall(struct qk_pathview *v, const char *path, unsigned int class, struct qk_digest *ret)
{
	struct qk_pathview_known *k;
	char id[PATH_MAX];
	size_t n;

	if (!v->known)
		return false;
	n = id_of(id, path, class);
	HASH_FIND(hh, v->known, id, n, k);
	if (k)
		*ret = k->state;
	return k != NULL;
}

static void know(struct qk_pathview *v, const char *path, unsigned int class, const struct qk_digest *state)
{
	struct qk_pathview_known *k;
	char id[PATH_MAX];
	size_t n = id_of(id, path, class);

	HASH_FIND(hh, v->known, id, n, k);
	if (!k) {
		k = qk_arena_alloc(&v->arena, sizeof(*k) + n + 1);
		memcpy(k->id, id, n + 1);
		HASH_ADD(hh, v->known, id[0], n, k);
	}
	k->state = *state;
}

void qk_pathview_set(struct qk_pathview *v, const char *path, enum qk_pathclass class,
	const struct qk_digest *state)
{
	know(v, path, class, state);
}

void qk_pathview_pretend(struct qk_pathview *v, const char *path, const struct qk_digest *state)
{
	know(v, path, PRETENDED, state);
}

/* A state that no content has: of what may not be read, and of what is not to be. */
static void state_by_stat(const char *kind, const struct stat *st, struct qk_digest *ret)
{
	const uint64_t fields[] = { (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_mode };
	struct qk_hasher h;

	qk_hasher_init(&h);
	qk_hasher_field(&h, kind, strlen(kind));
	qk_hasher_add(&h, fields, sizeof(fields));
	qk_hasher_done(&h, ret);
}

static int stat_it(const struct qk_pathview *v, const char *path, struct stat *st, struct qk_err *err)
{
	if (!fstatat(qk_filehash_rootfd(v->files), path, st, AT_SYMLINK_NOFOLLOW))
		return 0;
	return qk_fail(err, errno, "stat '%s'", path);
}

int qk_pathview_look(struct qk_pathview *v, const char *path, struct qk_digest *ret, struct qk_err *err)
{
	struct qk_filestate s;
	struct stat st;
	int r;

	if (recall(v, path, PRETENDED, ret))
		return 0;
	if (v->system == QK_SYSTEM_STAT && *path == '/') {
		if (!stat_it(v, path, &st, NULL) && S_ISREG(st.st_mode)) {
			state_by_stat("stat", &st, ret);
			return 0;
		}
	}
	r = qk_filehash_get(v->files, path, QK_FILEHASH_SHALLOW, &s, err);
	if ((r == -EACCES || r == -EPERM) && !stat_it(v, path, &st, NULL)) {
		state_by_stat("closed", &st, ret);
		return 0;
	}
	if (r == -EACCES) { /* a directory on the way is closed: nothing there can be told */
		qk_digest_bytes("closed", 6, ret);
		return 0;
	}
	if (!r)
		*ret = s.digest;
	return r;
}

void qk_pathset_absent(struct qk_digest *ret)
{
	static struct qk_digest absent;
	static bool known;

	if (!known) {
		qk_digest_bytes("absent", 6, &absent);
		known = true;
	}
	*ret = absent;
}

/* The fact's name for what a result last left at path. */
static char *made_name(const char *path)
{
	return qk_asprintf("made/%s", path);
}

void qk_pathview_made(struct qk_pathview *v, const char *path, const struct qk_digest *state)
{
	qk_autofree char *name = made_name(path);
	struct qk_digest old;

	if (!qk_filehash_recall(v->files, name, &old) || !qk_digest_eq(&old, state))
		qk_filehash_remember(v->files, name, state);
}

int qk_pathview_before(struct qk_pathview *v, const char *path, struct qk_before *ret, struct qk_err *err)
{
	qk_autofree char *name = made_name(path);
	struct qk_digest made, empty;
	struct qk_filestate s;
	int r;

	if (recall(v, path, PRETENDED, &made)) {
		qk_pathset_absent(&empty);
		*ret = (struct qk_before){ .there = !qk_digest_eq(&made, &empty), .made = true, .state = made };
		return 0;
	}
	r = qk_filehash_get(v->files, path, QK_FILEHASH_SHALLOW, &s, err);
	if (r)
		return r;
	qk_digest_bytes("", 0, &empty);
	*ret = (struct qk_before){ .there = s.kind != QK_FILE_ABSENT,
		.empty = s.kind == QK_FILE_REGULAR && qk_digest_eq(&s.content, &empty),
		.state = s.digest };
	ret->made = ret->there && qk_filehash_recall(v->files, name, &made) &&
		    qk_digest_eq(&made, &s.digest);
	return 0;
}

/* True if nothing of what was there can have come through. */
static bool nothing_taken(const struct qk_before *b, unsigned int how)
{
	return !(how & QK_OWN_READ) && (!(how & QK_OWN_KEPT) || b->empty);
}

unsigned int qk_pathset_how(const struct qk_before *b, unsigned int how)
{
	return b->there && nothing_taken(b, how) ? how | QK_OWN_REPLACED : how;
}

void qk_pathset_own(const struct qk_before *b, unsigned int how, struct qk_digest *ret)
{
	if (!b->there || (b->made && how & QK_OWN_REPLACED && nothing_taken(b, how)))
		qk_pathset_absent(ret);
	else
		*ret = b->state;
}

/* The listing at position *i of the set; *i moves to its last exception. */
static int list(const struct qk_pathset *s, size_t *i, struct qk_pathview *v, struct qk_digest *ret,
	struct qk_err *err)
{
	const char *path = s->v.v[*i].path;
	QK_VEC(const char *) except = { 0 };
	int r;

	for (; *i + 1 < s->v.n && s->v.v[*i + 1].class == QK_PATH_EXCEPT; ++*i) {
		const char *slash = strrchr(s->v.v[*i + 1].path, '/');

		qk_vec_push(&except, slash ? slash + 1 : s->v.v[*i + 1].path);
	}
	r = qk_filehash_listing_without(v->files, path, except.v, except.n, ret, err);
	qk_vec_release(&except);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES) {
		qk_digest_bytes("closed", r == -EACCES ? 6 : 0, ret);
		r = 0;
	}
	return r;
}

static int own(struct qk_pathview *v, const struct qk_pathset_entry *e, struct qk_digest *ret,
	struct qk_err *err)
{
	struct qk_before before;
	int r = qk_pathview_before(v, e->path, &before, err);
	struct qk_digest absent;

	if (r)
		return r;
	qk_pathset_own(&before, e->how, ret);
	qk_pathset_absent(&absent);
	if (before.there && !qk_digest_eq(ret, &absent) && nothing_taken(&before, e->how)) {
		v->assumable = true;
		if (v->assume) {
			qk_strv_push(&v->assumed, e->path);
			*ret = absent;
		}
	}
	return 0;
}

int qk_pathset_state(const struct qk_pathset *s, size_t *i, struct qk_pathview *v, struct qk_digest *ret,
	struct qk_err *err)
{
	const struct qk_pathset_entry *e = &s->v.v[*i];

	switch (e->class) {
	case QK_PATH_LOOK: return qk_pathview_look(v, e->path, ret, err);
	case QK_PATH_LIST: return list(s, i, v, ret, err);
	case QK_PATH_OWN: return own(v, e, ret, err);
	default: return qk_fail(err, -EBADMSG, "path set: an exception without its listing");
	}
}

int qk_pathset_key(const struct qk_pathset *s, const struct qk_digest *weak, struct qk_pathview *v,
	bool remember, struct qk_buf *text, struct qk_digest *ret, struct qk_err *err)
{
	static const char *const tags[] = { "look", "list", "except", "own" };
	struct qk_digest state;
	struct qk_key k;

	v->assumable = false;
	qk_key_init(&k, "pathset", text);
	qk_key_add_digest(&k, "weak", NULL, weak, NULL);
	if (s->flags & QK_PATHSET_PLACE)
		qk_key_add(&k, "place", NULL, v->place);
	if (s->flags & QK_PATHSET_TERMINAL)
		qk_key_add(&k, "terminal", NULL, v->terminal);
	for (size_t i = 0; i < s->v.n; i++) {
		const struct qk_pathset_entry *e = &s->v.v[i];
		size_t first = i;
		int r = 0;

		if (e->class == QK_PATH_LIST || !recall(v, e->path, e->class, &state)) {
			r = qk_pathset_state(s, &i, v, &state, err);
			if (!r && remember && e->class == QK_PATH_LOOK)
				qk_pathview_set(v, e->path, (enum qk_pathclass)e->class, &state);
		}
		if (r)
			return r;
		while (++first <= i)
			qk_key_add(&k, tags[QK_PATH_EXCEPT], s->v.v[first].path, NULL);
		qk_key_add_digest(&k, tags[e->class], e->path, &state, NULL);
	}
	qk_key_done(&k, ret);
	return 0;
}
