#include "base/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static void put_le(char *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (char)(v >> 8 * i);
}

static uint64_t get_le(const char *p, int n)
{
	uint64_t v = 0;

	for (int i = 0; i < n; i++)
		v |= (uint64_t)(unsigned char)p[i] << 8 * i;
	return v;
}

size_t qk_record_begin(struct qk_buf *b)
{
	size_t begin = b->len;

	qk_buf_add(b, "\0\0\0", 4);
	return begin;
}

void qk_record_put(struct qk_buf *b, unsigned int tag, const void *p, size_t n)
{
	char head[6];

	assert(n < QK_RECORD_MAX && tag <= UINT16_MAX);
	put_le(head, tag, 2);
	put_le(head + 2, n, 4);
	qk_buf_add(b, head, sizeof(head));
	qk_buf_add(b, p, n);
}

void qk_record_putstr(struct qk_buf *b, unsigned int tag, const char *s)
{
	qk_record_put(b, tag, s, strlen(s));
}

void qk_record_putnum(struct qk_buf *b, unsigned int tag, uint64_t v)
{
	char le[8];

	put_le(le, v, 8);
	qk_record_put(b, tag, le, sizeof(le));
}

void qk_record_end(struct qk_buf *b, size_t begin)
{
	put_le(b->s + begin, b->len - begin - 4, 4);
}

int qk_record_next(const char *p, size_t n, size_t *pos, struct qk_record *ret)
{
	size_t len;

	if (*pos == n)
		return 0;
	if (n - *pos < 4)
		return -EBADMSG;
	len = get_le(p + *pos, 4);
	if (len > QK_RECORD_MAX || len > n - *pos - 4)
		return -EBADMSG;
	ret->p = p + *pos + 4;
	ret->end = ret->p + len;
	*pos += 4 + len;
	return 1;
}

int qk_field_next(struct qk_record *r, struct qk_field *ret)
{
	size_t left = (size_t)(r->end - r->p), len;

	if (!left)
		return 0;
	if (left < 6)
		return -EBADMSG;
	len = get_le(r->p + 2, 4);
	if (len > left - 6)
		return -EBADMSG;
	ret->tag = (unsigned int)get_le(r->p, 2);
	ret->p = r->p + 6;
	ret->n = len;
	r->p += 6 + len;
	return 1;
}

uint64_t qk_field_num(const struct qk_field *f)
{
	return f->n == 8 ? get_le(f->p, 8) : 0;
}

bool qk_field_is(const struct qk_field *f, const char *s)
{
	return f->n == strlen(s) && !memcmp(f->p, s, f->n);
}
