/*
 * The other half of witness.c, for recorders that see results: what a call has done. Whether
 * something was there before a call is not seen then; it is known from what the trace has seen, or
 * judged by the file's time of birth.
 */
#include "sandbox/witness.h"
#include "base/newcalls.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <unistd.h>

static void event(struct qk_witness *w, enum qk_event ev, const struct qk_place *p)
{
	if (p->path.len)
		qk_trace_event(w->trace, ev, p->path.s);
}

/* A call that changed nothing. Its result says more than a look now: time has gone on. */
static void seen(struct qk_witness *w, const struct qk_place *p, int err)
{
	if (err == ENOENT || err == ENOTDIR)
		event(w, QK_EV_ABSENT, p);
	else
		event(w, QK_EV_PRESENT, p);
}

static void resolve(struct qk_witness *w, const struct qk_deed *d, unsigned int how)
{
	qk_resolve(&w->resolver, d->pid, d->dirfd, d->base, d->path, how, &w->a);
}

static void resolve_second(struct qk_witness *w, const struct qk_deed *d)
{
	qk_resolve(&w->resolver, d->pid, d->dirfd2, d->base2, d->path2, QK_RESOLVE_NOFOLLOW, &w->b);
}

/* 1: the trace knows that path was there, 0: that it was not, -1: it knows nothing. */
static int known_there(const struct qk_witness *w, const char *path)
{
	const struct qk_trace_entry *e = qk_trace_find(w->trace, path);

	if (!e)
		return -1;
	if (e->flags & QK_T_REMOVED)
		return 0;
	return e->flags & ~(uint32_t)(QK_T_ABSENT | QK_T_WANTED | QK_T_KEPT) ? 1 : 0;
}

/* Whether the file that stands at path now was born since the command began, or is gone again. */
static bool born_since(const struct qk_witness *w, const char *path)
{
	struct statx st;

	if (qk_statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) ||
		!(st.stx_mask & STATX_BTIME))
		return true;
	return st.stx_btime.tv_sec > w->began.tv_sec ||
	       (st.stx_btime.tv_sec == w->began.tv_sec &&
		       (long)st.stx_btime.tv_nsec >= w->began.tv_nsec);
}

static bool was_there(const struct qk_witness *w, const char *path)
{
	int known = known_there(w, path);

	return known < 0 ? !born_since(w, path) : known > 0;
}

/* The name of an opened descriptor; "" if it has none. */
static void take_opened(struct qk_place *p, const char *opened)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(opened);

	qk_buf_reset(&p->path);
	if (opened[0] != '/')
		return;
	if (n > strlen(deleted) && !strcmp(opened + n - strlen(deleted), deleted) &&
		lstat(opened, &p->st))
		return;
	qk_buf_addstr(&p->path, opened);
	p->err = lstat(p->path.s, &p->st) ? errno : 0;
}

/* Whether the path that was opened is the name of what was opened: no link was on the way. */
static bool opened_by_its_name(const struct qk_deed *d, const char *name)
{
	const char *rest;

	if (d->path[0] == '/')
		return !strcmp(d->path, name);
	rest = d->base ? qk_path_below(name, d->base) : NULL;
	return rest && !strcmp(d->path, rest);
}

/*
 * The name of what was opened tells of a link on the way that is gone by the time we look: the
 * first name missing now that it does not go through.
 */
static void link_passed(struct qk_witness *w, const struct qk_deed *d, const char *name)
{
	qk_autofree char *path = NULL;

	if (strstr(d->path, "..") || (!d->base && *d->path != '/'))
		return; /* the text does not say what was on the way */
	path = qk_path_join(d->base ? d->base : "/", d->path);
	for (char *s = path + 1; *s; s += *s == '/') {
		char after;
		const char *at = path;

		s += strcspn(s, "/");
		after = *s;
		*s = '\0';
		qk_resolve(&w->resolver, d->pid, AT_FDCWD, NULL, path, QK_RESOLVE_NOFOLLOW, &w->parent);
		if (w->parent.path.len)
			at = w->parent.path.s;
		if (w->parent.err && !qk_path_under(name, at)) {
			qk_trace_event(w->trace, QK_EV_FOLLOW, at);
			return;
		}
		*s = after;
	}
}

