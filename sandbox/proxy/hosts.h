/*
 * Which hosts may be reached: the lists of all tasks of a run, as one. Pure decisions.
 *
 * An entry is a name, a name after "*." (any name below it, not itself), an IPv4 address or one of
 * IPv6 in brackets, each with ":PORT" or for every port; "*" is every host. Names compare without
 * case and without a dot at their end.
 *
 * What a name leads to is judged again: addresses that mean this machine or its link (loopback,
 * unspecified, link-local, multicast, broadcast, also as IPv4 within IPv6) are reached only if an
 * entry names that very address, or is "localhost" where it is a loopback address.
 */
#ifndef QK_SANDBOX_PROXY_HOSTS_H
#define QK_SANDBOX_PROXY_HOSTS_H

#include "base/vec.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { QK_HOST_NAME = 253, QK_HOSTS_MAX = 1 << 16 };

struct qk_host_rule {
	char *name; /* lower case, without "*."; "" = every host; an address as inet_ntop has it */
	uint16_t port; /* 0 = every one */
	bool below;    /* was "*.name" */
	bool deny;
};

struct qk_hosts {
	QK_VEC(struct qk_host_rule) rules;
};

enum qk_host_word {
	QK_HOST_ALLOWED,
	QK_HOST_UNLISTED,
	QK_HOST_DENIED, /* before allowed */
};

/* Adds an entry, once. -EINVAL: none; -E2BIG: QK_HOSTS_MAX are there. */
int qk_hosts_add(struct qk_hosts *h, const char *entry, bool deny);
void qk_hosts_release(struct qk_hosts *h);

/*
 * Brings a host as a client writes it (an IPv6 address with or without brackets) into the form that is
 * compared, of at most QK_HOST_NAME bytes. False: no name and no address.
 */
bool qk_host_normal(const char *s, size_t n, char ret[QK_HOST_NAME + 1]);

/* host in normal form. */
enum qk_host_word qk_hosts_judge(const struct qk_hosts *h, const char *host, uint16_t port);

/* Whether an address that host has led to may be connected to. */
bool qk_hosts_reach(const struct qk_hosts *h, const struct sockaddr *address, uint16_t port);

#endif
