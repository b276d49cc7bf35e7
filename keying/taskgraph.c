#include "keying/taskgraph.h"

#include "base/vec.h"
#include "keying/dependson.h"
#include "keying/merge.h"
#include "keying/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A task while the graph is built; the task is its first member. */
struct node {
	struct qk_task task;
	const struct node *from; /* the one that asked for it first */
	enum { UNSEEN, OPEN, DONE } state;
	size_t next;   /* edge to go on with, while open */
	size_t wanted; /* 1 + the node that has an edge here already, of those read so far the last
			*/
	UT_hash_handle hh;
};

struct qk_taskgraph_index {
	struct node *by_id;
};

struct build {
	struct qk_workspace *ws;
	struct qk_taskgraph *g;
	struct qk_dependson *dependson;
	QK_VEC(struct node *)
	nodes; /* in the order found; those behind `done` are still to be read */
	QK_VEC(struct qk_task *) deps, continuous; /* of the task being read */
	QK_VEC(const struct qk_project *) through; /* projects to look through for ^targets */
	size_t *mark;   /* of a project: `reading` when it was last looked through */
	size_t reading; /* 1 + the position of the node at hand */
	struct qk_err *err;
};

static const struct qk_json *configuration_of(const struct qk_target *t, const char *name)
{
	const struct qk_json *c = name ? qk_json_get(t->configurations, name) : NULL;

	return c && c->type == QK_JSON_OBJECT ? c : NULL;
}

static void set_outputs(struct build *b, struct qk_task *t)
{
	struct qk_arena *a = &b->g->arena;
	const struct qk_json *list = t->target->outputs,
			     *path = qk_json_get(t->options, "outputPath");
	const char *root = strcmp(t->project->root, ".") ? t->project->root : NULL;
	const char **v, *why;

	if (!list && path && path->type == QK_JSON_ARRAY)
		list = path;
	else if (!list && path && path->type == QK_JSON_STRING)
		list = qk_json_new_array(a, path, &path, 1);
	if (!list && (!strcmp(t->target->name, "build") || !strcmp(t->target->name, "prepare"))) {
		/* what Nx takes for the outputs of a target that declares none */
		v = qk_arena_alloc(a, 5 * sizeof(*v));
		v[0] = root ? qk_arena_printf(a, "dist/%s", root) : "dist";
		if (root)
			v[1] = qk_arena_printf(a, "%s/dist", root);
		t->outputs.n = root ? 2 : 1;
		v[t->outputs.n++] = root ? qk_arena_printf(a, "%s/build", root) : "build";
		v[t->outputs.n++] = root ? qk_arena_printf(a, "%s/public", root) : "public";
		t->outputs.v = v;
		return;
	}
	v = qk_arena_alloc(a, ((list ? list->n : 0) + 1) * sizeof(*v));
	for (uint32_t i = 0; list && i < list->n; i++) {
		const char *s = list->items[i]->type == QK_JSON_STRING ? list->items[i]->s : "";
		qk_autobuf struct qk_buf out = QK_BUF_INIT;

		why = "it must begin with {projectRoot} or {workspaceRoot}";
		if ((list == t->target->outputs && s[*s == '!'] != '{') ||
			(!qk_tokens_path(&out, s, t->project, t->options, &why) &&
				strcmp(why, "a token in it has no value"))) {
			if (!t->outputs_problem)
				t->outputs_problem = qk_arena_printf(a, "%s: output '%s': %s",
					qk_json_place(a, list->items[i]), s, why);
		} else if (out.len) {
			v[t->outputs.n++] = qk_arena_strndup(a, out.s, out.len);
		}
	}
	t->outputs.v = v;
}

/* The task of a target under the run's configuration; made if it is not there yet. */
static struct node *get_node(struct build *b, const struct qk_target *t, const struct node *from,
	const struct qk_wanted *w)
{
	struct qk_arena *a = &b->g->arena;
	const char *configuration = b->g->configuration;
	const struct qk_json *chosen;
	struct node *n;
	const char *id;

	if (!configuration_of(t, configuration))
		configuration = t->default_configuration;
	if (configuration && !*configuration)
		configuration = NULL;
	id = qk_arena_printf(
		a, configuration ? "%s:%s:%s" : "%s:%s", t->project->name, t->name, configuration);
	HASH_FIND_STR(b->g->lookup->by_id, id, n);
	if (n)
		return n;
	n = qk_arena_alloc(a, sizeof(*n));
	n->task.id = id;
	n->task.project = t->project;
	n->task.target = t;
	n->task.configuration = configuration;
	n->task.asked = !from;
	n->task.forwards_args = !from || w->forward_params;
	n->from = from;
	n->task.options = t->options;
	chosen = configuration_of(t, configuration);
	if (chosen)
		n->task.options = qk_merge_members(a, n->task.options, chosen, false);
	if (from && w->forward_options && from->task.options)
		n->task.options = qk_merge_members(a, n->task.options, from->task.options, false);
	set_outputs(b, &n->task);
	HASH_ADD_KEYPTR(hh, b->g->lookup->by_id, n->task.id, strlen(n->task.id), n);
	qk_vec_push(&b->nodes, n);
	return n;
}