static void opened(
	struct qk_witness *w, const struct qk_deed *d, uint64_t flags, const struct qk_outcome *o)
{
	uint64_t mode = flags & O_ACCMODE;
	bool reads = mode != O_WRONLY && !(mode == O_RDWR && flags & O_TRUNC);
	bool writes = mode != O_RDONLY || flags & O_TRUNC;
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	bool keeps = writes && !(flags & O_TRUNC) && !exclusive;
	bool made, dir;
	struct qk_place *p = &w->a;

	if (!o->known || !opened_by_its_name(d, o->opened)) /* else no link was passed */
		resolve(w, d, flags & O_NOFOLLOW || exclusive ? QK_RESOLVE_NOFOLLOW : 0);
	if (o->known) {
		qk_buf_reset(&p->path);
		qk_buf_addstr(&p->path, o->opened);
	}
	if (o->err || flags & O_PATH || (flags & O_TMPFILE) == O_TMPFILE) {
		seen(w, p, o->err);
		if (reads && !(flags & O_PATH))
			event(w, QK_EV_WANT, p);
		return;
	}
	if (o->opened && !o->known) {
		if (p->err && *o->opened == '/')
			link_passed(w, d, o->opened);
		take_opened(p, o->opened);
	}
	made = o->known ? o->made : flags & O_CREAT && (exclusive || !was_there(w, p->path.s));
	dir = o->known ? o->dir : flags & O_DIRECTORY || (!p->err && S_ISDIR(p->st.st_mode));
	if (made) {
		if (keeps)
			event(w, QK_EV_KEEP, p);
		event(w, QK_EV_CREATE, p);
		return;
	}
	if (dir) {
		event(w, QK_EV_LIST, p);
		return;
	}
	if (reads)
		event(w, QK_EV_READ, p);
	if (keeps)
		event(w, QK_EV_KEEP, p);
	if (writes)
		event(w, QK_EV_WRITE, p);
}

static void renamed(struct qk_witness *w, const struct qk_deed *d)
{
	bool exchange = d->flags & RENAME_EXCHANGE, dir, other_dir = false;

	resolve(w, d, QK_RESOLVE_NOFOLLOW);
	resolve_second(w, d);
	dir = !w->b.err && S_ISDIR(w->b.st.st_mode);
	if (exchange)
		other_dir = !w->a.err && S_ISDIR(w->a.st.st_mode);
	qk_trace_rename(
		w->trace, w->a.path.s, w->b.path.s, dir, known_there(w, w->b.path.s) > 0, exchange);
	if (other_dir && !dir)
		qk_trace_event(w->trace, QK_EV_MKDIR, w->a.path.s);
	qk_resolver_forget(&w->resolver);
}

static void removed(struct qk_witness *w, const struct qk_deed *d)
{
	resolve(w, d, QK_RESOLVE_NOFOLLOW);
	event(w, d->op == QK_CALL_RMDIR || d->flags & AT_REMOVEDIR ? QK_EV_RMDIR : QK_EV_REMOVE, &w->a);
	qk_resolver_forget(&w->resolver);
}

