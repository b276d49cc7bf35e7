#include "keying/outputs.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

void qk_outputs_release(struct qk_outputs *o)
{
	qk_strv_release(&o->include);
	qk_strv_release(&o->exclude);
}

int qk_outputs_add(struct qk_outputs *o, const char *glob, struct qk_err *err)
{
	bool negated = *glob == '!' && glob[1] != '(';
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *text = glob + negated;

	if (*text == '/')
		return qk_fail(err, -EINVAL, "output '%s' lies outside the workspace", glob);
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "/");

		if (n == 2 && !memcmp(s, "..", 2))
			return qk_fail(err, -EINVAL, "output '%s' has '..' in it", glob);
		if (n && !(n == 1 && *s == '.')) {
			if (b.len)
				qk_buf_addch(&b, '/');
			qk_buf_add(&b, s, n);
		}
		s += n + (s[n] == '/');
	}
	if (!b.len)
		return qk_fail(err, -EINVAL, "output '%s' names the whole workspace", glob);
	qk_strv_push(negated ? &o->exclude : &o->include, b.s);
	return 0;
}

/* True if a pattern matches path or a directory above it. */
static bool covers(const struct qk_strv *globs, const char *path)
{
	char above[PATH_MAX];
	size_t n = strlen(path);

	if (!globs->n || n >= sizeof(above))
		return false;
	memcpy(above, path, n + 1);
	for (;;) {
		for (size_t i = 0; i < globs->n; i++)
			if (qk_glob_match(globs->v[i], above))
				return true;
		while (n && above[n] != '/')
			n--;
		if (!n)
			return false;
		above[n] = '\0';
	}
}

bool qk_outputs_match(const struct qk_outputs *o, const char *path)
{
	return covers(&o->include, path) && !covers(&o->exclude, path);
}

/* A walk for one glob. */
struct walk {
	const struct qk_outputs *outputs;
	const char *glob;
	size_t depth; /* components a match can have; SIZE_MAX with ** */
	int flags;
	struct qk_tree *ret;
	struct qk_err *err;
};

static size_t depth_of(const char *glob)
{
	size_t n = 1;

	if (strstr(glob, "**"))
		return SIZE_MAX;
	for (; *glob; glob++)
		n += *glob == '/'; /* one in {a,b/c} too: a bound, not the length */
	return n;
}

static enum qk_filekind kind_of(mode_t mode)
{
	return S_ISREG(mode)   ? QK_FILE_REGULAR
	       : S_ISLNK(mode) ? QK_FILE_LINK
	       : S_ISDIR(mode) ? QK_FILE_DIR
			       : QK_FILE_SPECIAL;
}

static int add_entry(
	struct walk *w, int dirfd, const char *name, const char *path, const struct stat *st)
{
	struct qk_treeent *e = qk_tree_add(w->ret, path);

	e->kind = kind_of(st->st_mode);
	e->mode = e->kind == QK_FILE_LINK ? 0777 : st->st_mode & 07777;
	if (e->kind == QK_FILE_REGULAR)
		e->size = (uint64_t)st->st_size;
	if (e->kind == QK_FILE_REGULAR && st->st_nlink > 1) {
		e->dev = (uint64_t)st->st_dev;
		e->ino = (uint64_t)st->st_ino;
	}
	if (e->kind == QK_FILE_LINK) {
		char text[PATH_MAX];
		ssize_t n = readlinkat(dirfd, name, text, sizeof(text));

		if (n < 0)
			return qk_fail(w->err, errno, "read link '%s'", path);
		e->link = qk_strndup(text, (size_t)n);
	}
	return 0;
}

static int open_dir(struct walk *w, int dirfd, const char *name)
{
	const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, how);

	if (fd < 0 && errno == EACCES && w->flags & QK_OUTPUTS_OPEN &&
		!fchmodat(dirfd, name, 0700, 0))
		fd = openat(dirfd, name, how);
	return fd < 0 ? -errno : fd;
}

/* Has a place in such a directory only an output that lists it. */
static bool is_private(const char *name)
{
	return !strcmp(name, ".git") || !strcmp(name, ".qk") || !strcmp(name, "node_modules");
}

static int walk_dir(
	struct walk *w, int dirfd, const char *name, const char *path, size_t depth, bool inside);

/* path names something that is there: takes it, goes into it, or both. */
static int visit(
	struct walk *w, int dirfd, const char *name, const char *path, size_t depth, bool inside)
{
	struct stat st;

	if (covers(&w->outputs->exclude, path))
		return 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : qk_fail(w->err, errno, "stat '%s'", path);
	inside = inside || qk_glob_match(w->glob, path);
	if (inside) {
		int r = add_entry(w, dirfd, name, path, &st);

		if (r)
			return r;
	}
	if (!S_ISDIR(st.st_mode) || (!inside && (depth >= w->depth || is_private(name))))
		return 0;
	return walk_dir(w, dirfd, name, path, depth, inside);
}

