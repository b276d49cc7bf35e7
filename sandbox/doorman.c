#include "sandbox/doorman.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/guise.h"
#include "sandbox/namespace.h"
#include "base/newcalls.h"
#include "sandbox/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What open(2) makes of the flags it is given: it takes no notice of others, openat2(2) refuses. */
enum {
	ACCESS = 3, /* O_ACCMODE is that or, in musl, O_PATH too */
	OPEN_FLAGS = ACCESS | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK |
		O_SYNC | O_ASYNC | O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_TMPFILE,
	GO_ON = -1, /* the kernel shall */
};

static bool strv_has_or_above(const struct qk_strv *v, const char *path)
{
	for (size_t i = 0; i < v->n; i++)
		if (qk_path_under(path, v->v[i]))
			return true;
	return false;
}

int qk_doorman_init(struct qk_doorman *d, const struct qk_policy *policy,
	const struct qk_walls *walls, bool *ret_needed, struct qk_err *err)
{
	bool alone = walls && walls->backend == QK_BACKEND_LANDLOCK;
	int r = 0;

	*d = (struct qk_doorman){ .policy = policy, .walls = alone ? NULL : walls, .names_fd = -1,
		.slots = QK_SLOTS_INIT, .place = QK_PLACE_INIT };
	d->inner = walls && walls->backend == QK_BACKEND_INNER_OVERLAY;
	d->root_fd = open(policy->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->root_fd < 0)
		return qk_fail(err, errno, "open '%s'", policy->root);
	qk_outputs_missing(d->root_fd, policy, &d->missing);
	if (d->inner) {
		r = qk_own_read(&d->own, walls->opened.fd, err);
		if (!r && qk_slots_open(&d->slots, walls->opened.fd))
			r = qk_fail(err, ENOENT, "open 'slots' in the layer");
	}
	*ret_needed = d->walls || d->missing.n;
	return r;
}

/* The path under which the call makes something new, and where it starts; NULL: it makes nothing. */
static const char *makes(const struct qk_deed *deed, bool *ret_second)
{
	*ret_second = false;
	switch (deed->op) {
	case QK_CALL_OPEN:
	case QK_CALL_OPEN2: return deed->flags & O_CREAT && !(deed->flags & O_PATH) ? deed->path : NULL;
	case QK_CALL_CREAT:
	case QK_CALL_SYMLINK:
	case QK_CALL_MKDIR:
	case QK_CALL_MKNOD:
	case QK_CALL_BIND: return deed->path;
	case QK_CALL_RENAME:
	case QK_CALL_LINK: *ret_second = true; return deed->path2;
	default: return NULL;
	}
}

/* What is there now, whoever made it, is missing no more: removed later, it stays removed. */
static void forget_missing(struct qk_strv *missing, const char *dir)
{
	size_t n = 0;

	for (size_t i = 0; i < missing->n; i++) {
		if (qk_path_under(dir, missing->v[i]))
			free(missing->v[i]);
		else
			missing->v[n++] = missing->v[i];
	}
	missing->n = n;
	if (missing->v)
		missing->v[n] = NULL;
}

void qk_doorman_make_way(struct qk_doorman *d, struct qk_witness *w, const struct qk_deed *deed)
{
	qk_autofree char *dir = NULL;
	struct qk_guise guise;
	bool second;

	if (!d->missing.n || !makes(deed, &second))
		return;
	qk_witness_look(w, deed, second, &d->place);
	if (!d->place.path.len)
		return;
	dir = qk_strndup(d->place.path.s, qk_path_dirlen(d->place.path.s));
	if (!qk_strv_has(&d->missing, dir) || qk_guise_on(&guise, deed->pid))
		return;
	(void)qk_outputs_make_way(d->root_fd, d->policy->root, dir, &d->made, NULL);
	qk_guise_off(&guise);
	forget_missing(&d->missing, dir);
}

