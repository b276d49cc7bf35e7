/*
 * libgit2 finds the repository, reads its index and its settings. Its own answer to "is this
 * ignored" is not used: it drops a rule that takes back what a .gitignore further up ignores.
 */
#include "keying/tracked.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/ignore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RULES_MAX = 8 << 20, /* bytes of one file of ignore rules */
	DEPTH_MAX = 256,
};

/* A repository and the part of its index that can concern us. */
struct repo {
	git_repository *git; /* NULL: no Git here, everything counts */
	git_index *index;
	size_t n;     /* entries of the index, in byte order of their paths */
	char *prefix; /* of the directory the walk of this repository began in, seen from its
		       * top: "" or "sub/dir/" */
	const struct qk_ignore *rules; /* in force at that directory */
	size_t walk_prefix; /* length of that directory's path (with '/') in the walk's own paths */
};

struct walk {
	struct qk_tracked *t;
	struct qk_err *err;
	struct qk_buf path; /* relative to the workspace root; "" or ending in '/' at a directory */
};

static void repo_release(struct repo *r)
{
	git_index_free(r->index);
	git_repository_free(r->git);
	free(r->prefix);
}

static int git_fail(struct qk_err *err, const char *what, const char *dir)
{
	const git_error *e = git_error_last();

	return qk_fail(err, -EIO, "%s '%s': %s", what, dir, e ? e->message : "unknown error");
}

/* Adds the rules in a file, if it is there; dir as qk_ignore_add takes it. */
static const struct qk_ignore *read_rules(struct qk_arena *a, const struct qk_ignore *above,
	int dirfd, const char *file, const char *dir)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	/* Git follows no link to rules that came with the tree. */
	qk_autofd int fd = openat(dirfd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return above;
	do {
		qk_buf_reserve(&b, 4096);
		n = read(fd, b.s + b.len, 4096);
		b.len += n > 0 ? (size_t)n : 0;
	} while (n > 0 && b.len < RULES_MAX);
	return qk_ignore_add(a, above, dir, b.s, b.len);
}

/* The user's own rules (core.excludesFile, or Git's default for it), under everything else. */
static const struct qk_ignore *user_rules(struct qk_arena *a, git_repository *git)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	qk_autofree char *path = NULL;
	git_config *config = NULL;
	git_buf value = { 0 };

	if (!git_repository_config_snapshot(&config, git) &&
		!git_config_get_path(&value, config, "core.excludesfile"))
		path = qk_strdup(value.ptr);
	else if (xdg && *xdg)
		path = qk_asprintf("%s/git/ignore", xdg);
	else if (home)
		path = qk_asprintf("%s/.config/git/ignore", home);
	git_buf_dispose(&value);
	git_config_free(config);
	return path ? read_rules(a, NULL, AT_FDCWD, path, "") : NULL;
}

/*
 * Rules in force in the directory the walk begins in (r->prefix): the user's, the repository's, and
 * those of the directories above. False if one of these directories is ignored itself.
 */
static bool rules_above(struct repo *r, struct qk_arena *a, const char *top)
{
	qk_autofree char *exclude =
		qk_asprintf("%s/info/exclude", git_repository_commondir(r->git));
	const char *slash = r->prefix;

	r->rules = read_rules(a, user_rules(a, r->git), AT_FDCWD, exclude, "");
	while ((slash = strchr(slash, '/'))) {
		qk_autofree char *dir = qk_strndup(r->prefix, (size_t)(slash - r->prefix));
		size_t above = qk_path_dirlen(dir);
		qk_autofree char *parent = qk_strndup(dir, above);
		qk_autofree char *file = qk_asprintf("%s/%s/.gitignore", top, parent);

		r->rules = read_rules(a, r->rules, AT_FDCWD, file, parent);
		if (qk_ignore_has(r->rules, dir, true))
			return false;
		slash++;
	}
	return true;
}

/*
 * Opens the repository that dir lies in; flags of git_repository_open_ext. No repository, or one
 * that ignores dir, is no error: r->git is NULL then.
 */
static int repo_open(
	struct repo *r, struct qk_arena *a, const char *dir, unsigned int flags, struct qk_err *err)
{
	char real[PATH_MAX], top[PATH_MAX];
	const char *below;
	int code;

