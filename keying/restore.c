#include "keying/restore.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STAGED_NAME = 48 };

/* Beside those of other processes: a directory of one's own would cost more than all the rest. */
static void staged_name(size_t i, char ret[STAGED_NAME])
{
	snprintf(ret, STAGED_NAME, "restore.%d.%zu", (int)getpid(), i);
}

static void unstage(const struct qk_tree *t, int stagefd)
{
	for (size_t i = 0; i < t->n; i++) {
		char name[STAGED_NAME];

		staged_name(i, name);
		unlinkat(stagefd, name, 0);
	}
}

static int stage_file(struct qk_store *s, const struct qk_treeent *e, int stagefd, const char *name,
	struct qk_err *err)
{
	qk_autofd int fd = openat(stagefd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return qk_fail(err, errno, "restore '%s': create", e->path);
	r = qk_store_fetch(s, e, fd, err);
	if (r <= 0)
		return r;
	if (fchmod(fd, e->mode))
		return qk_fail(err, errno, "restore '%s': chmod", e->path);
	if (close(qk_steal_fd(&fd)))
		return qk_fail(err, errno, "restore '%s'", e->path);
	return 1;
}

/* All files and links of the tree, by their number. 1, 0 if the store has not got them, or error.
 */
static int stage_all(struct qk_store *s, const struct qk_tree *t, int stagefd, struct qk_err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct qk_treeent *e = &t->v[i];
		char name[STAGED_NAME];
		int r;

		staged_name(i, name);
		if (e->kind == QK_FILE_REGULAR && !e->twin) {
			r = stage_file(s, e, stagefd, name, err);
			if (r <= 0)
				return r;
		}
		if (e->kind == QK_FILE_LINK && symlinkat(e->link, stagefd, name))
			return qk_fail(err, errno, "restore link '%s'", e->path);
	}
	return 1;
}

/*
 * The directory that path lies in, made with its parents if need be. The last one opened is kept:
 * a tree comes directory by directory.
 */
struct parent {
	int rootfd, fd;
	char *path;
};

static void parent_release(struct parent *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
}

static int make_dirs(int rootfd, const char *dir)
{
	qk_autofree char *path = qk_strdup(dir);
	qk_autofd int fd = qk_open_beneath(rootfd, ".", O_PATH | O_DIRECTORY, 0);

	for (char *s = path; fd >= 0 && *s;) {
		size_t n = strcspn(s, "/");
		char *next = s + n + (s[n] == '/');
		int below;

		s[n] = '\0';
		below = qk_open_beneath(fd, s, O_PATH | O_DIRECTORY, 0);
		if (below == -ENOENT) {
			if (mkdirat(fd, s, 0777) && errno != EEXIST)
				return -errno;
			below = qk_open_beneath(fd, s, O_PATH | O_DIRECTORY, 0);
		}
		close(fd);
		fd = below;
		s = next;
	}
	return qk_steal_fd(&fd);
}

static int parent_of(struct parent *p, const char *path, struct qk_err *err)
{
	size_t n = qk_path_dirlen(path);
	int fd;

	if (p->fd >= 0 && p->path && strlen(p->path) == n && !memcmp(p->path, path, n))
		return p->fd;
	parent_release(p);
	p->path = qk_strndup(path, n);
	fd = qk_open_beneath(p->rootfd, n ? p->path : ".", O_PATH | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		fd = make_dirs(p->rootfd, p->path);
	p->fd = fd;
	if (fd < 0)
		return qk_fail(err, -fd, "restore '%s': directory '%s'", path, p->path);
	return fd;
}

/* Gives the file at twin (relative to the root) a further name in the directory. */
static int link_twin(const char *twin, int rootfd, int to, const char *name, const char *path, struct qk_err *err)
{
	qk_autofree char *dir = qk_strndup(twin, qk_path_dirlen(twin));
	qk_autofd int from = qk_open_beneath(rootfd, *dir ? dir : ".", O_PATH | O_DIRECTORY, 0);

	if (from < 0)
		return qk_fail(err, -from, "restore '%s': directory '%s'", path, dir);
	if (linkat(from, qk_path_base(twin), to, name, 0))
		return qk_fail(err, errno, "restore '%s' as a name of '%s'", path, twin);
	return 0;
}

static int place(
	const struct qk_treeent *e, size_t i, int stagefd, struct parent *p, struct qk_err *err)
{
	const char *base = qk_path_base(e->path);
	char name[STAGED_NAME];
	int dir = parent_of(p, e->path, err);
	struct stat st;

	if (dir < 0)
		return dir;
	if (e->kind == QK_FILE_DIR) {
		/* u+rwx until everything is in it; finish_dirs gives it its mode. */
		if (!mkdirat(dir, base, 0700) ||
			(errno == EEXIST && !fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) &&
				S_ISDIR(st.st_mode)))
			return 0;
		return qk_fail(err, errno, "restore directory '%s'", e->path);
	}
	if (e->twin)
		return link_twin(e->twin, p->rootfd, dir, base, e->path, err);
	staged_name(i, name);
	if (renameat(stagefd, name, dir, base))
		return qk_fail(err, errno, "restore '%s'", e->path);
	return 0;
}

