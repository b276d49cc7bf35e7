#include "gmk-plugin/tasks/rules.h"

#include "base/buf.h"
#include "base/vec.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/tasks/model.h"
#include "gmk-plugin/tasks/policy.h"

#include <stdlib.h>
#include <string.h>

/* All tasks of one target name, and of one configuration if that is in the name. */
struct aggregate {
	const char *name; /* "build", "build:production" */
	QK_VEC(const struct qk_task *) tasks;
	UT_hash_handle hh;
};

/* A name as makefile text; the bytes it can hold are those of qk_name_ok. */
static void add_name(struct qk_buf *b, const char *name)
{
	for (; *name; name++) {
		if (*name == ':')
			qk_buf_addch(b, '\\');
		qk_buf_addch(b, *name);
	}
}

static void make_rule(struct qk_ruletask *t, size_t n)
{
	const struct qk_task *task = t->task;
	const struct qk_json *at = task->target->at;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	add_name(&b, task->id);
	qk_buf_addch(&b, ':');
	for (size_t i = 0; i < task->n_deps; i++) {
		qk_buf_addch(&b, ' ');
		add_name(&b, task->deps[i]->id);
	}
	for (size_t i = 0; i < task->n_continuous; i++) {
		qk_buf_addch(&b, ' ');
		add_name(&b, task->continuous[i]->id);
	}
	qk_buf_addf(&b, " ; $(qk-task %zu)", n);
	qk_gmkx_eval_at(at->file ? at->file : "nx.json", at->line ? at->line : 1, b.s);
}

/* The tasks of the graph that have no rule yet. */
static void make_rules(struct qk_planned *p, struct qk_buf *phony)
{
	struct qk_model *m = &qk_model;

	for (size_t i = 0; i < p->graph->n_tasks; i++) {
		const struct qk_task *task = p->graph->tasks[i];
		struct qk_ruletask *t;

		HASH_FIND_STR(m->by_id, task->id, t);
		if (t)
			continue;
		t = qk_arena_alloc(&m->arena, sizeof(*t));
		t->task = task;
		t->of = p;
		t->number = m->tasks.n;
		HASH_ADD_KEYPTR(hh, m->by_id, task->id, strlen(task->id), t);
		make_rule(t, m->tasks.n);
		qk_vec_push(&m->tasks, t);
		qk_buf_addch(phony, ' ');
		add_name(phony, task->id);
	}
}

static struct aggregate *aggregate_of(struct aggregate **all, const char *name)
{
	struct aggregate *a;

	HASH_FIND_STR(*all, name, a);
	if (a)
		return a;
	a = qk_arena_alloc(&qk_model.arena, sizeof(*a));
	a->name = qk_arena_strdup(&qk_model.arena, name);
	HASH_ADD_KEYPTR(hh, *all, a->name, strlen(a->name), a);
	return a;
}

/*
 * How the runner gets at the recipes of tasks: private variables of patterns, one for each ending
 * that ids have, so that no prerequisite and no other rule sees them.
 */
static void route(const char *ending)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	add_name(&b, ending);
	qk_gmkx_eval("%%\\:%s: private override SHELL := %s\n"
		     "%%\\:%s: private override .SHELLFLAGS = $(qk-task-flags )",
		b.s, qk_model.host->runner, b.s);
}

static void make_aggregates(struct aggregate *all, struct qk_buf *phony)
{
	for (struct aggregate *a = all; a; a = a->hh.next) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		add_name(&b, a->name);
		qk_buf_addch(phony, ' ');
		qk_buf_addstr(phony, b.s);
		qk_buf_addch(&b, ':');
		for (size_t i = 0; i < a->tasks.n; i++) {
			qk_buf_addch(&b, ' ');
			add_name(&b, a->tasks.v[i]->id);
		}
		qk_gmkx_eval_at("nx.json", 1, b.s);
		qk_vec_release(&a->tasks);
	}
}

/* A task of a configuration is what its target stands for in this run, if it is of its graph. */
static void make_alias(const struct qk_task *t, struct qk_buf *phony)
{
	qk_autofree char *plain = qk_asprintf("%s:%s", t->project->name, t->target->name);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	add_name(&b, plain);
	qk_buf_addch(phony, ' ');
	qk_buf_addstr(phony, b.s);
	qk_buf_addstr(&b, ": ");
	add_name(&b, t->id);
	qk_gmkx_eval_at(t->target->at->file, t->target->at->line, b.s);
}