/* The length of path up to its first node_modules or .git component, that included; 0: none. */
static size_t named_dir(const char *path, const char *root)
{
	const char *below = qk_path_below(path, root);

	for (const char *s = below; s && *s; s += *s == '/') {
		size_t n = strcspn(s, "/");

		if ((n == 12 && !memcmp(s, "node_modules", n)) || (n == 4 && !memcmp(s, ".git", n)))
			return (size_t)(s + n - path);
		s += n;
	}
	return 0;
}

/* Binds dir of the lower layer through the overlay, unless the task has changed it already. */
static int bind(const struct qk_doorman *d, const char *dir)
{
	const char *rel = qk_path_below(dir, d->policy->root);
	qk_autofd int lower = qk_open_beneath(d->walls->lower_fd, rel, O_PATH | O_DIRECTORY, 0);
	qk_autofd int upper = -1;
	qk_autofd int target = -1;
	qk_autofd int mount = -1;

	if (lower < 0)
		return lower;
	upper = qk_open_beneath(d->walls->opened.upper, rel, O_PATH, 0);
	if (upper != -ENOENT)
		return -EEXIST;
	target = qk_open_beneath(d->root_fd, rel, O_PATH | O_DIRECTORY, 0);
	mount = target < 0 ? target : qk_namespace_copy(lower);
	return mount < 0 ? mount : qk_namespace_attach(mount, target);
}

/* A mount point can be neither removed nor renamed: what was bound on the way is let go again. */
static void let_go(struct qk_doorman *d, const struct qk_place *p, const struct qk_deed *deed)
{
	bool gone = deed->op == QK_CALL_RENAME || deed->op == QK_CALL_RMDIR ||
		(deed->op == QK_CALL_UNLINK && deed->flags & AT_REMOVEDIR);

	for (size_t i = 0; gone && i < d->bound.n; i++) {
		if (strcmp(d->bound.v[i], p->path.s))
			continue;
		(void)umount2(d->bound.v[i], MNT_DETACH | UMOUNT_NOFOLLOW);
		qk_strv_take(&d->unbound, d->bound.v[i]);
		d->bound.v[i] = d->bound.v[--d->bound.n];
		d->bound.v[d->bound.n] = NULL;
	}
}

/* Something in or at a node_modules or .git directory is touched. */
static void open_up(struct qk_doorman *d, const struct qk_place *p, const struct qk_deed *deed)
{
	size_t n = p->path.len ? named_dir(p->path.s, d->policy->root) : 0;
	qk_autofree char *dir = NULL;

	if (!n || d->policy->closed)
		return;
	let_go(d, p, deed);
	if (!p->path.s[n] && deed->op != QK_CALL_OPEN && deed->op != QK_CALL_OPEN2)
		return; /* itself made, renamed ... */
	dir = qk_strndup(p->path.s, n);
	if (qk_strv_has(&d->bound, dir) || qk_strv_has(&d->unbound, dir) ||
		(d->walls->bound && strv_has_or_above(d->walls->bound, dir)) ||
		qk_path_under(dir, d->policy->state))
		return;
	if (bind(d, dir))
		qk_strv_push(&d->unbound, dir);
	else
		qk_strv_push(&d->bound, dir);
}

/* Opens as the task would, but without waiting for anything, and only a regular file. */
static int open_for(const struct qk_deed *deed, int dirfd, const char *rel, uint64_t flags)
{
	uint64_t ours = (flags & OPEN_FLAGS) | O_NONBLOCK;
	struct qk_guise guise;
	struct stat st;
	int fd;

	if (qk_guise_on(&guise, deed->pid))
		return GO_ON;
	fd = qk_open_beneath(dirfd, *rel ? rel : ".", (int)ours, deed->mode & 07777);
	qk_guise_off(&guise);
	if (fd < 0)
		return GO_ON;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
		(!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK))) {
		close(fd);
		return GO_ON;
	}
	return fd;
}

