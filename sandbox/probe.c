#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/landlock.h"
#include "sandbox/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The scratch tree, made once and tried under one back end after another. */
struct scratch {
	char *dir, *root, *layer;
};

/* System settings that take something away, and what to say of them; the first that applies. */
static const struct {
	const char *path;
	char first; /* what the file begins with where it is the cause */
	const char *hint;
} hints[] = {
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
		"sysctl kernel.apparmor_restrict_unprivileged_userns=1: install a profile" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", '0',
		"sysctl kernel.unprivileged_userns_clone=0" },
	{ "/proc/sys/user/max_user_namespaces", '0', "sysctl user.max_user_namespaces=0" },
};

static const char *hint_for_namespaces(void)
{
	for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
		qk_autofd int fd = open(hints[i].path, O_RDONLY | O_CLOEXEC);
		char c = 0;

		if (fd >= 0 && read(fd, &c, 1) == 1 && c == hints[i].first)
			return hints[i].hint;
	}
	return NULL;
}

static int make_file(const char *dir, const char *name)
{
	qk_autofree char *path = qk_path_join(dir, name);
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : qk_write_all(fd, "x", 1);
}

static int make_scratch(struct scratch *s, const char *dir, struct qk_err *err)
{
	qk_autofree char *real = realpath(dir, NULL), *sub = NULL;
	int r;

	if (!real)
		return qk_fail(err, errno, "'%s'", dir);
	s->dir = qk_asprintf("%s/probe.XXXXXX", strcmp(real, "/") ? real : "");
	if (!mkdtemp(s->dir))
		return qk_fail(err, errno, "make '%s'", s->dir);
	s->root = qk_path_join(s->dir, "root");
	s->layer = qk_path_join(s->dir, "layer");
	sub = qk_path_join(s->root, "dir");
	if (mkdir(s->root, 0777) || mkdir(s->layer, 0777) || mkdir(sub, 0777))
		return qk_fail(err, errno, "make directories in '%s'", s->dir);
	r = make_file(s->root, "declared");
	if (!r)
		r = make_file(s->root, "other");
	if (!r)
		r = make_file(s->root, "dir/old");
	return r ? qk_fail(err, -r, "make files in '%s'", s->root) : 0;
}

static void remove_scratch(struct scratch *s)
{
	if (s->dir)
		(void)qk_remove_tree(AT_FDCWD, s->dir);
	free(s->dir);
	free(s->root);
	free(s->layer);
}

