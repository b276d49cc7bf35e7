/*
 * The filtering proxy: serves the listening sockets that tasks hand over, each made in the network
 * of a task, and connects to what the lists of the run allow. One loop, one thread; names are looked
 * up beside it (lookup.h). What it holds is bounded: clients by QK_PROXY_CLIENTS a task and by the
 * descriptors there are in all, bytes by speech.h and relay.h a client, time by the limits below;
 * who comes when it is full waits in the queue of their socket.
 *
 * How tasks talk to it is sandbox/uplink.h.
 */
#ifndef QK_SANDBOX_PROXY_SERVER_H
#define QK_SANDBOX_PROXY_SERVER_H

#include "base/err.h"

enum { QK_PROXY_CLIENTS = 2048, QK_PROXY_REFUSED = 64 };

struct qk_proxy_limits {
	int speak_ms;   /* for a client to say what it wants */
	int connect_ms; /* for an address to answer */
	int leave_ms;   /* for a client to take a refusal */
};

#define QK_PROXY_LIMITS { 30000, 20000, 3000 }

/*
 * Serves tasks that connect to listener (SOCK_SEQPACKET, non-blocking) until the process behind the pidfd
 * watched has ended. Negative only if it cannot begin.
 */
int qk_proxy_serve(int listener, int watched, const struct qk_proxy_limits *limits, struct qk_err *err);

#endif
