/*
 * A small workspace under /tmp in which tests run commands within the walls, for real: as root and
 * as an ordinary user, on every back end that this host gives. What it does not give is skipped
 * aloud.
 */
#ifndef QK_TESTS_WALLED_H
#define QK_TESTS_WALLED_H

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/run.h"
#include "sandbox/walls.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

/* The back ends by user: the loop index of most tests. */
static const struct {
	enum qk_backend backend;
	bool ordinary;
	const char *name;
} ways[] = {
	{ QK_BACKEND_HELD_OVERLAY, false, "held overlay, root" },
	{ QK_BACKEND_HELD_OVERLAY, true, "held overlay, ordinary user" },
	{ QK_BACKEND_INNER_OVERLAY, false, "inner overlay, root" },
	{ QK_BACKEND_INNER_OVERLAY, true, "inner overlay, ordinary user" },
	{ QK_BACKEND_LANDLOCK, false, "landlock alone, root" },
	{ QK_BACKEND_LANDLOCK, true, "landlock alone, ordinary user" },
	{ QK_BACKEND_NONE, false, "no walls, root" },
	{ QK_BACKEND_NONE, true, "no walls, ordinary user" },
};

enum { HELD = 2, OVERLAYS = 4, ALL = 6 }; /* ends of the rows above */

static char top[64], root[80];
static struct qk_policy policy;
static struct qk_strv bound;
static struct qk_buf output = QK_BUF_INIT; /* of the last command */
static struct qk_buf report = QK_BUF_INIT; /* "+path" applied, "-path" stray, "!error", a line each */
static const char *cwd = "."; /* beneath root */
static bool discard, spares;
static bool recorded; /* by seccomp, with a doorman */
static bool closed;   /* the network */

static const char *at(const char *rel)
{
	static char full[4][300];
	static int turn;
	char *s = full[turn++ % 4];

	snprintf(s, sizeof(*full), "%s/%s", root, rel);
	return s;
}

static void put(const char *rel, const char *text)
{
	qk_autofree char *dir = qk_strndup(at(rel), qk_path_dirlen(at(rel)));

	ck_assert_int_eq(qk_mkdirs(dir, NULL), 0);
	ck_assert_int_eq(qk_write_file(at(rel), text, strlen(text), 0644, NULL), 0);
}

static inline const char *text_of(const char *rel)
{
	static struct qk_buf b = QK_BUF_INIT;

	qk_buf_reset(&b);
	return qk_read_file(AT_FDCWD, at(rel), 1 << 20, &b, NULL) ? "(none)" : b.s;
}

static inline bool there(const char *rel)
{
	struct stat st;

	return !lstat(at(rel), &st);
}

static void rule(const char *rel, enum qk_scope scope, bool writable)
{
	qk_policy_add(&policy, root, rel, scope, writable ? QK_READ | QK_WRITE : QK_READ,
		writable ? QK_BY_OUTPUT : QK_BY_INPUT);
}

static void setup(void)
{
	char state[100];

	umask(022);
	strcpy(top, "/tmp/check_walls.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	chmod(top, 0755);
	snprintf(root, sizeof(root), "%s/w", top);
	snprintf(state, sizeof(state), "%s/.qk", root);
	qk_policy_init(&policy, root, state);
	put("declared", "D\n");
	put("secret", "S\n");
	put("src/a.c", "A\n");
	put("src/b.c", "B\n");
	put(".qk/layer/.keep", "");
	unlink(at(".qk/layer/.keep"));
	rule("declared", QK_EXACT, false);
	rule("src/a.c", QK_EXACT, false);
	rule("out", QK_TREE, true);
	rule("made.txt", QK_EXACT, true);
}

static void teardown(void)
{
	qk_policy_release(&policy);
	qk_strv_release(&bound);
	qk_remove_tree(AT_FDCWD, top);
}

static void note(int fd, char kind, const char *text)
{
	qk_autofree char *line = qk_asprintf("%c%s\n", kind, text);

	(void)qk_write_all(fd, line, strlen(line));
}

/* Runs script with the recorder; its wait status. What the trace says goes to the report as "?why". */
static int run_recorded(struct qk_walls *w, const char *script, int out, int rep)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };
	struct qk_run_spec spec = { .argv = argv, .envp = environ, .recorder = QK_RECORDER_SECCOMP,
		.walls = w, .policy = &policy, .tmpdir = "/tmp", .end_leftovers = true };
	struct qk_run_result ran;
	struct qk_err err = QK_ERR_INIT;
	struct qk_trace trace;

	dup2(out, 1);
	dup2(out, 2);
	qk_trace_init(&trace);
	if (qk_run(&spec, &trace, &ran, &err)) {
		note(rep, '!', err.msg);
		return 99 << 8;
	}
	if (trace.incomplete)
		note(rep, '?', trace.incomplete);
	return ran.status;
}

