#include "keying/depends.h"

#include "base/path.h"
#include "base/vec.h"
#include "keying/semver.h"

#include <stdlib.h>
#include <string.h>

/* Package names, to the projects that have them. */
struct package {
	const char *name;
	const struct qk_project *project;
};

struct resolve {
	struct qk_workspace *ws;
	struct package *packages; /* sorted by name */
	size_t n_packages;
	QK_VEC(struct qk_project_dep) deps; /* of the project at hand */
	bool *chosen, *dropped;
};

static int by_package(const void *a, const void *b)
{
	const struct package *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->project->name, y->project->name);
}

static int by_key(const void *key, const void *b)
{
	return strcmp(key, ((const struct package *)b)->name);
}

/* True if what is asked for (the text behind the name in package.json) is this project. */
static bool is_asked(
	const struct qk_project *asker, const struct qk_project *p, const char *version)
{
	static const char workspace[] = "workspace:", file[] = "file:";

	if (!strncmp(version, workspace, strlen(workspace)) || !strcmp(version, "*"))
		return true;
	if (!strncmp(version, file, strlen(file))) {
		qk_autobuf struct qk_buf at = QK_BUF_INIT;
		qk_autofree char *base = qk_path_join("/", asker->root);

		qk_path_clean(&at, base, version + strlen(file));
		return !strcmp(at.len > 1 ? at.s + 1 : ".", p->root);
	}
	return p->package_version && qk_semver_satisfies(p->package_version, version);
}

/* A package asked for in more than one section counts as in the one named last here. */
static const char *const sections[] = { "optionalDependencies", "peerDependencies",
	"devDependencies", "dependencies" };
enum { N_SECTIONS = sizeof(sections) / sizeof(*sections) };

static void add_packages(struct resolve *rs, const struct qk_project *p)
{
	for (int s = N_SECTIONS - 1; s >= 0; s--) {
		const struct qk_json *list = qk_json_get(p->package, sections[s]);

		for (uint32_t i = 0; list && list->type == QK_JSON_OBJECT && i < list->n; i++) {
			const struct qk_json_member *m = &list->members[i];
			const struct package *found = bsearch(m->key, rs->packages, rs->n_packages,
				sizeof(*rs->packages), by_key);
			struct qk_project_dep dep = { .at = m->value };
			bool elsewhere = false;

			if (!found || found->project == p || m->value->type != QK_JSON_STRING)
				continue;
			for (int over = s + 1; over < N_SECTIONS && !elsewhere; over++)
				elsewhere = qk_json_get(
					qk_json_get(p->package, sections[over]), m->key);
			if (elsewhere || !is_asked(p, found->project, m->value->s))
				continue;
			dep.project = found->project;
			qk_vec_push(&rs->deps, dep);
		}
	}
}

/* Marks what the patterns select; their leading ! is dropped if bare. */
static void mark(struct resolve *rs, const struct qk_json *implicit, bool negative, bool positive,
	bool bare, bool *chosen)
{
	QK_VEC(const char *) v = { 0 };

	for (uint32_t i = 0; positive && i < implicit->n; i++)
		if (*implicit->items[i]->s != '!')
			qk_vec_push(&v, implicit->items[i]->s);
	for (uint32_t i = 0; negative && i < implicit->n; i++)
		if (*implicit->items[i]->s == '!')
			qk_vec_push(&v, implicit->items[i]->s + bare);
	memset(chosen, 0, rs->ws->n_projects * sizeof(*chosen));
	qk_workspace_select(rs->ws, v.v, v.n, chosen);
	qk_vec_release(&v);
}

static void warn_unmatched(struct resolve *rs, const struct qk_json *implicit)
{
	for (uint32_t i = 0; i < implicit->n; i++) {
		const char *s = implicit->items[i]->s + (*implicit->items[i]->s == '!');
		bool any = qk_workspace_project(rs->ws, s);

		memset(rs->chosen, 0, rs->ws->n_projects * sizeof(*rs->chosen));
		if (!any)
			qk_workspace_select(rs->ws, &s, 1, rs->chosen);
		for (size_t j = 0; j < rs->ws->n_projects && !any; j++)
			any = rs->chosen[j];
		if (!any)
			qk_workspace_warn(rs->ws, implicit->items[i],
				"\"implicitDependencies\": \"%s\" is no project",
				implicit->items[i]->s);
	}
}

/* Takes the edges to one project away. */
static void drop(struct resolve *rs, const struct qk_project *to)
{
	size_t kept = 0;

	for (size_t i = 0; i < rs->deps.n; i++)
		if (rs->deps.v[i].project != to)
			rs->deps.v[kept++] = rs->deps.v[i];
	rs->deps.n = kept;
}

