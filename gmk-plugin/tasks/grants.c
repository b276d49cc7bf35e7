#include "gmk-plugin/tasks/grants.h"

#include "base/glob.h"
#include "base/path.h"
#include "keying/sandboxspec.h"
#include "sandbox/policy.h"

#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Under home. Whoever can read one can act as the user elsewhere. */
static const char *const credentials[] = { ".ssh", ".gnupg", ".aws", ".azure", ".kube",
	".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".git-credentials",
	".npmrc", ".yarnrc.yml", ".pypirc", ".bunfig.toml", ".config/.bunfig.toml",
	".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".config/hub",
	".config/containers/auth.json", ".terraform.d/credentials.tfrc.json", ".vault-token",
	".pgpass" };

struct granting {
	struct qk_taskspec *s;
	const struct qk_task *t;
	const struct qk_sandboxspec *grants;
	char *project; /* absolute */
	const char *home; /* absolute, or NULL */
};

static void rule(struct granting *g, const char *path, enum qk_scope scope, unsigned int rights,
	enum qk_reason reason)
{
	struct qk_taskrule r = { qk_arena_strdup(&g->s->arena, path), (uint8_t)scope, (uint8_t)rights,
		(uint8_t)reason };

	qk_vec_push(&g->s->rules, r);
}

/* The absolute path of an entry; allocated. */
static char *path_of(const struct granting *g, const char *entry)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (entry[0] == '~' && (entry[1] == '/' || !entry[1]) && g->home)
		qk_path_clean(&b, g->home, entry[1] ? entry + 2 : ".");
	else
		qk_path_clean(&b, g->project, entry);
	return qk_buf_detach(&b);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static void grant(struct granting *g, const char *entry, unsigned int rights)
{
	size_t n = strlen(entry);
	bool tree = n && entry[n - 1] == '/';
	qk_autofree char *path = path_of(g, entry), *below = NULL;
	struct stat st;

	/* a file of that very name is meant, whatever the name holds */
	if (qk_glob_is_pattern(path) && lstat(path, &st)) {
		for (n = strlen(path); n > 3 && !strcmp(path + n - 3, "/**"); tree = true)
			path[n -= 3] = '\0';
		if (qk_glob_is_pattern(path)) {
			below = qk_asprintf("%s/**", path);
			rule(g, path, QK_GLOB, rights, QK_BY_GRANT);
			rule(g, below, QK_GLOB, rights, QK_BY_GRANT);
			return;
		}
	}
	/* to be written, a name alone is a file, unless a directory is there */
	if (!(rights & QK_WRITE) || is_directory(path))
		tree = true;
	rule(g, path, tree ? QK_TREE : QK_EXACT, rights, QK_BY_GRANT);
}

static const struct qk_project *project_at(const char *real)
{
	const char *below = qk_path_below(real, qk_model.host->root);

	for (size_t i = 0; below && i < qk_model.ws->n_projects; i++)
		if (!strcmp(qk_model.ws->projects[i].root, *below ? below : "."))
			return &qk_model.ws->projects[i];
	return NULL;
}

/* True if a task of the project with something to run comes before this one. */
static bool folds(const struct qk_task *t, const struct qk_project *p)
{
	for (size_t i = 0; i < t->n_deps; i++) {
		const struct qk_task *d = t->deps[i];

		if ((d->project == p && strcmp(d->target->executor, "nx:noop")) || folds(d, p))
			return true;
	}
	return false;
}

/* A link in a node_modules directory. */
static void add_sibling(struct granting *g, const char *link)
{
	const struct qk_project *p;
	struct stat st;
	char real[PATH_MAX];

	if (lstat(link, &st) || !S_ISLNK(st.st_mode) || !realpath(link, real))
		return;
	p = project_at(real);
	if (!p || p == g->t->project)
		return;
	if (folds(g->t, p))
		rule(g, real, QK_TREE, QK_READ, QK_BY_DEPENDENCY);
	else
		qk_vec_push(&g->s->withheld, qk_arena_printf(&g->s->arena, "%s\t%s", real,
						     p->package_name ? p->package_name : p->name));
}

static void add_siblings(struct granting *g, const char *dir, bool scope)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		qk_autofree char *path = qk_path_join(dir, e->d_name);

		if (e->d_name[0] == '.')
			continue;
		if (e->d_name[0] == '@' && !scope)
			add_siblings(g, path, true);
		else
			add_sibling(g, path);
	}
	if (d)
		closedir(d);
}

static void add_modules(struct granting *g)
{
	const char *from[] = { g->project, qk_model.host->root };

	for (size_t i = 0; i < (strcmp(from[0], from[1]) ? 2 : 1); i++) {
		qk_autofree char *modules = qk_path_join(from[i], "node_modules");

		if (!is_directory(modules))
			continue;
		rule(g, modules, QK_TREE, QK_READ, QK_BY_MODULES);
		add_siblings(g, modules, false);
	}
}

