#include "base/path.h"
#include "cli/jsonout.h"
#include "cli/page.h"
#include "cli/site.h"
#include "cli/verbs.h"
#include "keying/jsonc.h"
#include "report/history.h"
#include "report/json.h"
#include "report/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static char *clock_text(uint64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	char s[32] = "?";
	struct tm tm;

	if (localtime_r(&t, &tm))
		strftime(s, sizeof(s), "%Y-%m-%d %H:%M:%S", &tm);
	return qk_strdup(s);
}

static char *span_text(uint64_t ms)
{
	return ms < 60000 ? qk_asprintf("%llu.%03llu s", (unsigned long long)ms / 1000, (unsigned long long)ms % 1000)
			  : qk_asprintf("%llu min %llu s", (unsigned long long)ms / 60000,
				    (unsigned long long)ms / 1000 % 60);
}

static void add_count(struct qk_buf *out, size_t n, const char *what)
{
	if (n)
		qk_buf_addf(out, "%s%zu %s", out->len ? ", " : "", n, what);
}

/* "3 ran, 1 failed, 5 up to date" */
static char *counts(const struct qk_run *run)
{
	struct qk_buf b = QK_BUF_INIT;

	add_count(&b, qk_run_count(run, QK_STATUS_RAN, false), "ran");
	add_count(&b, qk_run_count(run, QK_STATUS_RAN, true), "failed");
	add_count(&b, qk_run_count(run, QK_STATUS_RESTORED, false), "restored");
	add_count(&b, qk_run_count(run, QK_STATUS_UP_TO_DATE, false), "up to date");
	if (!b.len)
		qk_buf_addstr(&b, "no task");
	return qk_buf_detach(&b);
}

static void run_members(struct qk_jsonout *j, const struct qk_run *run)
{
	qk_jsonout_string(j, "id", run->id);
	qk_jsonout_number(j, "start", run->start_ms);
	qk_jsonout_number(j, "duration", run->duration_ms);
	qk_jsonout_string(j, "goals", run->goals);
	qk_jsonout_string(j, "cwd", run->cwd);
	qk_jsonout_string(j, "mode", run->mode);
	qk_jsonout_number(j, "status", (uint64_t)run->status);
	qk_jsonout_number(j, "ran", qk_run_count(run, QK_STATUS_RAN, false));
	qk_jsonout_number(j, "failed", qk_run_count(run, QK_STATUS_RAN, true));
	qk_jsonout_number(j, "restored", qk_run_count(run, QK_STATUS_RESTORED, false));
	qk_jsonout_number(j, "upToDate", run->up_to_date);
}

static void run_line(struct qk_buf *out, const struct qk_run *run)
{
	qk_autofree char *when = clock_text(run->start_ms), *span = span_text(run->duration_ms);
	qk_autofree char *what = counts(run);

	qk_buf_addf(out, "%s  %s  %s  ", run->id, when, span);
	qk_text_name(out, *run->goals ? run->goals : "(default goal)");
	qk_buf_addf(out, "  %s%s%s\n", what, strcmp(run->mode, "off") ? ", " : "",
		strcmp(run->mode, "off") ? run->mode : "");
}

static int print_runs(const char *state, bool json)
{
	qk_autostrv struct qk_strv ids = { 0 };
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_jsonout j = QK_JSONOUT_INIT;
	struct qk_run run;

	qk_history_list(state, &ids);
	if (json)
		qk_jsonout_open(&j, NULL, '[');
	for (size_t i = 0; i < ids.n; i++) {
		if (qk_history_read(state, ids.v[i], &run, NULL))
			continue; /* one that this qk cannot read is none */
		if (json) {
			qk_jsonout_open(&j, NULL, '{');
			run_members(&j, &run);
			qk_jsonout_close(&j, '}');
		} else {
			run_line(&out, &run);
		}
		qk_run_release(&run);
	}
	if (!json)
		return qk_page_write(&out);
	qk_jsonout_close(&j, ']');
	return qk_jsonout_print(&j);
}

