#include "runner/frame.h"

#include "base/fdio.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 60, SECRET_MIN = 4 };

#define MASK "***"

static bool is_secret_name(const char *name, size_t n)
{
	static const char *const words[] = { "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL",
		"API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "AUTH" };

	for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
		size_t len = strlen(words[w]);

		for (size_t i = 0; i + len <= n; i++)
			if (!strncasecmp(name + i, words[w], len))
				return true;
	}
	return false;
}

/* The output without secrets: both streams as they came. */
static void add_output(struct qk_buf *out, const struct qk_capture *c)
{
	size_t at = 0;

	while (at + 5 <= c->data.len) {
		const unsigned char *p = (const unsigned char *)c->data.s + at + 1;
		uint32_t n = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			(uint32_t)p[3] << 24;

		qk_buf_add(out, c->data.s + at + 5, n);
		at += 5 + (size_t)n;
	}
}

static void mask(struct qk_buf *b, const char *value)
{
	qk_autobuf struct qk_buf to = QK_BUF_INIT;
	size_t n = strlen(value);
	const char *s = b->s, *end = b->s + b->len, *hit;

	while ((hit = memmem(s, (size_t)(end - s), value, n))) {
		qk_buf_add(&to, s, (size_t)(hit - s));
		qk_buf_addstr(&to, MASK);
		s = hit + n;
	}
	if (!to.len)
		return;
	qk_buf_add(&to, s, (size_t)(end - s));
	qk_buf_reset(b);
	qk_buf_add(b, to.s, to.len);
}

static void mask_all(struct qk_buf *b, const struct qk_strv *env)
{
	for (size_t i = 0; i < env->n; i++) {
		size_t n = strcspn(env->v[i], "=");

		if (env->v[i][n] && strlen(env->v[i] + n + 1) >= SECRET_MIN &&
			is_secret_name(env->v[i], n))
			mask(b, env->v[i] + n + 1);
	}
}

static void rule(struct qk_buf *out, const char *title)
{
	qk_buf_addf(out, "├─ %s ", title);
	for (size_t n = strlen(title); n < WIDTH; n++)
		qk_buf_addstr(out, "─");
	qk_buf_addstr(out, "\n\n");
}

static void outcome(struct qk_buf *out, const struct qk_violations *v, int status)
{
	if (WIFSIGNALED(status))
		qk_buf_addf(out, "failed (signal %d", WTERMSIG(status));
	else
		qk_buf_addf(out, "failed (exit %d", WEXITSTATUS(status));
	if (v->counted)
		qk_buf_addf(out, ", %zu sandbox violation%s", v->counted, v->counted == 1 ? "" : "s");
	qk_buf_addch(out, ')');
}

void qk_frame_print(const struct qk_taskspec *spec, const struct qk_strv *env,
	const struct qk_capture *output, const struct qk_violations *v,
	const struct qk_violation_scope *scope, int status,
	unsigned long long ms)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, said = QK_BUF_INIT;
	char title[64];

	qk_buf_addf(&b, "┌─ %s > ", spec->id);
	outcome(&b, v, status);
	qk_buf_addstr(&b, "\n\n");
	for (size_t i = 0; i < spec->commands.n; i++)
		qk_buf_addf(&b, "$ %s\n", spec->commands.v[i]);
	qk_buf_addch(&b, '\n');
	add_output(&said, output);
	mask_all(&b, env);
	mask_all(&said, env);
	if (said.len) {
		rule(&b, "OUTPUT");
		qk_buf_add(&b, said.s, said.len);
		qk_buf_addstr(&b, said.s[said.len - 1] == '\n' ? "\n" : "\n\n");
	}
	if (v->v.n) {
		snprintf(title, sizeof(title), "SANDBOX VIOLATIONS (%zu)", v->counted);
		rule(&b, title);
		qk_violations_text(&b, v, scope);
		qk_buf_addch(&b, '\n');
	}
	qk_buf_addf(&b, "└─ %s ── (%llums) ", spec->id, ms);
	outcome(&b, v, status);
	qk_buf_addch(&b, '\n');
	(void)qk_write_all(STDERR_FILENO, b.s, b.len);
}