/* Modes of directories, deepest first: one without w could not be filled, nor one without x seen.
 */
static int finish_dirs(const struct qk_tree *t, int rootfd, struct qk_err *err)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct qk_treeent *e = &t->v[i];
		qk_autofd int fd = -1;

		if (e->kind != QK_FILE_DIR)
			continue;
		fd = qk_open_beneath(rootfd, e->path, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0)
			return qk_fail(err, -fd, "restore directory '%s'", e->path);
		if (fchmod(fd, e->mode))
			return qk_fail(err, errno, "restore directory '%s': chmod", e->path);
	}
	return 0;
}

static int put_in_place(const struct qk_tree *t, const struct qk_outputs *o, int rootfd,
	int stagefd, struct qk_err *err)
{
	struct parent p = { .rootfd = rootfd, .fd = -1 };
	int r = qk_outputs_remove(o, rootfd, err);

	for (size_t i = 0; i < t->n && !r; i++)
		r = place(&t->v[i], i, stagefd, &p, err);
	parent_release(&p);
	return r ? r : finish_dirs(t, rootfd, err);
}

/* True if the outputs are there as stored. Not to be told is not to be sure. */
static bool in_place(const struct qk_entry *e, const struct qk_outputs *o, struct qk_filehash *f)
{
	qk_autotree struct qk_tree now = { 0 };

	/* Sizes first: files that differ in more than their bytes need not be read. */
	if (qk_outputs_list(o, qk_filehash_rootfd(f), 0, &now, NULL) || now.n != e->tree.n)
		return false;
	for (size_t i = 0; i < now.n; i++)
		if (now.v[i].size != e->tree.v[i].size || now.v[i].kind != e->tree.v[i].kind)
			return false;
	return !qk_outputs_digests(&now, f, 0, NULL) && qk_tree_equal(&now, &e->tree);
}

int qk_restore(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	const struct qk_outputs *o, struct qk_filehash *f, const char *stage, enum qk_restored *ret,
	struct qk_err *err)
{
	qk_autofd int stagefd = -1;
	int r;

	*ret = QK_RESTORED_IN_PLACE;
	if (in_place(e, o, f))
		return 0;
	*ret = QK_RESTORED_NOTHING;
	for (size_t i = 0; i < e->tree.n; i++)
		if (!qk_outputs_match(o, e->tree.v[i].path))
			return qk_fail(err, -EBADMSG, "stored '%s' is no output of the task",
				e->tree.v[i].path);
	for (size_t i = 0; i < e->tree.n; i++)
		if (e->tree.v[i].twin && !qk_tree_twin(&e->tree, &e->tree.v[i]))
			return qk_fail(err, -EBADMSG, "stored '%s' is a name of '%s', which is none of the outputs",
				e->tree.v[i].path, e->tree.v[i].twin);
	stagefd = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (stagefd < 0)
		return qk_fail(err, errno, "open '%s'", stage);
	r = stage_all(s, &e->tree, stagefd, err);
	if (r > 0) {
		r = put_in_place(&e->tree, o, qk_filehash_rootfd(f), stagefd, err);
		if (!r)
			*ret = QK_RESTORED_WRITTEN;
	} else if (!r) {
		qk_store_remove(s, key);
	}
	if (*ret != QK_RESTORED_WRITTEN)
		unstage(&e->tree, stagefd);
	return r;
}

/* What a tree's entries are to become, one letter each. */
enum plan {
	PLAN_STAGED = 's', /* to be renamed into place */
	PLAN_THERE = 't',  /* stands there as stored: gets a new time */
	PLAN_TWIN = 'l',   /* a further name of a file that stands there by then */
	PLAN_MADE = 'm',   /* a directory made by us: gets its mode when all is in it */
	PLAN_NOTHING = '-',
};

static bool stands_there(const struct qk_treeent *e, struct qk_filehash *f)
{
	struct qk_filestate now;
	struct stat st;

	return e->kind == QK_FILE_REGULAR &&
	       !fstatat(qk_filehash_rootfd(f), e->path, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st.st_mode) && (st.st_mode & 07777) == e->mode &&
	       (uint64_t)st.st_size == e->size && st.st_nlink == 1 &&
	       !qk_filehash_get(f, e->path, 0, &now, NULL) && qk_digest_eq(&now.content, &e->content);
}

static void change_name(size_t i, char ret[STAGED_NAME])
{
	snprintf(ret, STAGED_NAME, "put-%d-%zu", (int)getpid(), i);
}

