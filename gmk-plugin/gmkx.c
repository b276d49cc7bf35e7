#include "gmk-plugin/gmkx.h"

#include "base/buf.h"
#include "base/mem.h"

#include <gnumake.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *qk_gmkx_expand(const char *fmt, ...)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char *made, *copy;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	made = gmk_expand(b.s);
	copy = qk_strdup(made ? made : "");
	gmk_free(made);
	return copy;
}

void qk_gmkx_eval(const char *fmt, ...)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	gmk_eval(b.s, NULL);
}

void qk_gmkx_eval_at(const char *file, unsigned long line, const char *text)
{
	const gmk_floc at = { file, line };

	gmk_eval(text, &at);
}

void qk_gmkx_fatal(const char *fmt, ...)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT, call = QK_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	/* the text travels in a variable: nothing in it is expanded, whatever it holds */
	qk_buf_addstr(&call, "override define qk.fatal\n");
	for (const char *s = text.s; *s; s++)
		if (*s == '$')
			qk_buf_addstr(&call, "$$");
		else
			qk_buf_addch(&call, *s == '\n' ? ' ' : *s);
	qk_buf_addstr(&call, "\nendef\n");
	gmk_eval(call.s, NULL);
	gmk_expand("$(error $(qk.fatal))");
	abort(); /* $(error) does not come back */
}

char *qk_gmkx_result(const char *s)
{
	size_t n = s ? strlen(s) : 0;
	char *made;

	if (!n)
		return NULL;
	made = gmk_alloc((unsigned int)n + 1);
	memcpy(made, s, n + 1);
	return made;
}

void qk_gmkx_function(const char *name, qk_gmkx_fn *fn, unsigned int min, unsigned int max)
{
	gmk_add_function(name, fn, min, max, GMK_FUNC_DEFAULT);
}
