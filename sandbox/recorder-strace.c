#include "sandbox/recorder-strace.h"

#include "base/path.h"
#include "sandbox/spawn.h"
#include "sandbox/strace-text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

extern char **environ;

/* One line of output: "PID name(arguments) = result", numbers raw, every string in hexadecimal. */
enum { READ_BYTES = 1 << 16, FIFO_TRIES = 100 };

/* Which argument is what, by the name that strace gives a call; as in calls.c. */
struct named_call {
	const char *name;
	enum qk_call_op op;
	int8_t dir, path, flags, dir2, path2;
	bool lookup;
};

#define N QK_NO_ARG
static const struct named_call calls[] = {
	{ "open", QK_CALL_OPEN, N, 0, 1, N, N, false },
	{ "openat", QK_CALL_OPEN, 0, 1, 2, N, N, false },
	{ "openat2", QK_CALL_OPEN2, 0, 1, 2, N, N, false },
	{ "creat", QK_CALL_CREAT, N, 0, N, N, N, false },
	{ "execve", QK_CALL_EXEC, N, 0, N, N, N, false },
	{ "execveat", QK_CALL_EXEC, 0, 1, 4, N, N, false },
	{ "rename", QK_CALL_RENAME, N, 0, N, N, 1, false },
	{ "renameat", QK_CALL_RENAME, 0, 1, N, 2, 3, false },
	{ "renameat2", QK_CALL_RENAME, 0, 1, 4, 2, 3, false },
	{ "link", QK_CALL_LINK, N, 0, N, N, 1, false },
	{ "linkat", QK_CALL_LINK, 0, 1, 4, 2, 3, false },
	{ "symlink", QK_CALL_SYMLINK, N, 1, N, N, N, false },
	{ "symlinkat", QK_CALL_SYMLINK, 1, 2, N, N, N, false },
	{ "unlink", QK_CALL_UNLINK, N, 0, N, N, N, false },
	{ "unlinkat", QK_CALL_UNLINK, 0, 1, 2, N, N, false },
	{ "rmdir", QK_CALL_RMDIR, N, 0, N, N, N, false },
	{ "mkdir", QK_CALL_MKDIR, N, 0, N, N, N, false },
	{ "mkdirat", QK_CALL_MKDIR, 0, 1, N, N, N, false },
	{ "mknod", QK_CALL_MKNOD, N, 0, N, N, N, false },
	{ "mknodat", QK_CALL_MKNOD, 0, 1, N, N, N, false },
	{ "truncate", QK_CALL_TRUNCATE, N, 0, N, N, N, false },
	{ "truncate64", QK_CALL_TRUNCATE, N, 0, N, N, N, false },
	{ "chmod", QK_CALL_META, N, 0, N, N, N, false },
	{ "fchmodat", QK_CALL_META, 0, 1, N, N, N, false },
	{ "fchmodat2", QK_CALL_META, 0, 1, 3, N, N, false },
	{ "chown", QK_CALL_META, N, 0, N, N, N, false },
	{ "chown32", QK_CALL_META, N, 0, N, N, N, false },
	{ "lchown", QK_CALL_META_LINK, N, 0, N, N, N, false },
	{ "lchown32", QK_CALL_META_LINK, N, 0, N, N, N, false },
	{ "fchownat", QK_CALL_META, 0, 1, 4, N, N, false },
	{ "setxattr", QK_CALL_META, N, 0, N, N, N, false },
	{ "lsetxattr", QK_CALL_META_LINK, N, 0, N, N, N, false },
	{ "removexattr", QK_CALL_META, N, 0, N, N, N, false },
	{ "lremovexattr", QK_CALL_META_LINK, N, 0, N, N, N, false },
	{ "bind", QK_CALL_BIND, N, 1, N, N, N, false },
	{ "open_by_handle_at", QK_CALL_HANDLE, N, N, N, N, N, false },
	{ "chroot", QK_CALL_VIEW, N, N, N, N, N, false },
	{ "pivot_root", QK_CALL_VIEW, N, N, N, N, N, false },
	{ "mount", QK_CALL_VIEW, N, N, N, N, N, false },
	{ "move_mount", QK_CALL_VIEW, N, N, N, N, N, false },
	{ "setns", QK_CALL_VIEW, N, N, N, N, N, false },
	{ "stat", QK_CALL_LOOK, N, 0, N, N, N, true },
	{ "stat64", QK_CALL_LOOK, N, 0, N, N, N, true },
	{ "lstat", QK_CALL_LOOK_LINK, N, 0, N, N, N, true },
	{ "lstat64", QK_CALL_LOOK_LINK, N, 0, N, N, N, true },
	{ "newfstatat", QK_CALL_LOOK, 0, 1, 3, N, N, true },
	{ "fstatat64", QK_CALL_LOOK, 0, 1, 3, N, N, true },
	{ "statx", QK_CALL_LOOK, 0, 1, 2, N, N, true },
	{ "access", QK_CALL_LOOK, N, 0, N, N, N, true },
	{ "faccessat", QK_CALL_LOOK, 0, 1, N, N, N, true },
	{ "faccessat2", QK_CALL_LOOK, 0, 1, 3, N, N, true },
	{ "readlink", QK_CALL_READLINK, N, 0, N, N, N, true },
	{ "readlinkat", QK_CALL_READLINK, 0, 1, N, N, N, true },
};
enum { N_CALLS = sizeof(calls) / sizeof(*calls) };