/* What the goals of this make ask of the workspace. */
struct goals {
	const char *configuration; /* or NULL */
	QK_VEC(const struct qk_target *) targets;
	size_t found; /* how often something was asked */
};

static void ask(struct goals *g, const struct qk_target *t)
{
	g->found++;
	for (size_t i = 0; i < g->targets.n; i++)
		if (g->targets.v[i] == t)
			return;
	qk_vec_push(&g->targets, t);
}

static void ask_configuration(struct goals *g, const char *goal, const char *name)
{
	if (g->configuration && strcmp(g->configuration, name))
		qk_gmkx_fatal("qk: %s: the configuration of this run is %s already; make them apart",
			goal, g->configuration);
	g->configuration = name;
}

/* "build" or "build:production": of all projects. */
static void read_aggregate_goal(struct goals *g, const char *goal)
{
	const struct qk_workspace *ws = qk_model.ws;
	const char *colon = strrchr(goal, ':');
	qk_autofree char *name = qk_strndup(goal, colon ? (size_t)(colon - goal) : strlen(goal));

	for (size_t i = 0; i < ws->n_projects; i++) {
		const struct qk_target *t = qk_project_target(&ws->projects[i], goal);

		if (t)
			ask(g, t);
		t = colon ? qk_project_target(&ws->projects[i], name) : NULL;
		if (t && qk_json_get(t->configurations, colon + 1)) {
			ask(g, t);
			ask_configuration(g, goal, qk_json_member(t->configurations, colon + 1)->key);
		}
	}
}

static void read_goals(struct goals *g)
{
	qk_autofree char *text = qk_gmkx_expand("$(value MAKECMDGOALS)");
	qk_autostrv struct qk_strv words = { 0 };

	qk_strv_split(&words, text);
	qk_model.goals_known = words.n;
	for (size_t i = 0; i < words.n; i++) {
		const struct qk_target *t;
		const char *configuration = NULL;

		if (qk_task_parse(qk_model.ws, words.v[i], &t, &configuration, NULL)) {
			size_t before = g->found;

			read_aggregate_goal(g, words.v[i]);
			qk_model.goals_known &= g->found > before;
			continue;
		}
		ask(g, t);
		if (configuration)
			ask_configuration(g, words.v[i], qk_arena_strdup(&qk_model.arena, configuration));
	}
}

static struct qk_planned *plan(
	const struct qk_target *const *targets, size_t n, const char *configuration)
{
	struct qk_planned *p = qk_arena_alloc(&qk_model.arena, sizeof(*p));
	struct qk_err err = QK_ERR_INIT;

	if (qk_taskgraph_build(qk_model.ws, targets, n, configuration, &p->graph, &err))
		qk_gmkx_fatal("qk: %s", err.msg);
	qk_vec_push(&qk_model.planned, p);
	return p;
}

/* Names of configurations anywhere, but for the one of the run. */
static void other_configurations(const struct goals *g, struct qk_strv *ret)
{
	const struct qk_workspace *ws = qk_model.ws;

	for (size_t i = 0; i < ws->n_projects; i++)
		for (size_t k = 0; k < ws->projects[i].n_targets; k++) {
			const struct qk_json *c = ws->projects[i].targets[k].configurations;

			for (uint32_t j = 0; c && j < c->n; j++)
				if ((!g->configuration || strcmp(c->members[j].key, g->configuration)) &&
					!qk_strv_has(ret, c->members[j].key))
					qk_strv_push(ret, c->members[j].key);
		}
}

static int by_address(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;

	return x < y ? -1 : x > y;
}

static void mark_asked(struct goals *g, size_t n)
{
	if (g->targets.n)
		qsort(g->targets.v, g->targets.n, sizeof(*g->targets.v), by_address);
	for (size_t i = 0; i < n && g->targets.n; i++) {
		struct qk_ruletask *t = qk_model.tasks.v[i];

		t->asked = bsearch(&t->task->target, g->targets.v, g->targets.n,
			sizeof(*g->targets.v), by_address);
	}
}

