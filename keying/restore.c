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
		if (e->kind == QK_FILE_REGULAR) {
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
