#include "gmk-plugin/summary.h"

#include "base/fdio.h"
#include "base/path.h"
#include "gmk-plugin/afterwards.h"
#include "gmk-plugin/ask.h"
#include "gmk-plugin/deep.h"
#include "gmk-plugin/orphans.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/taskpart.h"
#include "report/findings.h"
#include "report/json.h"
#include "report/keepers.h"
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

static void take_status(const struct qk_taskstatus *s, void *statuses)
{
	qk_taskstatuses_add(statuses, s);
}

/* What the workspace's own part decided, and what runners left, if there was a run. */
static void take_statuses(struct qk_taskstatuses *l)
{
	if (qk_taskpart)
		qk_taskpart->finish(take_status, l);
	if (!qk_plugin.started)
		return;
	if (qk_plugin.top)
		qk_taskstatuses_read(l, qk_plugin.session.run);
	else if (l->v.n)
		qk_taskstatuses_append(l, qk_plugin.session.run, NULL);
}

static void report_statuses(const struct qk_taskstatuses *l, const struct qk_report *rep)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT, json = QK_BUF_INIT;
	qk_autofree char *cwd = getcwd(NULL, 0);
	struct qk_err err = QK_ERR_INIT;

	qk_taskstatuses_text(&text, l);
	fflush(stdout);
	if (text.len)
		(void)qk_write_all(STDERR_FILENO, text.s, text.len);
	if (qk_plugin.knobs.run_report && cwd) {
		qk_autofree char *path = qk_path_join(cwd, qk_plugin.knobs.run_report);

		qk_taskstatuses_json(&json, l, rep);
		if (qk_write_file(path, json.s, json.len, 0666, &err))
			fprintf(stderr, "qk: QK_REPORT: %s\n", err.msg);
	}
}

static void report_findings(const struct qk_report *rep, struct qk_buf *found)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;

	qk_text_summary(&text, rep);
	fflush(stdout);
	fflush(stderr);
	if (text.len)
		(void)qk_write_all(STDERR_FILENO, text.s, text.len);
	if (qk_plugin.session.mode != QK_MODE_OFF || qk_plugin.held.run)
		qk_afterwards_found(rep, found);
	if (qk_plugin.knobs.report)
		write_report(rep);
}

static void at_exit(int status, void *unused)
{
	qk_autobuf struct qk_buf found = QK_BUF_INIT;
	struct qk_taskstatuses statuses = { 0 };
	struct qk_report rep;
	bool audited = qk_plugin.started &&
		(qk_plugin.session.mode != QK_MODE_OFF || qk_plugin.held.run);
	bool reported = audited || (qk_plugin.started && qk_plugin.session.caching);

	(void)unused;
	if (qk_plugin.knobs.why) {
		qk_ask_end();
		return;
	}
	if (qk_plugin.started)
		qk_keepers_end(qk_plugin.session.run);
	take_statuses(&statuses);
	if (reported) { /* else nobody asks who came before whom */
		if (audited) /* without a sandbox nothing tells what is left from what goes on */
			qk_orphans_end(qk_plugin.session.run);
		leave_graph();
	}
	if (!qk_plugin.started || qk_plugin.top) {
		if (reported) {
			/* a run that holds but those with grants of their own is told of as theirs */
			qk_report_read(&rep, qk_plugin.held.run ? &qk_plugin.held : &qk_plugin.session,
				qk_taskpart ? qk_taskpart->places : NULL);
			report_findings(&rep, &found);
		} else {
			report_nothing();
		}
		if (qk_taskpart)
			report_statuses(&statuses, audited ? &rep : NULL);
		qk_afterwards_keep(&statuses, reported ? &rep : NULL, &found, status);
		if (reported)
			qk_report_release(&rep);
		if (qk_plugin.started)
			qk_rundir_remove(qk_plugin.session.run);
	}
	qk_taskstatuses_release(&statuses);
}

void qk_summary_register(void)
{
	static bool registered;

	if (!registered) {
		qk_afterwards_begin();
		on_exit(at_exit, NULL);
	}
	registered = true;
}
