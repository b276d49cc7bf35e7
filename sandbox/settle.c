#include "sandbox/settle.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/lift.h"
#include "sandbox/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* A name of a file with several, for keeping apart what was applied from what stays. */
struct linked {
	dev_t dev;
	ino_t ino;
	bool applied;
	char *path; /* in the layer, if it stays; relative to upper */
};

struct settle {
	const struct qk_policy *policy;
	const struct qk_strv *lifted;
	struct qk_settled *ret;
	struct qk_err *err;
	int result; /* the first error */
	QK_VEC(struct linked) linked;
};

/* One directory, on both sides. */
struct level {
	struct level *up; /* NULL at the root */
	const char *name;
	const char *path;
	int upper;
	int lower;        /* -1: not there, or not yet */
	struct stat st;   /* of the upper one, as the command left it */
	bool in_the_way;  /* the workspace has something there that is no directory */
	bool may_replace; /* and it may go, once there is something to apply */
	bool made;        /* by us: gets mode, owner and time at the end */
	bool opened_up;   /* given permissions for our sake */
	size_t applied, stray; /* counts as the level began */
};

static void note_error(struct settle *s, int r, const char *what, const char *path)
{
	if (!s->result)
		s->result = qk_fail(s->err, -r, "%s '%s'", what, path);
}

static bool may_write(const struct settle *s, const char *path)
{
	return qk_policy_judge(s->policy, path, QK_WRITE).answer != QK_REFUSED;
}

static bool leads(const struct settle *s, const char *path)
{
	return qk_policy_leads_to(s->policy, path, QK_WRITE);
}

static void stray(struct settle *s, const char *path)
{
	qk_strv_push(&s->ret->stray, path);
}

static void applied(struct settle *s, const char *path)
{
	qk_strv_push(&s->ret->applied, path);
}

/* Appends the names in the directory, in byte order; whiteouts included. */
static int list(int dirfd, struct qk_strv *out)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -errno;
	}
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			qk_strv_push(out, e->d_name);
	closedir(d);
	qk_strv_sort(out);
	return 0;
}

/* A character device 0:0, or (Linux 6.7) an empty file with the whiteout attribute. */
static bool is_whiteout(int dirfd, const char *name, const struct stat *st)
{
	if (S_ISCHR(st->st_mode))
		return !st->st_rdev;
	return S_ISREG(st->st_mode) && !st->st_size &&
		qk_transfer_has_mark(dirfd, name, "user.overlay.whiteout");
}

static bool is_opaque(int fd)
{
	char value;

	return fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

/* Makes sure that the workspace has the directory of this level; 0 or -errno. */
static int need_lower(struct level *l)
{
	int r;

	if (l->lower >= 0)
		return 0;
	r = need_lower(l->up);
	if (r)
		return r;
	if (l->in_the_way && !l->may_replace)
		return -ENOTDIR;
	if (l->in_the_way && unlinkat(l->up->lower, l->name, 0) && errno != ENOENT)
		return -errno;
	l->in_the_way = false;
	if (!mkdirat(l->up->lower, l->name, 0700))
		l->made = true;
	else if (errno != EEXIST)
		return -errno;
	l->lower = qk_open_beneath(l->up->lower, l->name, O_RDONLY | O_DIRECTORY, 0);
	return l->lower < 0 ? l->lower : 0;
}

/*
 * Removes from the workspace what may be written of dirfd/name, which the command removed. True if
 * nothing is left of it; what had to stay is a stray removal.
 */
static bool remove_lower(struct settle *s, int dirfd, const char *name, const char *path)
{
	qk_autostrv struct qk_strv names = { 0 };
	bool mine = may_write(s, path), all = true;
	qk_autofd int fd = -1;
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return true; /* somebody else was quicker */
	if (!mine && !(S_ISDIR(st.st_mode) && leads(s, path))) {
		stray(s, path);
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		if (unlinkat(dirfd, name, 0) && errno != ENOENT) {
			note_error(s, -errno, "remove", path);
			return false;
		}
		applied(s, path);
		return true;
	}
	fd = qk_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
	r = fd < 0 ? fd : list(fd, &names);
	if (r) {
		note_error(s, r, "list", path);
		return false;
	}
	for (size_t i = 0; i < names.n; i++) {
		qk_autofree char *sub = qk_path_join(path, names.v[i]);

		/* added by another task since: the command cannot have removed it */
		if (qk_lifted(s->lifted, path) && !qk_lifted(s->lifted, sub))
			all = false;
		else
			all &= remove_lower(s, fd, names.v[i], sub);
	}
	if (!all)
		return false;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) && errno != ENOENT) {
		note_error(s, -errno, "remove", path);
		return false;
	}
	applied(s, path);
	return true;
}

