#include "runner/snapshot.h"

#include "base/glob.h"
#include "base/path.h"
#include "keying/depfile.h"
#include "keying/digestcache.h"

#include <stdlib.h>
#include <string.h>

static void note(struct qk_snapshot *s, struct qk_pathview *view, const char *path)
{
	struct qk_snapshot_path p = { .path = qk_arena_strdup(&s->arena, path) };

	for (size_t i = 0; i < s->v.n; i++)
		if (!strcmp(s->v.v[i].path, path))
			return;
	if (!qk_pathview_before(view, path, &p.before, NULL))
		qk_vec_push(&s->v, p);
}

/* A path as the recipe has it; where links lead elsewhere, that is what a recording names. */
static void note_name(struct qk_snapshot *s, const struct qk_request *r, struct qk_pathview *view, const char *name)
{
	qk_autofree char *path = qk_path_join(r->cwd, name), *real = NULL;
	const char *below = qk_path_below(path, r->root);

	if (below && *below)
		note(s, view, below);
	real = realpath(path, NULL);
	below = real ? qk_path_below(real, r->root) : NULL;
	if (below && *below)
		note(s, view, below);
}

struct timespec qk_snapshot_now(void)
{
	struct timespec fine, coarse = qk_digestcache_clock();

	clock_gettime(CLOCK_REALTIME, &fine);
	return coarse.tv_sec > fine.tv_sec || (coarse.tv_sec == fine.tv_sec && coarse.tv_nsec > fine.tv_nsec)
		? coarse : fine;
}

void qk_snapshot_take(struct qk_snapshot *s, const struct qk_request *r, const struct qk_chain *before,
	struct qk_pathview *view)
{
	static const enum qk_list lists[] = { QK_LIST_SIBLINGS, QK_LIST_OUTPUTS, QK_LIST_DEPFILE };
	qk_autostrv struct qk_strv depfiles = { 0 };

	*s = (struct qk_snapshot){ 0 };
	note_name(s, r, view, r->target);
	for (size_t l = 0; l < sizeof(lists) / sizeof(*lists); l++)
		for (size_t i = 0; i < r->lists[lists[l]].n; i++)
			if (!qk_glob_is_pattern(r->lists[lists[l]].v[i]))
				note_name(s, r, view, r->lists[lists[l]].v[i]);
	for (size_t i = 0; i < before->strays.n; i++)
		note(s, view, before->strays.v[i]);
	qk_depfile_guess(r->target, &depfiles);
	for (size_t i = 0; i < depfiles.n; i++)
		note_name(s, r, view, depfiles.v[i]);
	/* after everything was looked at: what changes from here on changes while the line runs */
	s->taken = qk_snapshot_now();
}

void qk_snapshot_release(struct qk_snapshot *s)
{
	qk_vec_release(&s->v);
	qk_arena_release(&s->arena);
}
