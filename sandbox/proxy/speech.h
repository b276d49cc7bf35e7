/*
 * What clients say and are answered: HTTP as to a proxy (absolute URIs and CONNECT) and SOCKS5,
 * told apart by the first byte. Pure: bytes in, a wish or an answer out.
 */
#ifndef QK_SANDBOX_PROXY_SPEECH_H
#define QK_SANDBOX_PROXY_SPEECH_H

#include "base/buf.h"
#include "sandbox/proxy/hosts.h"

#include <stdbool.h>
#include <stdint.h>

enum { QK_SPEECH_MAX = 32 * 1024 }; /* bytes of what a client says before it is served */

enum qk_heard {
	QK_HEARD_PART,     /* more is to come */
	QK_HEARD_GREETING, /* SOCKS: answered, and more is to come */
	QK_HEARD_WISH,
	QK_HEARD_NONSENSE,
};

enum qk_manner {
	QK_MANNER_HTTP,    /* one request, rewritten as to the server itself */
	QK_MANNER_CONNECT, /* a tunnel */
	QK_MANNER_SOCKS,   /* a tunnel */
};

struct qk_wish {
	enum qk_manner manner;
	char host[QK_HOST_NAME + 1]; /* in normal form */
	uint16_t port;
};

/* How a wish ends, or a conversation without one. */
enum qk_outcome {
	QK_OUTCOME_OPEN,
	QK_OUTCOME_REFUSED,     /* by the lists */
	QK_OUTCOME_UNREACHABLE, /* no address, or none that answers */
	QK_OUTCOME_NONSENSE,
	QK_OUTCOME_TOO_LONG,
	QK_OUTCOME_TOO_SLOW,
};

/*
 * Takes what has been understood off the front of in. greeted: a SOCKS greeting went before. A
 * greeting's answer is put into answer; of a wish by HTTP the head for the server is put into
 * onward, to be followed by what is left of in.
 */
enum qk_heard qk_speech_hear(struct qk_buf *in, bool greeted, struct qk_wish *ret, struct qk_buf *onward,
	struct qk_buf *answer);

/* Appends the answer. text: a line for people, told by HTTP; it holds no line ends. */
void qk_speech_answer(struct qk_buf *out, enum qk_manner manner, enum qk_outcome how, const char *text);

/* "host:port", an IPv6 address in brackets: as grants are written. */
void qk_speech_name(struct qk_buf *out, const char *host, uint16_t port);

#endif
