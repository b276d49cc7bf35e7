#include "gmk-plugin/recipe.h"

#include "base/fdio.h"
#include "base/path.h"
#include "gmk-plugin/ask.h"
#include "gmk-plugin/deep.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/taskpart.h"
#include "keying/sandboxspec.h"
#include "report/result.h"
#include "sandbox/uplink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

/* Between the parts of one expansion: no makefile text holds it. */
#define SEP "\001"

struct name {
	char *name;
	UT_hash_handle hh;
};

static struct name *with_make; /* targets whose recipes expanded $(MAKE) */

void qk_recipe_uses_make(void)
{
	qk_autofree char *target = qk_gmkx_expand("$@");
	struct name *n;

	if (!*target)
		return;
	HASH_FIND_STR(with_make, target, n);
	if (n)
		return;
	n = qk_zalloc(sizeof(*n));
	n->name = qk_steal(&target);
	HASH_ADD_KEYPTR(hh, with_make, n->name, strlen(n->name), n);
}

static bool uses_make(const char *target)
{
	struct name *n;

	HASH_FIND_STR(with_make, target, n);
	return n != NULL;
}

/* Lines that are run all the same (+) are not tasks then. */
bool qk_recipe_pretending(void)
{
	qk_autofree char *flags = qk_gmkx_expand("$(firstword -$(MAKEFLAGS))");

	return flags[0] == '-' && flags[1] != '-' && strpbrk(flags, "nqt");
}

bool qk_recipe_runs(void)
{
	qk_autofree char *target = qk_gmkx_expand("$@");

	return *target && qk_plugin.active && !qk_recipe_pretending();
}

static void add_words(struct qk_request *r, enum qk_list list, const char *words)
{
	qk_autostrv struct qk_strv sv = { 0 };

	qk_strv_split(&sv, words);
	for (size_t i = 0; i < sv.n; i++) {
		if (sv.v[i][0] == '^' && list > QK_LIST_SIBLINGS)
			qk_gmkx_fatal("qk: %s: %s: '%s': the prefix ^ works in workspaces, not in Makefiles",
				r->target, qk_list_variables[list], sv.v[i]);
		qk_vec_push(&r->lists[list], qk_arena_strdup(&r->arena, sv.v[i]));
	}
}

/* $^ and $| are words: a name that holds blanks came apart in them. Puts it together again. */
static void join_words(const char *name, void *request)
{
	struct qk_request *r = request;
	qk_autostrv struct qk_strv words = { 0 };

	if (!strpbrk(name, " \t\n"))
		return;
	qk_strv_split(&words, name);
	for (size_t l = QK_LIST_PREREQS; l <= QK_LIST_ORDER; l++) {
		__typeof__(r->lists[0]) *list = &r->lists[l];

		for (size_t i = 0; i + words.n <= list->n; i++) {
			size_t k = 0;

			while (k < words.n && !strcmp(list->v[i + k], words.v[k]))
				k++;
			if (!k || k < words.n)
				continue;
			list->v[i] = qk_arena_strdup(&r->arena, name);
			memmove(list->v + i + 1, list->v + i + k, (list->n - i - k) * sizeof(*list->v));
			list->n -= k - 1;
			break;
		}
	}
}

static void add_siblings(const char *target, void *request)
{
	struct qk_request *r = request;

	if (strcmp(target, r->target))
		qk_vec_push(&r->lists[QK_LIST_SIBLINGS], qk_arena_strdup(&r->arena, target));
}

/* A recipe whose SHELL is its own goes past the runner: said under audit, an error under enforce. */
static bool slips_past(const struct qk_request *r, const char *shell)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_result result;

	if (!qk_plugin.knobs.wrap || !strcmp(shell, qk_plugin.runner))
		return false;
	if (r->caching & QK_CACHING_ASK)
		qk_ask_refuse(r->target, shell);
	if (r->mode == QK_MODE_ENFORCE && !r->off)
		qk_gmkx_fatal("qk: %s: SHELL is set for this target ('%s'), so that it would run unsandboxed; "
			      "set QK_SANDBOX = off for it, or SHELL for all",
			r->target, shell);
	qk_result_init(&result, r->make_pid, r->offset);
	result.fate = QK_FATE_UNSANDBOXED;
	result.why = qk_asprintf("SHELL is set for this target ('%s')", shell);
	if (qk_result_append(&result, r->run, &err))
		qk_gmkx_fatal("qk: %s", err.msg);
	qk_result_release(&result);
	return true;
}

static bool is_off(const char *target, const char *value)
{
	if (!*value || !strcmp(value, "on"))
		return false;
	if (strcmp(value, "off"))
		qk_gmkx_fatal("qk: %s: QK_SANDBOX = %s: not on or off", target, value);
	return true;
}

