#include "sandbox/resolve.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <uthash.h>

enum { LINKS_MAX = 40 }; /* as the kernel's MAXSYMLINKS */

/* A directory as it was written, and where it leads. */
struct qk_resolver_dir {
	const char *text;
	const char *path; /* "" is the root: a name can be put behind it */
	const char *const *links;
	size_t n_links;
	UT_hash_handle hh;
};

/* One walk along a path. */
struct walk {
	struct qk_resolver *r;
	pid_t pid;
	struct qk_strv links; /* passed so far, in order */
	unsigned int hops;
	bool own; /* went through /proc: another task would arrive elsewhere */
};

void qk_resolver_init(struct qk_resolver *r, struct qk_trace *trace)
{
	*r = (struct qk_resolver){ .trace = trace, .text = QK_BUF_INIT };
}

void qk_resolver_forget(struct qk_resolver *r)
{
	HASH_CLEAR(hh, r->dirs);
	qk_arena_release(&r->arena);
}

void qk_resolver_release(struct qk_resolver *r)
{
	qk_resolver_forget(r);
	qk_buf_release(&r->text);
}

static void remember(struct walk *w, const char *text, const char *path, size_t first_link)
{
	struct qk_arena *a = &w->r->arena;
	struct qk_resolver_dir *d = qk_arena_alloc(a, sizeof(*d));
	size_t n = w->links.n - first_link;
	const char **links = qk_arena_alloc(a, (n + 1) * sizeof(*links));

	for (size_t i = 0; i < n; i++)
		links[i] = qk_arena_strdup(a, w->links.v[first_link + i]);
	d->text = qk_arena_strdup(a, text);
	d->path = qk_arena_strdup(a, path);
	d->links = links;
	d->n_links = n;
	HASH_ADD_KEYPTR(hh, w->r->dirs, d->text, strlen(d->text), d);
}

/* The text of the link at path; in /proc it may be that of something without a name: "". */
static int link_text(struct walk *w, const char *path, char text[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	ssize_t n = readlink(path, text, PATH_MAX - 1);
	struct stat link, named;

	if (n < 0)
		return errno;
	text[n] = '\0';
	if (strncmp(path, "/proc/", 6))
		return 0;
	w->own = true;
	if (text[0] != '/' && strchr(text, ':')) /* pipe:[1], socket:[2], anon_inode:x */
		text[0] = '\0';
	if ((size_t)n > strlen(deleted) && !strcmp(text + n - strlen(deleted), deleted) &&
		(stat(path, &link) || lstat(text, &named) || link.st_dev != named.st_dev ||
			link.st_ino != named.st_ino))
		text[0] = '\0';
	return 0;
}

static int walk_dir(struct walk *w, const char *text, size_t len, struct qk_buf *out);

/*
 * Goes from the resolved directory in out to name in it. A link is followed if `follow`; st tells
 * of what out names then. Of what cannot be had, out keeps the full name.
 */
static int step(struct walk *w, struct qk_buf *out, const char *name, size_t n, bool follow,
	struct stat *st)
{
	qk_autofree char *target = NULL;
	char text[PATH_MAX];
	size_t dir = out->len;
	int err;

	if (!n || (n == 1 && name[0] == '.'))
		return lstat(dir ? out->s : "/", st) ? errno : 0;
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		qk_buf_truncate(out, dir ? qk_path_dirlen(out->s) : 0);
		if (out->len == 1)
			qk_buf_truncate(out, 0);
		return lstat(out->len ? out->s : "/", st) ? errno : 0;
	}
	if (dir == 5 && !memcmp(out->s, "/proc", 5)) {
		bool thread = n == 11 && !memcmp(name, "thread-self", 11);

		if (thread || (n == 4 && !memcmp(name, "self", 4))) {
			w->own = true;
			qk_buf_addf(out, thread ? "/%d/task/%d" : "/%d", w->pid, w->pid);
			return lstat(out->s, st) ? errno : 0;
		}
	}
	qk_buf_addch(out, '/');
	qk_buf_add(out, name, n);
	if (lstat(out->s, st))
		return errno;
	if (!S_ISLNK(st->st_mode) || !follow)
		return 0;
	if (++w->hops > LINKS_MAX)
		return ELOOP;
	err = link_text(w, out->s, text);
	if (err)
		return err;
	qk_strv_push(&w->links, out->s);
	if (!text[0]) { /* something without a name: the link alone can say what it is */
		err = stat(out->s, st) ? errno : 0;
		qk_buf_reset(out);
		return err ? err : -1;
	}
	if (text[0] != '/') {
		qk_buf_truncate(out, dir);
		target = qk_asprintf("%s/%s", out->s, text);
	} else {
		target = qk_strdup(text);
	}
	{
		const char *base = strrchr(target, '/') + 1;

		err = walk_dir(w, target, (size_t)(base - target) - 1, out);
		if (err) {
			if (err > 0)
				qk_buf_addf(out, "/%s", base);
			return err;
		}
		return step(w, out, base, strlen(base), true, st);
	}
}

