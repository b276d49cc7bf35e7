#include "gmk-plugin/afterwards.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/recipe.h"
#include "report/history.h"
#include "report/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of last.json; beyond, only what mends the findings is left. */
enum { LAST_MAX = 16 << 20, LAST_FINDINGS = 1 << 16 };

static uint64_t begun_ms;
static char *goals;
static bool pretending;

void qk_afterwards_begin(void)
{
	begun_ms = qk_clock_since_1970();
	goals = qk_gmkx_expand("$(value MAKECMDGOALS)");
	pretending = qk_recipe_pretending();
}

void qk_afterwards_found(const struct qk_report *rep, struct qk_buf *out)
{
	qk_autofree char *path = qk_path_join(qk_plugin.session.state, "last.json");
	struct qk_err err = QK_ERR_INIT;
	size_t n = 0;

	for (size_t i = 0; i < rep->tasks.n; i++)
		n += rep->tasks.v[i].findings.n;
	if (n <= LAST_FINDINGS)
		qk_json_report(out, rep);
	if (n > LAST_FINDINGS || out->len > LAST_MAX) {
		qk_buf_reset(out);
		qk_json_report_brief(out, rep);
	}
	if (qk_write_file(path, out->s, out->len, 0666, &err))
		fprintf(stderr, "qk: %s\n", err.msg);
}

/* Tasks of the workspace but those up to date; without any, the recipes of the Makefile. */
static void take_tasks(
	struct qk_run *run, const struct qk_taskstatuses *statuses, const struct qk_report *rep)
{
	for (size_t i = 0; i < statuses->v.n; i++)
		if (statuses->v.v[i].status == QK_STATUS_UP_TO_DATE)
			run->up_to_date++;
		else
			qk_taskstatuses_add(&run->tasks, &statuses->v.v[i]);
	for (size_t i = 0; rep && !statuses->v.n && i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];
		struct qk_taskstatus s = { .id = t->name,
			.status = t->standing == QK_RESTORED ? QK_STATUS_RESTORED : QK_STATUS_RAN };

		qk_taskstatuses_add(&run->tasks, &s);
	}
}

static const char *mode(void)
{
	enum qk_mode m = qk_plugin.held.run ? QK_MODE_ENFORCE : qk_plugin.session.mode;

	return !qk_plugin.started || m == QK_MODE_OFF ? "off" : m == QK_MODE_AUDIT ? "audit" : "enforce";
}

void qk_afterwards_keep(const struct qk_taskstatuses *statuses, const struct qk_report *rep,
	const struct qk_buf *found, int status)
{
	qk_autofree char *cwd = getcwd(NULL, 0), *state = NULL, *id = NULL;
	struct qk_err err = QK_ERR_INIT;
	struct qk_run run = { .mode = mode(),
		.goals = goals,
		.report = found->len ? found->s : NULL,
		.status = status,
		.start_ms = begun_ms,
		.duration_ms = qk_clock_since_1970() - begun_ms };

	if (pretending || !cwd || (!qk_plugin.started && !statuses->v.n))
		return;
	state = qk_plugin.started ? qk_strdup(qk_plugin.session.state) : qk_path_join(cwd, ".qk");
	id = qk_asprintf("%llu-%d", (unsigned long long)begun_ms, (int)getpid());
	run.id = id;
	run.cwd = cwd;
	/* nothing was started, and nothing is there: nothing is to be made */
	if (!access(state, F_OK)) {
		take_tasks(&run, statuses, rep);
		if (qk_history_add(state, &run, &err))
			fprintf(stderr, "qk: %s\n", err.msg);
	}
	qk_run_release(&run);
}