	*r = (struct repo){ 0 };
	code = git_repository_open_ext(&r->git, dir, flags, NULL);
	if (code == GIT_ENOTFOUND)
		return 0;
	if (code)
		return git_fail(err, "Git repository of", dir);
	if (!realpath(dir, real) || !git_repository_workdir(r->git) ||
		!realpath(git_repository_workdir(r->git), top))
		return qk_fail(err, -EIO, "Git repository of '%s' has no work tree", dir);
	below = qk_path_below(real, top);
	if (!below)
		return qk_fail(err, -EIO, "work tree '%s' does not hold '%s'", top, real);
	r->prefix = *below ? qk_asprintf("%s/", below) : qk_strdup("");
	if (!rules_above(r, a, top)) {
		repo_release(r);
		*r = (struct repo){ 0 };
		return 0;
	}
	if (git_repository_index(&r->index, r->git))
		return git_fail(err, "Git index of", dir);
	r->n = git_index_entrycount(r->index);
	return 0;
}

/* First entry of the index not before path. */
static size_t lower_bound(const struct repo *r, const char *path)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(git_index_get_byindex(r->index, mid)->path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The path of the walk as the repository calls it. */
static void repo_path(const struct repo *r, const struct walk *w, struct qk_buf *out)
{
	qk_buf_addstr(out, r->prefix);
	qk_buf_addstr(out, w->path.s + r->walk_prefix);
}

static bool tracked_file(const struct repo *r, const char *path)
{
	size_t i = lower_bound(r, path);

	return i < r->n && !strcmp(git_index_get_byindex(r->index, i)->path, path);
}

/* path ends in '/'. */
static bool tracked_below(const struct repo *r, const char *path)
{
	size_t i = lower_bound(r, path);

	return i < r->n && !strncmp(git_index_get_byindex(r->index, i)->path, path, strlen(path));
}

static void add(struct walk *w, bool in_git)
{
	struct qk_tracked *t = w->t;

	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 1024;
		t->v = qk_realloc(t->v, t->cap, sizeof(*t->v));
		t->in_git = qk_realloc(t->in_git, t->cap, sizeof(*t->in_git));
	}
	t->v[t->n] = qk_arena_strndup(&t->arena, w->path.s, w->path.len);
	t->in_git[t->n++] = in_git;
}

/* A directory on the way down. */
struct level {
	const struct qk_ignore *rules;
	bool ignored; /* it, or one above it: only what is tracked counts */
	int depth;
};

static int walk_dir(struct walk *w, const struct repo *r, struct level l, int fd);

/* w->path is a directory, ending in '/', that may hold a repository of its own. */
static int enter(struct walk *w, const struct repo *r, struct level l, int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return qk_fail(w->err, errno, "list '%s'", w->path.s);
	if (!fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW)) {
		qk_autofree char *full = NULL;
		struct repo own;
		char link[64];
		int code;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		full = realpath(link, NULL);
		code = full ? repo_open(&own, &w->t->arena, full, GIT_REPOSITORY_OPEN_NO_SEARCH,
				      w->err)
			    : 0;
		if (full && !code && own.git) {
			own.walk_prefix = w->path.len;
			code = walk_dir(w, &own, (struct level){ own.rules, false, l.depth }, fd);
			repo_release(&own);
			return code;
		}
		if (full)
			repo_release(&own);
		/* A .git that is no repository: the directory is an ordinary one. */
	}
	return walk_dir(w, r, l, fd);
}

static int visit(
	struct walk *w, const struct repo *r, struct level l, int fd, const struct dirent *e)
{
	qk_autobuf struct qk_buf name = QK_BUF_INIT;
	unsigned char type = e->d_type;
	bool in_git = false;
	struct stat st;

