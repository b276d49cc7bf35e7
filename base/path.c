#include "base/path.h"

#include <string.h>

void qk_path_clean(struct qk_buf *out, const char *base, const char *path)
{
	size_t start = out->len;

	if (path[0] == '/')
		base = "";
	if (strcmp(base, "/"))
		qk_buf_addstr(out, base);
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			size_t len = out->len;

			while (len > start && out->s[len - 1] != '/')
				len--;
			qk_buf_truncate(out, len > start ? len - 1 : start);
		} else if (n && !(n == 1 && path[0] == '.')) {
			qk_buf_addch(out, '/');
			qk_buf_add(out, path, n);
		}
		path += n;
		path += *path == '/';
	}
	if (out->len == start)
		qk_buf_addch(out, '/');
}

char *qk_path_join(const char *base, const char *path)
{
	struct qk_buf b = QK_BUF_INIT;

	qk_path_clean(&b, base, path);
	return qk_buf_detach(&b);
}

const char *qk_path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/' ? path + 1 : NULL;
	if (strncmp(path, dir, n))
		return NULL;
	if (!path[n])
		return path + n;
	return path[n] == '/' ? path + n + 1 : NULL;
}

bool qk_path_under(const char *path, const char *dir)
{
	return qk_path_below(path, dir) != NULL;
}

void qk_path_relative(struct qk_buf *out, const char *from, const char *path)
{
	size_t common = 0, i = 0, start = out->len;

	/* the longest common prefix that ends at a component's end in both */
	for (;; i++) {
		bool fe = !from[i] || from[i] == '/', pe = !path[i] || path[i] == '/';

		if (fe && pe)
			common = i;
		if (!from[i] || from[i] != path[i])
			break;
	}
	for (const char *f = from + common; *f; f++)
		if (*f == '/' && f[1])
			qk_buf_addstr(out, out->len > start ? "/.." : "..");
	path += common;
	path += *path == '/';
	if (*path) {
		if (out->len > start)
			qk_buf_addch(out, '/');
		qk_buf_addstr(out, path);
	}
	if (out->len == start)
		qk_buf_addch(out, '.');
}

const char *qk_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

size_t qk_path_dirlen(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return 0;
	return slash == path ? 1 : (size_t)(slash - path);
}
