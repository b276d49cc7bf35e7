#include "cli/page.h"

#include "base/fdio.h"
#include "cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void qk_page_init(struct qk_page *p)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	*p = (struct qk_page){ .out = QK_BUF_INIT };
	p->bold = isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

void qk_page_release(struct qk_page *p)
{
	qk_buf_release(&p->out);
	qk_strv_release(&p->labels);
	qk_strv_release(&p->values);
}

static void flush_rows(struct qk_page *p)
{
	const char *indent = p->started ? "  " : "";
	size_t width = 0;

	for (size_t i = 0; i < p->labels.n; i++)
		width = strlen(p->labels.v[i]) > width ? strlen(p->labels.v[i]) : width;
	for (size_t i = 0; i < p->labels.n; i++)
		qk_buf_addf(&p->out, "%s%-*s%s%s\n", indent, *p->values.v[i] ? (int)width : 0,
			p->labels.v[i], *p->values.v[i] ? "  " : "", p->values.v[i]);
	qk_strv_release(&p->labels);
	qk_strv_release(&p->values);
}

void qk_page_heading(struct qk_page *p, const char *fmt, ...)
{
	va_list ap;

	flush_rows(p);
	if (p->out.len)
		qk_buf_addch(&p->out, '\n');
	if (p->bold)
		qk_buf_addstr(&p->out, "\033[1m");
	va_start(ap, fmt);
	qk_buf_vaddf(&p->out, fmt, ap);
	va_end(ap);
	qk_buf_addstr(&p->out, p->bold ? "\033[0m\n" : "\n");
	p->started = true;
}

void qk_page_row(struct qk_page *p, const char *label, const char *fmt, ...)
{
	qk_autobuf struct qk_buf value = QK_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&value, fmt, ap);
	va_end(ap);
	qk_strv_push(&p->labels, label);
	qk_strv_push(&p->values, value.s);
}

void qk_page_line(struct qk_page *p, const char *fmt, ...)
{
	va_list ap;

	flush_rows(p);
	if (p->started)
		qk_buf_addstr(&p->out, "  ");
	va_start(ap, fmt);
	qk_buf_vaddf(&p->out, fmt, ap);
	va_end(ap);
	qk_buf_addch(&p->out, '\n');
}

int qk_page_write(const struct qk_buf *text)
{
	int r = qk_write_all(STDOUT_FILENO, text->s, text->len);

	if (!r)
		return 0;
	fprintf(stderr, "qk: write: %s\n", strerror(-r));
	return QK_EXIT_FAILED;
}

int qk_page_print(struct qk_page *p)
{
	flush_rows(p);
	return qk_page_write(&p->out);
}
