#include "cli/keys.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int qk_keys_open(struct qk_keys *k, struct qk_site *s, const struct qk_target *target,
	const char *configuration, struct qk_err *err)
{
	qk_autofree char *state = qk_path_join(s->root, ".qk"), *digests = qk_path_join(state, "digests");
	int r;

	*k = (struct qk_keys){ .root = s->root };
	qk_progress_init(&k->progress, STDERR_FILENO);
	r = qk_taskgraph_build(s->ws, &target, 1, configuration, &k->graph, err);
	if (!r)
		r = qk_tracked_load(&k->tracked, s->root, err);
	if (!r)
		r = qk_filehash_new(&k->hash, s->root, access(state, W_OK) ? NULL : digests, err);
	if (r)
		return r;
	k->inputs = qk_inputs_new(s->ws, k->graph, &k->tracked, s->cwd, NULL);
	k->known = qk_zalloc(k->graph->n_tasks * sizeof(*k->known));
	k->digests = qk_zalloc(k->graph->n_tasks * sizeof(*k->digests));
	return 0;
}

void qk_keys_close(struct qk_keys *k)
{
	if (k->inputs)
		qk_inputs_free(k->inputs);
	if (k->hash)
		qk_filehash_free(k->hash);
	qk_tracked_release(&k->tracked);
	qk_taskgraph_free(k->graph);
	free(k->known);
	free(k->digests);
	*k = (struct qk_keys){ 0 };
}

const struct qk_task *qk_keys_asked(const struct qk_keys *k)
{
	for (size_t i = 0; i < k->graph->n_tasks; i++)
		if (k->graph->tasks[i]->asked)
			return k->graph->tasks[i];
	return NULL;
}

static int make_known(struct qk_keys *k, struct qk_part *p, struct qk_err *err)
{
	int r = 0;

	if (p->kind == QK_PART_RUNTIME) {
		r = qk_runtime_run(p->name, k->root, &p->digest, err);
	} else {
		const struct qk_task *t = qk_taskgraph_task(k->graph, p->name);

		if (!t)
			return qk_fail(err, -ENOKEY, "'%s' is not in the graph", p->name);
		r = qk_keys_task(k, t, NULL, &p->digest, err);
	}
	p->known = !r;
	return r;
}

int qk_keys_task(struct qk_keys *k, const struct qk_task *t, struct qk_buf *text,
	struct qk_digest *ret, struct qk_err *err)
{
	struct qk_resolved *resolved = qk_inputs_task(k->inputs, t);
	struct qk_part *p;
	int r;

	if (k->known[t->index] && !text) {
		*ret = k->digests[t->index];
		return 0;
	}
	if (resolved->uncached)
		return qk_fail(err, -ENOKEY, "%s", resolved->uncached);
	qk_progress_say(&k->progress, qk_clock_ms(), "qk: hashing the inputs of %s", t->id);
	r = qk_parts_hash(&resolved->parts, k->hash, 0, err);
	while (!r && (p = qk_parts_unknown(&resolved->parts)))
		r = make_known(k, p, err);
	if (text) /* it is the one that was asked for */
		qk_progress_clear(&k->progress);
	if (r)
		return r;
	qk_parts_fold(&resolved->parts, "task", text, ret);
	k->digests[t->index] = *ret;
	k->known[t->index] = true;
	return 0;
}
