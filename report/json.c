#include "report/json.h"

#include "report/fixes.h"

#include "base/path.h"

#include <string.h>

/* Length of the UTF-8 sequence at s, 0 if there is none (RFC 3629). */
static int utf8_len(const unsigned char *s)
{
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		: s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

void qk_json_string(struct qk_buf *out, const char *str)
{
	const unsigned char *s = (const unsigned char *)str;

	qk_buf_addch(out, '"');
	while (*s) {
		int n = utf8_len(s);

		if (!n)
			qk_buf_addf(out, "\\udc%02x", *s++);
		else if (*s == '"' || *s == '\\')
			qk_buf_addf(out, "\\%c", *s++);
		else if (*s == '\n')
			qk_buf_addstr(out, "\\n"), s++;
		else if (*s < ' ' || *s == 0x7f)
			qk_buf_addf(out, "\\u%04x", *s++);
		else {
			qk_buf_add(out, s, (size_t)n);
			s += n;
		}
	}
	qk_buf_addch(out, '"');
}

static void member(struct qk_buf *out, const char *key, const char *value)
{
	qk_json_string(out, key);
	qk_buf_addstr(out, ": ");
	qk_json_string(out, value);
}

static void finding(struct qk_buf *out, const struct qk_finding *f)
{
	if (f->kind == QK_KIND_UNUSED) {
		qk_json_string(out, f->path);
		return;
	}
	qk_buf_addstr(out, "{ ");
	member(out,
		f->kind == QK_KIND_LEFT ? "process"
		: f->kind == QK_KIND_PACKAGE || f->kind == QK_KIND_HOISTED ? "name" : "path",
		f->path);
	if (f->kind == QK_KIND_ORDERING) {
		qk_buf_addstr(out, ", ");
		member(out, "madeBy", f->others[0]);
	}
	if (f->kind == QK_KIND_WRITERS) {
		qk_buf_addstr(out, ", \"others\": [");
		for (const char **o = f->others; *o; o++) {
			qk_buf_addstr(out, o == f->others ? "" : ", ");
			qk_json_string(out, *o);
		}
		qk_buf_addch(out, ']');
	}
	if (f->kind == QK_KIND_GRANTED)
		qk_buf_addstr(out, ", \"granted\": true");
	if (f->fix) {
		qk_buf_addstr(out, ", ");
		member(out, "fix", f->fix);
	}
	qk_buf_addstr(out, " }");
}

/* Reads in projects depended on: an object with a list for each. False if there are none. */
static bool by_project(struct qk_buf *out, const struct qk_report_task *t, const char *sep)
{
	const char *comma = "", *last = "";
	bool any = false;

	for (size_t i = 0; i < t->findings.n; i++) {
		const struct qk_finding *f = &t->findings.v[i];

		if (f->kind != QK_KIND_DEPENDENCY)
			continue;
		if (!any)
			qk_buf_addf(out, "%s      \"%s\": {", sep, qk_kinds[f->kind].key);
		if (!any || strcmp(last, f->others[0])) {
			qk_buf_addf(out, "%s\n        ", any ? "\n        ]," : "");
			qk_json_string(out, f->others[0]);
			qk_buf_addstr(out, ": [");
			comma = "";
		}
		qk_buf_addf(out, "%s\n          ", comma);
		finding(out, f);
		comma = ",";
		last = f->others[0];
		any = true;
	}
	if (any)
		qk_buf_addstr(out, "\n        ]\n      }");
	return any;
}

/* One task's findings, grouped under the keys of their kinds; kinds may share a key. */
void qk_json_findings(struct qk_buf *out, const struct qk_report_task *t)
{
	const char *sep = "\n";

	qk_buf_addch(out, '{');
	for (int k = 0; k < QK_N_KINDS; k++) {
		const char *key = qk_kinds[k].key, *comma = "";
		size_t start = out->len;
		bool repeated = false;

		for (int e = 0; e < k; e++)
			repeated |= !strcmp(qk_kinds[e].key, key);
		if (repeated)
			continue;
		if (k == QK_KIND_DEPENDENCY) {
			if (by_project(out, t, sep))
				sep = ",\n";
			continue;
		}
		qk_buf_addf(out, "%s      \"%s\": [", sep, key);
		for (size_t i = 0; i < t->findings.n; i++) {
			if (strcmp(qk_kinds[t->findings.v[i].kind].key, key))
				continue;
			qk_buf_addf(out, "%s\n        ", comma);
			finding(out, &t->findings.v[i]);
			comma = ",";
		}
		if (!*comma) {
			qk_buf_truncate(out, start);
			continue;
		}
		qk_buf_addstr(out, "\n      ]");
		sep = ",\n";
	}
	if (t->sandbox_fix) {
		qk_buf_addf(out, "%s      \"sandboxFix\": ", sep);
		qk_json_string(out, t->sandbox_fix);
		sep = ",\n";
	}
	qk_buf_addstr(out, *sep == ',' ? "\n    }" : "}");
}

static void standing(
	struct qk_buf *out, const struct qk_report *rep, enum qk_standing which, const char *key)
{
	const char *sep = "";

	qk_buf_addf(out, "  \"%s\": {", key);
	for (size_t i = 0; i < rep->tasks.n; i++) {
		if (rep->tasks.v[i].standing != which)
			continue;
		qk_buf_addf(out, "%s\n    ", sep);
		member(out, rep->tasks.v[i].name, rep->tasks.v[i].why);
		sep = ",";
	}
	qk_buf_addstr(out, *sep ? "\n  },\n" : "},\n");
}

static void uncached(struct qk_buf *out, const struct qk_report *rep)
{
	const char *sep = "";

	qk_buf_addstr(out, "  \"uncached\": {");
	for (size_t i = 0; i < rep->tasks.n; i++) {
		if (!rep->tasks.v[i].uncached)
			continue;
		qk_buf_addf(out, "%s\n    ", sep);
		member(out, rep->tasks.v[i].name, rep->tasks.v[i].uncached);
		sep = ",";
	}
	qk_buf_addstr(out, *sep ? "\n  },\n" : "},\n");
}

static void restored(struct qk_buf *out, const struct qk_report *rep)
{
	const char *sep = "";

	qk_buf_addstr(out, "  \"restored\": [");
	for (size_t i = 0; i < rep->tasks.n; i++) {
		if (rep->tasks.v[i].standing != QK_RESTORED)
			continue;
		qk_buf_addf(out, "%s\n    ", sep);
		qk_json_string(out, rep->tasks.v[i].name);
		sep = ",";
	}
	qk_buf_addstr(out, *sep ? "\n  ]\n" : "]\n");
}

static void list(struct qk_buf *out, const char *sep, const char *key, const struct qk_strv *v)
{
	qk_buf_addf(out, "%s      \"%s\": [", sep, key);
	for (size_t i = 0; i < v->n; i++) {
		qk_buf_addstr(out, i ? ", " : "");
		qk_json_string(out, v->v[i]);
	}
	qk_buf_addch(out, ']');
}

/* What mends a task's findings that count, all of its kinds together. */
static void task_fixes(struct qk_buf *out, const struct qk_report_task *t, const char **comma)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autostrv struct qk_strv rules = { 0 };
	const char *sep = "\n";
	size_t n = 0;

	while (n < t->findings.n && qk_kinds[t->findings.v[n].kind].listed)
		n++; /* in the order of kinds, those that are to be mended come first */
	for (const char *const *field = qk_fixes_fields; *field; field++) {
		qk_autostrv struct qk_strv values = { 0 };

		qk_fixes_values(&values, t, 0, n, *field, true, QK_FIXES_GLOBS);
		if (!values.n)
			continue;
		list(&b, sep, *field, &values);
		sep = ",\n";
	}
	if (!t->workspace) /* there, what stands for itself is another task's to mend */
		qk_fixes_rules(&rules, t, 0, n, true);
	if (rules.n) {
		list(&b, sep, "rules", &rules);
		qk_buf_addstr(&b, ",\n      ");
		member(&b, "directory", t->directory ? t->directory : ".");
	}
	if (!b.len)
		return;
	qk_buf_addf(out, "%s\n    ", *comma);
	qk_json_string(out, t->name);
	qk_buf_addf(out, ": {%s\n    }", b.s);
	*comma = ",";
}