/* Current directories are followed, because older calls do not show where they start. */
struct cwd {
	const char *path;
};

struct qk_strace_process {
	pid_t pid;
	struct cwd *cwd;     /* shared by threads */
	char *begun;         /* the first half of a call that others came between, or NULL */
	unsigned long order; /* when it was begun */
	UT_hash_handle hh;
};

static void build_argv(struct qk_strace *s, const char *strace, char *const *argv, bool stays)
{
	static const char *const options[] = { "-DD", "-f", "-I2", "-y", "-xx", "-Xraw", "-a0",
		"-esignal=none", "-equiet=attach,personality",
		"-einject=?io_uring_setup:error=ENOSYS" };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_strv_push(&s->argv, strace);
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		qk_strv_push(&s->argv, options[i]);
	if (!stays)
		qk_strv_push(&s->argv, "--seccomp-bpf");
	qk_buf_addstr(
		&b, "-etrace=chdir,fchdir,unshare,?clone,?clone3,?fork,?vfork,?io_uring_setup");
	for (size_t i = 0; i < N_CALLS; i++)
		if (!calls[i].lookup || s->trace->lookups)
			qk_buf_addf(&b, ",?%s", calls[i].name);
	qk_strv_push(&s->argv, b.s);
	qk_strv_push(&s->argv, "-o");
	qk_strv_push(&s->argv, s->fifo);
	qk_strv_push(&s->argv, "--");
	if (qk_spawn_is_script(argv[0], environ))
		qk_strv_push(&s->argv, "/bin/sh");
	for (; *argv; argv++)
		qk_strv_push(&s->argv, *argv);
}

