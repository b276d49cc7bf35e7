#include "report/rundir.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int take_lock(const char *dir, const char *name, int flags)
{
	qk_autofree char *path = qk_asprintf("%s/%s", dir, name);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0666);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		int e = errno;

		close(fd);
		return -e;
	}
	return fd;
}

/* A lock file that is there is held: it gets its name when it is. */
static int make_lock(const char *dir, struct qk_err *err)
{
	qk_autofree char *from = qk_asprintf("%s/lock.new", dir), *to = qk_asprintf("%s/lock", dir);
	int lock = take_lock(dir, "lock.new", O_CREAT | O_EXCL);

	if (lock < 0)
		return qk_fail(err, -lock, "lock '%s'", dir);
	if (rename(from, to)) {
		close(lock);
		return qk_fail(err, errno, "lock '%s'", dir);
	}
	return lock;
}

/*
 * True if the process that made the run directory of this name still is there. One that executes
 * itself anew, because a makefile was remade, lets go of its lock for a moment.
 */
static bool maker_lives(const char *name)
{
	const char *pid = strchr(name, '-');
	long n = pid ? strtol(pid + 1, NULL, 10) : 0;

	return n > 0 && (!kill((pid_t)n, 0) || errno == EPERM);
}

/*
 * Removes runs whose make is gone. A directory without a lock file may be one that another make is
 * just making: it is left alone until it is an hour old.
 */
static void sweep(const char *runs)
{
	DIR *d = opendir(runs);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		qk_autofree char *path = qk_asprintf("%s/%s", runs, e->d_name);
		struct stat st;
		int lock;

		if (e->d_name[0] == '.' || maker_lives(e->d_name))
			continue;
		lock = take_lock(path, "lock", 0);
		if (lock >= 0 || (lock == -ENOENT && !stat(path, &st) && st.st_mtime + 3600 < time(NULL)))
			qk_remove_tree(AT_FDCWD, path);
		if (lock >= 0)
			close(lock);
	}
	if (d)
		closedir(d);
}

/* The state directory, with runs/ and a .gitignore in it. Where a link stands, nothing is made. */
static int make_state(const char *state, const char *runs, struct qk_err *err)
{
	qk_autofree char *ignore = qk_asprintf("%s/.gitignore", state);
	struct stat st;
	int ret;

	if (!lstat(state, &st) && S_ISLNK(st.st_mode))
		return qk_fail(err, -ELOOP, "'%s' is a symbolic link, not a directory", state);
	ret = qk_mkdirs(runs, err);
	return ret || !access(ignore, F_OK) ? ret : qk_write_file(ignore, "*\n", 2, 0666, err);
}

int qk_rundir_create(const char *state, char **ret_path, int *ret_lock, struct qk_err *err)
{
	qk_autofree char *runs = qk_asprintf("%s/run", state), *path = NULL;
	int lock;

	if (make_state(state, runs, err))
		return qk_wrap(err, "state directory");
	sweep(runs);
	for (int i = 0;; i++) {
		free(path);
		path = qk_asprintf("%s/%lld-%d.%d", runs, (long long)time(NULL), (int)getpid(), i);
		if (!mkdir(path, 0777))
			break;
		if (errno != EEXIST)
			return qk_fail(err, errno, "state directory: mkdir '%s'", path);
	}
	lock = make_lock(path, err);
	if (lock < 0) {
		qk_remove_tree(AT_FDCWD, path);
		return qk_wrap(err, "state directory");
	}
	*ret_lock = lock;
	*ret_path = qk_steal(&path);
	return 0;
}

int qk_rundir_reopen(const char *path, int *ret_lock, struct qk_err *err)
{
	int lock = take_lock(path, "lock", 0);

	if (lock < 0)
		return qk_fail(err, -lock, "lock '%s'", path);
	*ret_lock = lock;
	return 0;
}

void qk_rundir_remove(const char *path)
{
	qk_remove_tree(AT_FDCWD, path);
}

/* The nearest directory from dir upward that holds name; NULL if none does. */
static char *upward(const char *dir, const char *name)
{
	qk_autofree char *at = qk_strdup(dir);

	for (;;) {
		qk_autofree char *path = qk_path_join(at, name);

		if (!access(path, F_OK))
			return qk_steal(&at);
		if (!strcmp(at, "/"))
			return NULL;
		at[qk_path_dirlen(at)] = '\0';
	}
}

int qk_rundir_root(const char *explicit_root, const char *cwd, char **ret, struct qk_err *err)
{
	char real[PATH_MAX];
	struct stat st;
	char *root;

	if (explicit_root && *explicit_root) {
		qk_autofree char *path = qk_path_join(cwd, explicit_root);

		if (!realpath(path, real) || stat(real, &st))
			return qk_fail(err, errno, "QK_ROOT=%s", explicit_root);
		if (!S_ISDIR(st.st_mode))
			return qk_fail(err, ENOTDIR, "QK_ROOT=%s", explicit_root);
		if (!qk_path_under(cwd, real))
			return qk_fail(err, -EINVAL, "QK_ROOT=%s: does not hold '%s', where make started",
				explicit_root, cwd);
		*ret = qk_strdup(real);
		return 0;
	}
	root = upward(cwd, "nx.json");
	if (!root)
		root = upward(cwd, ".git");
	*ret = root ? root : qk_strdup(cwd);
	return 0;
}

