#include "cli/checks.h"
#include "cli/host.h"
#include "cli/jsonout.h"
#include "cli/page.h"
#include "cli/verbs.h"

#include "base/fdio.h"
#include "base/path.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* All that one look has found. */
struct look {
	struct qk_site site;
	struct qk_host host;
	struct qk_checked checked;
	struct qk_faults faults;
	char *makefile;    /* the one make would read where we are; NULL: none */
	bool includes_us;  /* a line of it includes qk.mk */
};

enum { MAKEFILE_MAX = 1 << 20 };

/* True if a line of the text has "include" first and qk.mk in it. */
static bool has_include(const char *text)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *s = line + strspn(line, " -s");
		const char *mk = strstr(s, "qk.mk");

		if (!strncmp(s, "include", 7) && mk && mk < line + strcspn(line, "\n"))
			return true;
	}
	return false;
}

static void find_makefile(struct look *l)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };

	for (size_t i = 0; i < 3 && !l->makefile; i++) {
		qk_autobuf struct qk_buf text = QK_BUF_INIT;

		if (access(names[i], F_OK))
			continue;
		l->makefile = qk_strdup(names[i]);
		if (!qk_read_file(AT_FDCWD, names[i], MAKEFILE_MAX, &text, NULL))
			l->includes_us = has_include(text.s);
	}
}

static void check_knobs(struct qk_faults *f)
{
	const char *mode = getenv("SANDBOX");
	struct qk_err err = QK_ERR_INIT;
	uint64_t limit;

	if (qk_site_store_limit(&limit, &err))
		qk_faults_add(f, "host", "knob", "%s", err.msg);
	if (mode && *mode && strcmp(mode, "audit") && strcmp(mode, "1") && strcmp(mode, "enforce") &&
		strcmp(mode, "off") && strcmp(mode, "0"))
		qk_faults_add(f, "host", "knob", "SANDBOX=%s in the environment: not audit (or 1), enforce or "
						 "off", mode);
}

static void print_host(struct qk_page *p, const struct look *l)
{
	const struct qk_host *h = &l->host;

	qk_page_heading(p, "host");
	qk_host_recorder(p, h);
	qk_page_row(p, "back end", "%s", qk_backend_name(h->walls.backend));
	if (*h->backend_note)
		qk_page_row(p, "", "not %s", h->backend_note);
	if (*h->walls.limits)
		qk_page_row(p, "", "%s", h->walls.limits);
	qk_page_row(p, "make", "%s%s%s", h->make ? h->make_version : "none", h->make ? ", " : "",
		h->make ? h->make : "");
	qk_page_row(p, "qk.mk", "%s", h->prefix.mk ? h->prefix.mk : "none");
}

static void print_place(struct qk_page *p, const struct look *l)
{
	if (l->site.is_workspace) {
		qk_page_heading(p, "workspace %s", l->site.root);
		qk_page_row(p, "projects", "%zu", l->checked.projects);
		qk_page_row(p, "targets", "%zu", l->checked.targets);
	} else {
		qk_page_heading(p, "directory %s", l->site.cwd);
		qk_page_row(p, "root", "%s", l->site.root);
	}
	if (l->makefile)
		qk_page_row(p, "makefile", "%s, %s", l->makefile, l->includes_us ? "which includes qk.mk" :
			"without qk.mk: qk run GOAL --sandbox audits it all the same");
	else
		qk_page_row(p, "makefile", "none%s", l->site.is_workspace ?
			": qk run and qk run-many do without" : "");
}

static int print_text(const struct look *l)
{
	struct qk_page p;
	size_t n = l->faults.v.n;
	int status;

	qk_page_init(&p);
	print_host(&p, l);
	print_place(&p, l);
	if (n)
		qk_page_heading(&p, "found: %zu", n);
	else
		qk_page_heading(&p, "found: nothing wrong");
	for (size_t i = 0; i < n; i++)
		qk_page_line(&p, "%s", l->faults.v.v[i].text);
	status = qk_page_print(&p);
	qk_page_release(&p);
	return status;
}

static int print_json(const struct look *l)
{
	struct qk_jsonout j = QK_JSONOUT_INIT;
	const struct qk_host *h = &l->host;

	qk_jsonout_open(&j, NULL, '{');
	qk_jsonout_number(&j, "version", 1);
	qk_jsonout_string(&j, "root", l->site.root);
	qk_jsonout_bool(&j, "workspace", l->site.is_workspace);
	qk_jsonout_number(&j, "projects", l->checked.projects);
	qk_jsonout_number(&j, "targets", l->checked.targets);
	qk_jsonout_string(&j, "makefile", l->makefile);
	qk_jsonout_bool(&j, "includesQk", l->includes_us);
	qk_jsonout_open(&j, "host", '{');
	qk_host_recorder_json(&j, h);
	qk_jsonout_string(&j, "backend", qk_backend_name(h->walls.backend));
	qk_jsonout_string(&j, "backendNote", h->backend_note);
	qk_jsonout_string(&j, "backendLimits", h->walls.limits);
	qk_jsonout_string(&j, "make", h->make);
	qk_jsonout_string(&j, "makeVersion", h->make_version);
	qk_jsonout_string(&j, "qkMk", h->prefix.mk);
	qk_jsonout_close(&j, '}');
	qk_jsonout_open(&j, "findings", '[');
	for (size_t i = 0; i < l->faults.v.n; i++) {
		qk_jsonout_open(&j, NULL, '{');
		qk_jsonout_string(&j, "area", l->faults.v.v[i].area);
		qk_jsonout_string(&j, "kind", l->faults.v.v[i].kind);
		qk_jsonout_string(&j, "text", l->faults.v.v[i].text);
		qk_jsonout_close(&j, '}');
	}
	qk_jsonout_close(&j, ']');
	qk_jsonout_close(&j, '}');
	return qk_jsonout_print(&j);
}

int qk_verb_doctor(int argc, char **argv)
{
	const char *json = NULL, *strict = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "one JSON object in place of text", .to = &json },
		{ .name = "strict", .help = "exit with status 1 if anything is found", .to = &strict },
		{ 0 },
	};
	const struct qk_usage u = { "doctor", "[OPTION]...",
		"Looks for what is wrong with the workspace, with the installation and with what this\n"
		"host gives to audit and enforce. Nothing is run and nothing is changed.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	struct look l = { .site = QK_SITE_INIT };
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 0, NULL, &status))
		return status;
	if (qk_site_find(&l.site, &err)) {
		status = qk_verb_fail(&err);
	} else {
		qk_host_find(&l.host, l.site.root);
		qk_host_faults(&l.host, &l.faults);
		check_knobs(&l.faults);
		find_makefile(&l);
		if (l.site.is_workspace)
			qk_checks_workspace(&l.site, &l.faults, &l.checked);
		status = json ? print_json(&l) : print_text(&l);
		if (!status && strict && l.faults.v.n)
			status = QK_EXIT_FAILED;
		qk_host_release(&l.host);
	}
	free(l.makefile);
	qk_faults_release(&l.faults);
	qk_site_release(&l.site);
	return status;
}
