#include "gmk-plugin/tasks/decide.h"

#include "base/clock.h"
#include "base/path.h"
#include "keying/outputs.h"
#include "keying/pathsets.h"
#include "keying/store.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	SETTLE_MAX = 64 << 20, /* bytes looked at again at the end of make */
	TICKS_NS = 32000000,   /* more than the clock of file time stamps can lag behind */
};

/* What the task's runner left, once it has run in this run. */
static void learn(struct qk_ruletask *t)
{
	struct qk_model *m = &qk_model;
	const struct qk_taskstate *s;

	if (t->learned || t->decision != QK_TO_RUN || !m->run)
		return;
	s = qk_taskstates_find(m->states, t->task->id);
	if (!s || strcmp(s->run, m->run)) {
		qk_taskstates_refresh(m->states);
		s = qk_taskstates_find(m->states, t->task->id);
	}
	if (!s || strcmp(s->run, m->run))
		return;
	t->learned = true;
	t->has_key = s->has_key;
	t->key = s->key;
	t->counted = s->has_outputs;
	t->count = s->count;
	if (!s->has_key && !t->unkeyed)
		t->unkeyed = "its inputs could not be counted";
}

bool qk_decide_key(struct qk_ruletask *t)
{
	learn(t);
	return t->has_key;
}

/* What a runtime input's command prints, asked once in a make. */
struct runtime {
	const char *command;
	bool known;
	struct qk_digest digest;
	UT_hash_handle hh;
};

/*
 * The one thing that is waited for here: else every task with such an input would need a process of
 * its own, each to run the command again. One that fails is left to the runner, which says so.
 */
static bool run_once(const char *command, struct qk_digest *ret)
{
	static struct runtime *all;
	struct runtime *r;

	HASH_FIND_STR(all, command, r);
	if (!r) {
		r = qk_arena_alloc(&qk_model.arena, sizeof(*r));
		r->command = command;
		r->known = !qk_runtime_run(command, qk_model.host->root, &r->digest, NULL);
		HASH_ADD_KEYPTR(hh, all, r->command, strlen(r->command), r);
	}
	*ret = r->digest;
	return r->known;
}

/* True if the part is known now. */
static bool make_known(struct qk_part *part)
{
	struct qk_filehash *f = qk_model.hash;
	struct qk_ruletask *dep;

	switch (part->kind) {
	case QK_PART_FILES:
		return part->files->known ||
		       (f && !qk_filegroup_hash(part->files, f, QK_FILEHASH_CACHED, NULL));
	case QK_PART_OUTPUTS:
		dep = qk_model_task(part->name);
		if (dep)
			learn(dep);
		if (dep && dep->counted && !part->value) {
			part->digest = dep->count;
			return part->known = true;
		}
		part->known = f && !qk_outputs_count(part->globs, part->n_globs, part->value, f,
						QK_FILEHASH_CACHED, &part->digest, NULL);
		if (dep && part->known && !part->value) {
			dep->counted = true;
			dep->count = part->digest;
		}
		return part->known;
	case QK_PART_TASK:
		dep = qk_model_task(part->name);
		part->known = dep && qk_decide_key(dep);
		if (part->known)
			part->digest = dep->key;
		return part->known;
	case QK_PART_RUNTIME:
		part->known = part->known || run_once(part->name, &part->digest);
		return part->known;
	default: return part->known;
	}
}

/* A task it depends on has no key: neither has this one. */
static const char *unkeyed_by(struct qk_parts *parts)
{
	for (size_t i = 0; i < parts->list.n; i++) {
		const struct qk_part *part = &parts->list.v[i];
		struct qk_ruletask *dep =
			part->kind == QK_PART_TASK ? qk_model_task(part->name) : NULL;

		if (part->kind == QK_PART_TASK && !part->known)
			return qk_arena_printf(&qk_model.arena, "it depends on %s, which has no key%s%s",
				part->name, dep && dep->unkeyed ? ": " : "",
				dep && dep->unkeyed ? dep->unkeyed : "");
	}
	return NULL;
}

static int list_outputs(const struct qk_task *t, struct qk_tree *ret)
{
	struct qk_outputs o = { 0 };
	int r = 0;

	for (size_t i = 0; i < t->outputs.n && !r; i++)
		r = qk_outputs_add(&o, t->outputs.v[i], NULL);
	if (!r)
		r = qk_outputs_list(&o, qk_filehash_rootfd(qk_model.hash), 0, ret, NULL);
	qk_outputs_release(&o);
	return r;
}

/* What is there now is what the last good run of this key left. */
static bool outputs_unchanged(struct qk_ruletask *t, const struct qk_taskstate *s)
{
	qk_autotree struct qk_tree tree = { 0 };
	struct qk_digest exact;

	if (list_outputs(t->task, &tree) ||
		qk_outputs_digests(&tree, qk_model.hash, QK_FILEHASH_CACHED, NULL))
		return false;
	qk_taskstate_exact(&tree, &exact);
	return qk_digest_eq(&exact, &s->exact);
}

static bool has_recordings(struct qk_ruletask *t)
{
	qk_autofree char *dir = qk_store_dir(qk_model.host->root, getenv("QK_CACHE_DIR"),
		qk_model.ws->cache_directory);
	struct qk_digest weak;

	qk_parts_fold_weak(&qk_model_inputs(t)->parts, qk_model.host->knobs->system_reads, NULL, &weak);
	return qk_pathsets_exist(dir, &weak);
}