/* The twin is of the same tree, or an earlier line left it and it stands there as it was then. */
static bool has_twin(const struct qk_tree *t, const struct qk_treeent *e, struct qk_filehash *f)
{
	struct qk_filestate now;
	struct stat st;

	if (!e->twin || qk_tree_twin(t, e))
		return e->twin != NULL;
	return !fstatat(qk_filehash_rootfd(f), e->twin, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       (st.st_mode & 07777) == e->mode && !qk_filehash_get(f, e->twin, 0, &now, NULL) &&
	       qk_digest_eq(&now.content, &e->content);
}

/* 1, 0 if the store has not got a file, or error. */
static int stage_change(struct qk_store *s, const struct qk_tree *t, size_t i, int stagefd,
	struct qk_filehash *f, char *plan, struct qk_err *err)
{
	const struct qk_treeent *e = &t->v[i];
	char name[STAGED_NAME];

	*plan = PLAN_NOTHING;
	if (has_twin(t, e, f)) {
		*plan = PLAN_TWIN;
		return 1;
	}
	if (stands_there(e, f)) {
		*plan = PLAN_THERE;
		return 1;
	}
	if (e->kind == QK_FILE_DIR)
		return 1;
	change_name(i, name);
	*plan = PLAN_STAGED;
	if (e->kind == QK_FILE_REGULAR)
		return stage_file(s, e, stagefd, name, err);
	if (symlinkat(e->link, stagefd, name))
		return qk_fail(err, errno, "restore link '%s'", e->path);
	return 1;
}

static int put_change(const struct qk_treeent *e, size_t i, int stagefd, struct parent *p, char *plan,
	struct qk_err *err)
{
	const char *base = qk_path_base(e->path);
	int dir = parent_of(p, e->path, err);
	char name[STAGED_NAME];
	struct stat st;

	if (dir < 0)
		return dir;
	if (e->kind == QK_FILE_DIR) {
		if (!mkdirat(dir, base, 0700))
			*plan = PLAN_MADE;
		else if (errno != EEXIST || fstatat(dir, base, &st, 0) || !S_ISDIR(st.st_mode))
			return qk_fail(err, errno, "restore directory '%s'", e->path);
		return 0;
	}
	if (*plan == PLAN_THERE)
		return utimensat(dir, base, NULL, AT_SYMLINK_NOFOLLOW)
			       ? qk_fail(err, errno, "restore '%s': its time", e->path)
			       : 0;
	change_name(i, name);
	if (*plan == PLAN_TWIN) {
		int r = link_twin(e->twin, p->rootfd, stagefd, name, e->path, err);

		if (r)
			return r;
		*plan = PLAN_STAGED;
	}
	if (renameat(stagefd, name, dir, base))
		return qk_fail(err, errno, "restore '%s'", e->path);
	/* a name of the file that stood there already is left behind by that */
	if (!e->twin)
		*plan = PLAN_NOTHING;
	return 0;
}

/* Removes one path the command removed; what holds foreign files stays. */
static int remove_gone(const char *path, struct parent *p, struct qk_err *err)
{
	const char *base = qk_path_base(path);
	struct stat st;
	int dir;

	if (fstatat(p->rootfd, path, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	dir = parent_of(p, path, err);
	if (dir < 0)
		return dir;
	if (!unlinkat(dir, base, 0) || errno == ENOENT)
		return 0;
	if (errno == EISDIR && (!unlinkat(dir, base, AT_REMOVEDIR) || errno == ENOTEMPTY || errno == EEXIST))
		return 0;
	return qk_fail(err, errno, "remove '%s'", path);
}

int qk_restore_changes(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	struct qk_filehash *f, const char *stage, enum qk_restored *ret, struct qk_err *err)
{
	struct parent p = { .rootfd = qk_filehash_rootfd(f), .fd = -1 };
	qk_autofree char *plan = qk_zalloc(e->tree.n + 1);
	qk_autofd int stagefd = open(stage, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 1;

	*ret = QK_RESTORED_NOTHING;
	if (stagefd < 0)
		return qk_fail(err, errno, "open '%s'", stage);
	for (size_t i = 0; i < e->tree.n && r > 0; i++)
		r = stage_change(s, &e->tree, i, stagefd, f, &plan[i], err);
	if (!r)
		qk_store_remove(s, key);
	if (r > 0) {
		r = 0;
		for (size_t i = e->gone.n; i-- > 0 && !r;) /* what lies in a directory comes behind it */
			r = remove_gone(e->gone.v[i], &p, err);
		for (size_t i = 0; i < e->tree.n && !r; i++)
			r = put_change(&e->tree.v[i], i, stagefd, &p, &plan[i], err);
		for (size_t i = e->tree.n; i-- > 0 && !r;)
			if (plan[i] == PLAN_MADE &&
				fchmodat(p.rootfd, e->tree.v[i].path, e->tree.v[i].mode, 0))
				r = qk_fail(err, errno, "restore directory '%s': chmod", e->tree.v[i].path);
		if (!r)
			*ret = QK_RESTORED_WRITTEN;
	}
	for (size_t i = 0; i < e->tree.n; i++) {
		char name[STAGED_NAME];

		change_name(i, name);
		if (plan[i] == PLAN_STAGED)
			unlinkat(stagefd, name, 0);
	}
	parent_release(&p);
	return r;
}
