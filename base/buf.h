/*
 * A growing byte buffer, always terminated: b.s is a C string whenever no NUL was put in.
 * Initialise with QK_BUF_INIT; an initialised buffer needs no allocation and may be released.
 */
#ifndef QK_BASE_BUF_H
#define QK_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct qk_buf {
	char *s; /* never NULL */
	size_t len;
	size_t cap; /* 0: s is the shared empty string */
};

extern char qk_buf_empty[1];
#define QK_BUF_INIT { qk_buf_empty, 0, 0 }
#define qk_autobuf __attribute__((cleanup(qk_buf_release)))

void qk_buf_release(struct qk_buf *b); /* frees; b is empty and usable again */
void qk_buf_reset(struct qk_buf *b);   /* empties, keeps the memory */
void qk_buf_truncate(struct qk_buf *b, size_t len);
void qk_buf_reserve(struct qk_buf *b, size_t more); /* room for `more` bytes behind len */
void qk_buf_add(struct qk_buf *b, const void *p, size_t n);
void qk_buf_addstr(struct qk_buf *b, const char *s);
void qk_buf_addch(struct qk_buf *b, char c);
void qk_buf_addf(struct qk_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void qk_buf_vaddf(struct qk_buf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
char *qk_buf_detach(struct qk_buf *b); /* the caller frees; b is empty afterwards */

#endif
