#include "cli/page.h"
#include "cli/site.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/path.h"
#include "keying/store.h"
#include "keying/why.h"

#include <errno.h>
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

static int answer(const struct qk_site *s, const char *target)
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
		qk_buf_addf(&out, "%s: every path that it only reads is as in its last result; of what it "
				  "changes, its command and environment QK_EXPLAIN=1 tells as it runs\n", target);
	else if (line)
		qk_buf_addf(&out, "%s, line %llu: %s\n", target, (unsigned long long)line + 1, why);
	else
		qk_buf_addf(&out, "%s: %s\n", target, why);
	return qk_page_write(&out);
}

int qk_verb_why(int argc, char **argv)
{
	const struct qk_option options[] = { { 0 } };
	const struct qk_usage u = { "why", "TARGET",
		"Which path differs first from what the target of a makefile last came of, where it was stored\n"
		"by CACHE=on. TARGET is a file, from this directory. Nothing is run, so that what it changes\n"
		"itself, the command and its environment are not compared: QK_EXPLAIN=1 does that in a run.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	const struct qk_target *task;
	const char *configuration;
	struct qk_err err = QK_ERR_INIT, no_task = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 1, NULL, &status))
		return status;
	if (!words.n)
		return qk_options_complain(&u, "which target?");
	if (qk_site_find(&s, &err) || (s.is_workspace && qk_site_load(&s, &err)))
		return qk_verb_fail(&err);
	if (s.ws && !qk_site_task(&s, words.v[0], &task, &configuration, &no_task)) {
		qk_fail(&err, -EINVAL, "'%s' is a task of the workspace; qk show hash tells what its key holds",
			words.v[0]);
		return qk_verb_fail(&err);
	}
	return answer(&s, words.v[0]);
}
