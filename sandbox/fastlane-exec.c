/*
 * The preloaded library's wrappers for calls that start programs. The program's environment shows
 * nothing of the library; what it starts gets it again here, if the lane suits it. execvp's search
 * looks by the lane: only the program that is there costs a notified call.
 *
 * system, popen and what else starts programs inside libc go on without the lane.
 */
#include "sandbox/fastlane-preload.h"

#include "sandbox/fastlane-program.h"

#include <stdarg.h>

enum {
	ENTRIES_MAX = 8192, /* of an environment: it is copied to the stack */
	VALUE_MAX = 8192,
	WORDS_MAX = 8192,
};

/* Starts a program with an environment; ctx has the rest. */
typedef int (*starter)(const void *ctx, const char *path, char *const *env);

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static bool starts(const char *s, const char *with)
{
	while (*with && *s == *with)
		s++, with++;
	return !*with;
}

static bool has_slash(const char *s)
{
	for (; *s; s++)
		if (*s == '/')
			return true;
	return false;
}

static const char *variable(char *const *env, const char *name_equals)
{
	for (; env && *env; env++)
		if (starts(*env, name_equals))
			return *env + length(name_equals);
	return NULL;
}

/* The library for the program, if this process has the lane and the program can read it. */
static const char *library_for(const char *path)
{
	struct qk_lane_ring *r = qk_lane_ring;
	enum qk_lane_width width;
	const char *library;
	int fd;

	if (!r || __atomic_load_n(&r->flags, __ATOMIC_RELAXED) & QK_LANE_CLOSED)
		return NULL;
	width = qk_lane_program(path);
	if (width == QK_LANE_NONE)
		return NULL;
	library = r->library[width == QK_LANE_32];
	/* The loader would complain aloud. access leaves out capabilities, as exec will; walls only
	 * know of opens. */
	if (qk_lane_syscall(NR_access, (long)library, 4, 0, 0, 0))
		return NULL;
	fd = qk_lane_host_open(library);
	if (fd < 0)
		return NULL;
	qk_lane_host_close(fd);
	return library;
}

/* The loader has been asked to show what it does: it is to show what it would without us. */
static bool shows_loader(const char *entry)
{
	return starts(entry, "LD_TRACE_LOADED_OBJECTS=") || starts(entry, "LD_DEBUG=") ||
	       starts(entry, "LD_AUDIT=");
}

/* Calls start with env, and the library in it where it is wanted. */
static int start_with_lane(const char *path, char *const *env, starter start, const void *ctx)
{
	const char *library = library_for(path), *old = NULL;
	size_t n = 0, at = 0, len = 0, value;
	char **with, *entry;

	if (!library)
		return start(ctx, path, env);
	for (; env && env[n]; n++) {
		if (n == ENTRIES_MAX || shows_loader(env[n]))
			return start(ctx, path, env);
		if (starts(env[n], QK_LANE_VARIABLE "=")) {
			old = env[n];
			at = n;
		}
	}
	value = old ? length(old) : length(QK_LANE_VARIABLE "=");
	if (value > VALUE_MAX)
		return start(ctx, path, env);
	entry = __builtin_alloca(value + length(library) + 2);
	with = __builtin_alloca((n + 2) * sizeof(*with));
	for (const char *s = old ? old : QK_LANE_VARIABLE "="; *s; s++)
		entry[len++] = *s;
	if (old)
		entry[len++] = ':';
	for (const char *s = library; *s; s++)
		entry[len++] = *s;
	entry[len] = '\0';
	for (size_t i = 0; i < n; i++)
		with[i] = env[i];
	with[old ? at : n] = entry;
	with[old ? n : n + 1] = NULL;
	return start(ctx, path, with);
}

static int call_execve(const void *argv, const char *path, char *const *env)
{
	return (int)syscall(NR_execve, path, argv, env);
}

static int execute(const char *path, char *const *argv, char *const *env)
{
	if (!qk_lane_readable(path))
		return call_execve(argv, path, env);
	return start_with_lane(path, env, call_execve, argv);
}