static void add_edge(
	struct build *b, struct node *from, const struct qk_target *t, const struct qk_wanted *w)
{
	struct node *to = get_node(b, t, from, w);

	if (to == from || to->wanted == b->reading)
		return;
	to->wanted = b->reading;
	if (t->continuous)
		qk_vec_push(&b->continuous, &to->task);
	else
		qk_vec_push(&b->deps, &to->task);
}

/*
 * Every ^target for the projects that p depends on. Where one does not have the target, what the
 * task asks of its dependencies is asked of those of that project too.
 */
static void look_through(
	struct build *b, struct node *n, const struct qk_wanted *w, size_t n_wanted)
{
	b->through.n = 0;
	qk_vec_push(&b->through, n->task.project);
	b->mark[n->task.project->index] = b->reading;
	for (size_t i = 0; i < b->through.n; i++) {
		const struct qk_project *p = b->through.v[i];

		for (size_t j = 0; j < n_wanted; j++) {
			for (size_t k = 0; w[j].dependencies && k < p->n_deps; k++) {
				const struct qk_project *dep = p->deps[k].project;
				const struct qk_target *t = qk_project_target(dep, w[j].target);

				if (t) {
					add_edge(b, n, t, &w[j]);
				} else if (b->mark[dep->index] != b->reading) {
					b->mark[dep->index] = b->reading;
					qk_vec_push(&b->through, dep);
				}
			}
		}
	}
}

/* A list in the arena, of its exact length. */
static struct qk_task **settle(struct build *b, struct qk_task *const *v, size_t n)
{
	struct qk_task **out = qk_arena_alloc(&b->g->arena, n * sizeof(*out));

	if (n)
		memcpy(out, v, n * sizeof(*out));
	return out;
}

static int read_deps(struct build *b, size_t i)
{
	struct node *n = b->nodes.v[i];
	struct qk_wanted *wanted;
	size_t n_wanted;
	bool up = false;
	int r = qk_dependson_read(b->dependson, n->task.target, &wanted, &n_wanted, b->err);

	if (r)
		return r;
	b->deps.n = b->continuous.n = 0;
	b->reading = i + 1;
	for (size_t j = 0; j < n_wanted; j++) {
		const struct qk_wanted *w = &wanted[j];

		up |= w->dependencies;
		for (size_t k = 0; !w->dependencies && k < w->n_projects; k++) {
			const struct qk_target *t = qk_project_target(w->projects[k], w->target);

			if (t)
				add_edge(b, n, t, w);
		}
	}
	if (up)
		look_through(b, n, wanted, n_wanted);
	n->task.n_deps = b->deps.n;
	n->task.deps = settle(b, b->deps.v, b->deps.n);
	n->task.n_continuous = b->continuous.n;
	n->task.continuous = settle(b, b->continuous.v, b->continuous.n);
	return 0;
}

static struct node *edge(const struct node *n, size_t i)
{
	const struct qk_task *t = &n->task;

	if (i < t->n_deps)
		return (struct node *)t->deps[i];
	i -= t->n_deps;
	return i < t->n_continuous ? (struct node *)t->continuous[i] : NULL;
}

/* stack[from..n) wait for each other in turn. */
static int fail_cycle(struct build *b, struct node *const *stack, size_t from, size_t n)
{
	qk_autobuf struct qk_buf path = QK_BUF_INIT;

	for (size_t i = from; i < n; i++)
		qk_buf_addf(&path, "%s -> ", stack[i]->task.id);
	return qk_json_fail(stack[from]->task.target->depends_on, b->err,
		"tasks wait for each other: %s%s", path.s, stack[from]->task.id);
}

/* Puts everything that n needs, and then n, into the graph's order. */
static int order_from(struct build *b, struct node *first, struct node **stack)
{
	size_t n = 0;

	stack[n++] = first;
	first->state = OPEN;
	while (n) {
		struct node *top = stack[n - 1], *to = edge(top, top->next);

		if (!to) {
			top->state = DONE;
			top->task.index = b->g->n_tasks;
			b->g->tasks[b->g->n_tasks++] = &top->task;
			n--;
			continue;
		}
		top->next++;
		if (to->state == OPEN) {
			size_t from = n;

			while (stack[--from] != to)
				;
			return fail_cycle(b, stack, from, n);
		}
		if (to->state == UNSEEN) {
			to->state = OPEN;
			stack[n++] = to;
		}
	}
	return 0;
}

