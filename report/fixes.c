#include "report/fixes.h"

#include "report/suggest.h"

#include <string.h>

const char *const qk_fixes_fields[] = { "inputs", "outputs", "dependsOn", "externalDependencies", NULL };

void qk_fixes_values(struct qk_strv *out, const struct qk_report_task *t, size_t from, size_t to,
	const char *field, bool shared, size_t most)
{
	qk_autofree const char **values = qk_alloc((to - from + 1) * sizeof(*values));
	bool inputs = !strcmp(field, "inputs");
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		const struct qk_finding *f = &t->findings.v[i];

		if (f->field && !strcmp(f->field, field) && (shared || !f->shared))
			values[n++] = f->value;
	}
	/* what is written has to be named: a glob could take in what is not the task's */
	qk_suggest(out, values, n, inputs ? most : n);
}

/* Length of "target:" in a rule; 0 where the line is no rule. */
static size_t rule_left(const char *fix)
{
	const char *colon = strstr(fix, ": ");

	return colon && !strstr(fix, " += ") ? (size_t)(colon - fix) + 1 : 0;
}

/* True if the words hold word, which begins with a blank as each of them does. */
static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = words; (s = strstr(s, word)); s += n)
		if (!s[n] || s[n] == ' ')
			return true;
	return false;
}

static bool counts(const struct qk_finding *f, bool shared)
{
	return f->fix && !f->field && (shared || !f->shared);
}

/* Reads too many to be named: a pattern each, where the finding has one. */
static bool push_globs(
	struct qk_strv *out, const struct qk_report_task *t, size_t from, size_t to, bool shared)
{
	qk_autofree const char **values = qk_alloc((to - from + 1) * sizeof(*values));
	qk_autostrv struct qk_strv globs = { 0 };
	qk_autobuf struct qk_buf line = QK_BUF_INIT;
	const char *fix = NULL;
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		const struct qk_finding *f = &t->findings.v[i];

		if (!counts(f, shared) || !f->value)
			continue;
		fix = f->fix;
		values[n++] = f->value;
	}
	if (n <= QK_FIXES_NAMES)
		return false;
	qk_suggest(&globs, values, n, QK_FIXES_GLOBS);
	qk_buf_addf(&line, "%.*s QK_INPUTS +=", (int)rule_left(fix), fix);
	for (size_t i = 0; i < globs.n; i++)
		qk_buf_addf(&line, " %s", globs.v[i]);
	qk_strv_push(out, line.s);
	return true;
}

void qk_fixes_rules(
	struct qk_strv *out, const struct qk_report_task *t, size_t from, size_t to, bool shared)
{
	bool globs = push_globs(out, t, from, to, shared);
	qk_autobuf struct qk_buf line = QK_BUF_INIT;
	size_t left = 0;

	for (size_t i = from; i < to; i++) {
		const struct qk_finding *f = &t->findings.v[i];
		size_t n = f->fix ? rule_left(f->fix) : 0;

		if (!counts(f, shared) || (globs && f->value) || !strcmp(f->fix, line.s))
			continue;
		if (n && n == left && !strncmp(f->fix, line.s, n)) {
			if (!has_word(line.s + left, f->fix + n))
				qk_buf_addstr(&line, f->fix + n);
			continue;
		}
		if (line.len)
			qk_strv_push(out, line.s);
		qk_buf_reset(&line);
		qk_buf_addstr(&line, f->fix);
		left = n;
	}
	if (line.len)
		qk_strv_push(out, line.s);
}
