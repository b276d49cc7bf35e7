#include "cli/prefix.h"

#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The directory that holds path; path is absolute and clean. */
static char *above(const char *path)
{
	return qk_strndup(path, qk_path_dirlen(path));
}

/* In a source tree the qk.mk beside build/ counts: a copy below it may be of an older build. */
static char *find_mk(const char *prefix)
{
	qk_autofree char *around = above(prefix);
	char *mk;

	if (!strcmp(qk_path_base(prefix), "build")) {
		mk = qk_path_join(around, "qk.mk");
		if (!access(mk, R_OK))
			return mk;
		free(mk);
	}
	return qk_path_join(prefix, "include/qk.mk");
}

int qk_prefix_of(struct qk_prefix *p, const char *program, struct qk_err *err)
{
	qk_autofree char *bin = above(program), *prefix = above(bin);
	const char *needed[3];

	p->mk = find_mk(prefix);
	p->plugin = qk_path_join(prefix, "lib/qk/qk.so");
	p->runner = qk_path_join(prefix, "libexec/qk/sh");
	needed[0] = p->mk;
	needed[1] = p->plugin;
	needed[2] = p->runner;
	for (size_t i = 0; i < 3; i++)
		if (access(needed[i], R_OK))
			return qk_fail(err, errno, "'%s'", needed[i]);
	return 0;
}

int qk_prefix_find(struct qk_prefix *p, struct qk_err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	*p = (struct qk_prefix){ 0 };
	if (n < 0)
		return qk_fail(err, errno, "read '/proc/self/exe'");
	self[n] = '\0';
	return qk_prefix_of(p, self, err);
}

void qk_prefix_release(struct qk_prefix *p)
{
	free(p->mk);
	free(p->plugin);
	free(p->runner);
	*p = (struct qk_prefix){ 0 };
}
