#include "cli/jsonout.h"
#include "cli/keys.h"
#include "cli/page.h"
#include "cli/verbs.h"

#include "base/mem.h"

static const char *const input_kinds[] = {
	[QK_INPUT_FILES] = "files",
	[QK_INPUT_FILE] = "file",
	[QK_INPUT_JSON] = "json",
	[QK_INPUT_ENV] = "env",
	[QK_INPUT_RUNTIME] = "runtime",
	[QK_INPUT_EXTERNAL] = "external",
	[QK_INPUT_TASK] = "task",
};

static void rows(struct qk_page *p, const char *label, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qk_page_row(p, i ? "" : label, "%s", v[i]);
}

static void value_row(struct qk_page *p, const char *label, const struct qk_json *v)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (!v)
		return;
	qk_json_write(&b, v, false);
	qk_page_row(p, label, "%s", b.s);
}

static void object_rows(struct qk_page *p, const char *label, const struct qk_json *v)
{
	for (uint32_t i = 0; v && v->type == QK_JSON_OBJECT && i < v->n; i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_json_write(&b, v->members[i].value, false);
		qk_page_row(p, i ? "" : label, "%s: %s", v->members[i].key, b.s);
	}
}

static void tasks(struct qk_page *p, const char *label, struct qk_task *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qk_page_row(p, i ? "" : label, "%s", v[i]->id);
}

static void print_declaration(struct qk_page *p, const struct qk_task *t)
{
	const struct qk_target *d = t->target;
	struct qk_arena a = { 0 };

	qk_page_heading(p, "%s", t->id);
	if (d->at->line)
		qk_page_row(p, "declared at", "%s", qk_json_place(&a, d->at));
	qk_page_row(p, "executor", "%s", d->executor);
	object_rows(p, "options", t->options);
	for (uint32_t i = 0; d->configurations && i < d->configurations->n; i++)
		qk_page_row(p, i ? "" : "configurations", "%s", d->configurations->members[i].key);
	tasks(p, "waits for", t->deps, t->n_deps);
	tasks(p, "runs beside", t->continuous, t->n_continuous);
	rows(p, "outputs", t->outputs.v, t->outputs.n);
	if (t->outputs_problem)
		qk_page_row(p, "", "%s", t->outputs_problem);
	qk_page_row(p, "cache", "%s", d->cache ? "yes" : d->cache_given ? "no" : "not said");
	if (d->continuous)
		qk_page_row(p, "continuous", "yes");
	if (!d->parallelism)
		qk_page_row(p, "parallelism", "no");
	if (d->qk.sandbox_off)
		qk_page_row(p, "sandbox", "off");
	value_row(p, "sandbox", d->qk.sandbox);
	rows(p, "warm", d->qk.warm.v, d->qk.warm.n);
	rows(p, "ignored reads", d->qk.ignore_reads.v, d->qk.ignore_reads.n);
	qk_arena_release(&a);
}

static void print_input(struct qk_page *p, const struct qk_input *in)
{
	struct qk_arena a = { 0 };

	if (!in->files) {
		qk_page_row(p, input_kinds[in->kind], "%s%s", in->name, in->whole ? "" : " (in part)");
	} else {
		qk_page_row(p, "files", "%s: %zu%s%s", in->name, in->files->n, in->at ? ", by " : "",
			in->at ? qk_json_place(&a, in->at) : "");
		for (size_t i = 0; i < in->files->n; i++)
			qk_page_row(p, "", "  %s", in->files->paths[i]);
	}
	qk_arena_release(&a);
}

static int print_text(const struct qk_task *t, const struct qk_resolved *r)
{
	struct qk_page p;
	int status;

	qk_page_init(&p);
	print_declaration(&p, t);
	qk_page_heading(&p, "inputs");
	for (size_t i = 0; i < r->list.n; i++)
		print_input(&p, &r->list.v[i]);
	if (r->uncached)
		qk_page_line(&p, "never cached: %s", r->uncached);
	status = qk_page_print(&p);
	qk_page_release(&p);
	return status;
}

static void json_ids(struct qk_jsonout *j, const char *key, struct qk_task *const *v, size_t n)
{
	qk_jsonout_open(j, key, '[');
	for (size_t i = 0; i < n; i++)
		qk_jsonout_string(j, NULL, v[i]->id);
	qk_jsonout_close(j, ']');
}

static void json_input(struct qk_jsonout *j, const struct qk_input *in)
{
	struct qk_arena a = { 0 };

	qk_jsonout_open(j, NULL, '{');
	qk_jsonout_string(j, "kind", input_kinds[in->kind]);
	qk_jsonout_string(j, "name", in->name);
	qk_jsonout_bool(j, "whole", in->whole);
	qk_jsonout_string(j, "declaredAt", in->at && in->at->line ? qk_json_place(&a, in->at) : NULL);
	if (in->files)
		qk_jsonout_strings(j, "files", in->files->paths, in->files->n);
	qk_jsonout_close(j, '}');
	qk_arena_release(&a);
}

static int print_json(const struct qk_task *t, const struct qk_resolved *r)
{
	struct qk_jsonout j = QK_JSONOUT_INIT;
	const struct qk_target *d = t->target;
	struct qk_arena a = { 0 };

	qk_jsonout_open(&j, NULL, '{');
	qk_jsonout_string(&j, "task", t->id);
	qk_jsonout_string(&j, "project", t->project->name);
	qk_jsonout_string(&j, "target", d->name);
	qk_jsonout_string(&j, "configuration", t->configuration);
	qk_jsonout_string(&j, "declaredAt", d->at->line ? qk_json_place(&a, d->at) : NULL);
	qk_jsonout_string(&j, "executor", d->executor);
	qk_jsonout_value(&j, "options", t->options);
	qk_jsonout_value(&j, "configurations", d->configurations);
	json_ids(&j, "dependsOn", t->deps, t->n_deps);
	json_ids(&j, "continuous", t->continuous, t->n_continuous);
	qk_jsonout_strings(&j, "outputs", t->outputs.v, t->outputs.n);
	qk_jsonout_bool(&j, "cache", d->cache);
	qk_jsonout_bool(&j, "parallelism", d->parallelism);
	if (d->qk.sandbox_off)
		qk_jsonout_bool(&j, "sandbox", false);
	else
		qk_jsonout_value(&j, "sandbox", d->qk.sandbox);
	qk_jsonout_strings(&j, "warm", d->qk.warm.v, d->qk.warm.n);
	qk_jsonout_strings(&j, "ignoreReads", d->qk.ignore_reads.v, d->qk.ignore_reads.n);
	qk_jsonout_open(&j, "inputs", '[');
	for (size_t i = 0; i < r->list.n; i++)
		json_input(&j, &r->list.v[i]);
	qk_jsonout_close(&j, ']');
	qk_jsonout_string(&j, "uncached", r->uncached);
	qk_jsonout_close(&j, '}');
	qk_arena_release(&a);
	return qk_jsonout_print(&j);
}

int qk_show_target(int argc, char **argv)
{
	const char *json = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "one JSON object in place of text", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "show target", "PROJECT:TARGET[:CONFIGURATION] [OPTION]...",
		"What a task declares, as merged from all files and resolved: what it runs, what it waits\n"
		"for, its outputs, and its inputs with every file they come to.\n", options };
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
	if (!status) {
		const struct qk_task *t = qk_keys_asked(&k);
		const struct qk_resolved *r = qk_inputs_task(k.inputs, t);

		status = json ? print_json(t, r) : print_text(t, r);
	}
	qk_keys_close(&k);
	return status < 0 ? qk_verb_fail(&err) : status;
}
