#include "cli/keys.h"
#include "cli/makeline.h"
#include "cli/page.h"
#include "cli/prefix.h"
#include "cli/site.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/path.h"
#include "keying/store.h"
#include "keying/taskstate.h"
#include "keying/why.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * The first of the target's lines that has something to say. False: no line of it has a result.
 * Nothing is made where nothing is: a question leaves no store behind.
 */
static bool first_difference(const struct qk_site *s, const char *target, char **ret_why, uint64_t *ret_line,
	struct qk_err *err)
{
	qk_autofree char *state = qk_path_join(s->root, ".qk"), *digests = qk_path_join(state, "digests");
	qk_autofree char *path = qk_path_join(s->cwd, target), *dir = NULL;
	const char *below = qk_path_below(path, s->root);
	struct qk_filehash *files = NULL;
	struct qk_store *store = NULL;
	struct qk_pathview view = { 0 };
	struct qk_digest last;
	uint64_t line = 0;

	*ret_why = NULL;
	if (access(digests, F_OK) || qk_filehash_new(&files, s->root, digests, err))
		return false;
	view.files = files;
	dir = qk_site_store(s);
	for (; !*ret_why; line++) {
		qk_autofree char *name = qk_why_name(below ? below : path, line);

		if (!qk_filehash_recall(files, name, &last))
			break;
		if (!store && qk_store_new(&store, dir, 0, err))
			break;
		*ret_why = qk_why(store, &view, name, NULL);
		*ret_line = line;
	}
	qk_pathview_release(&view);
	qk_store_free(store);
	qk_filehash_free(files);
	return line > 0;
}

/* Without a makefile to ask: of a file that one made, the paths it came of. */
static int answer_by_paths(const struct qk_site *s, const char *target)
{
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	qk_autofree char *why = NULL;
	struct qk_err err = QK_ERR_INIT;
	uint64_t line = 0;
	bool stored = first_difference(s, target, &why, &line, &err);

	if (err.code)
		return qk_verb_fail(&err);
	if (!stored)
		qk_buf_addf(&out, "nothing is stored for %s\n", target);
	else if (!why)
		qk_buf_addf(&out, "%s: every path that it only reads is as in its last result; its command "
				  "and environment are told where its makefile is\n", target);
	else if (line)
		qk_buf_addf(&out, "%s, line %llu: %s\n", target, (unsigned long long)line + 1, why);
	else
		qk_buf_addf(&out, "%s: %s\n", target, why);
	return qk_page_write(&out);
}

/* Becomes the make that asks (gmk-plugin/ask.h); variables: NAME=VALUE, as its build has them. */
static int ask_make(const struct qk_site *s, const char *target, const struct qk_strv *words, char **rest)
{
	static const char *const of_make[] = { "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS" };
	qk_autofree char *path = qk_path_join(s->cwd, target), *makefiles = NULL, *asked = NULL;
	const char *below = qk_path_below(path, s->cwd);
	qk_autostrv struct qk_strv argv = { 0 };
	struct qk_makeline line = { .has_makefile = true, .makefiles = getenv("MAKEFILES"), .cwd = s->cwd };
	struct qk_err err = QK_ERR_INIT;
	struct qk_prefix prefix = { 0 };

	asked = qk_asprintf("QK_WHY=%s", below ? below : target);
	if (qk_prefix_find(&prefix, &err))
		return qk_verb_fail(&err);
	line.mk = prefix.mk;
	line.rest = rest;
	qk_strv_push(&line.goals, asked);
	for (size_t i = 1; i < words->n; i++)
		qk_strv_push(&line.goals, words->v[i]);
	qk_strv_push(&line.goals, below ? below : target);
	if (qk_makeline_compose(&line, &argv, &makefiles, &err))
		return qk_verb_fail(&err);
	for (size_t i = 0; i < sizeof(of_make) / sizeof(*of_make); i++)
		unsetenv(of_make[i]);
	setenv("MAKEFILES", makefiles, 1);
	execvp(argv.v[0], argv.v);
	qk_fail(&err, errno, "start make");
	return qk_verb_fail(&err);
}

/* --- tasks of a workspace --- */

