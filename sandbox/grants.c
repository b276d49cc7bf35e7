#include "sandbox/grants.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/path.h"
#include "sandbox/landlock.h"
#include "sandbox/outside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_DOTENV_DIRS = 32,
	MAX_OUTPUT_DIR = 4096, /* entries looked at before a directory counts as mixed */
};

/* Path as seen from the root descriptor. */
static const char *below(const struct qk_grants *g, const char *path)
{
	const char *rel = qk_path_below(path, g->policy->root);

	return rel && !*rel ? "." : rel;
}

/* Errors that mean "there is nothing to grant": missing, a link on the way, not ours to enter. */
static bool is_nothing(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES || r == -EXDEV ||
		r == -ENAMETOOLONG;
}

/* Grants rights on what fd names, less those that only directories can have if it is none. */
static int allow_fd(int ruleset, int fd, uint64_t rights, bool trees_only, bool files_only)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if ((S_ISDIR(st.st_mode) && files_only) || (!S_ISDIR(st.st_mode) && trees_only))
		return 0;
	if (S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		rights &= QK_LL_FILE;
	return rights ? qk_landlock_allow(ruleset, fd, rights) : 0;
}

static int allow_path(const struct qk_grants *g, const char *path, enum qk_scope scope,
	uint64_t rights, struct qk_err *err);

/* Landlock knows no exceptions: a tree with walls in it is granted entry by entry, as it is now. */
static int allow_around(const struct qk_grants *g, const char *path, const char *rel,
	uint64_t rights, struct qk_err *err)
{
	int fd = qk_open_beneath(g->root_fd, rel, O_RDONLY | O_DIRECTORY, 0), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return fd < 0 && !is_nothing(fd) ? qk_fail(err, -fd, "list '%s'", path) : 0;
	}
	while (!r && (e = readdir(d))) {
		qk_autofree char *entry = qk_path_join(path, e->d_name);

		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
			!qk_strv_has(&g->policy->walls, entry))
			r = allow_path(g, entry, QK_TREE, rights, err);
	}
	closedir(d);
	return r;
}

static int allow_path(const struct qk_grants *g, const char *path, enum qk_scope scope,
	uint64_t rights, struct qk_err *err)
{
	const char *rel = below(g, path);
	qk_autofd int fd = -1;
	int r;

	if (!rel) {
		if (scope != QK_TREE || !qk_path_under(g->policy->root, path))
			return 0;
		rel = ".";
	}
	if (scope == QK_TREE && qk_policy_has_walls(g->policy, path))
		return allow_around(g, path, rel, rights, err);
	fd = qk_open_beneath(g->root_fd, rel, O_PATH | O_NOFOLLOW, 0);
	if (is_nothing(fd))
		return 0;
	if (fd < 0)
		return qk_fail(err, -fd, "open '%s'", path);
	r = allow_fd(g->ruleset, fd, rights, false, scope == QK_EXACT);
	return r ? qk_fail(err, -r, "landlock rule for '%s'", path) : 0;
}

/* A pattern ending in a "**" component stands for whole directories; its length without that end. */
static size_t tree_pattern(const char *pattern)
{
	size_t n = strlen(pattern);

	return n > 3 && !strcmp(pattern + n - 3, "/**") ? n - 3 : 0;
}

static int allow_glob(const struct qk_grants *g, const char *pattern, uint64_t rights,
	struct qk_err *err)
{
	size_t n = tree_pattern(pattern);
	qk_autofree char *text = qk_strndup(pattern, n ? n : strlen(pattern));
	qk_autostrv struct qk_strv found = { 0 };
	int r = 0;

	/* what cannot be listed grants nothing */
	(void)qk_glob_walk(text, &found, NULL);
	for (size_t i = 0; !r && i < found.n; i++)
		if (!g->policy->closed ||
			qk_policy_judge(g->policy, found.v[i], QK_READ).answer == QK_ALLOWED)
			r = allow_path(g, found.v[i], n ? QK_TREE : QK_EXACT, rights, err);
	return r;
}