static int make_fifo(struct qk_strace *s, const char *dir, struct qk_err *err)
{
	int r = -1;

	for (int i = 0; r && i < FIFO_TRIES; i++) {
		free(s->fifo);
		s->fifo = qk_asprintf("%s/qk-strace.%d.%d", dir, (int)getpid(), i);
		r = mkfifo(s->fifo, 0600);
		if (r && errno != EEXIST)
			break;
	}
	if (!r) {
		s->fd = open(s->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
		if (s->fd >= 0)
			return 0;
	}
	r = qk_fail(err, errno, "a fifo '%s' for strace", s->fifo);
	free(s->fifo);
	s->fifo = NULL;
	return r;
}

int qk_strace_init(struct qk_strace *s, struct qk_trace *trace, char *const *argv, const char *dir,
	bool stays, struct qk_err *err)
{
	qk_autofree char *strace = qk_spawn_find("strace", environ);
	char cwd[PATH_MAX];
	int r;

	*s = (struct qk_strace){ .trace = trace, .fd = -1, .text = QK_BUF_INIT };
	qk_witness_init(&s->witness, trace);
	if (!strchr(strace, '/'))
		return qk_fail(err, -ENOENT, "strace is not installed");
	r = make_fifo(s, dir ? dir : "/tmp", err);
	if (r)
		return r;
	s->first_cwd = qk_arena_strdup(&s->arena, getcwd(cwd, sizeof(cwd)) ? cwd : "/");
	build_argv(s, strace, argv, stays);
	return 0;
}

static void forget_process(struct qk_strace *s, struct qk_strace_process *p)
{
	HASH_DEL(s->processes, p);
	free(p->begun);
	free(p);
}

void qk_strace_release(struct qk_strace *s)
{
	struct qk_strace_process *p, *next;

	HASH_ITER (hh, s->processes, p, next)
		forget_process(s, p);
	if (s->fd >= 0)
		close(s->fd);
	if (s->fifo)
		unlink(s->fifo);
	free(s->fifo);
	qk_buf_release(&s->text);
	qk_strv_release(&s->argv);
	qk_witness_release(&s->witness);
	qk_arena_release(&s->arena);
}

static struct cwd *new_cwd(struct qk_strace *s, const char *path)
{
	struct cwd *c = qk_arena_alloc(&s->arena, sizeof(*c));

	c->path = qk_arena_strdup(&s->arena, path);
	return c;
}

static void set_cwd(struct qk_strace *s, struct qk_strace_process *p, const char *path)
{
	if (strcmp(p->cwd->path, path))
		p->cwd->path = qk_arena_strdup(&s->arena, path);
}

/* The process that is starting pid: its call has begun and not yet returned. */
static struct qk_strace_process *starting(struct qk_strace *s)
{
	struct qk_strace_process *p, *next, *best = NULL;

	HASH_ITER (hh, s->processes, p, next)
		if (p->begun &&
			(!strncmp(p->begun, "clone", 5) || !strncmp(p->begun, "fork(", 5) ||
				!strncmp(p->begun, "vfork(", 6)) &&
			(!best || best->order < p->order))
			best = p;
	return best;
}

static unsigned long clone_flags(const char *text)
{
	const char *f = text ? strstr(text, "flags=") : NULL;

	return f ? strtoul(f + 6, NULL, 0) : 0;
}

static struct qk_strace_process *process(struct qk_strace *s, pid_t pid)
{
	struct qk_strace_process *p, *parent;
	char name[64], cwd[PATH_MAX];
	ssize_t n;

	HASH_FIND_INT(s->processes, &pid, p);
	if (p)
		return p;
	p = qk_zalloc(sizeof(*p));
	p->pid = pid;
	parent = starting(s);
	if (parent) {
		p->cwd = clone_flags(parent->begun) & CLONE_FS ? parent->cwd
							       : new_cwd(s, parent->cwd->path);
	} else if (!s->processes) {
		p->cwd = new_cwd(s, s->first_cwd);
	} else {
		snprintf(name, sizeof(name), "/proc/%d/cwd", pid);
		n = readlink(name, cwd, sizeof(cwd) - 1);
		cwd[n < 0 ? 0 : n] = '\0';
		p->cwd = new_cwd(s, n > 0 && cwd[0] == '/' ? cwd : s->first_cwd);
	}
	HASH_ADD_INT(s->processes, pid, p);
	return p;
}

/* A quoted path, or a socket address with one. NULL: not shown, "" : an address that is no file. */
static const char *path_arg(enum qk_call_op op, char *arg)
{
	if (op == QK_CALL_BIND) {
		char *sun = strstr(arg, "sun_path=\"");

		if (!sun)
			return "";
		return qk_strace_decode(sun + 10, '"') ? sun + 10 : NULL;
	}
	return *arg == '"' && qk_strace_decode(arg + 1, '"') ? arg + 1 : NULL;
}

static uint64_t flags_arg(enum qk_call_op op, const char *arg)
{
	if (op == QK_CALL_OPEN2) {
		const char *f = strstr(arg, "flags=");

		arg = f ? f + 6 : "0";
	}
	return strtoull(arg, NULL, 0);
}

static void changed_view(struct qk_strace *s, pid_t pid, const char *name)
{
	qk_trace_lost(s->trace, "a process (pid %d) has changed what its paths mean (%s)", (int)pid,
		name);
}

/* Calls that are followed for the current directory. True if it was one. */
static bool directory_call(struct qk_strace *s, struct qk_strace_process *p, const char *name,
	char *args[], int n, long ret)
{
	struct qk_strace_process *child;
	unsigned long flags = 0;
	const char *path;

	if (!strcmp(name, "chdir")) {
		path = path_arg(QK_CALL_OPEN, args[0]);
		if (!ret && path) {
			qk_resolve(&s->witness.resolver, p->pid, 0, p->cwd->path, path, 0,
				&s->witness.a);
			set_cwd(s, p, s->witness.a.path.s);
		}
	} else if (!strcmp(name, "fchdir")) {
		path = qk_strace_descriptor(args[0]);
		if (!ret && path)
			set_cwd(s, p, path);
	} else if (!strcmp(name, "unshare")) {
		flags = strtoul(args[0], NULL, 0);
		if (!ret && flags & (CLONE_FS | CLONE_NEWNS))
			p->cwd = new_cwd(s, p->cwd->path);
		if (!ret && flags & CLONE_NEWNS)
			changed_view(s, p->pid, name);
	} else if (!strncmp(name, "clone", 5) || !strcmp(name, "fork") || !strcmp(name, "vfork")) {
		for (int i = 0; i < n && !flags; i++)
			flags = clone_flags(args[i]);
		if (ret > 0 && flags & CLONE_NEWNS)
			changed_view(s, (pid_t)ret, name);
		if (ret > 0) {
			pid_t pid = (pid_t)ret;

			HASH_FIND_INT(s->processes, &pid, child);
			if (!child) {
				child = qk_zalloc(sizeof(*child));
				child->pid = pid;
				child->cwd = flags & CLONE_FS ? p->cwd : new_cwd(s, p->cwd->path);
				HASH_ADD_INT(s->processes, pid, child);
			}
		}
	} else {
		return false;
	}
	return true;
}

static void file_call(struct qk_strace *s, struct qk_strace_process *p, const struct named_call *c,
	char *args[], int n, struct qk_outcome *o)
{
	struct qk_deed d = { .op = c->op, .pid = p->pid, .dirfd = AT_FDCWD, .dirfd2 = AT_FDCWD };

	if (c->op == QK_CALL_VIEW || c->op == QK_CALL_HANDLE) {
		if (!o->err && c->op == QK_CALL_VIEW)
			changed_view(s, p->pid, c->name);
		else if (!o->err)
			qk_trace_lost(
				s->trace, "a process (pid %d) opens files by handle", (int)p->pid);
		return;
	}
	if (c->path >= n || c->flags >= n || c->path2 >= n) {
		qk_trace_lost(s->trace, "strace: a call of %s that is not understood", c->name);
		return;
	}
	d.path = path_arg(c->op, args[c->path]);
	d.path2 = c->path2 == N ? "" : path_arg(c->op, args[c->path2]);
	if (!d.path || !d.path2) {
		if (!o->err)
			qk_trace_lost(
				s->trace, "strace: a call of %s whose path is not shown", c->name);
		return;
	}
	if (c->op == QK_CALL_BIND && !*d.path)
		return;
	d.flags = c->flags == N ? 0 : flags_arg(c->op, args[c->flags]);
	d.base = c->dir == N ? p->cwd->path : qk_strace_descriptor(args[c->dir]);
	d.base2 = c->dir2 == N ? p->cwd->path : qk_strace_descriptor(args[c->dir2]);
	if (c->dir != N && strtol(args[c->dir], NULL, 0) == AT_FDCWD && d.base)
		set_cwd(s, p, d.base);
	if (!d.base)
		d.base = p->cwd->path;
	if (!d.base2)
		d.base2 = p->cwd->path;
	if (c->op == QK_CALL_EXEC && p->pid == s->pid && !s->executed) {
		s->executed = !o->err;
		s->exec_errno = o->err;
	}
	qk_witness_done(&s->witness, &d, o);
}

static const struct {
	const char *name;
	int err;
} errors[] = {
	{ "ENOENT", ENOENT },
	{ "ENOTDIR", ENOTDIR },
	{ "EACCES", EACCES },
	{ "EROFS", EROFS },
	{ "EPERM", EPERM },
	{ "ENOEXEC", ENOEXEC },
	{ "ELOOP", ELOOP },
	{ "ENAMETOOLONG", ENAMETOOLONG },
	{ "E2BIG", E2BIG },
	{ "ETXTBSY", ETXTBSY },
};

static int error_named(const char *text)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		size_t n = strlen(errors[i].name);

		if (!strncmp(text, errors[i].name, n) && (text[n] == ' ' || !text[n]))
			return errors[i].err;
	}
	return EIO; /* another one: nothing depends on which */
}