static void reach(struct qk_ruletask *t)
{
	if (!t || t->reached)
		return;
	t->reached = true;
	for (size_t i = 0; i < t->task->n_deps; i++)
		reach(qk_model_task(t->task->deps[i]->id));
	for (size_t i = 0; i < t->task->n_continuous; i++) {
		struct qk_ruletask *c = qk_model_task(t->task->continuous[i]->id);

		c->needed++;
		reach(c);
	}
}

static void mark_reached(void)
{
	for (size_t i = 0; i < qk_model.tasks.n && qk_model.goals_known; i++)
		if (qk_model.tasks.v[i]->asked)
			reach(qk_model.tasks.v[i]);
	for (size_t i = 0; i < qk_model.tasks.n; i++)
		if (qk_model.tasks.v[i]->reached)
			qk_taskpolicy_claim_scratch(qk_model.tasks.v[i]->task);
}

/* ARGS is for the tasks asked for, and those to which their dependsOn forwards it. */
static void forward_to_none(struct qk_planned *p)
{
	for (size_t i = 0; i < p->graph->n_tasks; i++)
		p->graph->tasks[i]->forwards_args = false;
}

static void collect(struct aggregate **all, const struct qk_planned *p)
{
	const char *c = p->graph->configuration;

	for (size_t i = 0; i < p->graph->n_tasks; i++) {
		const struct qk_task *t = p->graph->tasks[i];
		struct aggregate *a;

		if (c && t->configuration && !strcmp(c, t->configuration)) {
			qk_autofree char *name = qk_asprintf("%s:%s", t->target->name, c);

			aggregate_of(all, name);
		}
		if (p == qk_model.planned.v[qk_model.of_run]) {
			a = aggregate_of(all, t->target->name);
			qk_vec_push(&a->tasks, t);
		}
	}
	/* those that do not have the configuration are as they are without it */
	for (size_t i = 0; c && i < p->graph->n_tasks; i++) {
		const struct qk_task *t = p->graph->tasks[i];
		qk_autofree char *name = qk_asprintf("%s:%s", t->target->name, c);
		struct aggregate *a;

		HASH_FIND_STR(*all, name, a);
		if (a)
			qk_vec_push(&a->tasks, t);
	}
}

static void route_all(void)
{
	qk_autostrv struct qk_strv endings = { 0 };

	for (size_t i = 0; i < qk_model.tasks.n; i++) {
		const struct qk_task *t = qk_model.tasks.v[i]->task;

		qk_strv_push(&endings, t->id + strlen(t->project->name) + 1);
	}
	qk_strv_sort(&endings);
	qk_strv_uniq(&endings);
	for (size_t i = 0; i < endings.n; i++)
		route(endings.v[i]);
}

void qk_rules_make(void)
{
	struct qk_model *m = &qk_model;
	qk_autostrv struct qk_strv others = { 0 };
	qk_autobuf struct qk_buf phony = QK_BUF_INIT;
	struct aggregate *all = NULL;
	struct goals g = { 0 };
	struct qk_planned *run;
	size_t n;

	qk_buf_addstr(&phony, ".PHONY:");
	read_goals(&g);
	if (m->args && g.targets.n)
		make_rules(plan(g.targets.v, g.targets.n, g.configuration), &phony);
	m->of_run = m->planned.n;
	run = plan(NULL, 0, g.configuration);
	if (m->of_run)
		forward_to_none(run);
	make_rules(run, &phony);
	n = m->tasks.n;
	for (size_t i = 0; i < n; i++)
		if (m->tasks.v[i]->task->configuration)
			make_alias(m->tasks.v[i]->task, &phony);
	mark_asked(&g, n);
	mark_reached();
	other_configurations(&g, &others);
	for (size_t i = 0; i < others.n; i++)
		make_rules(plan(NULL, 0, others.v[i]), &phony);
	for (size_t i = m->of_run; i < m->planned.n; i++)
		collect(&all, m->planned.v[i]);
	make_aggregates(all, &phony);
	qk_gmkx_eval("%s", phony.s);
	route_all();
	HASH_CLEAR(hh, all);
	qk_vec_release(&g.targets);
}