/* Without wildcards there is no need to look at every project; false if that does not do. */
static bool add_named(struct resolve *rs, const struct qk_project *p)
{
	const struct qk_json *implicit = p->implicit;

	for (uint32_t i = 0; i < implicit->n; i++) {
		const char *s = implicit->items[i]->s;

		if (!qk_workspace_project(rs->ws, s + (*s == '!')))
			return false;
	}
	for (int negative = 0; negative < 2; negative++) {
		for (uint32_t i = 0; i < implicit->n; i++) {
			const char *s = implicit->items[i]->s;
			struct qk_project_dep dep = { .at = implicit->items[i], .implicit = true };

			if (negative != (*s == '!'))
				continue;
			dep.project = qk_workspace_project(rs->ws, s + negative);
			if (negative)
				drop(rs, dep.project);
			else if (dep.project != p)
				qk_vec_push(&rs->deps, dep);
		}
	}
	return true;
}

static void add_implicit(struct resolve *rs, const struct qk_project *p)
{
	struct qk_workspace *ws = rs->ws;
	bool any = false;
	size_t kept = 0;

	if (!p->implicit || add_named(rs, p))
		return;
	warn_unmatched(rs, p->implicit);
	for (uint32_t i = 0; i < p->implicit->n; i++)
		any |= *p->implicit->items[i]->s != '!';
	memset(rs->chosen, 0, ws->n_projects * sizeof(*rs->chosen));
	if (any)
		mark(rs, p->implicit, true, true, false, rs->chosen);
	mark(rs, p->implicit, true, false, true, rs->dropped);
	for (size_t i = 0; i < ws->n_projects; i++) {
		struct qk_project_dep dep = {
			.project = &ws->projects[i], .at = p->implicit, .implicit = true
		};

		if (rs->chosen[i] && i != p->index)
			qk_vec_push(&rs->deps, dep);
	}
	for (size_t i = 0; i < rs->deps.n; i++)
		if (!rs->dropped[rs->deps.v[i].project->index])
			rs->deps.v[kept++] = rs->deps.v[i];
	rs->deps.n = kept;
}

static int by_project(const void *a, const void *b)
{
	const struct qk_project_dep *x = a, *y = b;

	if (x->project != y->project)
		return x->project->index < y->project->index ? -1 : 1;
	return (int)x->implicit - (int)y->implicit;
}

static void finish(struct resolve *rs, struct qk_project *p)
{
	size_t n = 0;

	if (rs->deps.n)
		qsort(rs->deps.v, rs->deps.n, sizeof(*rs->deps.v), by_project);
	for (size_t i = 0; i < rs->deps.n; i++)
		if (!n || rs->deps.v[n - 1].project != rs->deps.v[i].project)
			rs->deps.v[n++] = rs->deps.v[i];
	p->deps = qk_arena_alloc(&rs->ws->arena, n * sizeof(*p->deps));
	if (n)
		memcpy(p->deps, rs->deps.v, n * sizeof(*p->deps));
	p->n_deps = n;
}

/* Nx reads the sources if it is told so or if one of these is installed, and not told otherwise. */
static void warn_sources(struct qk_workspace *ws)
{
	static const char *const packages[] = { "@nx/workspace", "@nx/js", "@nx/node", "@nx/next",
		"@nx/react", "@nx/angular", "@nx/web" };
	const struct qk_json *config = qk_json_get(qk_json_get(ws->nx, "pluginsConfig"), "@nx/js");
	const struct qk_json *analyze = qk_json_get(config, "analyzeSourceFiles"), *at = config;

	for (size_t i = 0; !config && !at && i < sizeof(packages) / sizeof(*packages); i++) {
		at = qk_json_get(qk_json_get(ws->package, "dependencies"), packages[i]);
		if (!at)
			at = qk_json_get(qk_json_get(ws->package, "devDependencies"), packages[i]);
	}
	if (at && (!analyze || qk_json_is_true(analyze)))
		qk_workspace_warn(ws, at,
			"Nx takes imports in sources for dependencies of projects here: what no "
			"package.json says, qk needs in \"implicitDependencies\"");
}

void qk_depends_resolve(struct qk_workspace *ws)
{
	struct resolve rs = { .ws = ws };

	warn_sources(ws);
	rs.packages = qk_alloc(ws->n_projects * sizeof(*rs.packages));
	rs.chosen = qk_alloc(ws->n_projects * sizeof(bool));
	rs.dropped = qk_alloc(ws->n_projects * sizeof(bool));
	for (size_t i = 0; i < ws->n_projects; i++)
		if (ws->projects[i].package_name)
			rs.packages[rs.n_packages++] =
				(struct package){ ws->projects[i].package_name, &ws->projects[i] };
	if (rs.n_packages)
		qsort(rs.packages, rs.n_packages, sizeof(*rs.packages), by_package);
	for (size_t i = 0; i < ws->n_projects; i++) {
		rs.deps.n = 0;
		add_packages(&rs, &ws->projects[i]);
		add_implicit(&rs, &ws->projects[i]);
		finish(&rs, &ws->projects[i]);
	}
	qk_vec_release(&rs.deps);
	free(rs.packages);
	free(rs.chosen);
	free(rs.dropped);
}
