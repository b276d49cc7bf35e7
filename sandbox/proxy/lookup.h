/*
 * Names to addresses, without waiting: getaddrinfo(3), which knows no other way, runs in a few
 * threads. One set a process.
 */
#ifndef QK_SANDBOX_PROXY_LOOKUP_H
#define QK_SANDBOX_PROXY_LOOKUP_H

#include "sandbox/proxy/hosts.h"

#include <netdb.h>
#include <stdint.h>

struct qk_lookup {
	char host[QK_HOST_NAME + 1];
	char port[6];
	struct addrinfo *found; /* the lookup's; NULL if there is none */
	int error;              /* as getaddrinfo's */
	void *owner;            /* the caller's; NULL: nobody waits any more */
	struct qk_lookup *next;
};

/* A descriptor that is readable when lookups have ended; -errno. */
int qk_lookup_init(void);

/* Begins one. owner may be set to NULL by the caller while it runs. NULL: no thread can be had. */
struct qk_lookup *qk_lookup_begin(const char *host, uint16_t port, void *owner);

/* The next that has ended, to be freed by the caller; NULL if there is none. */
struct qk_lookup *qk_lookup_ended(void);
void qk_lookup_free(struct qk_lookup *l);

#endif