/* Grants what the policy lets be read by its name alone, in one directory. */
static int allow_names_in(const struct qk_grants *g, const char *dir, struct qk_err *err)
{
	const char *rel = below(g, dir);
	struct dirent *e;
	int fd, r = 0;
	DIR *d;

	fd = rel ? qk_open_beneath(g->root_fd, rel, O_RDONLY | O_DIRECTORY, 0) : -ENOENT;
	if (fd < 0)
		return 0;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return qk_fail(err, errno, "list '%s'", dir);
	}
	while (!r && (e = readdir(d))) {
		qk_autofree char *path = NULL;
		struct qk_verdict v;

		if (e->d_name[0] != '.' || !strstr(e->d_name, "env"))
			continue;
		path = qk_path_join(dir, e->d_name);
		v = qk_policy_judge(g->policy, path, QK_READ);
		if (v.reason == QK_BY_DOTENV && g->named)
			qk_strv_push(g->named, path);
		if (v.reason == QK_BY_DOTENV)
			r = allow_path(g, path, QK_EXACT, g->read, err);
	}
	closedir(d);
	return r;
}

static int allow_names(const struct qk_grants *g, struct qk_err *err)
{
	qk_autostrv struct qk_strv dirs = { 0 };
	int r = 0;

	for (size_t n = strlen(g->cwd); qk_path_under(g->cwd, g->policy->root) && n;) {
		qk_strv_take(&dirs, qk_strndup(g->cwd, n));
		if (n <= strlen(g->policy->root))
			break;
		n = qk_path_dirlen(dirs.v[dirs.n - 1]);
	}
	for (size_t i = 0; i < g->policy->rules.n && dirs.n < MAX_DOTENV_DIRS; i++) {
		const struct qk_rule *rule = &g->policy->rules.v[i];
		char *dir;

		if (rule->scope == QK_GLOB)
			dir = qk_strndup(rule->path, qk_glob_literal_dir(rule->path));
		else
			dir = qk_strndup(rule->path, qk_path_dirlen(rule->path));
		if (!below(g, dir) || qk_strv_has(&dirs, dir))
			free(dir);
		else
			qk_strv_take(&dirs, dir);
	}
	for (size_t i = 0; !r && i < dirs.n; i++)
		r = allow_names_in(g, dirs.v[i], err);
	return r;
}

int qk_grants_workspace(const struct qk_grants *g, struct qk_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < g->policy->rules.n; i++) {
		const struct qk_rule *rule = &g->policy->rules.v[i];
		uint64_t rights = (rule->rights & QK_READ ? g->read : 0) |
			(rule->rights & QK_WRITE ? g->write : 0);

		if (!rights)
			continue;
		if (rule->scope == QK_GLOB)
			r = allow_glob(g, rule->path, rights, err);
		else
			r = allow_path(g, rule->path, rule->scope, rights, err);
	}
	return r || g->policy->closed ? r : allow_names(g, err);
}