static bool is_up_to_date(struct qk_ruletask *t)
{
	const struct qk_taskstate *s = qk_taskstates_find(qk_model.states, t->task->id);

	/* what the key does not hold, a recording may: its runner looks */
	if (s && t->task->target->qk.ultracache == QK_ULTRACACHE_ON && (s->recorded || has_recordings(t)))
		return false;
	if (!s || !s->good || !s->has_key || !s->has_outputs || !qk_digest_eq(&s->key, &t->key) ||
		!qk_model.hash || !outputs_unchanged(t, s))
		return false;
	t->counted = true;
	t->count = s->count;
	return true;
}

static const char *why_uncached(const struct qk_ruletask *t)
{
	if (t->task->target->continuous)
		return "it is continuous";
	if (!qk_model.host->knobs->cache)
		return "CACHE=off";
	if (!t->task->target->cache)
		return "its target does not have \"cache\": true";
	return NULL;
}

/* A task has touched files that count: those are looked at again, whoever counts them. */
static void forget_counted(void)
{
	struct qk_model *m = &qk_model;
	static size_t known;

	if (m->run)
		qk_taskstates_refresh(m->states);
	if (!m->run || qk_taskstates_moved(m->states) == known)
		return;
	known = qk_taskstates_moved(m->states);
	for (size_t i = 0; i < m->tasks.n; i++) {
		const struct qk_ruletask *t = m->tasks.v[i];
		struct qk_resolved *r = t->of->inputs ? qk_inputs_met(t->of->inputs, t->task) : NULL;

		for (size_t k = 0; r && k < r->parts.list.n; k++)
			if (r->parts.list.v[k].kind == QK_PART_FILES)
				r->parts.list.v[k].files->known = false;
	}
}

void qk_decide(struct qk_ruletask *t)
{
	struct qk_resolved *r = qk_model_inputs(t);
	bool noop = !strcmp(t->task->target->executor, "nx:noop"), known = true;

	if (t->decision != QK_UNDECIDED)
		return;
	forget_counted();
	t->decision = QK_TO_RUN;
	t->uncached = why_uncached(t);
	t->unkeyed = r ? r->uncached : qk_model.tracked_problem;
	for (size_t i = 0; r && i < r->parts.list.n; i++)
		known &= make_known(&r->parts.list.v[i]);
	if (r && !t->unkeyed)
		t->unkeyed = unkeyed_by(&r->parts);
	if (r && known && !t->unkeyed) {
		qk_parts_fold(&r->parts, "task", NULL, &t->key);
		t->has_key = true;
	}
	if (noop && (t->has_key || t->unkeyed))
		t->decision = QK_NOTHING;
	else if (t->has_key && !t->uncached && !qk_model.host->knobs->skip_cache && is_up_to_date(t))
		t->decision = QK_UP_TO_DATE;
}

int qk_decide_now(struct qk_ruletask *t, struct qk_digest *ret, struct qk_err *err)
{
	struct qk_resolved *r = qk_model_inputs(t);
	struct qk_parts now = { 0 };
	qk_autofree char *digests = qk_path_join(qk_model.host->state, "digests");
	struct qk_filehash *f = NULL;
	int ret_code = 0;

	if (!r || r->uncached)
		return qk_fail(err, -EINVAL, "%s", r ? r->uncached : qk_model.tracked_problem);
	ret_code = qk_filehash_new(
		&f, qk_model.host->root, access(digests, F_OK) ? NULL : digests, err);
	for (size_t i = 0; i < r->parts.list.n && !ret_code; i++) {
		struct qk_part part = r->parts.list.v[i];
		struct qk_filegroup group;

		part.known = part.kind == QK_PART_TEXT;
		if (part.files) {
			/* what is known now need not be what a recipe finds later */
			group = *part.files;
			group.known = false;
			ret_code = qk_filegroup_hash(&group, f, 0, err);
			part.files = qk_arena_alloc(&now.arena, sizeof(group));
			*part.files = group;
		} else if (part.kind == QK_PART_OUTPUTS) {
			ret_code = qk_outputs_count(part.globs, part.n_globs, part.value, f, 0,
				&part.digest, err);
		} else if (part.kind == QK_PART_RUNTIME) {
			ret_code = qk_runtime_run(part.name, qk_model.host->root, &part.digest, err);
		} else if (part.kind == QK_PART_TASK) {
			ret_code = qk_decide_now(qk_model_task(part.name), &part.digest, err);
		}
		qk_vec_push(&now.list, part);
	}
	if (!ret_code)
		qk_parts_fold(&now, "task", NULL, ret);
	qk_parts_release(&now);
	qk_filehash_free(f);
	return ret_code;
}

void qk_decide_settle(void)
{
	uint64_t left = SETTLE_MAX;
	bool waited = false;

	qk_model_open_hash();
	for (size_t i = 0; i < qk_model.tasks.n && qk_model.hash; i++) {
		struct qk_ruletask *t = qk_model.tasks.v[i];
		qk_autotree struct qk_tree tree = { 0 };
		uint64_t bytes = 0;

		qk_progress_say(&qk_model.progress, qk_clock_ms(),
			"qk: outputs counted for the next run, %zu of %zu tasks", i, qk_model.tasks.n);
		if ((t->decision != QK_TO_RUN && t->decision != QK_PUT_BACK) || t->uncached ||
			list_outputs(t->task, &tree) ||
			!qk_outputs_digests(&tree, qk_model.hash, QK_FILEHASH_CACHED, NULL))
			continue;
		for (size_t k = 0; k < tree.n; k++)
			bytes += tree.v[k].size;
		if (bytes > left)
			continue;
		left -= bytes;
		if (!waited)
			nanosleep(&(struct timespec){ 0, TICKS_NS }, NULL);
		waited = true;
		qk_outputs_digests(&tree, qk_model.hash, 0, NULL);
	}
}