	if (type == DT_UNKNOWN) {
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			return 0;
		type = (unsigned char)IFTODT(st.st_mode);
	}
	if (type == DT_DIR) {
		l.depth++;
		if (r->git) {
			repo_path(r, w, &name);
			l.ignored = l.ignored || qk_ignore_has(l.rules, name.s, true);
			/* A submodule is tracked under the directory's name, as an entry of its
			 * own. */
			if (l.ignored && !tracked_file(r, name.s)) {
				qk_buf_addch(&name, '/');
				if (!tracked_below(r, name.s))
					return 0;
			}
		}
		qk_buf_addch(&w->path, '/');
		return enter(w, r, l, fd, e->d_name);
	}
	if (type != DT_REG && type != DT_LNK)
		return 0;
	if (r->git) {
		repo_path(r, w, &name);
		in_git = tracked_file(r, name.s);
		if (!in_git && (l.ignored || qk_ignore_has(l.rules, name.s, false)))
			return 0;
	}
	add(w, in_git);
	return 0;
}

/* Takes over fd. */
static int walk_dir(struct walk *w, const struct repo *r, struct level l, int fd)
{
	DIR *d = l.depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	size_t len = w->path.len;
	struct dirent *e;
	int code = 0;

	if (!d) {
		close(fd);
		return qk_fail(
			w->err, l.depth < DEPTH_MAX ? ENOMEM : ELOOP, "list '%s'", w->path.s);
	}
	if (r->git) {
		qk_autobuf struct qk_buf dir = QK_BUF_INIT;

		repo_path(r, w, &dir);
		if (dir.len)
			qk_buf_truncate(&dir, dir.len - 1);
		l.rules = read_rules(&w->t->arena, l.rules, fd, ".gitignore", dir.s);
	}
	while (!code && (e = readdir(d))) {
		const char *n = e->d_name;

		if (n[0] == '.' && (!n[1] || (n[1] == '.' && !n[2]) || !strcmp(n, ".git") ||
					   !strcmp(n, ".qk")))
			continue;
		if (!strcmp(n, "node_modules"))
			continue;
		qk_buf_addstr(&w->path, n);
		code = visit(w, r, l, fd, e);
		qk_buf_truncate(&w->path, len);
	}
	closedir(d);
	return code;
}

struct pair {
	const char *path;
	bool in_git;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->path, ((const struct pair *)b)->path);
}

static void sort(struct qk_tracked *t)
{
	struct pair *p = qk_alloc((t->n ? t->n : 1) * sizeof(*p));

	for (size_t i = 0; i < t->n; i++)
		p[i] = (struct pair){ t->v[i], t->in_git[i] };
	qsort(p, t->n, sizeof(*p), by_path);
	for (size_t i = 0; i < t->n; i++) {
		t->v[i] = p[i].path;
		t->in_git[i] = p[i].in_git;
	}
	free(p);
}

int qk_tracked_load(struct qk_tracked *t, const char *root, struct qk_err *err)
{
	struct walk w = { .t = t, .err = err, .path = QK_BUF_INIT };
	struct repo r = { 0 };
	int fd, code;

	*t = (struct qk_tracked){ 0 };
	if (git_libgit2_init() < 0)
		return git_fail(err, "Git library for", root);
	/* We only read, and a checkout owned by somebody else is one that CI has every day. */
	git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	code = repo_open(&r, &t->arena, root, GIT_REPOSITORY_OPEN_CROSS_FS, err);
	t->has_git = r.git;
	if (!code) {
		fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		code = fd < 0 ? qk_fail(err, errno, "list '%s'", root)
			      : walk_dir(&w, &r, (struct level){ .rules = r.rules }, fd);
	}
	repo_release(&r);
	git_libgit2_shutdown();
	qk_buf_release(&w.path);
	if (!code)
		sort(t);
	return code;
}

void qk_tracked_release(struct qk_tracked *t)
{
	qk_arena_release(&t->arena);
	free(t->v);
	free(t->in_git);
	*t = (struct qk_tracked){ 0 };
}

static size_t first_not_before(const struct qk_tracked *t, const char *path)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(t->v[mid], path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t qk_tracked_below(const struct qk_tracked *t, const char *dir, size_t *first)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	*first = 0;
	if (!*dir || !strcmp(dir, "."))
		return t->n;
	qk_buf_addf(&b, "%s/", dir);
	*first = first_not_before(t, b.s);
	b.s[b.len - 1]++; /* '0', the byte after '/' */
	return first_not_before(t, b.s) - *first;
}

bool qk_tracked_has(const struct qk_tracked *t, const char *path)
{
	size_t i = first_not_before(t, path);

	return i < t->n && !strcmp(t->v[i], path);
}