/* True if nothing but directories and writable files lies in dir. Counts entries down from *left. */
static bool only_outputs(const struct qk_policy *p, int dirfd, const char *dir, int *left)
{
	bool clean = true;
	struct dirent *e;
	DIR *d;

	if (dirfd < 0)
		return false;
	d = fdopendir(dirfd);
	if (!d) {
		close(dirfd);
		return false;
	}
	while (clean && (e = readdir(d))) {
		qk_autofree char *path = NULL;
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		path = qk_path_join(dir, e->d_name);
		if (--*left < 0 || fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			clean = false;
		else if (S_ISDIR(st.st_mode))
			clean = only_outputs(p, openat(dirfd, e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path, left);
		else
			clean = qk_policy_judge(p, path, QK_WRITE).answer == QK_ALLOWED;
	}
	closedir(d);
	return clean;
}

int qk_grants_output_dirs(const struct qk_grants *g, struct qk_err *err)
{
	qk_autostrv struct qk_strv seen = { 0 };
	int r = 0;

	for (size_t i = 0; !r && i < g->policy->rules.n; i++) {
		const struct qk_rule *rule = &g->policy->rules.v[i];
		qk_autofree char *dir = qk_strndup(rule->path, qk_path_dirlen(rule->path));
		const char *rel = below(g, dir);
		int left = MAX_OUTPUT_DIR;

		if (!(rule->rights & QK_WRITE) || rule->scope == QK_GLOB || !rel ||
			!strcmp(rel, ".") || qk_strv_has(&seen, dir))
			continue;
		qk_strv_push(&seen, dir);
		if (only_outputs(g->policy,
			    qk_open_beneath(g->root_fd, rel, O_RDONLY | O_DIRECTORY, 0), dir, &left))
			r = allow_path(g, dir, QK_TREE, g->read | g->write, err);
	}
	return r;
}

int qk_grants_trees(const struct qk_grants *g, const struct qk_strv *paths, struct qk_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < paths->n; i++)
		r = allow_path(g, paths->v[i], QK_TREE, g->read | g->write, err);
	return r;
}

/* A hidden path at (0) or beneath (1) path; -1: neither. */
static int hides(const struct qk_strv *hidden, const char *path)
{
	int found = -1;

	for (size_t i = 0; i < hidden->n && found; i++)
		if (qk_path_under(hidden->v[i], path))
			found = strcmp(hidden->v[i], path) != 0;
	return found;
}

/*
 * Grants everything on the entries of one directory (path, "" for /) but `skip` and what is hidden;
 * what holds something hidden is granted entry by entry.
 */
static int allow_beside(int ruleset, int dirfd, const char *path, const char *skip,
	const struct qk_strv *hidden, uint64_t handled)
{
	struct dirent *e;
	DIR *d = fdopendir(dirfd);
	int r = 0;

	if (!d) {
		r = -errno;
		close(dirfd);
		return r;
	}
	while (!r && (e = readdir(d))) {
		qk_autofd int fd = -1;
		qk_autofree char *entry = NULL;
		int inner;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strcmp(e->d_name, skip) ||
			e->d_type == DT_LNK)
			continue;
		entry = hidden->n ? qk_asprintf("%s/%s", path, e->d_name) : NULL;
		inner = entry ? hides(hidden, entry) : -1;
		if (!inner)
			continue;
		if (inner > 0) {
			int below = openat(dirfd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			r = below < 0 ? 0 : allow_beside(ruleset, below, entry, "", hidden, handled);
			continue;
		}
		fd = openat(dirfd, e->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
			continue; /* gone meanwhile, or not ours to enter */
		r = fd < 0 ? -errno : allow_fd(ruleset, fd, handled, false, false);
	}
	closedir(d);
	return r;
}

/* Explicit grants let everything at and beneath dir be written. */
static bool is_written_whole(const struct qk_policy *p, const char *dir)
{
	return p->closed && qk_policy_judge(p, dir, QK_WRITE).answer == QK_ALLOWED;
}

/* What explicit grants, and what everybody needs, let be written out there. */
static int allow_writes_outside(
	int ruleset, const struct qk_policy *policy, uint64_t handled, struct qk_err *err)
{
	qk_autostrv struct qk_strv paths = { 0 };
	int r = 0;

	qk_strv_push(&paths, "/dev");
	qk_strv_push(&paths, "/proc");
	qk_outside_granted(policy, &paths);
	for (size_t i = 0; !r && i < paths.n; i++) {
		int hidden = hides(&policy->hidden, paths.v[i]);
		bool whole = hidden < 0;
		int fd = !hidden ? -1
			: open(paths.v[i], (whole ? O_PATH : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (qk_path_under(policy->root, paths.v[i])) {
			close(fd); /* on the way: beside it all is granted already */
		} else if (whole) {
			r = allow_fd(ruleset, fd, handled, false, false);
			close(fd);
		} else {
			r = allow_beside(ruleset, fd, paths.v[i], "", &policy->hidden, handled);
		}
		if (r)
			return qk_fail(err, -r, "landlock rule for '%s'", paths.v[i]);
	}
	return 0;
}

int qk_grants_outside(
	int ruleset, const struct qk_policy *policy, uint64_t handled, struct qk_err *err)
{
	const char *root = policy->root;
	qk_autobuf struct qk_buf here = QK_BUF_INIT;
	qk_autofree char *way = qk_strdup(root + 1);
	qk_autofd int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (char *s = way, *c; (c = strsep(&s, "/")) && *c;) {
		int next, list = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		uint64_t rights = policy->closed && !is_written_whole(policy, here.len ? here.s : "/")
			? handled & QK_LL_READ : handled;
		/* a directory that may be passed but not listed: what is in it cannot be named */
		int r = list < 0 ? 0 : allow_beside(ruleset, list, here.s, c, &policy->hidden, rights);

		if (r)
			return qk_fail(err, -r, "landlock rules beside '%s' on the way to '%s'", c, root);
		next = openat(dir, c, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return qk_fail(err, errno, "open '%s' on the way to '%s'", c, root);
		close(dir);
		dir = next;
		qk_buf_addf(&here, "/%s", c);
	}
	return policy->closed ? allow_writes_outside(ruleset, policy, handled, err) : 0;
}