static int walk_dir(
	struct walk *w, int dirfd, const char *name, const char *path, size_t depth, bool inside)
{
	int fd = open_dir(w, dirfd, name), r = 0;
	struct dirent *e;
	DIR *d;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return qk_fail(w->err, -fd, "list '%s'", path);
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return qk_fail(w->err, ENOMEM, "list '%s'", path);
	}
	while (!r && (e = readdir(d))) {
		const char *n = e->d_name;
		qk_autofree char *below = NULL;

		if (n[0] == '.' && (!n[1] || (n[1] == '.' && !n[2])))
			continue;
		below = *path ? qk_asprintf("%s/%s", path, n) : qk_strdup(n);
		/* Nothing to learn about a file that no pattern means: most of a large directory.
		 */
		if (!inside && e->d_type != DT_DIR && e->d_type != DT_UNKNOWN &&
			!qk_glob_match(w->glob, below))
			continue;
		r = visit(w, fd, n, below, depth + 1, inside);
	}
	closedir(d);
	return r;
}

static int list_glob(struct walk *w, int rootfd)
{
	bool literal = !qk_glob_is_pattern(w->glob);
	qk_autofree char *dir = qk_strndup(w->glob, qk_glob_literal_dir(w->glob));
	const char *slash = literal ? strrchr(w->glob, '/') : NULL;
	qk_autofd int fd = -1;
	size_t depth = 0;

	if (literal) {
		free(dir);
		dir = qk_strndup(w->glob, slash ? (size_t)(slash - w->glob) : 0);
	}
	fd = qk_open_beneath(rootfd, *dir ? dir : ".", O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return qk_fail(w->err, -fd, "output '%s': directory '%s'", w->glob, dir);
	if (literal) {
		/* Backslashes quote in patterns; a path that has none needs no unquoting. */
		return visit(w, fd, qk_path_base(w->glob), w->glob, 0, true);
	}
	for (const char *s = dir; *s; s++)
		depth += *s == '/';
	depth += *dir != '\0';
	/* A trailing double star means the directory before it as well. */
	if (*dir && qk_glob_match(w->glob, dir)) {
		qk_autofd int parent = -1;
		qk_autofree char *above = qk_strndup(dir, qk_path_dirlen(dir));

		parent = qk_open_beneath(rootfd, *above ? above : ".", O_PATH | O_DIRECTORY, 0);
		if (parent < 0)
			return qk_fail(
				w->err, -parent, "output '%s': directory '%s'", w->glob, above);
		return visit(w, parent, qk_path_base(dir), dir, depth, true);
	}
	return walk_dir(w, fd, ".", dir, depth, false);
}

int qk_outputs_list(
	const struct qk_outputs *o, int rootfd, int flags, struct qk_tree *ret, struct qk_err *err)
{
	for (size_t i = 0; i < o->include.n; i++) {
		struct walk w = { o, o->include.v[i], depth_of(o->include.v[i]), flags, ret, err };
		int r = list_glob(&w, rootfd);

		if (r)
			return r;
	}
	qk_tree_sort(ret);
	if (o->include.n > 1)
		qk_tree_uniq(ret);
	qk_tree_pair(ret);
	return 0;
}

int qk_outputs_digests(struct qk_tree *t, struct qk_filehash *f, int flags, struct qk_err *err)
{
	int r = 0;

	for (size_t i = 0; i < t->n && !r; i++) {
		struct qk_treeent *e = &t->v[i];
		struct qk_filestate s;

		if (e->kind != QK_FILE_REGULAR)
			continue;
		r = qk_filehash_get(f, e->path, flags, &s, err);
		if (!r && s.kind != QK_FILE_REGULAR)
			r = qk_fail(err, EBUSY, "output '%s' changes while it is read", e->path);
		if (!r)
			e->content = s.content;
	}
	return r;
}

/* Removes one listed entry; its directory may have to be opened up for that. */
static int remove_entry(int rootfd, const struct qk_treeent *e)
{
	qk_autofree char *dir = qk_strndup(e->path, qk_path_dirlen(e->path));
	qk_autofd int fd = qk_open_beneath(rootfd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
	const char *name = qk_path_base(e->path);
	int flag = e->kind == QK_FILE_DIR ? AT_REMOVEDIR : 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (!unlinkat(fd, name, flag))
		return 0;
	if (errno == EACCES && !fchmod(fd, 0700) && !unlinkat(fd, name, flag))
		return 0;
	if (errno == ENOENT || (flag && (errno == ENOTEMPTY || errno == EEXIST)))
		return 0;
	return -errno;
}

int qk_outputs_remove(const struct qk_outputs *o, int rootfd, struct qk_err *err)
{
	qk_autotree struct qk_tree t = { 0 };
	int r = qk_outputs_list(o, rootfd, QK_OUTPUTS_OPEN, &t, err), first = r;

	for (size_t i = t.n; i-- > 0;) {
		r = remove_entry(rootfd, &t.v[i]);
		if (r && !first)
			first = qk_fail(err, -r, "remove '%s'", t.v[i].path);
	}
	return first;
}