/* A whole call: "name(arguments) = result". */
static void whole_call(struct qk_strace *s, struct qk_strace_process *p, char *text)
{
	char *args[QK_STRACE_ARGS], *open = strchr(text, '('), *rest, *bracket;
	struct qk_outcome o = { 0 };
	long ret;
	int n;

	if (!open)
		return;
	*open = '\0';
	rest = qk_strace_split(open + 1, args, &n);
	if (!rest || strncmp(rest += strspn(rest, " "), "= ", 2)) {
		qk_trace_lost(s->trace, "strace: a line that is not understood");
		return;
	}
	rest += 2;
	if (*rest == '?')
		return; /* interrupted and made again, or never returned */
	ret = strtol(rest, &rest, 0);
	if (ret < 0) {
		o.err = error_named(rest + strspn(rest, " "));
	} else if ((bracket = strchr(rest, '<'))) {
		bool deleted = strstr(bracket, ">(deleted)");

		if (qk_strace_decode(bracket + 1, '>'))
			o.opened = deleted ? "" : bracket + 1;
	}
	if (directory_call(s, p, text, args, n, ret))
		return;
	for (size_t i = 0; i < N_CALLS; i++) {
		if (!strcmp(calls[i].name, text)) {
			file_call(s, p, &calls[i], args, n, &o);
			return;
		}
	}
}