/* True if fd is the very file that stood at rel before the command. */
static bool same_as_lower(const struct qk_doorman *d, int fd, const char *rel)
{
	qk_autofd int lower = qk_open_beneath(d->walls->lower_fd, rel, O_PATH, 0);
	struct stat a, b;

	return lower >= 0 && !fstat(fd, &a) && !fstat(lower, &b) && a.st_ino == b.st_ino;
}

/* True if the policy lets path be read for its name, and no rule was made for it beforehand. */
static bool only_by_name(const struct qk_doorman *d, const char *path)
{
	struct qk_verdict v;

	if (!named_dir(path, d->policy->root) && !strstr(qk_path_base(path), "env"))
		return false;
	v = qk_policy_judge(d->policy, path, QK_READ);
	return (v.reason == QK_BY_MODULES || v.reason == QK_BY_GIT || v.reason == QK_BY_DOTENV) &&
		!qk_strv_has(&d->walls->named, path);
}

/*
 * The lower layer on its own, for descriptors that are handed out: read-only, or a task could open
 * such a descriptor anew for writing by /proc/self/fd, past the overlay.
 */
static int names_fd(struct qk_doorman *d)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (d->names_fd < 0) {
		d->names_fd = open_tree(d->walls->lower_fd, "",
			AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (d->names_fd >= 0 && mount_setattr(d->names_fd, "", AT_EMPTY_PATH | AT_RECURSIVE,
						&attr, sizeof(attr)))
			close(qk_steal_fd(&d->names_fd));
	}
	return d->names_fd;
}

/* Under a held overlay the overlay itself refuses: the file is opened beneath it. */
static int open_beneath_held(struct qk_doorman *d, const char *path, const char *rel,
	const struct qk_deed *deed, uint64_t flags)
{
	qk_autofd int upper = -1;

	if ((flags & ACCESS) != O_RDONLY || flags & O_TRUNC || !only_by_name(d, path))
		return GO_ON;
	if (strv_has_or_above(&d->bound, path)) {
		/* a relative path may start within, at what the mount covers */
		if (deed->path[0] == '/')
			return GO_ON;
	} else {
		upper = qk_open_beneath(d->walls->opened.upper, rel, O_PATH, 0);
		if (upper != -ENOENT)
			return GO_ON; /* the task's own by now, which it can read */
	}
	return names_fd(d) < 0 ? GO_ON : open_for(deed, d->names_fd, rel, flags & ~(uint64_t)O_CREAT);
}

static int open_in_inner(struct qk_doorman *d, const struct qk_place *p, const char *rel,
	const struct qk_deed *deed, uint64_t flags)
{
	bool reads = (flags & ACCESS) != O_WRONLY, empties = flags & O_TRUNC && flags & ACCESS;
	int fd;

	if (p->err == ENOENT && flags & O_CREAT) {
		/* or another thread could put a file of others' in its place */
		fd = open_for(deed, d->root_fd, rel, flags | O_EXCL);
	} else if ((flags & O_TMPFILE) == O_TMPFILE) {
		fd = open_for(deed, d->root_fd, rel, flags);
	} else if (p->err || !S_ISREG(p->st.st_mode) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) {
		return GO_ON;
	} else if (empties) {
		fd = open_for(deed, d->root_fd, rel, flags & ~(uint64_t)O_CREAT);
	} else {
		bool own = reads && qk_own_has_path(&d->own, p->path.s);

		if (!own && !(reads && only_by_name(d, p->path.s)))
			return GO_ON;
		fd = open_for(deed, d->root_fd, rel, flags & ~(uint64_t)O_CREAT);
		if (fd >= 0 && !(own ? qk_own_has(&d->own, fd) : same_as_lower(d, fd, rel))) {
			close(fd);
			return GO_ON;
		}
		return fd;
	}
	if (fd >= 0)
		(void)qk_own_add(&d->own, fd);
	return fd;
}