static int order(struct build *b)
{
	qk_autofree struct node **stack = qk_alloc(b->nodes.n * sizeof(*stack));
	int r = 0;

	b->g->tasks = qk_arena_alloc(&b->g->arena, b->nodes.n * sizeof(struct qk_task *));
	for (size_t i = 0; i < b->nodes.n && !r; i++)
		if (b->nodes.v[i]->state == UNSEEN)
			r = order_from(b, b->nodes.v[i], stack);
	return r;
}

int qk_taskgraph_build(struct qk_workspace *ws, const struct qk_target *const *targets, size_t n,
	const char *configuration, struct qk_taskgraph **ret, struct qk_err *err)
{
	struct qk_taskgraph *g = qk_zalloc(sizeof(*g));
	struct build b = { .ws = ws, .g = g, .err = err };
	int r = 0;

	*ret = NULL;
	g->ws = ws;
	g->configuration = configuration ? qk_arena_strdup(&g->arena, configuration) : NULL;
	g->lookup = qk_arena_alloc(&g->arena, sizeof(*g->lookup));
	b.dependson = qk_dependson_new(ws, &g->arena);
	b.mark = qk_zalloc(ws->n_projects * sizeof(*b.mark));
	for (size_t i = 0; targets && i < n; i++)
		get_node(&b, targets[i], NULL, NULL);
	for (size_t i = 0; !targets && i < ws->n_projects; i++)
		for (size_t j = 0; j < ws->projects[i].n_targets; j++)
			get_node(&b, &ws->projects[i].targets[j], NULL, NULL);
	for (size_t i = 0; i < b.nodes.n && !r; i++)
		r = read_deps(&b, i);
	if (!r)
		r = order(&b);
	qk_dependson_free(b.dependson);
	qk_vec_release(&b.nodes);
	qk_vec_release(&b.deps);
	qk_vec_release(&b.continuous);
	qk_vec_release(&b.through);
	free(b.mark);
	if (r)
		qk_taskgraph_free(g);
	else
		*ret = g;
	return r;
}

void qk_taskgraph_free(struct qk_taskgraph *g)
{
	if (!g)
		return;
	HASH_CLEAR(hh, g->lookup->by_id);
	qk_arena_release(&g->arena);
	free(g);
}

const struct qk_task *qk_taskgraph_task(const struct qk_taskgraph *g, const char *id)
{
	struct node *n;

	HASH_FIND_STR(g->lookup->by_id, id, n);
	return n ? &n->task : NULL;
}

/* "target" or "target:configuration" of the project; the longest target name counts. */
static bool parse_rest(const struct qk_project *p, const char *rest, const struct qk_target **ret,
	const char **ret_configuration)
{
	qk_autofree char *name = qk_strdup(rest);

	for (size_t n = strlen(rest); n; n--) {
		const struct qk_target *t;

		if (rest[n] && rest[n] != ':')
			continue;
		name[n] = '\0';
		t = qk_project_target(p, name);
		if (!t || (rest[n] && !configuration_of(t, rest + n + 1)))
			continue;
		*ret = t;
		*ret_configuration = rest[n] ? rest + n + 1 : NULL;
		return true;
	}
	return false;
}

int qk_task_parse(const struct qk_workspace *ws, const char *id, const struct qk_target **ret,
	const char **ret_configuration, struct qk_err *err)
{
	const struct qk_project *known = NULL;
	qk_autofree char *name = qk_strdup(id);
	size_t known_len = 0;

	for (size_t n = strlen(id); n; n--) {
		const struct qk_project *p;

		if (id[n] && id[n] != ':')
			continue;
		name[n] = '\0';
		p = qk_workspace_project(ws, name);
		if (p && id[n] && parse_rest(p, id + n + 1, ret, ret_configuration))
			return 0;
		if (p && !known) {
			known = p;
			known_len = n;
		}
	}
	if (!known)
		return qk_fail(err, -ENOENT, "'%s': no such project", id);
	if (!id[known_len])
		return qk_fail(err, -ENOENT, "'%s' is a project: which target of it?", id);
	strcpy(name, id + known_len + 1);
	name[strcspn(name, ":")] = '\0';
	if (qk_project_target(known, name))
		return qk_fail(err, -ENOENT, "'%s': target '%s' has no configuration '%s'", id,
			name, id + known_len + 1 + strlen(name) + 1);
	return qk_fail(err, -ENOENT, "'%s': project '%s' has no target '%s'", id, known->name,
		id + known_len + 1);
}