/* Grants that can be none stop make: what they were to open or close would go unnoticed. */
static void check_grants(const struct qk_request *r)
{
	static const enum qk_list hosts[] = { QK_LIST_ALLOW_NETWORK, QK_LIST_DENY_NETWORK };

	for (size_t k = 0; k < sizeof(hosts) / sizeof(*hosts); k++) {
		for (size_t i = 0; i < r->lists[hosts[k]].n; i++) {
			const char *word = r->lists[hosts[k]].v[i];
			const char *why = qk_sandboxspec_host_problem(word);

			if (why && (hosts[k] == QK_LIST_DENY_NETWORK || strcmp(word, "true")))
				qk_gmkx_fatal("qk: %s: %s: '%s': %s", r->target,
					qk_list_variables[hosts[k]], word, why);
		}
	}
	for (size_t i = 0; i < r->lists[QK_LIST_ALLOW].n; i++)
		if (strcmp(r->lists[QK_LIST_ALLOW].v[i], "pty") &&
			strcmp(r->lists[QK_LIST_ALLOW].v[i], "git-config"))
			qk_gmkx_fatal("qk: %s: QK_ALLOW: '%s': not pty or git-config", r->target,
				r->lists[QK_LIST_ALLOW].v[i]);
}

static bool is_strict(const char *target, const char *value)
{
	if (!*value || !strcmp(value, "0") || !strcmp(value, "off") || !strcmp(value, "no"))
		return false;
	if (strcmp(value, "1") && strcmp(value, "on") && strcmp(value, "yes"))
		qk_gmkx_fatal("qk: %s: QK_STRICT = %s: not on (1, yes) or off (0, no)", target, value);
	return true;
}

/* Where each scratch directory was declared, as absolute paths. */
static struct {
	struct qk_strv dirs, targets;
} scratches;

/*
 * Every task empties its scratch directories before it runs, so no two may share or nest one. make
 * does not say what a target declares before its recipe is due: the second one stops the run.
 */
static void keep_scratches_apart(const struct qk_request *r)
{
	for (size_t i = 0; i < r->lists[QK_LIST_SCRATCH].n; i++) {
		qk_autofree char *dir = qk_path_join(r->cwd, r->lists[QK_LIST_SCRATCH].v[i]);

		for (size_t k = 0; k < scratches.dirs.n; k++)
			if (strcmp(scratches.targets.v[k], r->target) &&
				(qk_path_under(dir, scratches.dirs.v[k]) ||
					qk_path_under(scratches.dirs.v[k], dir)))
				qk_gmkx_fatal("qk: QK_SCRATCH '%s' of %s and '%s' of %s: one is or lies in "
					      "the other, and each is emptied before its task runs",
					dir, r->target, scratches.dirs.v[k], scratches.targets.v[k]);
		qk_strv_push(&scratches.dirs, dir);
		qk_strv_push(&scratches.targets, r->target);
	}
}

/* A phony target has no result to keep; a target may set CACHE = off for itself. */
static uint64_t caching_of(const char *target, const char *cache)
{
	uint64_t caching = qk_plugin.session.caching;

	if (caching & QK_CACHING_ASK && (!qk_ask_is(target) || qk_deep_is_phony(target)))
		return QK_CACHING_ASK;
	if (!caching || qk_deep_is_phony(target))
		return 0;
	if (!strcmp(cache, "off") || !strcmp(cache, "0") || !strcmp(cache, "no"))
		return caching & QK_CACHING_RECORD && !(caching & QK_CACHING_STORE) ? QK_CACHING_RECORD : 0;
	return caching;
}

/* The proxy that granted hosts are reached by, once a run. */
static void start_proxy(const struct qk_request *r)
{
	qk_autofree char *helper = qk_path_join(qk_plugin.runner, "../proxy");
	const char *run = getenv("QK_RUN");
	static bool started;
	struct qk_err err = QK_ERR_INIT;

	if (started || !qk_request_network_filtered(r))
		return;
	started = true;
	/* it ends with the top make, not with the one that needs it first */
	if (qk_uplink_start(helper, r->run, qk_plugin.top || !run ? getpid() : atoi(run), &err))
		qk_gmkx_fatal("qk: %s", err.msg);
}

static char *append_request(const struct qk_request *r)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	uint64_t offset = qk_plugin.requests_len;
	int ret;

	start_proxy(r);
	qk_request_write(r, &b);
	ret = qk_write_all(qk_plugin.requests_fd, b.s, b.len);
	if (ret)
		qk_gmkx_fatal("qk: write request of %s below '%s': %s", r->target, r->run, strerror(-ret));
	qk_plugin.requests_len += b.len;
	qk_strv_push(&qk_plugin.targets, r->target);
	return qk_asprintf("%s/requests.%d:%llu:%zu", r->run, (int)getpid(),
		(unsigned long long)offset, b.len);
}

