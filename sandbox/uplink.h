/*
 * The way out of a closed network: a socket on its loopback, made by the runner in the task's
 * namespace and served from outside by the proxy of the run, libexec/qk/proxy (proxy/server.h).
 *
 * The proxy is started by the first make of the run that has such a task, and ends with the top
 * make. It listens in the run directory (QK_UPLINK_SOCKET, SOCK_SEQPACKET; who binds it first starts
 * it). A runner's messages, text in lines:
 *
 *   hello    "qk proxy 1", then "+HOST" for each host that may be reached and "-HOST" for each that may not
 *            (proxy/hosts.h); with it the listening socket
 *   bridge   "bridge", with two connected sockets to move bytes between
 *   end      "end"; answered by one message: "ok", then "nHOST:PORT" for each host that was asked for and
 *            is in no list, "dHOST:PORT" for each that is denied, "aHOST:PORT ADDRESS" for each that led
 *            to an address of this machine
 *
 * When the runner's socket is closed, the task's clients are dropped.
 */
#ifndef QK_SANDBOX_UPLINK_H
#define QK_SANDBOX_UPLINK_H

#include "base/err.h"
#include "base/vec.h"

#include <sys/types.h>

#define QK_UPLINK_SOCKET "proxy"
#define QK_UPLINK_HELLO "qk proxy 1\n"
#define QK_UPLINK_BRIDGE "bridge\n"
#define QK_UPLINK_END "end\n"
#define QK_UPLINK_OK "ok\n"

/* In each namespace the same, so that what a task prints of it is, too; not one that is given out. */
enum { QK_UPLINK_PORT = 61080, QK_UPLINK_MESSAGE = 128 * 1024 };

/* One message, with up to two descriptors (else -1), the caller's. Its length, 0 at the end, -1 with errno. */
ssize_t qk_uplink_receive(int conn, char *text, size_t size, int fds[2]);

/* Starts the proxy (the program helper) for the run, unless it was; it ends with the process top. */
int qk_uplink_start(const char *helper, const char *run, pid_t top, struct qk_err *err);

struct qk_uplink {
	int conn; /* -1: there is none */
};

#define QK_UPLINK_INIT { -1 }

/* Outside, before the namespace is entered. */
int qk_uplink_connect(struct qk_uplink *u, const char *run, struct qk_err *err);

/* Inside: makes the socket and hands it over with the lists. */
int qk_uplink_open(struct qk_uplink *u, const struct qk_strv *allow, const struct qk_strv *deny,
	struct qk_err *err);

/* The command has ended: what it was refused, as in the answer above. Then closes. */
int qk_uplink_end(struct qk_uplink *u, struct qk_strv *refused, struct qk_err *err);
void qk_uplink_release(struct qk_uplink *u);

/* NAME=VALUE for the command, by which programs find it; each name in both cases. */
void qk_uplink_env(void (*set)(void *arg, const char *name, const char *value), void *arg);

#endif
