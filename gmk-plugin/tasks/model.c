#include "gmk-plugin/tasks/model.h"

#include "base/path.h"

#include <string.h>
#include <unistd.h>

struct qk_model qk_model;

struct qk_ruletask *qk_model_task(const char *id)
{
	struct qk_ruletask *t;

	HASH_FIND_STR(qk_model.by_id, id, t);
	return t;
}

void qk_model_open_hash(void)
{
	struct qk_model *m = &qk_model;
	qk_autofree char *digests = qk_path_join(m->host->state, "digests");

	/* before the first run there is no state directory, and nothing remembered */
	if (m->hash && m->run)
		qk_filehash_refresh(m->hash);
	if (!m->hash && !access(m->host->state, W_OK))
		qk_filehash_new(&m->hash, m->host->root, digests, NULL);
}

void qk_model_open(void)
{
	struct qk_model *m = &qk_model;
	qk_autofree char *tasks = NULL;
	struct qk_err err = QK_ERR_INIT;

	qk_model_open_hash();
	if (m->opened)
		return;
	m->opened = true;
	tasks = qk_path_join(m->host->state, "tasks");
	m->states = qk_taskstates_new(tasks);
	if (qk_tracked_load(&m->tracked, m->host->root, &err))
		m->tracked_problem = qk_arena_strdup(&m->arena, err.msg);
}

struct qk_resolved *qk_model_inputs(struct qk_ruletask *t)
{
	struct qk_model *m = &qk_model;

	qk_model_open();
	if (m->tracked_problem)
		return NULL;
	if (!t->of->inputs)
		t->of->inputs = qk_inputs_new(
			m->ws, t->of->graph, &m->tracked, m->host->root, m->args);
	return qk_inputs_task(t->of->inputs, t->task);
}

struct qk_packages *qk_model_packages(struct qk_ruletask *t)
{
	if (!t->of->packages_known && qk_model_inputs(t))
		t->of->packages = qk_packages_new(t->of->inputs);
	t->of->packages_known = true;
	return t->of->packages;
}
