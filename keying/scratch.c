#include "keying/scratch.h"

#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"

#include <string.h>
#include <strings.h>

/* n_walled: how many of the names that wall off a place count. */
static char *refuse(const struct qk_workspace *ws, const char *store, const char *dir, size_t n_walled)
{
	static const char *const walled[] = { ".git", ".qk", "node_modules" };
	qk_autofree char *copy = qk_strdup(dir);
	const char *cache = store ? qk_path_below(store, ws->root) : NULL;

	if (!strcmp(dir, "."))
		return qk_strdup("it is the workspace itself");
	for (char *s = copy, *part; (part = strsep(&s, "/"));)
		for (size_t i = 0; i < n_walled; i++)
			if (!strcasecmp(part, walled[i]))
				return qk_asprintf("it is or lies in %s", part);
	for (size_t i = 0; i < ws->n_projects; i++)
		if (qk_path_under(ws->projects[i].root, dir))
			return qk_asprintf("it holds project '%s'", ws->projects[i].name);
	if (cache && *cache && qk_path_under(cache, dir))
		return qk_strdup("it holds the cache");
	if (cache && *cache && qk_path_under(dir, cache))
		return qk_strdup("it lies in the cache");
	return NULL;
}

char *qk_scratch_refuse(const struct qk_workspace *ws, const char *store, const char *dir)
{
	return refuse(ws, store, dir, 3);
}

char *qk_warm_refuse(const struct qk_workspace *ws, const char *store, const char *pattern)
{
	qk_autofree char *dir = qk_strdup(pattern);
	size_t n = strlen(dir);

	while (n > 3 && !strcmp(dir + n - 3, "/**"))
		dir[n -= 3] = '\0';
	if (*dir == '!')
		return qk_strdup("a pattern that takes away is none");
	if (!qk_glob_is_pattern(dir))
		return refuse(ws, store, dir, 2);
	n = qk_glob_literal_dir(dir);
	if (!n)
		return qk_strdup("it may match anything in the workspace");
	dir[n] = '\0';
	return refuse(ws, store, dir, 2);
}