static bool is_stored(struct qk_store *store, const struct qk_digest *key)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	return qk_store_text(store, key, &text, NULL) == 1;
}

static char *why_recorded(struct qk_keys *k, const struct qk_task *t, struct qk_store *store,
	const struct qk_taskstate *last)
{
	struct qk_pathview view = { .files = k->hash };
	char *why = qk_why_recorded(store, &last->strong, &qk_inputs_task(k->inputs, t)->parts, &view);

	qk_pathview_release(&view);
	return why ? why : qk_strdup("nothing differs from its last recorded result");
}

static char *why_task(struct qk_keys *k, const struct qk_task *t, struct qk_store *store,
	const struct qk_taskstate *last, struct qk_err *err)
{
	struct qk_digest now;

	if (qk_keys_task(k, t, NULL, &now, err))
		return err->code == ENOKEY ? qk_asprintf("it has no key: %s", err->msg) : NULL;
	if (last->recorded)
		return why_recorded(k, t, store, last);
	if (last->has_key && qk_digest_eq(&last->key, &now))
		return qk_strdup(last->good ? "nothing differs from its last result"
					    : "nothing differs from its last run, which left no result");
	if (is_stored(store, &now))
		return qk_strdup("an earlier result of this key is stored: it is restored");
	if (!last->has_key)
		return qk_strdup("its last run had no key");
	return qk_why_task(store, &last->key, &qk_inputs_task(k->inputs, t)->parts, k->hash);
}

static int answer_task(struct qk_site *s, const struct qk_target *target, const char *configuration)
{
	qk_autofree char *file = qk_path_join(s->root, ".qk/tasks"), *why = NULL, *dir = qk_site_store(s);
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_taskstates *states = qk_taskstates_new(file);
	const struct qk_taskstate *last;
	struct qk_store *store = NULL;
	struct qk_err err = QK_ERR_INIT;
	struct qk_keys k;

	if (!qk_keys_open(&k, s, target, configuration, &err)) {
		const struct qk_task *t = qk_keys_asked(&k);

		last = qk_taskstates_find(states, t->id);
		/* a question makes no store where there is none */
		if (!last || access(dir, F_OK))
			qk_buf_addf(&out, "nothing is stored for %s\n", t->id);
		else if (!qk_store_new(&store, dir, 0, &err) && (why = why_task(&k, t, store, last, &err)))
			qk_buf_addf(&out, "%s: %s\n", t->id, why);
	}
	qk_keys_close(&k);
	qk_store_free(store);
	qk_taskstates_free(states);
	return out.len ? qk_page_write(&out) : qk_verb_fail(&err);
}

int qk_verb_why(int argc, char **argv)
{
	const struct qk_option options[] = { { 0 } };
	const struct qk_usage u = { "why", "TASK | TARGET [NAME=VALUE]... [-- MAKE-ARGUMENT...]",
		"What differs first from the last stored result of a task of the workspace, or of a target of\n"
		"the Makefile in this directory: a file, a look-up, a variable, a word of its command. Nothing\n"
		"is run but what makefiles run as they are read, and runtime inputs of tasks. NAME=VALUE and\n"
		"what follows -- go to make, as the build itself has them.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autofree char *digests = NULL;
	const struct qk_target *task;
	const char *configuration;
	char **rest = NULL;
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, SIZE_MAX, &rest, &status))
		return status;
	if (!words.n)
		return qk_options_complain(&u, "which target?");
	for (size_t i = 1; i < words.n; i++)
		if (!strchr(words.v[i], '='))
			return qk_options_complain(&u, "'%s': one target at a time, and NAME=VALUE", words.v[i]);
	if (qk_site_find(&s, &err) || (s.is_workspace && qk_site_load(&s, &err)))
		return qk_verb_fail(&err);
	if (s.ws && !qk_task_parse(s.ws, words.v[0], &task, &configuration, NULL))
		return answer_task(&s, task, configuration);
	digests = qk_path_join(s.root, ".qk/digests");
	if (!access(digests, F_OK) && (qk_site_has_makefile(s.cwd) || qk_makeline_names_makefile(rest)))
		return ask_make(&s, words.v[0], &words, rest);
	return answer_by_paths(&s, words.v[0]);
}
