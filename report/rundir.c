#include "report/rundir.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int take_lock(const char *dir, int flags)
{
	qk_autofree char *path = qk_asprintf("%s/lock", dir);
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0666);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		int e = errno;

		close(fd);
		return -e;
	}
	return fd;
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

		if (e->d_name[0] == '.')
			continue;
		lock = take_lock(path, 0);
		if (lock >= 0 || (lock == -ENOENT && !stat(path, &st) && st.st_mtime + 3600 < time(NULL)))
			qk_remove_tree(AT_FDCWD, path);
		if (lock >= 0)
			close(lock);
	}
	if (d)
		closedir(d);
}

int qk_rundir_create(const char *state, char **ret_path, int *ret_lock, struct qk_err *err)
{
	qk_autofree char *runs = qk_asprintf("%s/run", state), *path = NULL;
	qk_autofree char *ignore = qk_asprintf("%s/.gitignore", state);
	int ret, lock;

	ret = qk_mkdirs(runs, err);
	if (ret)
		return qk_wrap(err, "state directory");
	if (access(ignore, F_OK) && qk_write_file(ignore, "*\n", 2, 0666, err))
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
	lock = take_lock(path, O_CREAT);
	if (lock < 0)
		return qk_fail(err, -lock, "state directory: lock '%s'", path);
	*ret_lock = lock;
	*ret_path = qk_steal(&path);
	return 0;
}

int qk_rundir_reopen(const char *path, int *ret_lock, struct qk_err *err)
{
	int lock = take_lock(path, 0);

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

