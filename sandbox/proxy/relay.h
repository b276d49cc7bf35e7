/*
 * Two sockets, and what goes from one to the other. At most one piece waits in each direction: while
 * it does, nothing more is read from where it came.
 */
#ifndef QK_SANDBOX_PROXY_RELAY_H
#define QK_SANDBOX_PROXY_RELAY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { QK_RELAY_PIECE = 64 * 1024 };

/* What an event of the loop is about; the first field of what it belongs to, or reached by owner. */
struct qk_source {
	int kind; /* the loop's */
	int fd;   /* -1: closed */
	uint32_t watched; /* events asked for; 0: not in the epoll set */
	void *owner;
};

/* Asks for these events from now on, and takes it out of the set for none. */
void qk_source_watch(struct qk_source *s, int epoll, uint32_t events);
void qk_source_close(struct qk_source *s, int epoll);

struct qk_relay_side {
	struct qk_source source;
	struct qk_buf waiting; /* to be written to it */
	bool ended;            /* it will send no more */
	bool shut;             /* it was told that no more comes */
};

/* Writes what waits for it. False: it is gone. */
bool qk_relay_write(struct qk_relay_side *to);

/* Takes one piece from one side to the other. False: one is gone. */
bool qk_relay_move(struct qk_relay_side *from, struct qk_relay_side *to);

/* Passes on ends, and asks for what can happen next. True when all is over. */
bool qk_relay_settle(struct qk_relay_side *a, struct qk_relay_side *b, int epoll);

#endif