/* 0 or errno of opening name in the current directory for reading. */
static int try_read(const char *name)
{
	qk_autofd int fd = open(name, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

/* What an overlay must be able to do: new files, a removed directory made anew (needs xattrs). */
static const char *try_writes(bool held)
{
	if (make_file(".", "new") || (held && try_read("new")))
		return "overlay: a new file cannot be made and read";
	if (unlink("dir/old") || rmdir("dir") || mkdir("dir", 0777) || mkdir("dir/sub", 0777) ||
		!access("dir/old", F_OK))
		return "overlay: a directory cannot be replaced (no user extended attributes here?)";
	return NULL;
}

/* In a child: enters, confines itself, and tries. What is wrong goes to fd as text. */
static void try_backend(const struct scratch *s, enum qk_backend backend, int fd)
{
	struct qk_walls walls = QK_WALLS_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_policy policy;
	const char *step = "", *bad = NULL;
	qk_autofree char *state = qk_path_join(s->root, ".state");
	int r;

	qk_policy_init(&policy, s->root, state);
	qk_policy_add(&policy, s->root, "declared", QK_EXACT, QK_READ, QK_BY_INPUT);
	walls.backend = backend;
	walls.policy = &policy;
	walls.layer = s->layer;
	if (chdir(s->root))
		r = qk_fail(&err, errno, "'%s'", s->root);
	else
		r = qk_walls_enter(&walls, &err);
	if (!r) {
		r = qk_walls_confine(&walls, &step);
		if (r)
			qk_fail(&err, -r, "%s", step);
	}
	if (r)
		bad = err.msg;
	else if (try_read("declared"))
		bad = backend == QK_BACKEND_HELD_OVERLAY
			? "a declared file cannot be read (before Linux 6.7 rules do not reach beneath overlays)"
			: "a declared file cannot be read";
	else if (try_read("other") != EACCES)
		bad = "an undeclared file can be read";
	else if (backend != QK_BACKEND_LANDLOCK)
		bad = try_writes(backend == QK_BACKEND_HELD_OVERLAY);
	else if (make_file(".", "new") != -EACCES)
		bad = "an undeclared file can be made";
	if (bad)
		(void)qk_write_all(fd, bad, strlen(bad));
}

/* True if the back end works; why says otherwise. */
static bool works(const struct scratch *s, enum qk_backend backend, char *why, size_t size)
{
	const char *hint = NULL;
	int fds[2], status = 0;
	size_t n = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC)) {
		snprintf(why, size, "pipe: %s", strerror(errno));
		return false;
	}
	pid = fork();
	if (!pid) {
		try_backend(s, backend, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	while (pid > 0 && n < size - 1) {
		ssize_t got = read(fds[0], why + n, size - 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	why[n] = '\0';
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		snprintf(why, size, "fork: %s", strerror(errno));
	else if (!n && status)
		snprintf(why, size, "the trial ended with wait status %d", status);
	if (!why[0])
		return true;
	if (strstr(why, "namespaces: ") || strstr(why, "Operation not permitted"))
		hint = hint_for_namespaces();
	n = strlen(why);
	if (hint)
		snprintf(why + n, size - n, " (%s)", hint);
	/* the next back end starts from the same tree */
	(void)qk_remove_tree(AT_FDCWD, s->layer);
	(void)mkdir(s->layer, 0777);
	return false;
}

static void say_limits(struct qk_walls_host *ret, bool attended)
{
	enum qk_landlock_use use = ret->backend == QK_BACKEND_LANDLOCK ? QK_LL_FOR_ALL :
		ret->backend == QK_BACKEND_INNER_OVERLAY ? QK_LL_FOR_READS : QK_LL_FOR_MOUNTER;
	const char *text;
	int abi = qk_landlock_abi();
	size_t n = 0;

	if (ret->backend == QK_BACKEND_NONE)
		return;
	for (size_t i = 0; n < sizeof(ret->limits) && (text = qk_landlock_limit(use, abi, attended, i)); i++)
		n += (size_t)snprintf(ret->limits + n, sizeof(ret->limits) - n, "%s%s", i ? "; " : "", text);
}

void qk_walls_probe(const char *dir, bool no_overlay, bool attended, struct qk_walls_host *ret)
{
	struct {
		enum qk_backend backend;
		char *why;
		size_t size;
	} tries[] = {
		{ QK_BACKEND_HELD_OVERLAY, ret->why_not_held, sizeof(ret->why_not_held) },
		{ QK_BACKEND_INNER_OVERLAY, ret->why_not_inner, sizeof(ret->why_not_inner) },
		{ QK_BACKEND_LANDLOCK, ret->why_not_landlock, sizeof(ret->why_not_landlock) },
	};
	struct scratch s = { 0 };
	struct qk_err err = QK_ERR_INIT;
	int r;

	*ret = (struct qk_walls_host){ .backend = QK_BACKEND_NONE };
	r = make_scratch(&s, dir, &err);
	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		if (r) {
			snprintf(tries[i].why, tries[i].size, "%s", err.msg);
		} else if (no_overlay && tries[i].backend != QK_BACKEND_LANDLOCK) {
			snprintf(tries[i].why, tries[i].size, "QK_SANDBOX_OVERLAY=0");
		} else if (works(&s, tries[i].backend, tries[i].why, tries[i].size)) {
			ret->backend = tries[i].backend;
			break;
		}
	}
	say_limits(ret, attended);
	remove_scratch(&s);
}
