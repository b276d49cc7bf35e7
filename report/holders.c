#include "report/holders.h"

#include "base/mem.h"

#include <string.h>
#include <uthash.h>

struct qk_holder {
	const char *path; /* the key is its beginning */
	UT_hash_handle hh;
};

bool qk_is_left_written(const struct qk_trace_entry *e)
{
	if (e->flags & QK_T_CREATED && e->flags & QK_T_REMOVED)
		return false;
	return e->flags & (QK_T_WRITTEN | QK_T_META);
}

static void note(struct qk_holders *h, const char *path)
{
	for (size_t n = strlen(path); n;) {
		struct qk_holder *dir;

		do
			n--;
		while (n && path[n] != '/');
		HASH_FIND(hh, h->dirs, path, n, dir);
		if (dir)
			return; /* and so are those above */
		dir = qk_zalloc(sizeof(*dir));
		dir->path = path;
		HASH_ADD_KEYPTR(hh, h->dirs, dir->path, n, dir);
	}
}

bool qk_holders_have(struct qk_holders *h, const struct qk_trace *trace, const char *dir)
{
	struct qk_holder *found;

	if (h->of != trace) {
		qk_holders_release(h);
		for (size_t i = 0; i < trace->entries.n; i++)
			if (qk_is_left_written(&trace->entries.v[i]))
				note(h, trace->entries.v[i].path);
		h->of = trace;
	}
	HASH_FIND_STR(h->dirs, dir, found);
	return found != NULL;
}

void qk_holders_release(struct qk_holders *h)
{
	struct qk_holder *dir, *next;

	HASH_ITER(hh, h->dirs, dir, next) {
		HASH_DEL(h->dirs, dir);
		free(dir);
	}
	h->of = NULL;
}
