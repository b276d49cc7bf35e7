/*
 * What a task printed, in order and with the stream each piece went to, so that it can be printed
 * again byte for byte.
 *
 *   capture := chunk*          chunk := u8 stream (1 stdout, 2 stderr), u32 length, bytes
 *
 * Little-endian; neighbouring pieces of one stream are one chunk; no chunk is empty. How finely two
 * streams interleave is as exact as their reader saw it.
 */
#ifndef QK_KEYING_CAPTURE_H
#define QK_KEYING_CAPTURE_H

#include "base/buf.h"

#include <stddef.h>

/*
 * A growing capture. Zero bytes of memory beyond data; last is where the last chunk begins.
 */
struct qk_capture {
	struct qk_buf data;
	size_t last; /* offset of the last chunk's header; valid if data is not empty */
};

#define QK_CAPTURE_INIT                                                                            \
	{                                                                                          \
		QK_BUF_INIT, 0                                                                     \
	}
#define qk_autocapture __attribute__((cleanup(qk_capture_release)))

void qk_capture_release(struct qk_capture *c);
void qk_capture_add(struct qk_capture *c, int stream, const void *p, size_t n);

/* 0 if the n bytes at p are a capture, else -EBADMSG. */
int qk_capture_check(const char *p, size_t n);

/*
 * Writes the capture to the two descriptors. 0, -EBADMSG (nothing was written), or what write said
 * (-EPIPE …).
 */
int qk_capture_replay(const char *p, size_t n, int out, int err);

#endif
