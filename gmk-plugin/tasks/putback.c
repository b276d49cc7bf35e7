#include "gmk-plugin/tasks/putback.h"

#include "base/clock.h"
#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/tasks/spec.h"
#include "keying/capture.h"
#include "keying/restore.h"
#include "keying/sandboxspec.h"
#include "keying/store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* More of any of these is for a runner: make waits for nothing that other tasks could run beside. */
enum { FILES_MAX = 64, BYTES_MAX = 1 << 20, OUTPUT_MAX = 64 << 10 };

static bool is_for_make(const struct qk_ruletask *t)
{
	const struct qk_knobs *k = qk_model.host->knobs;

	return t->has_key && !t->unkeyed && !t->uncached && qk_model.hash && !k->skip_cache && !k->record &&
	       !k->explain && k->mode == QK_MODE_OFF && !t->task->target->continuous &&
	       !t->task->target->qk.grants->is_explicit && t->task->target->qk.ultracache != QK_ULTRACACHE_ON &&
	       t->task->target->qk.ultracache != QK_ULTRACACHE_RECORD;
}

static struct qk_store *open_store(void)
{
	static struct qk_store *store;
	static bool tried;
	uint64_t limit;

	if (!tried) {
		qk_autofree char *dir = qk_spec_store(&limit);

		/* one that is not there holds nothing, and is not to be made for that */
		if (!access(dir, F_OK) && qk_store_new(&store, dir, limit, NULL))
			store = NULL;
	}
	tried = true;
	return store;
}

static bool is_small(const struct qk_entry *e)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < e->tree.n; i++)
		bytes += e->tree.v[i].size;
	return e->tree.n <= FILES_MAX && bytes <= BYTES_MAX && e->output.len <= OUTPUT_MAX;
}

static int restore(struct qk_store *store, const struct qk_ruletask *t, const struct qk_entry *e)
{
	struct qk_outputs o = { 0 };
	enum qk_restored how = QK_RESTORED_NOTHING;
	int r = 0;

	for (size_t i = 0; i < t->task->outputs.n && !r; i++)
		r = qk_outputs_add(&o, t->task->outputs.v[i], NULL);
	if (!r)
		r = qk_restore(store, &t->key, e, &o, qk_model.hash, qk_model.host->start()->run, &how, NULL);
	qk_outputs_release(&o);
	return !r && how != QK_RESTORED_NOTHING;
}

static void leave_state(struct qk_ruletask *t, const struct qk_entry *e)
{
	qk_autofree char *path = qk_path_join(qk_model.host->state, "tasks");
	struct qk_taskstate s = { .id = t->task->id,
		.run = qk_model.run,
		.has_key = true,
		.key = t->key,
		.good = true,
		.has_outputs = true };

	qk_tree_digest(&e->tree, &s.count);
	qk_taskstate_exact(&e->tree, &s.exact);
	qk_taskstate_append(path, &s);
	t->learned = t->counted = true;
	t->count = s.count;
}

/* As make would: the commands, unless it is silent, then what they had printed. */
static void show(const char *commands, const struct qk_entry *e)
{
	qk_autofree char *flags = qk_gmkx_expand("$(firstword -$(MAKEFLAGS))");

	bool silent = flags[0] == '-' && flags[1] != '-' && strchr(flags, 's');

	if (!silent || e->output.len)
		qk_progress_clear(&qk_model.progress);
	if (!silent)
		puts(commands);
	fflush(stdout);
	qk_capture_replay(e->output.s, e->output.len, STDOUT_FILENO, STDERR_FILENO);
}

bool qk_putback(struct qk_ruletask *t, const char *shown)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	struct qk_store *store = is_for_make(t) ? open_store() : NULL;
	uint64_t start = qk_clock_since_1970();

	if (!store || qk_store_get(store, &t->key, &e, NULL) <= 0 || !is_small(&e) ||
		qk_capture_check(e.output.s, e.output.len))
		return false;
	if (!qk_model.run)
		qk_model.run = qk_strdup(qk_path_base(qk_model.host->start()->run));
	if (!restore(store, t, &e))
		return false;
	leave_state(t, &e);
	show(shown, &e);
	t->decision = QK_PUT_BACK;
	t->start_ms = start;
	t->duration_ms = qk_clock_since_1970() - start;
	t->saved_ms = e.duration_ms;
	return true;
}