/* A file without any magic is the shell's, as glibc has it; musl leaves that to the caller. */
static int execute_or_shell(const char *path, char *const *argv, char *const *env)
{
	int r = execute(path, argv, env);
	size_t n = 0;
	char **words;

	if (*__errno_location() != QK_ENOEXEC || !gnu_get_libc_version)
		return r;
	while (argv[n])
		if (++n == WORDS_MAX)
			return r;
	words = __builtin_alloca((n + 3) * sizeof(*words));
	words[0] = (char *)(uintptr_t)"/bin/sh";
	words[1] = (char *)(uintptr_t)path;
	for (size_t i = 1; i < n; i++)
		words[i + 1] = argv[i];
	words[n > 1 ? n + 1 : 2] = NULL;
	return execute("/bin/sh", words, env);
}

/* True if the lane knows that nothing is there, and has recorded it. */
static bool missing(const char *path)
{
	struct qk_lane_place p;

	return qk_lane_place(&p, QK_AT_FDCWD, path) &&
	       qk_lane_syscall(NR_faccessat, QK_AT_FDCWD, (long)path, 0, 0, 0) == -QK_ENOENT &&
	       qk_lane_note(QK_LANE_LOOK, 0, QK_ENOENT, &p);
}

/* Whether a search goes on after a candidate that could not be executed. */
static bool goes_on(int err)
{
	return err == QK_EACCES || err == QK_ENOENT || err == QK_ESTALE || err == QK_ENOTDIR ||
	       err == QK_ENODEV || err == QK_ETIMEDOUT;
}

static int search(const char *file, char *const *argv, char *const *env)
{
	const char *path = variable(environ, "PATH=");
	char candidate[QK_PATH_MAX];
	size_t n = length(file);
	bool refused = false;

	if (!*file)
		return (int)qk_lane_done(-QK_ENOENT);
	if (has_slash(file))
		return execute_or_shell(file, argv, env);
	if (n > QK_NAME_MAX)
		return (int)qk_lane_done(-QK_ENAMETOOLONG);
	if (!path)
		path = gnu_get_libc_version ? "/bin:/usr/bin" : "/usr/local/bin:/bin:/usr/bin";
	for (;; path++) {
		size_t len = 0;

		while (path[len] && path[len] != ':')
			len++;
		if (len + n + 2 <= sizeof(candidate)) {
			for (size_t i = 0; i < len; i++)
				candidate[i] = path[i];
			if (len)
				candidate[len] = '/';
			for (size_t i = 0; i <= n; i++)
				candidate[len + (len ? 1 : 0) + i] = file[i];
			if (missing(candidate)) {
				qk_lane_done(-QK_ENOENT);
			} else {
				execute_or_shell(candidate, argv, env);
				if (*__errno_location() == QK_EACCES)
					refused = true;
				else if (!goes_on(*__errno_location()))
					return -1;
			}
		}
		path += len;
		if (!*path)
			break;
	}
	return refused ? (int)qk_lane_done(-QK_EACCES) : -1;
}

QK_EXPORT int execve(const char *path, char *const *argv, char *const *env);
int execve(const char *path, char *const *argv, char *const *env)
{
	return execute(path, argv, env);
}

QK_EXPORT int execv(const char *path, char *const *argv);
int execv(const char *path, char *const *argv)
{
	return execute(path, argv, environ);
}

QK_EXPORT int execvpe(const char *file, char *const *argv, char *const *env);
int execvpe(const char *file, char *const *argv, char *const *env)
{
	return search(file, argv, env);
}

QK_EXPORT int execvp(const char *file, char *const *argv);
int execvp(const char *file, char *const *argv)
{
	return search(file, argv, environ);
}