/*
 * Resolves the directory written as the first len bytes of text (absolute, no trailing slash;
 * 0 = the root) into out. 0 or errno; on failure out holds the name that is missing, with what
 * follows it as written.
 */
static int walk_dir(struct walk *w, const char *text, size_t len, struct qk_buf *out)
{
	qk_autofree char *key = NULL;
	size_t first_link = w->links.n, slash;
	struct qk_resolver_dir *d;
	struct stat st;
	int err;

	while (len && text[len - 1] == '/')
		len--;
	qk_buf_reset(out);
	if (!len)
		return 0;
	HASH_FIND(hh, w->r->dirs, text, len, d);
	if (d) {
		for (size_t i = 0; i < d->n_links; i++)
			qk_strv_push(&w->links, d->links[i]);
		qk_buf_addstr(out, d->path);
		return 0;
	}
	for (slash = len; text[slash - 1] != '/';)
		slash--;
	err = walk_dir(w, text, slash - 1, out);
	if (err) {
		qk_buf_addch(out, '/');
		qk_buf_add(out, text + slash, len - slash);
		return err;
	}
	key = qk_strndup(text, len);
	err = step(w, out, key + slash, len - slash, true, &st);
	if (!err && !S_ISDIR(st.st_mode))
		err = ENOTDIR;
	if (err)
		return err;
	if (out->len == 1) /* a link to "/" */
		qk_buf_reset(out);
	if (!w->own)
		remember(w, key, out->s, first_link);
	return 0;
}

static int base_of(struct qk_resolver *r, pid_t pid, int dirfd, struct walk *w, char *magic)
{
	char text[PATH_MAX];
	int err;

	if (dirfd == AT_FDCWD)
		snprintf(magic, 64, "/proc/%d/cwd", pid);
	else
		snprintf(magic, 64, "/proc/%d/fd/%d", pid, dirfd);
	qk_buf_reset(&r->text);
	err = link_text(w, magic, text);
	w->own = false; /* the text of the base names one place for everybody */
	qk_buf_addstr(&r->text, text);
	return err;
}

static void finish(struct walk *w, struct qk_place *ret, int err)
{
	qk_autobuf struct qk_buf clean = QK_BUF_INIT;

	ret->err = err > 0 ? err : 0;
	for (size_t i = 0; w->r->trace && i < w->links.n; i++)
		qk_trace_event(w->r->trace, QK_EV_FOLLOW, w->links.v[i]);
	if (err > 0 && ret->path.len) { /* what follows the missing name is still as written */
		qk_path_clean(&clean, "/", ret->path.s);
		qk_buf_reset(&ret->path);
		qk_buf_addstr(&ret->path, clean.s);
	} else if (!err && !ret->path.len) {
		qk_buf_addch(&ret->path, '/');
	}
	qk_strv_release(&w->links);
}

void qk_resolve(struct qk_resolver *r, pid_t pid, int dirfd, const char *base, const char *path,
	unsigned int flags, struct qk_place *ret)
{
	struct walk w = { .r = r, .pid = pid };
	bool follow = !(flags & QK_RESOLVE_NOFOLLOW);
	char magic[64];
	const char *name;
	size_t len;
	int err;

	qk_buf_reset(&ret->path);
	ret->err = ENOENT;
	if (!*path && !(flags & QK_RESOLVE_EMPTY))
		return;
	qk_buf_reset(&r->text);
	if (*path != '/') {
		if (base) {
			qk_buf_addstr(&r->text, base);
		} else {
			err = base_of(r, pid, dirfd, &w, magic);
			if (!err && !r->text.len && !*path)
				err = stat(magic, &ret->st) ? errno : -1;
			if (err || !r->text.len) {
				ret->err = err > 0 ? err : err ? 0 : ENOENT;
				return;
			}
		}
		if (*path)
			qk_buf_addch(&r->text, '/');
	}
	qk_buf_addstr(&r->text, path);
	len = r->text.len;
	while (len > 1 && r->text.s[len - 1] == '/') { /* "link/" is what the link leads to */
		len--;
		follow = true;
	}
	qk_buf_truncate(&r->text, len);
	name = strrchr(r->text.s, '/') + 1;
	err = walk_dir(&w, r->text.s, (size_t)(name - r->text.s) - 1, &ret->path);
	if (err > 0)
		qk_buf_addf(&ret->path, "/%s", name);
	else if (!err)
		err = step(&w, &ret->path, name, strlen(name), follow, &ret->st);
	if (!err && *path && path[strlen(path) - 1] == '/' && !S_ISDIR(ret->st.st_mode))
		err = ENOTDIR;
	finish(&w, ret, err);
}
