#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

char qk_buf_empty[1];

void qk_buf_release(struct qk_buf *b)
{
	if (b->cap)
		free(b->s);
	*b = (struct qk_buf)QK_BUF_INIT;
}

void qk_buf_truncate(struct qk_buf *b, size_t len)
{
	assert(len <= b->len);
	b->len = len;
	if (b->cap)
		b->s[len] = '\0';
}

void qk_buf_reset(struct qk_buf *b)
{
	qk_buf_truncate(b, 0);
}

void qk_buf_reserve(struct qk_buf *b, size_t more)
{
	size_t need = b->len + more + 1, cap = b->cap ? b->cap : 64;

	if (need <= b->cap)
		return;
	while (cap < need)
		cap *= 2;
	b->s = qk_realloc(b->cap ? b->s : NULL, cap, 1);
	b->cap = cap;
	b->s[b->len] = '\0';
}

void qk_buf_add(struct qk_buf *b, const void *p, size_t n)
{
	if (!n)
		return;
	qk_buf_reserve(b, n);
	memcpy(b->s + b->len, p, n);
	b->len += n;
	b->s[b->len] = '\0';
}

void qk_buf_addstr(struct qk_buf *b, const char *s)
{
	qk_buf_add(b, s, strlen(s));
}

void qk_buf_addch(struct qk_buf *b, char c)
{
	qk_buf_add(b, &c, 1);
}

void qk_buf_vaddf(struct qk_buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	assert(n >= 0);
	qk_buf_reserve(b, (size_t)n);
	vsnprintf(b->s + b->len, (size_t)n + 1, fmt, ap);
	b->len += (size_t)n;
}

void qk_buf_addf(struct qk_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(b, fmt, ap);
	va_end(ap);
}

char *qk_buf_detach(struct qk_buf *b)
{
	char *s = b->cap ? b->s : qk_strdup("");

	*b = (struct qk_buf)QK_BUF_INIT;
	return s;
}