static void task_line(struct qk_page *p, const struct qk_taskstatus *s)
{
	static const char *const names[] = { "ran", "restored", "up to date", "nothing to run" };
	qk_autofree char *span = span_text(s->duration_ms);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_text_name(&b, s->id);
	if (WIFSIGNALED(s->exit) && s->exit)
		qk_page_row(p, b.s, "failed (signal %d)  %s", WTERMSIG(s->exit), span);
	else if (s->exit)
		qk_page_row(p, b.s, "failed (exit %d)  %s", WEXITSTATUS(s->exit), span);
	else
		qk_page_row(p, b.s, "%s%s%s%s%s", names[s->status], s->start_ms ? "  " : "",
			s->start_ms ? span : "", s->uncached ? "  not cached: " : "",
			s->uncached ? s->uncached : "");
}

static int print_run(const struct qk_run *run)
{
	qk_autofree char *when = clock_text(run->start_ms), *span = span_text(run->duration_ms);
	qk_autofree char *what = counts(run);
	struct qk_page p;
	int status;

	qk_page_init(&p);
	qk_page_heading(&p, "%s", run->id);
	qk_page_row(&p, "started", "%s in %s", when, run->cwd);
	qk_page_row(&p, "took", "%s", span);
	qk_page_row(&p, "goals", "%s", *run->goals ? run->goals : "(default goal)");
	qk_page_row(&p, "sandbox", "%s", run->mode);
	qk_page_row(&p, "make", "ended with %d", run->status);
	qk_page_row(&p, "tasks", "%s", what);
	if (run->tasks.v.n)
		qk_page_heading(&p, "tasks");
	for (size_t i = 0; i < run->tasks.v.n; i++)
		task_line(&p, &run->tasks.v.v[i]);
	status = qk_page_print(&p);
	qk_page_release(&p);
	return status;
}

/* The run, its tasks as QK_REPORT has them, and what was found as SANDBOX_REPORT has it. */
static int print_run_json(const struct qk_run *run, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_jsonout j = QK_JSONOUT_INIT;
	struct qk_arena a = { 0 };
	const struct qk_json *tasks = NULL, *found = NULL;
	int r;

	qk_taskstatuses_json(&text, &run->tasks, NULL);
	r = qk_json_parse(&a, "tasks", text.s, text.len, &tasks, NULL, err);
	if (!r && run->report)
		r = qk_json_parse(&a, "report", run->report, strlen(run->report), &found, NULL, err);
	if (!r) {
		qk_jsonout_open(&j, NULL, '{');
		run_members(&j, run);
		qk_jsonout_value(&j, "tasks", qk_json_get(tasks, "tasks"));
		qk_jsonout_value(&j, "found", found);
		qk_jsonout_close(&j, '}');
		r = qk_jsonout_print(&j);
	} else {
		r = qk_verb_fail(err);
	}
	qk_arena_release(&a);
	return r;
}

int qk_show_runs(int argc, char **argv)
{
	const char *json = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "a JSON array in place of lines", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "show runs", "[OPTION]...",
		"The runs that are kept, the newest first: what ran, what was restored, how long it took.\n",
		options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autofree char *state = NULL;
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (qk_site_find(&s, &err))
		return qk_verb_fail(&err);
	state = qk_path_join(s.root, ".qk");
	return print_runs(state, json != NULL);
}

int qk_show_run(int argc, char **argv)
{
	const char *json = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "one JSON object in place of text", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "show run", "[ID] [OPTION]...",
		"One run that is kept, the newest without an ID: its tasks but those up to date.\n", options };
	qk_autostrv struct qk_strv words = { 0 }, ids = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	qk_autofree char *state = NULL;
	struct qk_err err = QK_ERR_INIT;
	struct qk_run run;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 1, NULL, &status))
		return status;
	if (qk_site_find(&s, &err))
		return qk_verb_fail(&err);
	state = qk_path_join(s.root, ".qk");
	qk_history_list(state, &ids);
	if (!words.n && !ids.n)
		qk_fail(&err, -ENOENT, "no run is kept in '%s'", state);
	if (err.code || qk_history_read(state, words.n ? words.v[0] : ids.v[0], &run, &err))
		return qk_verb_fail(&err);
	status = json ? print_run_json(&run, &err) : print_run(&run);
	qk_run_release(&run);
	return status;
}
