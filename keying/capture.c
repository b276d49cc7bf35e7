#include "keying/capture.h"

#include "base/fdio.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { HEAD = 5 };
static const size_t chunk_max = 1 << 30;

void qk_capture_release(struct qk_capture *c)
{
	qk_buf_release(&c->data);
	c->last = 0;
}

static size_t get_length(const char *head)
{
	size_t n = 0;

	for (int i = 0; i < 4; i++)
		n |= (size_t)(unsigned char)head[1 + i] << 8 * i;
	return n;
}

static void put_head(char *head, int stream, size_t n)
{
	head[0] = (char)stream;
	for (int i = 0; i < 4; i++)
		head[1 + i] = (char)(n >> 8 * i);
}

void qk_capture_add(struct qk_capture *c, int stream, const void *p, size_t n)
{
	char head[HEAD];
	size_t have;

	assert(stream == 1 || stream == 2);
	if (!n)
		return;
	have = c->data.len ? get_length(c->data.s + c->last) : 0;
	if (c->data.len && c->data.s[c->last] == stream && have + n <= chunk_max) {
		put_head(c->data.s + c->last, stream, have + n);
	} else {
		c->last = c->data.len;
		put_head(head, stream, n);
		qk_buf_add(&c->data, head, sizeof(head));
	}
	qk_buf_add(&c->data, p, n);
}

int qk_capture_check(const char *p, size_t n)
{
	while (n) {
		size_t len;

		if (n < HEAD || (p[0] != 1 && p[0] != 2))
			return -EBADMSG;
		len = get_length(p);
		if (!len || len > n - HEAD)
			return -EBADMSG;
		p += HEAD + len;
		n -= HEAD + len;
	}
	return 0;
}

int qk_capture_replay(const char *p, size_t n, int out, int err)
{
	int r = qk_capture_check(p, n);

	while (!r && n) {
		size_t len = get_length(p);

		r = qk_write_all(p[0] == 1 ? out : err, p + HEAD, len);
		p += HEAD + len;
		n -= HEAD + len;
	}
	return r;
}
