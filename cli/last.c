#include "base/fdio.h"
#include "base/path.h"
#include "cli/site.h"
#include "cli/verbs.h"
#include "keying/jsonc.h"
#include "report/json.h"
#include "report/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { LAST_MAX = 64 << 20 };

/* What would mend the task's failure; NULL if it did not fail for its sandbox. */
static const char *fix_of(const struct qk_json_member *task)
{
	const struct qk_json *fix = qk_json_get(task->value, "sandboxFix");

	return fix && fix->type == QK_JSON_STRING ? fix->s : NULL;
}

static const struct qk_json *tasks_of(const struct qk_json *last)
{
	const struct qk_json *tasks = qk_json_get(last, "tasks");

	return tasks && tasks->type == QK_JSON_OBJECT ? tasks : NULL;
}

static int print_failed_json(const struct qk_json *last)
{
	const struct qk_json *tasks = tasks_of(last);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *sep = "";

	qk_buf_addstr(&b, "{\"version\":1,\"tasks\":{");
	for (uint32_t i = 0; tasks && i < tasks->n; i++) {
		if (!fix_of(&tasks->members[i]))
			continue;
		qk_buf_addstr(&b, sep);
		qk_json_string(&b, tasks->members[i].key);
		qk_buf_addch(&b, ':');
		qk_json_write(&b, tasks->members[i].value, false);
		sep = ",";
	}
	qk_buf_addstr(&b, "}}\n");
	fputs(b.s, stdout);
	return 0;
}

static int print_text(const struct qk_json *last, bool failed)
{
	const struct qk_json *tasks = tasks_of(last);
	size_t shown = 0;

	for (uint32_t i = 0; tasks && i < tasks->n; i++) {
		const struct qk_json_member *t = &tasks->members[i];
		const char *fix = fix_of(t);
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		if (failed && !fix)
			continue;
		qk_text_name(&b, t->key);
		qk_buf_addf(&b, "  %s\n", fix ? "failed for its sandbox"
			: t->value->type == QK_JSON_OBJECT && t->value->n ? "went beyond" : "clean");
		for (const char *s = fix; s && *s;) {
			size_t n = strcspn(s, "\n");

			qk_buf_addf(&b, "  %s%.*s\n", s == fix ? "fix: " : "", (int)n, s);
			s += n + (s[n] == '\n');
		}
		fputs(b.s, stdout);
		shown++;
	}
	if (!shown)
		puts(failed ? "no task failed for its sandbox" : "no task was looked at");
	return 0;
}

int qk_verb_last(int argc, char **argv)
{
	const char *failed = NULL, *format = NULL;
	const struct qk_option options[] = {
		{ .name = "failed", .help = "only tasks that failed for what their sandbox refused",
			.to = &failed },
		{ .name = "format", .value = "FORMAT", .help = "text (what there is else) or json",
			.to = &format },
		{ 0 },
	};
	const struct qk_usage u = { "last", "[OPTION]...",
		"What the last run under a sandbox found, and what would mend it.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_arena a = { 0 };
	const struct qk_json *last = NULL;
	struct qk_err err = QK_ERR_INIT;
	qk_autofree char *path = NULL;
	int status, r;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (format && strcmp(format, "json") && strcmp(format, "text"))
		return qk_options_complain(&u, "--format %s: there is text and json", format);
	if (qk_site_find(&s, &err))
		return qk_verb_fail(&err);
	path = qk_path_join(s.root, ".qk/last.json");
	r = qk_read_file(AT_FDCWD, path, LAST_MAX, &text, &err);
	if (r == -ENOENT)
		qk_fail(&err, -ENOENT, "no run under a sandbox has left anything in '%s'", s.root);
	if (!r)
		r = qk_json_parse(&a, path, text.s, text.len, &last, NULL, &err);
	if (r)
		status = qk_verb_fail(&err);
	else if (!format || !strcmp(format, "text"))
		status = print_text(last, failed);
	else if (failed)
		status = print_failed_json(last);
	else /* as it is: names come back byte for byte */
		status = fwrite(text.s, 1, text.len, stdout) == text.len ? 0 : QK_EXIT_FAILED;
	qk_arena_release(&a);
	return status;
}
