#include "sandbox/walls.h"

#include "base/fdio.h"
#include "base/newcalls.h"
#include "base/path.h"
#include "sandbox/grants.h"
#include "sandbox/hide.h"
#include "sandbox/landlock.h"
#include "sandbox/layer.h"
#include "sandbox/lift.h"
#include "sandbox/namespace.h"
#include "sandbox/network.h"
#include "sandbox/onecpu.h"
#include "sandbox/outputs.h"
#include "sandbox/outside.h"
#include "sandbox/overlay.h"
#include "sandbox/settle.h"
#include "sandbox/slots.h"
#include "sandbox/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *qk_backend_name(enum qk_backend b)
{
	static const char *const names[] = {
		[QK_BACKEND_NONE] = "none",
		[QK_BACKEND_LANDLOCK] = "landlock alone",
		[QK_BACKEND_INNER_OVERLAY] = "inner overlay",
		[QK_BACKEND_HELD_OVERLAY] = "held overlay",
	};

	return names[b];
}

bool qk_walls_without(const char *what)
{
	const char *s = getenv("QK_TEST_WITHOUT");
	size_t n = strlen(what);

	while (s && *s) {
		size_t len = strcspn(s, ",");

		if (len == n && !memcmp(s, what, n))
			return true;
		s += len;
		s += *s == ',';
	}
	return false;
}

/* The current directory as the user spells it, if that still names it. */
static char *cwd_string(void)
{
	const char *pwd = getenv("PWD");
	struct stat a, b;

	if (pwd && pwd[0] == '/' && !stat(pwd, &a) && !stat(".", &b) && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino)
		return qk_strdup(pwd);
	return getcwd(NULL, 0);
}

/* Everything that is bound through, as detached mounts, taken before the overlay covers it. */
struct copies {
	struct {
		int mount;
		const char *rel;
	} *v;
	size_t n;
};

static void release_copies(struct copies *c)
{
	for (size_t i = 0; i < c->n; i++)
		close(c->v[i].mount);
	free(c->v);
}

static int copy_bound(const struct qk_walls *w, struct copies *ret, struct qk_err *err)
{
	ret->v = qk_alloc(sizeof(*ret->v) * (w->bound ? w->bound->n : 0) + 1);
	for (size_t i = 0; w->bound && i < w->bound->n; i++) {
		const char *rel = qk_path_below(w->bound->v[i], w->policy->root);
		qk_autofd int fd = rel && *rel ? qk_open_beneath(w->lower_fd, rel, O_PATH, 0) : -ENOENT;
		int mount;

		if (fd < 0)
			continue; /* missing, a link, or outside: nothing to bind */
		mount = qk_namespace_copy(fd);
		if (mount < 0)
			return qk_fail(err, -mount, "bind '%s': open_tree", w->bound->v[i]);
		ret->v[ret->n].rel = rel;
		ret->v[ret->n++].mount = mount;
	}
	return 0;
}

static int attach_beneath(int root_fd, const char *rel, int mount, struct qk_err *err)
{
	qk_autofd int target = qk_open_beneath(root_fd, rel, O_PATH, 0);
	int r = target < 0 ? target : qk_namespace_attach(mount, target);

	return r ? qk_fail(err, -r, "bind '%s' through the overlay", rel) : 0;
}

/* Covers the state directory, as the overlay shows it, by an empty one. */
static int hide_state(const struct qk_walls *w, int root_fd, struct qk_err *err)
{
	const char *rel = w->policy->state ? qk_path_below(w->policy->state, w->policy->root) : NULL;
	qk_autofd int hidden = -1;
	qk_autofd int mount = -1;
	qk_autofd int state = -1;

	if (!rel || !*rel)
		return 0;
	state = qk_open_beneath(root_fd, rel, O_PATH, 0);
	if (state < 0)
		return 0;
	hidden = qk_open_beneath(w->opened.fd, "hidden", O_PATH | O_DIRECTORY, 0);
	if (hidden < 0)
		return qk_fail(err, -hidden, "open '%s/hidden'", w->layer);
	mount = qk_namespace_copy(hidden);
	if (mount < 0)
		return qk_fail(err, -mount, "hide '%s': open_tree", rel);
	return attach_beneath(root_fd, rel, mount, err);
}