/* In the process that plays the runner: one command, settled; its wait status. */
static int play(enum qk_backend backend, const char *script, int out, int rep)
{
	struct qk_walls w = QK_WALLS_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_settled settled = { 0 };
	qk_autofree char *layer = qk_strdup(at(".qk/layer"));
	int status = 0;
	pid_t pid;

	w.backend = backend;
	w.policy = &policy;
	w.layer = layer;
	w.bound = &bound;
	w.spares = spares;
	w.closed_network = closed;
	if (chdir(at(cwd)))
		return 98 << 8;
	if (recorded && backend == QK_BACKEND_NONE)
		return run_recorded(NULL, script, out, rep);
	if (recorded) {
		status = run_recorded(&w, script, out, rep);
	} else if (qk_walls_enter(&w, &err)) {
		note(rep, '!', err.msg);
		return 99 << 8;
	} else if (!(pid = fork())) {
		const char *step = "?";

		dup2(out, 1);
		dup2(out, 2);
		if (qk_walls_confine(&w, &step)) {
			perror(step);
			_exit(97);
		}
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(96);
	} else {
		waitpid(pid, &status, 0);
	}
	if (qk_walls_settle(&w, discard, &settled, &err))
		note(rep, '!', err.msg);
	for (size_t i = 0; i < settled.applied.n; i++)
		note(rep, '+', qk_path_below(settled.applied.v[i], root));
	for (size_t i = 0; i < settled.stray.n; i++)
		note(rep, '-', qk_path_below(settled.stray.v[i], root));
	qk_settled_release(&settled);
	qk_walls_release(&w);
	return status;
}

static void own_tree(void)
{
	qk_autofree char *chown = qk_asprintf("chown -R %d:%d '%s'", NOBODY, NOBODY, top);

	ck_assert_int_eq(system(chown), 0);
}

static void become_nobody(void)
{
	if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		_exit(95);
	/* a program started by this user would be; without it our own /proc files are root's */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void slurp(const char *name, struct qk_buf *b)
{
	qk_autofree char *path = qk_path_join(top, name);

	qk_buf_reset(b);
	ck_assert_int_eq(qk_read_file(AT_FDCWD, path, 1 << 20, b, NULL), 0);
}

/* Runs script within the walls; the wait status. Output and report are left in their buffers. */
static int in_walls(int way, const char *script)
{
	qk_autofree char *out = qk_path_join(top, "out"), *rep = qk_path_join(top, "rep");
	int status;
	pid_t pid;

	qk_policy_resolve(&policy);
	if (ways[way].ordinary)
		own_tree();
	pid = fork();
	if (!pid) {
		int o = open(out, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
		int r = open(rep, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

		if (ways[way].ordinary)
			become_nobody();
		status = play(ways[way].backend, script, o, r);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	waitpid(pid, &status, 0);
	slurp("out", &output);
	slurp("rep", &report);
	return WEXITSTATUS(status);
}

/* True, with a line, if this host cannot do this way. */
static bool cannot(int way, const char *test)
{
	static struct qk_walls_host host[2];
	static bool probed;

	if (getuid()) {
		printf("skipped: %s: needs root to try both users\n", test);
		return true;
	}
	if (!probed) {
		for (int i = 0; i < 2; i++) {
			int fds[2], status;
			pid_t pid;

			if (pipe(fds))
				abort();
			chmod(top, 0777);
			pid = fork();
			if (!pid) {
				struct qk_walls_host h;

				if (i)
					become_nobody();
				qk_walls_probe(top, false, true, &h);
				_exit(write(fds[1], &h, sizeof(h)) != sizeof(h));
			}
			waitpid(pid, &status, 0);
			ck_assert_int_eq(status, 0);
			ck_assert_int_eq(read(fds[0], &host[i], sizeof(host[i])), sizeof(host[i]));
			close(fds[0]);
			close(fds[1]);
		}
		chmod(top, 0755);
		probed = true;
	}
	if (ways[way].backend <= host[ways[way].ordinary].backend)
		return false;
	printf("skipped: %s: %s: %s\n", test, ways[way].name,
		ways[way].backend == QK_BACKEND_HELD_OVERLAY ? host[ways[way].ordinary].why_not_held
		: ways[way].backend == QK_BACKEND_INNER_OVERLAY
			? host[ways[way].ordinary].why_not_inner
			: host[ways[way].ordinary].why_not_landlock);
	return true;
}

/* Check names the functions behind the tests with "_fn" at the end. */
#define SKIP_IF_CANNOT()                                                                          \
	do {                                                                                      \
		if (cannot(_i, __func__))                                                         \
			return;                                                                   \
	} while (0)

static bool has(const struct qk_buf *b, const char *text)
{
	return strstr(b->s, text) != NULL;
}

#define ck_has(b, text) ck_assert_msg(has(&(b), text), "no '%s' in:\n%s%s", text, output.s, report.s)
#define ck_has_not(b, text) ck_assert_msg(!has(&(b), text), "'%s' in:\n%s%s", text, output.s, report.s)

#endif
