#include "cli/jsonout.h"
#include "cli/keys.h"
#include "cli/page.h"
#include "cli/verbs.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

static int print_text(struct qk_keys *k, const struct qk_task *t, const struct qk_buf *text,
	const struct qk_digest *key, struct qk_err *err)
{
	const struct qk_parts *parts = &qk_inputs_task(k->inputs, t)->parts;
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	char hex[QK_DIGEST_HEX];

	qk_digest_hex(key, hex);
	qk_buf_addf(&out, "%s %s\n", t->id, hex);
	qk_buf_add(&out, text->s, text->len);
	for (size_t i = 0; i < parts->list.n; i++) {
		const struct qk_filegroup *g = parts->list.v[i].files;
		int r;

		if (parts->list.v[i].kind != QK_PART_FILES)
			continue;
		qk_buf_addstr(&out, "\nfiles ");
		qk_key_quote(&out, g->name);
		qk_buf_addch(&out, '\n');
		r = qk_filegroup_text(g, k->hash, &out, err);
		if (r)
			return r;
	}
	return qk_page_write(&out);
}

static void digest(struct qk_jsonout *j, const char *key, const struct qk_digest *d)
{
	char hex[QK_DIGEST_HEX];

	qk_digest_hex(d, hex);
	qk_jsonout_string(j, key, hex);
}

static int files(struct qk_jsonout *j, struct qk_keys *k, const struct qk_filegroup *g,
	struct qk_err *err)
{
	static const char *const kinds[] = { [QK_FILE_ABSENT] = "absent", [QK_FILE_REGULAR] = "file",
		[QK_FILE_LINK] = "link", [QK_FILE_DIR] = "directory", [QK_FILE_SPECIAL] = "special" };
	int r = 0;

	qk_jsonout_open(j, "files", '[');
	for (size_t i = 0; i < g->n && !r; i++) {
		struct qk_filestate st;

		r = qk_filehash_get(k->hash, g->paths[i], 0, &st, err);
		if (r)
			break;
		qk_jsonout_open(j, NULL, '{');
		qk_jsonout_string(j, "path", g->paths[i]);
		qk_jsonout_string(j, "kind", kinds[st.kind]);
		if (st.kind == QK_FILE_REGULAR)
			qk_jsonout_bool(j, "executable", st.executable);
		if (st.kind != QK_FILE_ABSENT)
			digest(j, "digest", &st.content);
		qk_jsonout_close(j, '}');
	}
	qk_jsonout_close(j, ']');
	return r;
}

static int part(struct qk_jsonout *j, struct qk_keys *k, const struct qk_part *p, struct qk_err *err)
{
	static const char *const kinds[] = { [QK_PART_TEXT] = "text", [QK_PART_FILES] = "files",
		[QK_PART_RUNTIME] = "runtime", [QK_PART_OUTPUTS] = "outputs", [QK_PART_TASK] = "task" };
	int r = 0;

	qk_jsonout_open(j, NULL, '{');
	qk_jsonout_string(j, "kind", kinds[p->kind]);
	if (p->kind == QK_PART_TEXT)
		qk_jsonout_string(j, "tag", p->tag);
	qk_jsonout_string(j, "name", p->kind == QK_PART_FILES ? p->files->name : p->name);
	if (p->kind == QK_PART_TEXT)
		qk_jsonout_string(j, "value", p->value);
	else
		digest(j, "digest", p->kind == QK_PART_FILES ? &p->files->digest : &p->digest);
	if (p->kind == QK_PART_OUTPUTS) {
		qk_jsonout_strings(j, "globs", p->globs, p->n_globs);
		qk_jsonout_string(j, "filter", p->value);
	}
	if (p->kind == QK_PART_FILES)
		r = files(j, k, p->files, err);
	qk_jsonout_close(j, '}');
	return r;
}

static int print_json(struct qk_keys *k, const struct qk_task *t, const struct qk_digest *key,
	const char *uncached, struct qk_err *err)
{
	const struct qk_parts *parts = &qk_inputs_task(k->inputs, t)->parts;
	struct qk_jsonout j = QK_JSONOUT_INIT;
	int r = 0;

	qk_jsonout_open(&j, NULL, '{');
	qk_jsonout_string(&j, "task", t->id);
	if (uncached) {
		qk_jsonout_string(&j, "key", NULL);
		qk_jsonout_string(&j, "uncached", uncached);
	} else {
		digest(&j, "key", key);
		qk_jsonout_open(&j, "parts", '[');
		for (size_t i = 0; i < parts->list.n && !r; i++)
			r = part(&j, k, &parts->list.v[i], err);
		qk_jsonout_close(&j, ']');
	}
	qk_jsonout_close(&j, '}');
	if (!r)
		return qk_jsonout_print(&j);
	qk_buf_release(&j.out);
	return r;
}

/* 0 or an exit status, or negative with err. */
static int show(struct qk_keys *k, bool json, struct qk_err *err)
{
	const struct qk_task *t = qk_keys_asked(k);
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_digest key = { { 0 } };
	int r = qk_keys_task(k, t, &text, &key, err);

	if (r && json && r == -ENOKEY)
		return print_json(k, t, NULL, err->msg, err);
	if (r)
		return qk_wrap(err, "%s has no key", t->id);
	return json ? print_json(k, t, &key, NULL, err) : print_text(k, t, &text, &key, err);
}

int qk_show_hash(int argc, char **argv)
{
	const char *json = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "one JSON object in place of text", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "show hash", "PROJECT:TARGET[:CONFIGURATION] [OPTION]...",
		"The key of a task as a run started now would have it, and every part of it, so that two\n"
		"such texts can be compared by diff. Runtime inputs are run; outputs of tasks it depends on\n"
		"count as they are now.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	const struct qk_target *target;
	const char *configuration;
	struct qk_err err = QK_ERR_INIT;
	struct qk_keys k;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 1, NULL, &status))
		return status;
	if (!words.n)
		return qk_options_complain(&u, "which task? qk show tasks lists them");
	if (qk_site_load(&s, &err) || qk_site_task(&s, words.v[0], &target, &configuration, &err))
		return qk_verb_fail(&err);
	status = qk_keys_open(&k, &s, target, configuration, &err);
	if (!status)
		status = show(&k, json != NULL, &err);
	qk_keys_close(&k);
	return status < 0 ? qk_verb_fail(&err) : status;
}