/* Takes the words of a call like execl, its first one given, into argv; ap stands behind NULL. */
#define TAKE_WORDS(argv, first, ap)                                                                \
	do {                                                                                       \
		size_t n_ = 0;                                                                     \
                                                                                                   \
		va_start(ap, first);                                                               \
		for (const char *word_ = (first); word_; word_ = va_arg(ap, const char *))         \
			n_++;                                                                      \
		va_end(ap);                                                                        \
		(argv) = __builtin_alloca((n_ + 1) * sizeof(char *));                              \
		(argv)[0] = (char *)(uintptr_t)(first);                                            \
		va_start(ap, first);                                                               \
		for (size_t i_ = 1; i_ <= n_; i_++)                                                \
			(argv)[i_] = va_arg(ap, char *);                                           \
	} while (0)

QK_EXPORT int execl(const char *path, const char *first, ...);
int execl(const char *path, const char *first, ...)
{
	char **argv;
	va_list ap;

	TAKE_WORDS(argv, first, ap);
	va_end(ap);
	return execute(path, argv, environ);
}

QK_EXPORT int execlp(const char *file, const char *first, ...);
int execlp(const char *file, const char *first, ...)
{
	char **argv;
	va_list ap;

	TAKE_WORDS(argv, first, ap);
	va_end(ap);
	return search(file, argv, environ);
}

QK_EXPORT int execle(const char *path, const char *first, ...);
int execle(const char *path, const char *first, ...)
{
	char **argv, **env;
	va_list ap;

	TAKE_WORDS(argv, first, ap);
	env = va_arg(ap, char **);
	va_end(ap);
	return execute(path, argv, env);
}

/* What posix_spawn is to be called with, but for program and environment. */
struct spawn {
	int (*libcs)(void *, const char *, const void *, const void *, char *const *, char *const *);
	const char *file;
	void *pid;
	const void *actions, *attributes;
	char *const *argv;
};

static int call_spawn(const void *ctx, const char *path, char *const *env)
{
	const struct spawn *s = ctx;

	(void)path;
	return s->libcs(s->pid, s->file, s->actions, s->attributes, s->argv, env);
}

/* The program that a search will find, into ret; libc searches itself. */
static const char *find(const char *file, char ret[QK_PATH_MAX])
{
	const char *path = variable(environ, "PATH=");
	size_t n = length(file);

	if (has_slash(file))
		return file;
	for (; path && n; path++) {
		size_t len = 0;

		while (path[len] && path[len] != ':')
			len++;
		if (len && len + n + 2 <= QK_PATH_MAX) {
			for (size_t i = 0; i < len; i++)
				ret[i] = path[i];
			ret[len] = '/';
			for (size_t i = 0; i <= n; i++)
				ret[len + 1 + i] = file[i];
			if (!qk_lane_syscall(NR_faccessat, QK_AT_FDCWD, (long)ret, 1, 0, 0))
				return ret;
		}
		path += len;
		if (!*path)
			break;
	}
	return file;
}

static int spawn(const char *name, const char *path, struct spawn *s, char *const *env)
{
	s->libcs = (int (*)(void *, const char *, const void *, const void *, char *const *,
		char *const *))qk_lane_next(name);
	if (!s->libcs)
		return QK_ENOSYS;
	return start_with_lane(path, env, call_spawn, s);
}

QK_EXPORT int posix_spawn(void *pid, const char *path, const void *actions, const void *attributes,
	char *const *argv, char *const *env);
int posix_spawn(void *pid, const char *path, const void *actions, const void *attributes,
	char *const *argv, char *const *env)
{
	struct spawn s = { NULL, path, pid, actions, attributes, argv };

	return spawn("posix_spawn", path, &s, env);
}

QK_EXPORT int posix_spawnp(void *pid, const char *file, const void *actions, const void *attributes,
	char *const *argv, char *const *env);
int posix_spawnp(void *pid, const char *file, const void *actions, const void *attributes,
	char *const *argv, char *const *env)
{
	struct spawn s = { NULL, file, pid, actions, attributes, argv };
	char path[QK_PATH_MAX];

	return spawn("posix_spawnp", find(file, path), &s, env);
}
