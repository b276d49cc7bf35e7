#include "sandbox/outputs.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory that explicit grants let be filled. */
static bool is_granted_dir(const struct qk_policy *p, const struct qk_rule *r)
{
	return p->closed && r->rights & QK_WRITE && r->reason == QK_BY_GRANT && r->scope == QK_TREE;
}

static bool is_output(const struct qk_policy *p, const struct qk_rule *r)
{
	if (p->closed && r->rights & QK_WRITE && r->reason == QK_BY_GRANT)
		return true;
	return r->rights & QK_WRITE && (r->reason == QK_BY_TARGET || r->reason == QK_BY_OUTPUT ||
		r->reason == QK_BY_WARM || r->reason == QK_BY_DEPFILE);
}

/* The existing directory at root/rel without a link on the way, or -errno. */
static int open_dir(int root_fd, const char *rel)
{
	return qk_open_beneath(root_fd, *rel ? rel : ".", O_PATH | O_DIRECTORY, 0);
}

int qk_outputs_make_way(int root_fd, const char *root, const char *dir, struct qk_strv *made,
	struct qk_err *err)
{
	const char *rel = qk_path_below(dir, root);
	qk_autofd int fd = -1;
	qk_autofree char *way = NULL;
	char *s;

	if (!rel || !*rel)
		return 0;
	fd = open_dir(root_fd, rel);
	if (fd >= 0)
		return 0;
	fd = open_dir(root_fd, "");
	if (fd < 0)
		return qk_fail(err, -fd, "open '%s'", root);
	way = s = qk_strdup(rel);
	for (char *c; (c = strsep(&s, "/"));) {
		int next = qk_open_beneath(fd, c, O_PATH | O_DIRECTORY, 0);

		if (next == -ENOENT) {
			if (!mkdirat(fd, c, 0777))
				qk_strv_take(made, qk_asprintf("%s/%.*s", root,
					(int)(c - way + (ptrdiff_t)strlen(c)), rel));
			else if (errno != EEXIST)
				return qk_fail(err, errno, "mkdir '%s'", dir);
			next = qk_open_beneath(fd, c, O_PATH | O_DIRECTORY, 0);
		}
		/* a link, or a file in the way: the command's own affair */
		if (next < 0)
			return 0;
		close(fd);
		fd = next;
	}
	return 0;
}

/* The directory that an output lies in; of a pattern, the literal part. */
static char *dir_of(const struct qk_rule *rule)
{
	size_t n = rule->scope == QK_GLOB ? qk_glob_literal_dir(rule->path) : qk_path_dirlen(rule->path);

	return qk_strndup(rule->path, n);
}

void qk_outputs_missing(int root_fd, const struct qk_policy *p, struct qk_strv *ret)
{
	for (size_t i = 0; i < p->rules.n; i++) {
		const struct qk_rule *rule = &p->rules.v[i];
		qk_autofree char *dir = is_granted_dir(p, rule) ? qk_strdup(rule->path)
			: is_output(p, rule)		   ? dir_of(rule)
							   : NULL;
		const char *rel = dir ? qk_path_below(dir, p->root) : NULL;

		/* most outputs lie in a directory that is there: one look */
		while (rel && *rel && !qk_strv_has(ret, dir)) {
			int fd = open_dir(root_fd, rel);

			if (fd >= 0)
				close(fd);
			if (fd != -ENOENT)
				break;
			qk_strv_push(ret, dir);
			dir[qk_path_dirlen(dir)] = '\0';
		}
	}
}

int qk_outputs_prepare(const struct qk_policy *p, struct qk_strv *made, struct qk_err *err)
{
	qk_autofd int root_fd = open(p->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (root_fd < 0)
		return qk_fail(err, errno, "open '%s'", p->root);
	for (size_t i = 0; !r && i < p->rules.n; i++) {
		const struct qk_rule *rule = &p->rules.v[i];
		qk_autofree char *dir = is_output(p, rule) ? dir_of(rule) : NULL;

		if (dir)
			r = qk_outputs_make_way(root_fd, p->root, dir, made, err);
	}
	return r;
}

void qk_outputs_tidy(const struct qk_strv *made)
{
	for (size_t i = made->n; i--;)
		(void)rmdir(made->v[i]); /* not empty: in use */
}

/* The directory that holds path (absolute, under root); -errno. */
static int open_parent(int root_fd, const char *root, const char *path)
{
	const char *rel = qk_path_below(path, root);
	qk_autofree char *dir = rel ? qk_strndup(rel, qk_path_dirlen(rel)) : NULL;

	return dir ? open_dir(root_fd, dir) : -ENOENT;
}

void qk_outputs_tidy_at(int root_fd, const char *root, const struct qk_strv *made)
{
	for (size_t i = made->n; i--;) {
		qk_autofd int dir = open_parent(root_fd, root, made->v[i]);

		if (dir >= 0)
			(void)unlinkat(dir, qk_path_base(made->v[i]), AT_REMOVEDIR);
	}
}

static int make_empty_file(int dir, const char *path, struct qk_strv *files, struct qk_err *err)
{
	static const struct timespec epoch[2];
	qk_autofd int fd = openat(dir, qk_path_base(path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return errno == EEXIST ? 0 : qk_fail(err, errno, "make '%s'", path);
	qk_strv_push(files, path);
	return futimens(fd, epoch) ? qk_fail(err, errno, "date '%s'", path) : 0;
}

int qk_outputs_precreate(int root_fd, const struct qk_policy *p, struct qk_strv *made,
	struct qk_strv *files, struct qk_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->rules.n; i++) {
		const struct qk_rule *rule = &p->rules.v[i];
		const char *name = qk_path_base(rule->path);
		qk_autofd int dir = -1;
		struct stat st;

		if (!is_output(p, rule) || rule->scope == QK_GLOB || rule->reason == QK_BY_DEPFILE)
			continue;
		dir = open_parent(root_fd, p->root, rule->path);
		if (dir < 0 || !*name || !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (is_granted_dir(p, rule) ||
			(rule->scope == QK_TREE && rule->reason != QK_BY_TARGET &&
				!strchr(name + 1, '.'))) {
			if (!mkdirat(dir, name, 0777))
				qk_strv_push(made, rule->path);
			else if (errno != EEXIST)
				r = qk_fail(err, errno, "mkdir '%s'", rule->path);
		} else {
			r = make_empty_file(dir, rule->path, files, err);
		}
	}
	return r;
}

void qk_outputs_tidy_files(int root_fd, const char *root, const struct qk_strv *files)
{
	for (size_t i = 0; i < files->n; i++) {
		qk_autofd int dir = open_parent(root_fd, root, files->v[i]);
		const char *name = qk_path_base(files->v[i]);
		struct stat st;

		if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode) && !st.st_size && !st.st_mtim.tv_sec && !st.st_mtim.tv_nsec)
			(void)unlinkat(dir, name, 0);
	}
}