/* The parts after target, shell, make and QK_SANDBOX are the lists, in the order of enum qk_list; then CACHE. */
static char *expand_parts(struct qk_strv *parts)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	char *all;

	qk_buf_addstr(&text, "$@" SEP "$(SHELL)" SEP "$(qk.make)" SEP "$(strip $(QK_SANDBOX))");
	for (size_t l = 0; l < QK_N_LISTS; l++) {
		const char *name = qk_list_variables[l];

		qk_buf_addf(&text, name ? SEP "$(%s)" : SEP, name);
	}
	qk_buf_addstr(&text, SEP "$(strip $(CACHE))" SEP "$(strip $(QK_STRICT))");
	all = qk_gmkx_expand("%s", text.s);
	for (char *s = all, *part; (part = strsep(&s, SEP));)
		qk_strv_push(parts, part);
	return all;
}

/* What is the same for all requests of this make. */
static void fill_in(struct qk_request *r, const char *target, const char *cwd)
{
	r->make_pid = (uint64_t)getpid();
	r->offset = qk_plugin.requests_len;
	r->parent_pid = qk_plugin.parent_pid;
	r->parent_offset = qk_plugin.parent_offset;
	r->mode = qk_plugin.session.mode;
	r->recorder = qk_plugin.session.recorder;
	r->backend = qk_plugin.session.backend;
	r->target = target;
	r->cwd = cwd;
	r->root = qk_plugin.session.root;
	r->state = qk_plugin.session.state;
	r->system_reads = qk_plugin.session.system_reads;
	r->run = qk_plugin.session.run;
	if (qk_plugin.session.fastlane && *qk_plugin.session.fastlane)
		r->fastlane = qk_plugin.session.fastlane;
	r->shell = qk_plugin.user_shell;
	r->makefiles = qk_plugin.makefiles;
}

static void no_sibling(const char *target, void *arg)
{
	(void)target;
	(void)arg;
}

char *qk_recipe_task_request(
	const char *target, const char *project, const char *task, size_t n,
	const struct qk_request *grants)
{
	qk_autofree char *cwd = getcwd(NULL, 0);
	struct qk_request r = {
		.make = "make", .task = task, .task_len = n, .project = project
	};

	qk_plugin_start();
	if (!cwd)
		qk_gmkx_fatal("qk: current directory: %s", strerror(errno));
	fill_in(&r, target, cwd);
	if (grants) {
		memcpy(r.lists, grants->lists, sizeof(r.lists));
		r.is_explicit = r.strict = grants->is_explicit;
	}
	if (r.is_explicit && r.mode == QK_MODE_OFF && !qk_plugin.knobs.sandbox_off)
		qk_plugin_hold(&r);
	qk_deep_siblings(target, no_sibling, NULL); /* here it can be seen whether the layout fits */
	return append_request(&r);
}

char *qk_recipe_request(void)
{
	qk_autostrv struct qk_strv parts = { 0 };
	qk_autofree char *target = qk_gmkx_expand("$@"), *cwd = NULL, *text = NULL;
	struct qk_request r = { 0 };
	char *value = NULL;

	if (!qk_recipe_runs() || (qk_taskpart && qk_taskpart->has(target)))
		return NULL;
	qk_plugin_start();
	text = expand_parts(&parts);
	cwd = getcwd(NULL, 0);
	if (!cwd)
		qk_gmkx_fatal("qk: current directory: %s", strerror(errno));
	if (parts.n != 6 + QK_N_LISTS)
		qk_gmkx_fatal("qk: %s: a name or a QK_ variable of this recipe holds the byte 1", target);
	fill_in(&r, target, cwd);
	r.off = is_off(target, parts.v[3]);
	r.strict = is_strict(target, parts.v[5 + QK_N_LISTS]);
	r.uses_make = uses_make(target);
	r.caching = caching_of(target, parts.v[4 + QK_N_LISTS]);
	r.cache_limit = qk_plugin.session.cache_limit;
	r.cache_dir = qk_plugin.session.cache_dir;
	r.make = parts.v[2];
	for (unsigned int l = 0; l < QK_N_LISTS; l++)
		add_words(&r, (enum qk_list)l, parts.v[4 + l]);
	check_grants(&r);
	keep_scratches_apart(&r);
	qk_deep_siblings(target, add_siblings, &r);
	qk_deep_prerequisites(target, join_words, &r);
	value = append_request(&r);
	if (slips_past(&r, parts.v[1])) {
		free(value);
		value = NULL;
	}
	qk_request_release(&r);
	return value;
}
