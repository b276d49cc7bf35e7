#include "runner/scratch.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int qk_scratch_empty(const char *root, const char *base, const char *field, const char *name,
	struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(base, name), *copy = NULL;
	const char *below = qk_path_below(path, root);
	qk_autofd int root_fd = -1;
	qk_autofd int parent = -1;

	if (!below || !*below)
		return qk_fail(err, -EINVAL, "%s '%s': not beneath the workspace", field, name);
	copy = qk_strdup(below);
	for (char *s = copy, *c; (c = strsep(&s, "/"));)
		if (!strcasecmp(c, ".git") || !strcasecmp(c, ".qk") || !strcasecmp(c, "node_modules"))
			return qk_fail(err, -EINVAL, "%s '%s': lies in %s", field, name, c);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return qk_fail(err, errno, "open '%s'", root);
	parent = qk_open_beneath(root_fd, below, O_PATH | O_DIRECTORY, 0);
	if (parent == -ENOENT)
		return qk_mkdirs(path, err);
	if (parent < 0)
		return qk_fail(err, -parent, "%s '%s'", field, name);
	close(parent);
	free(copy);
	copy = qk_strndup(below, qk_path_dirlen(below));
	parent = qk_open_beneath(root_fd, *copy ? copy : ".", O_RDONLY | O_DIRECTORY, 0);
	if (parent < 0)
		return qk_fail(err, -parent, "%s '%s'", field, name);
	if (qk_remove_tree(parent, qk_path_base(below)) || mkdirat(parent, qk_path_base(below), 0777))
		return qk_fail(err, errno, "%s '%s': empty it", field, name);
	return 0;
}
