#include "keying/scratch.h"

#include "base/mem.h"
#include "base/path.h"

#include <string.h>
#include <strings.h>

char *qk_scratch_refuse(const struct qk_workspace *ws, const char *store, const char *dir)
{
	static const char *const walled[] = { ".git", ".qk", "node_modules" };
	qk_autofree char *copy = qk_strdup(dir);
	const char *cache = store ? qk_path_below(store, ws->root) : NULL;

	if (!strcmp(dir, "."))
		return qk_strdup("it is the workspace itself");
	for (char *s = copy, *part; (part = strsep(&s, "/"));)
		for (size_t i = 0; i < sizeof(walled) / sizeof(walled[0]); i++)
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