static int mount_all(struct qk_walls *w, int ruleset, struct qk_err *err)
{
	qk_autofd int work = qk_open_beneath(w->opened.fd, "work", O_PATH | O_DIRECTORY, 0);
	struct copies copies = { 0 };
	qk_autofd int overlay = -1;
	qk_autofd int root = -1;
	int r = copy_bound(w, &copies, err);

	if (!r) {
		overlay = qk_overlay_mount(w->lower_fd, w->opened.upper, work, ruleset, err);
		r = overlay < 0 ? overlay : 0;
	}
	if (!r) {
		r = qk_namespace_attach(overlay, w->lower_fd);
		if (r)
			qk_fail(err, -r, "overlay: attach to '%s'", w->policy->root);
	}
	if (!r) {
		w->mounted = true;
		root = open(w->policy->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (root < 0)
			r = qk_fail(err, errno, "open '%s'", w->policy->root);
	}
	for (size_t i = 0; !r && i < copies.n; i++)
		r = attach_beneath(root, copies.v[i].rel, copies.v[i].mount, err);
	if (!r)
		r = hide_state(w, root, err);
	release_copies(&copies);
	return r;
}

static int new_ruleset(enum qk_landlock_use use, uint64_t *ret_handled, struct qk_err *err)
{
	int fd, abi = qk_walls_without("landlock") ? -ENOSYS : qk_landlock_abi();

	if (abi < 0)
		return qk_fail(err, -abi, "landlock");
	*ret_handled = qk_landlock_handled(use, abi);
	fd = qk_landlock_create(*ret_handled);
	return fd < 0 ? qk_fail(err, -fd, "landlock: create a ruleset") : fd;
}

/* The rules of the mounter: readable lower files, and the layer, whose contents are the command's. */
static int held_ruleset(struct qk_walls *w, const char *cwd, struct qk_err *err)
{
	static const char *const layers[] = { "upper", "work" };
	struct qk_grants g = { .root_fd = w->lower_fd, .policy = w->policy, .cwd = cwd, .named = &w->named };
	int r;

	g.ruleset = new_ruleset(QK_LL_FOR_MOUNTER, &g.read, err);
	if (g.ruleset < 0)
		return g.ruleset;
	r = qk_grants_workspace(&g, err);
	for (size_t i = 0; !r && i < sizeof(layers) / sizeof(*layers); i++) {
		qk_autofd int fd = qk_open_beneath(w->opened.fd, layers[i], O_PATH | O_DIRECTORY, 0);

		r = fd < 0 ? fd : qk_landlock_allow(g.ruleset, fd, g.read);
		if (r)
			qk_fail(err, -r, "landlock rule for '%s/%s'", w->layer, layers[i]);
	}
	if (r)
		close(g.ruleset);
	return r ? r : g.ruleset;
}

/* The rules of a command that is restricted itself, over an overlay or without one. */
static int command_ruleset(struct qk_walls *w, const char *cwd, struct qk_err *err)
{
	bool alone = w->backend == QK_BACKEND_LANDLOCK;
	qk_autofd int root = open(w->policy->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct qk_grants g = { .root_fd = root, .policy = w->policy, .cwd = cwd, .named = &w->named };
	qk_autostrv struct qk_strv open_trees = { 0 };
	uint64_t handled;
	int r;

	if (root < 0)
		return qk_fail(err, errno, "open '%s'", w->policy->root);
	g.ruleset = new_ruleset(alone ? QK_LL_FOR_ALL : QK_LL_FOR_READS, &handled, err);
	if (g.ruleset < 0)
		return g.ruleset;
	g.read = handled & QK_LL_READ;
	g.write = handled & ~(uint64_t)QK_LL_READ;
	r = qk_grants_workspace(&g, err);
	if (!r && alone)
		r = qk_grants_output_dirs(&g, err);
	if (!r && !alone && g.write) {
		/* the overlay takes care of writes: names may move anywhere */
		r = qk_landlock_allow(g.ruleset, root, g.write);
		if (r)
			qk_fail(err, -r, "landlock rule for '%s'", w->policy->root);
	}
	if (!r && !alone)
		r = qk_slots_grant(w->opened.fd, g.ruleset, g.read, err);
	if (!r && w->bound)
		r = qk_grants_trees(&g, w->bound, err);
	if (!r && w->policy->state) {
		/* alone nothing hides it: of what is in it the layer is there for the command */
		qk_strv_push(&open_trees, alone && w->policy->closed ? w->layer : w->policy->state);
		r = qk_grants_trees(&g, &open_trees, err);
	}
	if (!r)
		r = qk_grants_outside(g.ruleset, w->policy, handled, err);
	if (r) {
		close(g.ruleset);
		return r;
	}
	w->ruleset_fd = g.ruleset;
	return 0;
}

/* Those of an overlay's mounts, and that of the network. */
static int enter_namespaces(struct qk_walls *w, struct qk_err *err)
{
	int r = qk_namespace_enter(qk_walls_without("userns"), err);

	if (r || !w->closed_network)
		return r;
	if (qk_walls_without("netns"))
		return qk_fail(err, -EPERM, "network namespaces: taken away for a test");
	r = qk_network_enter(err);
	if (!r && w->uplink.conn >= 0)
		r = qk_uplink_open(&w->uplink, &w->hosts, &w->denied, err);
	return r;
}

static int enter_overlay(struct qk_walls *w, const char *cwd, struct qk_err *err)
{
	bool held = w->backend == QK_BACKEND_HELD_OVERLAY;
	qk_autofd int ruleset = -1;
	int r;

	if (qk_walls_without("overlay"))
		return qk_fail(err, -EINVAL, "overlay: taken away for a test");
	if (held && qk_walls_without("held"))
		return qk_fail(err, -EINVAL, "held overlay: taken away for a test");
	if (!strcmp(w->policy->root, "/"))
		return qk_fail(err, -EINVAL, "overlay: the workspace is the root directory");
	r = enter_namespaces(w, err);
	if (!r && w->policy->closed)
		r = qk_outside_close(w->policy, err);
	if (r)
		return r;
	/* descriptors from before belong to mounts of the namespace left behind */
	w->lower_fd = open(w->policy->root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->lower_fd < 0)
		return qk_fail(err, errno, "open '%s'", w->policy->root);
	r = qk_layer_open(&w->opened, w->lower_fd, w->policy->root, w->layer, w->spares, err);
	if (!r)
		r = qk_lift(w->policy, w->lower_fd, w->opened.upper, w->bound, &w->lifted, err);
	if (r)
		return r;
	if (held) {
		ruleset = held_ruleset(w, cwd, err);
		if (ruleset < 0)
			return ruleset;
	}
	r = mount_all(w, ruleset, err);
	if (!r)
		r = qk_hide(w->policy, err);
	return r || held ? r : command_ruleset(w, cwd, err);
}

static int enter(struct qk_walls *w, struct qk_err *err)
{
	qk_autofree char *physical = getcwd(NULL, 0);
	int r;

	if (!physical)
		return qk_fail(err, errno, "current directory");
	w->cwd = cwd_string();
	switch (w->backend) {
	case QK_BACKEND_HELD_OVERLAY:
	case QK_BACKEND_INNER_OVERLAY:
		r = enter_overlay(w, physical, err);
		break;
	case QK_BACKEND_LANDLOCK:
		r = w->closed_network ? enter_namespaces(w, err) : 0;
		if (r)
			return r;
		w->lower_fd = open(w->policy->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (w->lower_fd < 0)
			return qk_fail(err, errno, "open '%s'", w->policy->root);
		/* rules can only be made for what is there */
		r = qk_outputs_prepare(w->policy, &w->made, err);
		if (!r)
			r = qk_outputs_precreate(w->lower_fd, w->policy, &w->made, &w->files, err);
		return r ? r : command_ruleset(w, physical, err);
	default:
		return qk_fail(err, -EINVAL, "no walls");
	}
	if (!r && chdir(w->cwd))
		r = qk_fail(err, errno, "re-enter '%s'", w->cwd);
	return r;
}

int qk_walls_enter(struct qk_walls *w, struct qk_err *err)
{
	struct qk_onecpu here;
	int r;

	qk_onecpu_begin(&here); /* namespaces and mounts are made by children that we wait for */
	r = enter(w, err);
	qk_onecpu_end(&here);
	if (r)
		qk_walls_release(w);
	return r;
}

const char *qk_walls_tmpdir(const struct qk_walls *w)
{
	const char *usual = getenv("TMPDIR");
	qk_autofree char *real = realpath(usual && *usual ? usual : "/tmp", NULL);

	if (w->policy->closed && w->backend == QK_BACKEND_LANDLOCK)
		return w->layer;
	if (w->policy->closed)
		return w->policy->state;
	if (w->backend == QK_BACKEND_HELD_OVERLAY || !real || !qk_path_under(w->policy->root, real))
		return NULL;
	/* over an overlay the state directory shows an empty one that is thrown away */
	return w->backend == QK_BACKEND_LANDLOCK ? w->layer : w->policy->state;
}

int qk_walls_confine(const struct qk_walls *w, const char **ret_step)
{
	int r;

	if (w->backend == QK_BACKEND_LANDLOCK && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		*ret_step = "set no_new_privs";
		return -errno;
	}
	*ret_step = "guard the terminal";
	r = qk_terminal_guard(); /* while we may: it takes a capability that is dropped below */
	if (!r && w->ruleset_fd >= 0) {
		*ret_step = "restrict by Landlock";
		r = qk_landlock_restrict(w->ruleset_fd);
	}
	if (!r && w->closed_network) {
		*ret_step = "guard the network";
		r = qk_network_guard();
	}
	if (!r && (w->backend != QK_BACKEND_LANDLOCK || w->closed_network))
		r = qk_namespace_drop(w->closed_network, ret_step);
	return r;
}

/* Takes the overlay and everything in it off again; we then stand in the workspace itself. */
static int unmount(struct qk_walls *w, struct qk_err *err)
{
	if (!w->mounted)
		return 0;
	w->mounted = false;
	if (umount2(w->policy->root, MNT_DETACH))
		return qk_fail(err, errno, "unmount the overlay of '%s'", w->policy->root);
	if (chdir(w->cwd) && chdir(w->policy->root))
		return qk_fail(err, errno, "re-enter '%s'", w->cwd);
	return 0;
}

int qk_walls_settle(struct qk_walls *w, bool discard, struct qk_settled *ret, struct qk_err *err)
{
	int r = 0, u;

	if (w->backend == QK_BACKEND_LANDLOCK || w->opened.upper < 0)
		return 0;
	qk_layer_tidy_end(&w->opened);
	if (!discard)
		r = qk_settle(w->policy, w->lower_fd, w->opened.upper, &w->lifted, ret, err);
	u = unmount(w, r ? NULL : err);
	if (!discard && !r && !ret->stray.n && w->spares)
		qk_layer_retire(&w->opened);
	else if (discard || (!r && !ret->stray.n))
		qk_layer_clear(&w->opened);
	return r ? r : u;
}

void qk_settled_release(struct qk_settled *s)
{
	qk_strv_release(&s->applied);
	qk_strv_release(&s->stray);
}

void qk_walls_release(struct qk_walls *w)
{
	int *fds[] = { &w->ruleset_fd, &w->lower_fd };

	if (w->lower_fd >= 0) {
		qk_outputs_tidy_files(w->lower_fd, w->policy->root, &w->files);
		qk_outputs_tidy_at(w->lower_fd, w->policy->root, &w->made);
	} else {
		qk_outputs_tidy(&w->made);
	}
	(void)unmount(w, NULL);
	qk_layer_release(&w->opened);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	qk_uplink_release(&w->uplink);
	qk_strv_release(&w->hosts);
	qk_strv_release(&w->denied);
	qk_strv_release(&w->made);
	qk_strv_release(&w->files);
	qk_strv_release(&w->lifted);
	qk_strv_release(&w->named);
	free(w->cwd);
	w->cwd = NULL;
}
