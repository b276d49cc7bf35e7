#include "keying/discover.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/vec.h"
#include "keying/ignore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { IGNORE_SIZE_MAX = 1 << 20 };

struct walk {
	struct qk_arena *arena;
	int root;
	QK_VEC(struct qk_found) found;
};

/* What one directory holds that matters. */
struct listing {
	struct qk_strv dirs;
	bool project, project_local, package, gitignore, nxignore;
};

static bool is_closed(const char *name)
{
	static const char *const names[] = { "node_modules", ".git", ".qk", ".nx", ".yarn" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void note(struct listing *l, int fd, const struct dirent *e)
{
	struct {
		const char *name;
		bool *there;
	} files[] = {
		{ "project.json", &l->project },
		{ "package.json", &l->package },
		{ "project.local.json", &l->project_local },
		{ ".gitignore", &l->gitignore },
		{ ".nxignore", &l->nxignore },
	};
	unsigned char type = e->d_type;
	struct stat st;

	if (type == DT_UNKNOWN && !fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
		type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISLNK(st.st_mode) ? DT_LNK : DT_REG;
	if (type == DT_DIR) {
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && !is_closed(e->d_name))
			qk_strv_push(&l->dirs, e->d_name);
		return;
	}
	if (e->d_name[0] != 'p' && e->d_name[0] != '.')
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (!strcmp(e->d_name, files[i].name))
			*files[i].there = type == DT_REG ||
					  (type == DT_LNK && !fstatat(fd, e->d_name, &st, 0) &&
						  S_ISREG(st.st_mode));
}

static const struct qk_ignore *add_rules(
	struct walk *w, int fd, const char *name, const char *dir, const struct qk_ignore *rules)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	if (qk_read_file(fd, name, IGNORE_SIZE_MAX, &text, NULL))
		return rules;
	return qk_ignore_add(w->arena, rules, dir, text.s, text.len);
}

/* path is relative, "" for the root, with room to grow; it is left as it was. */
static int walk_dir(struct walk *w, struct qk_buf *path, const struct qk_ignore *rules)
{
	int fd = openat(w->root, path->len ? path->s : ".",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct listing l = { 0 };
	size_t len = path->len;
	struct qk_found f;
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		note(&l, fd, e);
	if (l.gitignore)
		rules = add_rules(w, fd, ".gitignore", path->s, rules);
	if (l.nxignore)
		rules = add_rules(w, fd, ".nxignore", path->s, rules);
	closedir(d); /* before going deeper: a deep tree needs no descriptor a level */
	if (len)
		qk_buf_addch(path, '/');
	f = (struct qk_found){
		.project = l.project, .project_local = l.project_local, .package = l.package
	};
	if (rules && l.project) {
		qk_buf_addstr(path, "project.json");
		f.project = !qk_ignore_has(rules, path->s, false);
		qk_buf_truncate(path, len + (len > 0));
	}
	if (rules && l.package) {
		qk_buf_addstr(path, "package.json");
		f.package = !qk_ignore_has(rules, path->s, false);
		qk_buf_truncate(path, len + (len > 0));
	}
	if (f.project || f.package) {
		f.dir = len ? qk_arena_strndup(w->arena, path->s, len) : ".";
		qk_vec_push(&w->found, f);
	}
	for (size_t i = 0; i < l.dirs.n; i++) {
		size_t dir_len = path->len;

		qk_buf_addstr(path, l.dirs.v[i]);
		if (!rules || !qk_ignore_has(rules, path->s, true))
			walk_dir(w, path, rules);
		qk_buf_truncate(path, dir_len);
	}
	qk_strv_release(&l.dirs);
	qk_buf_truncate(path, len);
	return 0;
}

static int by_dir(const void *a, const void *b)
{
	return strcmp(((const struct qk_found *)a)->dir, ((const struct qk_found *)b)->dir);
}

int qk_discover(struct qk_arena *a, const char *root, struct qk_found **ret, size_t *ret_n,
	struct qk_err *err)
{
	qk_autofd int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	qk_autobuf struct qk_buf path = QK_BUF_INIT;
	struct walk w = { .arena = a, .root = fd };
	int r;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", root);
	r = walk_dir(&w, &path, NULL);
	if (r)
		return qk_fail(err, -r, "list '%s'", root);
	if (w.found.n)
		qsort(w.found.v, w.found.n, sizeof(*w.found.v), by_dir);
	*ret = qk_arena_alloc(a, w.found.n * sizeof(**ret));
	if (w.found.n)
		memcpy(*ret, w.found.v, w.found.n * sizeof(**ret));
	*ret_n = w.found.n;
	qk_vec_release(&w.found);
	return 0;
}
