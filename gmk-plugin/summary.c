#include "gmk-plugin/summary.h"

#include "base/fdio.h"
#include "base/path.h"
#include "gmk-plugin/deep.h"
#include "gmk-plugin/orphans.h"
#include "gmk-plugin/plugin.h"
#include "report/findings.h"
#include "report/json.h"
#include "report/rundir.h"
#include "report/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void leave_graph(void)
{
	struct qk_graph *g = qk_graph_new();
	struct qk_err err = QK_ERR_INIT;

	for (size_t i = 0; i < qk_plugin.targets.n; i++)
		qk_deep_graph(g, (uint64_t)getpid(), qk_plugin.targets.v[i]);
	if (qk_graph_write(g, (uint64_t)getpid(), qk_plugin.session.run, &err))
		fprintf(stderr, "qk: %s\n", err.msg);
	qk_graph_free(g);
}

static void write_report(const struct qk_report *rep)
{
	qk_autofree char *path = qk_path_join(qk_plugin.session.cwd, qk_plugin.knobs.report);
	qk_autobuf struct qk_buf json = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	qk_json_report(&json, rep);
	if (qk_write_file(path, json.s, json.len, 0666, &err))
		fprintf(stderr, "qk: SANDBOX_REPORT: %s\n", err.msg);
}

/* Nothing ran: a report left from another run must not be taken for this one's. */
static void report_nothing(void)
{
	qk_autofree char *cwd = getcwd(NULL, 0);
	struct qk_session *s = &qk_plugin.session;
	struct qk_report rep = { .session = s };

	if (!qk_plugin.knobs.report || getenv("QK_RUN") || !cwd || qk_plugin.knobs.mode == QK_MODE_OFF)
		return;
	s->mode = qk_plugin.knobs.mode;
	s->cwd = cwd;
	s->recorder_note = s->backend_note = s->fastlane = s->fastlane_note = (char *)"";
	write_report(&rep);
}

void qk_summary_at_exit(void)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_report rep;

	if (!qk_plugin.started) {
		report_nothing();
		return;
	}
	qk_orphans_end(qk_plugin.session.run);
	leave_graph();
	if (!qk_plugin.top)
		return;
	qk_report_read(&rep, &qk_plugin.session);
	qk_text_summary(&text, &rep);
	fflush(stdout);
	fflush(stderr);
	if (text.len)
		(void)qk_write_all(STDERR_FILENO, text.s, text.len);
	if (qk_plugin.knobs.report)
		write_report(&rep);
	qk_report_release(&rep);
	qk_rundir_remove(qk_plugin.session.run);
}