void qk_strace_line(struct qk_strace *s, char *line)
{
	static const char unfinished[] = " <unfinished ...>";
	static const char superseded[] = "+++ superseded by execve in pid ";
	static unsigned long order;
	struct qk_strace_process *p;
	char *text, *resumed;
	size_t len;
	pid_t pid = (pid_t)strtol(line, &text, 10);

	if (text == line || pid <= 0) {
		qk_trace_lost(s->trace, "strace: %.200s", line);
		return;
	}
	text += strspn(text, " ");
	p = process(s, pid);
	if (!strncmp(text, superseded, strlen(superseded))) {
		struct qk_strace_process *thread;
		pid_t other = (pid_t)strtol(text + strlen(superseded), NULL, 10);

		HASH_FIND_INT(s->processes, &other, thread);
		if (thread && thread != p) {
			free(p->begun);
			p->begun = qk_steal(&thread->begun);
			p->cwd = thread->cwd;
			forget_process(s, thread);
		}
		return;
	}
	if (!strncmp(text, "+++ ", 4)) {
		forget_process(s, p);
		return;
	}
	if (!strncmp(text, "--- ", 4))
		return;
	len = strlen(text);
	if (len > strlen(unfinished) && !strcmp(text + len - strlen(unfinished), unfinished)) {
		free(p->begun);
		p->begun = qk_strndup(text, len - strlen(unfinished));
		p->order = ++order;
		return;
	}
	if (!strncmp(text, "<... ", 5)) {
		qk_autofree char *whole = NULL;

		resumed = strstr(text, " resumed>");
		if (!resumed || !p->begun) {
			qk_trace_lost(s->trace, "strace: the end of a call that was never begun");
			return;
		}
		whole = qk_asprintf("%s%s", p->begun, resumed + 9);
		free(p->begun);
		p->begun = NULL;
		whole_call(s, p, whole);
		return;
	}
	whole_call(s, p, text);
}

/* Who traces the command; only strace knows that it is attached, and it has just written. */
static pid_t tracer_of(pid_t pid)
{
	char name[64], status[4096];
	qk_autofd int fd = -1;
	const char *line;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	status[n < 0 ? 0 : n] = '\0';
	line = strstr(status, "\nTracerPid:");
	return line ? (pid_t)strtol(line + 11, NULL, 10) : 0;
}

void qk_strace_find_tracer(struct qk_strace *s, const pid_t *pids, size_t n)
{
	/* what ended before its first line was read could not be asked */
	for (size_t i = 0; i < n && !s->tracer; i++)
		s->tracer = tracer_of(pids[i]);
	if (!s->tracer && n == 1)
		s->tracer = pids[0];
}

bool qk_strace_serve(struct qk_strace *s)
{
	size_t start = 0;
	ssize_t n;
	char *end;

	qk_buf_reserve(&s->text, READ_BYTES);
	n = read(s->fd, s->text.s + s->text.len, READ_BYTES);
	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (!s->seen_any) {
		s->seen_any = true;
		s->tracer = tracer_of(s->pid);
		unlink(s->fifo);
		free(s->fifo);
		s->fifo = NULL;
	}
	s->text.len += (size_t)n;
	while ((end = memchr(s->text.s + start, '\n', s->text.len - start))) {
		*end = '\0';
		qk_strace_line(s, s->text.s + start);
		start = (size_t)(end - s->text.s) + 1;
	}
	memmove(s->text.s, s->text.s + start, s->text.len - start);
	qk_buf_truncate(&s->text, s->text.len - start);
	return true;
}