/* Takes from the layer what has been applied or means nothing. */
static void drop(struct settle *s, struct level *l, const char *name, const char *path)
{
	if (unlinkat(l->upper, name, 0) && errno != ENOENT)
		note_error(s, -errno, "remove from the layer", path);
}

static void note_linked(struct settle *s, const struct stat *st, bool was_applied, const char *path)
{
	struct linked n = { st->st_dev, st->st_ino, was_applied, NULL };

	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return;
	if (!was_applied)
		n.path = qk_strdup(qk_path_below(path, s->policy->root));
	qk_vec_push(&s->linked, n);
}

static void settle_file(struct settle *s, struct level *l, const char *name, const char *path,
	const struct stat *st)
{
	bool mine = may_write(s, path), there;
	struct stat old;
	int r;

	there = l->lower >= 0 && !fstatat(l->lower, name, &old, AT_SYMLINK_NOFOLLOW);
	/* of several names one may be old: it was copied up to be linked, and goes with the others */
	if (there && (!mine || (st->st_nlink < 2 && qk_transfer_same_time(st, &old))) &&
		qk_transfer_same(l->upper, l->lower, name, st, &old)) {
		drop(s, l, name, path);
		return;
	}
	if (!mine) {
		stray(s, path);
		note_linked(s, st, false, path);
		return;
	}
	if (there && S_ISDIR(old.st_mode) && !remove_lower(s, l->lower, name, path))
		return;
	r = need_lower(l);
	if (!r)
		r = qk_transfer(l->upper, l->lower, name, st);
	if (r) {
		note_error(s, r, "apply", path);
		return;
	}
	note_linked(s, st, true, path);
	applied(s, path);
}

static void settle_level(struct settle *s, struct level *l);

