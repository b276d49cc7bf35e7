#include "gmk-plugin/tasks/spec.h"

#include "base/fdio.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/tasks/commands.h"
#include "gmk-plugin/tasks/grants.h"
#include "gmk-plugin/tasks/policy.h"
#include "keying/sandboxspec.h"
#include "keying/store.h"
#include "keying/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Of one identifier ("", "build", "production", "build.production") below a directory. */
static void add_variants(struct qk_taskspec *s, const char *dir, const char *identifier)
{
	static const char *const named[] = { ".env.%s.local", ".env.%s", ".%s.local.env", ".%s.env" };
	static const char *const plain[] = { ".env.local", ".local.env", ".env" };

	for (size_t i = 0; i < (*identifier ? 4 : 3); i++) {
		const char *form = *identifier ? named[i] : plain[i], *at = strstr(form, "%s");
		int head = at ? (int)(at - form) : (int)strlen(form);

		qk_vec_push(&s->dotenv,
			qk_arena_printf(&s->arena, "%s%s%.*s%s%s", dir, *dir ? "/" : "", head, form,
				identifier, at ? at + 2 : ""));
	}
}

/* The dotenv files of a task in the order of Nx: the project's first, the most special first. */
static void add_dotenv(struct qk_taskspec *s)
{
	const char *dirs[] = { s->project_root, "" };
	size_t first = strcmp(s->project_root, ".") ? 0 : 1;

	for (size_t i = first; i < 2; i++) {
		if (s->configuration) {
			qk_autofree char *both =
				qk_asprintf("%s.%s", s->target, s->configuration);

			add_variants(s, dirs[i], both);
			add_variants(s, dirs[i], s->configuration);
		}
		add_variants(s, dirs[i], s->target);
		add_variants(s, dirs[i], "");
	}
}

char *qk_spec_store(uint64_t *ret_limit)
{
	const char *size = getenv("QK_CACHE_SIZE");

	*ret_limit = QK_STORE_LIMIT;
	if (size) /* it was checked as the workspace was loaded */
		qk_store_parse_size(size, ret_limit, NULL);
	return qk_store_dir(
		qk_model.host->root, getenv("QK_CACHE_DIR"), qk_model.ws->cache_directory);
}

static void add_store(struct qk_taskspec *s)
{
	qk_autofree char *dir = qk_spec_store(&s->store_limit);

	s->store = qk_arena_strdup(&s->arena, dir);
}

static void add_ultracache(struct qk_taskspec *s, const struct qk_task *task)
{
	const struct qk_declared *qk = &task->target->qk;

	s->ultracache = qk->ultracache == QK_ULTRACACHE_OFF ? QK_ULTRACACHE_UNSET : qk->ultracache;
	if (!s->ultracache)
		return;
	s->record = qk_model.host->knobs->record;
	for (size_t i = 0; i < qk->unchecked_outputs.n; i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		if (qk_tokens_path(&b, qk->unchecked_outputs.v[i], task->project, task->options, NULL))
			qk_vec_push(&s->unchecked, qk_arena_strdup(&s->arena, b.s));
	}
	qk_taskpolicy_ignored(s, task);
}

/* "parallelism": false on any target. */
static bool some_run_alone(void)
{
	static int some = -1;

	for (size_t i = 0; some < 0 && i < qk_model.tasks.n; i++)
		if (!qk_model.tasks.v[i]->task->target->parallelism)
			some = 1;
	if (some < 0)
		some = 0;
	return some;
}

void qk_spec_fill(struct qk_taskspec *s, struct qk_ruletask *t)
{
	struct qk_resolved *r = qk_model_inputs(t);
	const struct qk_task *task = t->task;

	s->id = task->id;
	s->project = task->project->name;
	s->project_root = task->project->root;
	s->target = task->target->name;
	s->configuration = task->configuration;
	s->continuous = task->target->continuous;
	s->alone = !task->target->parallelism;
	s->beside = !s->alone && some_run_alone();
	s->skip = qk_model.host->knobs->skip_cache;
	s->explain = qk_model.host->knobs->explain;
	s->number = t->number;
	s->foreground = t->asked && qk_model.goals_known && !t->needed;
	for (size_t i = 0; i < task->n_continuous; i++) {
		const struct qk_ruletask *c = qk_model_task(task->continuous[i]->id);

		qk_vec_push(&s->needs,
			qk_arena_printf(&s->arena, "%zu %zu", c->number, c->needed));
	}
	s->uncached = t->uncached;
	s->unkeyed = t->unkeyed;
	qk_commands_read(s, task, qk_model.host->root, qk_model.args);
	if (!s->problem)
		s->problem = qk_taskpolicy_problem(s, task);
	if (task->target->qk.sandbox_off)
		s->unsandboxed = "\"qk:sandbox\": false";
	if (task->target->qk.grants->is_explicit)
		qk_taskgrants_fill(s, task);
	else
		qk_taskpolicy_fill(s, t, qk_model.host->knobs->mode != QK_MODE_OFF && !s->unsandboxed);
	add_ultracache(s, task);
	add_dotenv(s);
	for (size_t i = 0; i < task->outputs.n; i++)
		qk_vec_push(&s->outputs, task->outputs.v[i]);
	if (!s->uncached)
		add_store(s);
	if (r && !t->unkeyed)
		for (size_t i = 0; i < r->parts.list.n; i++)
			qk_vec_push(&s->parts.list, r->parts.list.v[i]);
}

void qk_spec_write_groups(struct qk_taskspec *s, const char *run)
{
	static int fd = -1;
	static uint64_t at;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (fd < 0) {
		qk_autofree char *path = qk_asprintf("%s/groups.%d", run, (int)getpid());

		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	}
	for (size_t i = 0; i < s->parts.list.n && fd >= 0; i++) {
		struct qk_filegroup *g = s->parts.list.v[i].files;

		if (!g || g->len || !g->n)
			continue;
		g->at = at + b.len;
		for (size_t k = 0; k < g->n; k++)
			qk_buf_add(&b, g->paths[k], strlen(g->paths[k]) + 1);
		g->len = at + b.len - g->at;
	}
	if (b.len && qk_write_all(fd, b.s, b.len))
		qk_gmkx_fatal("qk: write file groups below '%s': %s", run, strerror(errno));
	at += b.len;
}