/* In the inner overlay: a program that no rule can be made for is put into a slot. */
static void prepare_exec(struct qk_doorman *d, const struct qk_place *p, const char *rel)
{
	qk_autofd int fd = -1;

	if (p->err || !S_ISREG(p->st.st_mode) || !(p->st.st_mode & 0111) ||
		qk_slots_covers(&d->slots, p->path.s))
		return;
	if (!qk_own_has_path(&d->own, p->path.s) && !only_by_name(d, p->path.s))
		return;
	fd = qk_open_beneath(d->root_fd, rel, O_RDONLY | O_NONBLOCK, 0);
	if (fd >= 0 && (qk_own_has(&d->own, fd) || (only_by_name(d, p->path.s) && same_as_lower(d, fd, rel))))
		(void)qk_slots_cover(&d->slots, fd, d->root_fd, rel, p->path.s);
}

/* True if what the call does to p is more than to read it or to execute it. */
static bool changes(const struct qk_deed *deed, uint64_t flags)
{
	switch (deed->op) {
	case QK_CALL_OPEN:
	case QK_CALL_OPEN2:
	case QK_CALL_CREAT: return flags & (ACCESS | O_TRUNC);
	case QK_CALL_EXEC:
	case QK_CALL_LOOK:
	case QK_CALL_LOOK_LINK:
	case QK_CALL_READLINK: return false;
	default: return true;
	}
}

int qk_doorman_open(struct qk_doorman *d, const struct qk_witness *w, const struct qk_deed *deed)
{
	bool opens = deed->op == QK_CALL_OPEN || deed->op == QK_CALL_OPEN2 || deed->op == QK_CALL_CREAT;
	uint64_t flags = deed->op == QK_CALL_CREAT ? O_WRONLY | O_CREAT | O_TRUNC : deed->flags;
	const struct qk_place *p = &w->a;
	const char *rel = p->path.len ? qk_path_below(p->path.s, d->policy->root) : NULL;

	if (!d->walls)
		return GO_ON;
	if (deed->op == QK_CALL_RENAME || deed->op == QK_CALL_LINK) {
		open_up(d, &w->b, deed);
		if (d->inner && w->b.path.len)
			(void)qk_slots_uncover(&d->slots, w->b.path.s);
	}
	if (!rel || !*rel || qk_path_under(p->path.s, d->policy->state))
		return GO_ON;
	open_up(d, p, deed);
	if (d->inner && changes(deed, flags) && qk_slots_uncover(&d->slots, p->path.s)) {
		/* what the witness saw was the slot */
		d->place.err = lstat(p->path.s, &d->place.st) ? errno : 0;
		qk_buf_reset(&d->place.path);
		qk_buf_addstr(&d->place.path, p->path.s);
		p = &d->place;
	}
	if (d->walls->bound && strv_has_or_above(d->walls->bound, p->path.s))
		return GO_ON; /* open to the task */
	if (d->inner && deed->op == QK_CALL_EXEC)
		prepare_exec(d, p, rel);
	if (!opens || flags & O_PATH || (flags & ACCESS) == ACCESS || deed->resolve ||
		(flags & O_DIRECTORY && (flags & O_TMPFILE) != O_TMPFILE) ||
		!*deed->path || deed->path[strlen(deed->path) - 1] == '/')
		return GO_ON;
	return d->inner ? open_in_inner(d, p, rel, deed, flags)
			: open_beneath_held(d, p->path.s, rel, deed, flags);
}

void qk_doorman_release(struct qk_doorman *d)
{
	qk_outputs_tidy_at(d->root_fd, d->policy->root, &d->made);
	if (d->inner)
		(void)qk_own_write(&d->own, d->walls->opened.fd, NULL);
	qk_own_release(&d->own);
	qk_slots_release(&d->slots);
	qk_strv_release(&d->missing);
	qk_strv_release(&d->made);
	qk_strv_release(&d->bound);
	qk_strv_release(&d->unbound);
	qk_buf_release(&d->place.path);
	if (d->names_fd >= 0)
		close(d->names_fd);
	if (d->root_fd >= 0)
		close(d->root_fd);
}