/* What an opaque directory hides was removed by the command; what must stay becomes a whiteout. */
static void settle_hidden(struct settle *s, struct level *l)
{
	qk_autostrv struct qk_strv names = { 0 };
	int r = list(l->lower, &names);

	if (r)
		note_error(s, r, "list", l->path);
	for (size_t i = 0; i < names.n; i++) {
		qk_autofree char *path = qk_path_join(l->path, names.v[i]);
		struct stat st;

		if (!fstatat(l->upper, names.v[i], &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (qk_lifted(s->lifted, l->path) && !qk_lifted(s->lifted, path))
			continue;
		if (!remove_lower(s, l->lower, names.v[i], path))
			(void)mknodat(l->upper, names.v[i], S_IFCHR, 0);
	}
	/* from here on the layer says the same by whiteouts, and shows what has been applied */
	(void)fremovexattr(l->upper, "user.overlay.opaque");
}

/* The last word on a directory, once what is in it is settled. */
static void finish_level(struct settle *s, struct level *l, const struct stat *before)
{
	bool mine = may_write(s, l->path);
	int r = 0;

	if (l->lower < 0 && (mine || (leads(s, l->path) && !l->in_the_way))) {
		r = need_lower(l);
		if (!r && s->ret->applied.n == l->applied)
			applied(s, l->path);
	} else if (l->lower < 0 && s->ret->stray.n == l->stray) {
		stray(s, l->path);
	}
	if (!r && l->made) {
		struct timespec times[2] = { l->st.st_atim, l->st.st_mtim };
		struct stat now;

		if (!fstat(l->lower, &now) && (now.st_uid != l->st.st_uid || now.st_gid != l->st.st_gid) &&
			fchown(l->lower, l->st.st_uid, l->st.st_gid))
			r = -errno;
		if (fchmod(l->lower, l->st.st_mode & 07777) || futimens(l->lower, times))
			r = -errno;
	} else if (!r && l->lower >= 0) {
		if ((before->st_mode & 07777) != (l->st.st_mode & 07777)) {
			if (!mine)
				stray(s, l->path);
			else if (fchmod(l->lower, l->st.st_mode & 07777))
				r = -errno;
			else
				applied(s, l->path);
		}
		/* entries moved in now, but the command made them when it ran */
		if (s->ret->applied.n > l->applied) {
			struct timespec times[2] = { before->st_atim, before->st_mtim };

			if (qk_transfer_later(&l->st.st_mtim, &times[1]))
				times[1] = l->st.st_mtim;
			(void)futimens(l->lower, times);
		}
	}
	if (r)
		note_error(s, r, "apply directory", l->path);
}

static void settle_dir(struct settle *s, struct level *up, const char *name, const char *path,
	const struct stat *st)
{
	struct level l = { .up = up, .name = name, .path = path, .upper = -1, .lower = -1, .st = *st,
		.applied = s->ret->applied.n, .stray = s->ret->stray.n };
	struct stat before = { 0 };

	if ((st->st_mode & 0700) != 0700)
		l.opened_up = !fchmodat(up->upper, name, (st->st_mode & 07777) | 0700, 0);
	l.upper = openat(up->upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l.upper < 0) {
		note_error(s, -errno, "open in the layer", path);
		return;
	}
	if (up->lower >= 0 && !fstatat(up->lower, name, &before, AT_SYMLINK_NOFOLLOW)) {
		if (S_ISDIR(before.st_mode))
			l.lower = qk_open_beneath(up->lower, name, O_RDONLY | O_DIRECTORY, 0);
		else
			l.in_the_way = true;
		if (S_ISDIR(before.st_mode) && l.lower < 0)
			note_error(s, l.lower, "open", path);
		/* what only leads to outputs takes the place of a link, not of a file */
		l.may_replace = may_write(s, path) || (S_ISLNK(before.st_mode) && leads(s, path));
	}
	if (l.lower >= 0 && may_write(s, path) && (before.st_mode & 0700) != 0700)
		(void)fchmod(l.lower, (before.st_mode & 07777) | 0700);
	settle_level(s, &l);
	finish_level(s, &l, &before);
	if ((l.lower < 0 || s->ret->stray.n > l.stray || unlinkat(up->upper, name, AT_REMOVEDIR)) &&
		l.opened_up)
		(void)fchmod(l.upper, st->st_mode & 07777);
	if (l.lower >= 0)
		close(l.lower);
	close(l.upper);
}

static void settle_level(struct settle *s, struct level *l)
{
	qk_autostrv struct qk_strv names = { 0 };
	int r;

	r = list(l->upper, &names);
	if (r)
		note_error(s, r, "list in the layer", l->path);
	/* with the list taken: this adds whiteouts, which are reported already */
	if (l->up && is_opaque(l->upper) && l->lower >= 0)
		settle_hidden(s, l);
	for (size_t i = 0; i < names.n; i++) {
		qk_autofree char *path = qk_path_join(l->path, names.v[i]);
		struct stat st;

		if (fstatat(l->upper, names.v[i], &st, AT_SYMLINK_NOFOLLOW)) {
			note_error(s, -errno, "stat in the layer", path);
		} else if (is_whiteout(l->upper, names.v[i], &st)) {
			if (l->lower < 0 || remove_lower(s, l->lower, names.v[i], path))
				drop(s, l, names.v[i], path);
		} else if (S_ISDIR(st.st_mode)) {
			settle_dir(s, l, names.v[i], path, &st);
		} else {
			settle_file(s, l, names.v[i], path, &st);
		}
	}
}

/*
 * A name that stays in the layer must not share its file with one that was applied: what a later
 * command writes there would change the workspace.
 */
static void part_links(struct settle *s, int upper_fd)
{
	for (size_t i = 0; i < s->linked.n; i++) {
		const struct linked *stays = &s->linked.v[i];

		for (size_t k = 0; stays->path && k < s->linked.n; k++) {
			const struct linked *went = &s->linked.v[k];
			int r;

			if (!went->applied || went->ino != stays->ino || went->dev != stays->dev)
				continue;
			r = qk_transfer_unshare(upper_fd, stays->path);
			if (r)
				note_error(s, r, "copy in the layer", stays->path);
			break;
		}
	}
	for (size_t i = 0; i < s->linked.n; i++)
		free(s->linked.v[i].path);
	qk_vec_release(&s->linked);
}

int qk_settle(const struct qk_policy *p, int lower_fd, int upper_fd, const struct qk_strv *lifted,
	struct qk_settled *ret, struct qk_err *err)
{
	struct settle s = { .policy = p, .lifted = lifted, .ret = ret, .err = err };
	struct level root = { .path = p->root, .upper = upper_fd, .lower = lower_fd };

	settle_level(&s, &root);
	part_links(&s, upper_fd);
	return s.result;
}
