#include "sandbox/lift.h"

#include "base/fdio.h"
#include "base/path.h"
#include "sandbox/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct lift {
	struct qk_strv *lifted;
	int entries;
	off_t bytes;
};

static int set_like(int fd, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	struct stat now;

	if (fstat(fd, &now))
		return -errno;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
		fchown(fd, st->st_uid, st->st_gid))
		return -errno;
	return fchmod(fd, st->st_mode & 07777) || futimens(fd, times) ? -errno : 0;
}

/* Counts what dirfd holds, down from what is left. False if it is too much, or not to be read. */
static bool is_small(struct lift *l, int dirfd)
{
	bool small = true;
	struct dirent *e;
	DIR *d;

	if (dirfd < 0)
		return false;
	d = fdopendir(dirfd);
	if (!d) {
		close(dirfd);
		return false;
	}
	while (small && (e = readdir(d))) {
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			small = false;
			continue;
		}
		l->entries--;
		if (S_ISREG(st.st_mode))
			l->bytes -= st.st_size;
		small = l->entries >= 0 && l->bytes >= 0;
		if (small && S_ISDIR(st.st_mode))
			small = is_small(l, openat(dirfd, e->d_name,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	}
	closedir(d);
	return small;
}

/* Makes to/name like the directory from/name and opens both. 0 or -errno. */
static int make_like(int from, int to, const char *name, int *ret_from, int *ret_to)
{
	qk_autofd int a = qk_open_beneath(from, name, O_RDONLY | O_DIRECTORY, 0);
	int b;

	if (a < 0)
		return a;
	if (mkdirat(to, name, 0700) && errno != EEXIST)
		return -errno;
	b = qk_open_beneath(to, name, O_RDONLY | O_DIRECTORY, 0);
	if (b < 0)
		return b;
	*ret_from = qk_steal_fd(&a);
	*ret_to = b;
	return 0;
}

static int copy_dir(struct lift *l, int from, int to, const char *name, const char *path)
{
	qk_autofd int a = -1;
	qk_autofd int b = -1;
	int r = make_like(from, to, name, &a, &b), list;
	struct dirent *e;
	struct stat st;
	DIR *d;

	if (r)
		return r;
	qk_strv_push(l->lifted, path);
	list = openat(a, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = list < 0 ? NULL : fdopendir(list);
	if (!d) {
		r = -errno;
		if (list >= 0)
			close(list);
		return r;
	}
	while (!r && (e = readdir(d))) {
		qk_autofree char *sub = NULL;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		sub = qk_path_join(path, e->d_name);
		if (fstatat(a, e->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
			r = -errno;
		} else if (S_ISDIR(st.st_mode)) {
			r = copy_dir(l, a, b, e->d_name, sub);
		} else {
			r = qk_transfer_copy(a, b, e->d_name, &st);
			qk_strv_push(l->lifted, sub);
		}
	}
	closedir(d);
	if (!r && fstat(a, &st))
		r = -errno;
	return r ? r : set_like(b, &st);
}

/* Opens the parents of rel on both sides, made in the upper layer where they are missing. */
static int open_parents(int lower_fd, int upper_fd, const char *rel, int *ret_lower, int *ret_upper)
{
	qk_autofd int a = qk_open_beneath(lower_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	qk_autofd int b = qk_open_beneath(upper_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	qk_autofree char *way = qk_strdup(rel);
	char *s = way, *slash;

	if (a < 0 || b < 0)
		return a < 0 ? a : b;
	for (; (slash = strchr(s, '/')); s = slash + 1) {
		int from, to, r;
		struct stat st;
		bool news;

		*slash = '\0';
		news = fstatat(b, s, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
		r = make_like(a, b, s, &from, &to);
		if (r)
			return r;
		close(a);
		close(b);
		a = from;
		b = to;
		if (news && (fstat(a, &st) || set_like(b, &st)))
			return -EIO;
	}
	*ret_lower = qk_steal_fd(&a);
	*ret_upper = qk_steal_fd(&b);
	return 0;
}

static bool holds_bound(const struct qk_strv *bound, const char *dir)
{
	for (size_t i = 0; bound && i < bound->n; i++)
		if (qk_path_under(bound->v[i], dir))
			return true;
	return false;
}

/* What cannot be lifted is left as it was. */
static int lift_one(int lower_fd, int upper_fd, const char *rel, const char *path,
	struct qk_strv *lifted)
{
	struct lift l = { lifted, QK_LIFT_ENTRIES, QK_LIFT_BYTES };
	size_t before = lifted->n;
	qk_autofd int a = -1;
	qk_autofd int b = -1;
	qk_autofd int there = qk_open_beneath(upper_fd, rel, O_PATH | O_NOFOLLOW, 0);
	qk_autofd int dir = -1;
	int r;

	if (there != -ENOENT ||
		!is_small(&l, qk_open_beneath(lower_fd, rel, O_RDONLY | O_DIRECTORY, 0)))
		return 0;
	r = open_parents(lower_fd, upper_fd, rel, &a, &b);
	if (!r)
		r = copy_dir(&l, a, b, qk_path_base(rel), path);
	if (!r) {
		dir = qk_open_beneath(b, qk_path_base(rel), O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0 || fsetxattr(dir, "user.overlay.opaque", "y", 1, 0))
			r = -EOPNOTSUPP;
	}
	if (!r)
		return 0;
	while (lifted->n > before)
		free(lifted->v[--lifted->n]);
	lifted->v[lifted->n] = NULL;
	return b >= 0 ? qk_remove_tree(b, qk_path_base(rel)) : 0;
}

int qk_lift(const struct qk_policy *p, int lower_fd, int upper_fd, const struct qk_strv *bound,
	struct qk_strv *ret_lifted, struct qk_err *err)
{
	int r = 0;

	for (size_t i = 0; !r && i < p->rules.n; i++) {
		const struct qk_rule *rule = &p->rules.v[i];
		const char *rel = qk_path_below(rule->path, p->root);

		if (rule->scope != QK_TREE || !(rule->rights & QK_READ) || !(rule->rights & QK_WRITE) ||
			!rel || !*rel || holds_bound(bound, rule->path))
			continue;
		r = lift_one(lower_fd, upper_fd, rel, rule->path, ret_lifted);
		if (r)
			qk_fail(err, -r, "copy '%s' into the layer", rule->path);
	}
	qk_strv_sort(ret_lifted);
	return r;
}

static int compare(const void *key, const void *element)
{
	return strcmp(key, *(char *const *)element);
}

bool qk_lifted(const struct qk_strv *lifted, const char *path)
{
	return lifted && lifted->n &&
		bsearch(path, lifted->v, lifted->n, sizeof(*lifted->v), compare) != NULL;
}