static void add_walls(struct granting *g)
{
	const struct qk_workspace *ws = qk_model.ws;
	qk_autofree char *git = qk_path_join(qk_model.host->root, ".git");
	qk_autofree char *own_git = qk_path_join(g->project, ".git");

	for (size_t i = 0; i < ws->n_projects; i++) {
		qk_autofree char *path = qk_path_join(qk_model.host->root, ws->projects[i].root);

		if (&ws->projects[i] != g->t->project)
			qk_vec_push(&g->s->walls, qk_arena_strdup(&g->s->arena, path));
	}
	qk_vec_push(&g->s->walls, qk_arena_strdup(&g->s->arena, git));
	qk_vec_push(&g->s->walls, qk_arena_strdup(&g->s->arena, own_git));
	if (g->grants->git_config) {
		/* git writes a lock beside it and renames it; HEAD tells it that this is a repository */
		static const char *const files[] = { "config", "config.lock", "HEAD" };

		for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
			qk_autofree char *path = qk_path_join(git, files[i]);

			rule(g, path, QK_EXACT, i < 2 ? QK_READ | QK_WRITE : QK_READ, QK_BY_GRANT);
		}
	}
}

/* Named by a grant: it, or something in it. */
static bool is_named(const struct granting *g, const char *store)
{
	const struct qk_names *lists[] = { &g->grants->read, &g->grants->write };

	for (size_t l = 0; l < 2; l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			qk_autofree char *path = path_of(g, lists[l]->v[i]);

			if (qk_path_under(path, store))
				return true;
		}
	return false;
}

static void hide_credentials(struct granting *g)
{
	for (size_t i = 0; g->home && i < sizeof(credentials) / sizeof(*credentials); i++) {
		qk_autofree char *path = qk_path_join(g->home, credentials[i]);

		if (!is_named(g, path))
			qk_vec_push(&g->s->hidden, qk_arena_strdup(&g->s->arena, path));
	}
}

static void add_ignored(
	struct granting *g, const struct qk_names *names, struct qk_texts *to)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *entry = names->v[i];
		/* a name without a directory is meant wherever it is, as in .gitignore */
		qk_autofree char *any = strchr(entry, '/') ? NULL : qk_asprintf("%s/**/%s",
			qk_model.host->root, entry);
		qk_autofree char *path = any ? qk_strdup(any) : path_of(g, entry);

		qk_vec_push(to, qk_arena_strdup(&g->s->arena, path));
	}
}

/* Whoever has no HOME has one by the user database. */
static const char *home_dir(void)
{
	const char *home = getenv("HOME");
	struct passwd *pw = home && *home == '/' ? NULL : getpwuid(geteuid());

	return home && *home == '/' ? home : pw && pw->pw_dir && *pw->pw_dir == '/' ? pw->pw_dir : NULL;
}

void qk_taskgrants_fill(struct qk_taskspec *s, const struct qk_task *t)
{
	struct granting g = { .s = s, .t = t, .grants = t->target->qk.grants,
		.project = qk_path_join(qk_model.host->root, t->project->root),
		.home = home_dir() };

	s->explicit_grants = true;
	s->weaker_when_nested = g.grants->weaker_when_nested;
	for (size_t i = 0; i < g.grants->read.n; i++)
		grant(&g, g.grants->read.v[i], QK_READ);
	for (size_t i = 0; i < g.grants->write.n; i++)
		grant(&g, g.grants->write.v[i], QK_READ | QK_WRITE);
	for (size_t i = 0; i < s->scratch.n; i++)
		rule(&g, s->scratch.v[i], QK_TREE, QK_READ | QK_WRITE, QK_BY_SCRATCH);
	add_modules(&g);
	add_walls(&g);
	hide_credentials(&g);
	add_ignored(&g, &g.grants->ignore_read, &s->ignored_reads);
	add_ignored(&g, &g.grants->ignore_write, &s->ignored_writes);
	free(g.project);
}

static void put(struct qk_request *r, enum qk_list list, const struct qk_names *names, bool all)
{
	if (all)
		qk_vec_push(&r->lists[list], "true");
	for (size_t i = 0; i < names->n; i++)
		qk_vec_push(&r->lists[list], names->v[i]);
}

void qk_taskgrants_request(struct qk_request *r, const struct qk_task *t)
{
	const struct qk_sandboxspec *g = t->target->qk.grants;

	r->is_explicit = g->is_explicit;
	put(r, QK_LIST_ALLOW_NETWORK, &g->network, g->network_open);
	put(r, QK_LIST_DENY_NETWORK, &g->deny_network, false);
	put(r, QK_LIST_IGNORE_NETWORK, &g->ignore_network, false);
	put(r, QK_LIST_ALLOW_LOCAL_BINDING, &g->local_ports, g->local_binding);
	put(r, QK_LIST_ALLOW_UNIX_SOCKETS, &g->unix_sockets, g->unix_open);
	if (g->pty)
		qk_vec_push(&r->lists[QK_LIST_ALLOW], "pty");
	if (g->git_config)
		qk_vec_push(&r->lists[QK_LIST_ALLOW], "git-config");
}