static void fixes(struct qk_buf *out, const struct qk_report *rep)
{
	const char *comma = "";

	qk_buf_addstr(out, "  \"fixes\": {");
	for (size_t i = 0; i < rep->tasks.n; i++)
		task_fixes(out, &rep->tasks.v[i], &comma);
	qk_buf_addstr(out, *comma ? "\n  },\n" : "},\n");
}

static void report(struct qk_buf *out, const struct qk_report *rep, bool brief)
{
	const struct qk_session *s = rep->session;
	bool enforce = s->mode == QK_MODE_ENFORCE;
	const char *sep = "";

	qk_buf_addf(out, "{\n  \"version\": 1,\n  \"mode\": \"%s\",\n  ", enforce ? "enforce" : s->mode == QK_MODE_OFF ? "off" : "audit");
	member(out, "recorder", qk_recorder_name(s->recorder));
	if (*s->recorder_note) {
		qk_buf_addstr(out, ",\n  ");
		member(out, "recorderNote", s->recorder_note);
	}
	if (s->recorder == QK_RECORDER_SECCOMP) {
		qk_buf_addf(out, ",\n  \"fastLane\": %s", s->fastlane && *s->fastlane ? "true" : "false");
		if (s->fastlane_note && *s->fastlane_note) {
			qk_buf_addstr(out, ",\n  ");
			member(out, "fastLaneNote", s->fastlane_note);
		}
	}
	if (enforce) {
		qk_buf_addstr(out, ",\n  ");
		member(out, "backend", qk_backend_name(s->backend));
		if (*s->backend_note) {
			qk_buf_addstr(out, ",\n  ");
			member(out, "backendNote", s->backend_note);
		}
	}
	if (s->root && s->makefile && *s->makefile) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT;
		qk_autofree char *makefile = qk_path_join(s->cwd, s->makefile);

		qk_path_relative(&path, s->root, makefile);
		qk_buf_addstr(out, ",\n  ");
		member(out, "makefile", path.s);
		qk_buf_reset(&path);
		qk_path_relative(&path, s->root, s->cwd);
		qk_buf_addstr(out, ",\n  ");
		member(out, "directory", path.s);
	}
	qk_buf_addstr(out, ",\n  \"tasks\": {");
	for (size_t i = 0; i < rep->tasks.n && !brief; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];

		if (t->standing != QK_AUDITED && !t->findings.n)
			continue;
		qk_buf_addf(out, "%s\n    ", sep);
		qk_json_string(out, t->name);
		qk_buf_addstr(out, ": ");
		qk_json_findings(out, t);
		sep = ",";
	}
	qk_buf_addstr(out, *sep ? "\n  },\n" : "},\n");
	fixes(out, rep);
	standing(out, rep, QK_UNSANDBOXED, "unsandboxed");
	standing(out, rep, QK_REFUSED_RUN, "refused");
	standing(out, rep, QK_UNAUDITED, "unaudited");
	if (rep->trouble) {
		qk_buf_addstr(out, "  ");
		member(out, "incomplete", rep->trouble);
		qk_buf_addstr(out, ",\n");
	}
	if (s->caching)
		uncached(out, rep);
	qk_buf_addstr(out, "  \"packagesUnchecked\": {},\n");
	restored(out, rep);
	qk_buf_addstr(out, "}\n");
}

void qk_json_report(struct qk_buf *out, const struct qk_report *rep)
{
	report(out, rep, false);
}

void qk_json_report_brief(struct qk_buf *out, const struct qk_report *rep)
{
	report(out, rep, true);
}