void qk_witness_done(struct qk_witness *w, const struct qk_deed *d, const struct qk_outcome *o)
{
	unsigned int empty = d->flags & AT_EMPTY_PATH ? QK_RESOLVE_EMPTY : 0, how = empty;
	enum qk_event ev;

	/* nothing has changed: by permissions, or by walls and to be named? */
	if (o->err == EACCES || (o->err == EROFS && w->trace->changes_anywhere)) {
		qk_witness_call(w, d);
		return;
	}
	switch (d->op) {
	case QK_CALL_OPEN:
	case QK_CALL_OPEN2: opened(w, d, d->flags, o); return;
	case QK_CALL_CREAT: opened(w, d, O_WRONLY | O_CREAT | O_TRUNC, o); return;
	case QK_CALL_RENAME:
		if (!o->err) {
			renamed(w, d);
			return;
		}
		break;
	case QK_CALL_UNLINK:
	case QK_CALL_RMDIR:
		if (!o->err) {
			removed(w, d);
			return;
		}
		break;
	case QK_CALL_LINK:
		resolve(w, d, empty | (d->flags & AT_SYMLINK_FOLLOW ? 0 : QK_RESOLVE_NOFOLLOW));
		if (o->err) {
			seen(w, &w->a, o->err);
			return;
		}
		resolve_second(w, d);
		ev = !w->a.err && S_ISLNK(w->a.st.st_mode) ? QK_EV_FOLLOW : QK_EV_READ;
		/* what is gone by now and was never seen by its name had none */
		if (!w->a.err || known_there(w, w->a.path.s) >= 0)
			event(w, ev, &w->a);
		event(w, QK_EV_CREATE, &w->b);
		return;
	default: break;
	}
	switch (d->op) {
	case QK_CALL_EXEC:
	case QK_CALL_META:
	case QK_CALL_LOOK:
		if (d->flags & AT_SYMLINK_NOFOLLOW)
			how |= QK_RESOLVE_NOFOLLOW;
		break;
	case QK_CALL_TRUNCATE: break;
	default: how |= QK_RESOLVE_NOFOLLOW; break;
	}
	if (d->op == QK_CALL_LOOK && !*d->path)
		return;
	resolve(w, d, how);
	if (o->err) {
		seen(w, &w->a, o->err);
		return;
	}
	switch (d->op) {
	case QK_CALL_EXEC:
		qk_witness_exec(w, d, &w->a);
		if (o->known && *o->opened) { /* a script's interpreter, should the script be gone */
			qk_buf_reset(&w->a.path);
			qk_buf_addstr(&w->a.path, o->opened);
			qk_witness_exec(w, d, &w->a);
		}
		return;
	case QK_CALL_TRUNCATE:
		event(w, QK_EV_KEEP, &w->a);
		ev = QK_EV_WRITE;
		break;
	case QK_CALL_META:
	case QK_CALL_META_LINK: ev = QK_EV_META; break;
	case QK_CALL_MKDIR: ev = QK_EV_MKDIR; break;
	case QK_CALL_READLINK: ev = QK_EV_FOLLOW; break;
	case QK_CALL_LOOK:
	case QK_CALL_LOOK_LINK: ev = QK_EV_PRESENT; break;
	default: ev = QK_EV_CREATE; break; /* symlink, mknod, bind */
	}
	event(w, ev, &w->a);
}

enum { LINKS_MAX = 40 };

void qk_witness_realpath(struct qk_witness *w, const struct qk_deed *d, size_t from)
{
	qk_autobuf struct qk_buf at = QK_BUF_INIT; /* resolved so far; "" is the root */
	qk_autofree char *path = qk_strdup(d->path);
	const char *s = path + from;
	int links = 0;

	qk_buf_add(&at, path, from);
	while (at.len && at.s[at.len - 1] == '/')
		qk_buf_truncate(&at, at.len - 1);
	for (size_t n; s += strspn(s, "/"), (n = strcspn(s, "/")); s += n) {
		char text[PATH_MAX], *longer;
		ssize_t len;

		if (n == 1 && s[0] == '.')
			continue;
		if (n == 2 && s[0] == '.' && s[1] == '.') {
			qk_buf_truncate(&at, at.len ? qk_path_dirlen(at.s) : 0);
			if (at.len == 1)
				qk_buf_reset(&at);
			continue;
		}
		qk_buf_addch(&at, '/');
		qk_buf_add(&at, s, n);
		qk_resolve(&w->resolver, d->pid, AT_FDCWD, NULL, at.s, QK_RESOLVE_NOFOLLOW, &w->a);
		if (w->a.err || !S_ISLNK(w->a.st.st_mode)) {
			seen(w, &w->a, w->a.err);
			if (w->a.err)
				return;
			continue;
		}
		event(w, QK_EV_FOLLOW, &w->a);
		len = readlink(at.s, text, sizeof(text) - 1);
		if (len <= 0 || ++links > LINKS_MAX)
			return;
		text[len] = '\0';
		longer = qk_asprintf("%s/%s", text, s + n);
		free(path);
		s = path = longer;
		n = 0;
		qk_buf_truncate(&at, text[0] == '/' ? 0 : qk_path_dirlen(at.s));
		if (at.len == 1)
			qk_buf_reset(&at);
	}
}
