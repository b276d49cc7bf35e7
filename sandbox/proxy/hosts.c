#include "sandbox/proxy/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64, 6to4. */
static bool embedded(const struct in6_addr *a, struct in_addr *ret)
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
	const uint8_t *b = a->s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_V4COMPAT(a) || !memcmp(b, nat64, sizeof(nat64)))
		memcpy(ret, b + 12, 4);
	else if (b[0] == 0x20 && b[1] == 0x02)
		memcpy(ret, b + 2, 4);
	else
		return false;
	return true;
}

/* An address as text: the same for all ways to write one. */
static bool normal_address(const char *s, char *ret)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, s, &four) == 1)
		return inet_ntop(AF_INET, &four, ret, INET_ADDRSTRLEN);
	if (inet_pton(AF_INET6, s, &six) != 1)
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&six)) {
		memcpy(&four, six.s6_addr + 12, 4);
		return inet_ntop(AF_INET, &four, ret, INET_ADDRSTRLEN);
	}
	return inet_ntop(AF_INET6, &six, ret, INET6_ADDRSTRLEN);
}

bool qk_host_normal(const char *s, size_t n, char ret[QK_HOST_NAME + 1])
{
	char text[QK_HOST_NAME + 1];

	if (n > 2 && *s == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
		if (!memchr(s, ':', n))
			return false;
	}
	if (n > 1 && s[n - 1] == '.')
		n--;
	if (!n || n > QK_HOST_NAME)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (!isalnum(c) && !strchr("-_.:", c))
			return false;
		text[i] = (char)tolower(c);
	}
	text[n] = '\0';
	if (normal_address(text, ret))
		return true;
	if (strchr(text, ':') || *text == '.' || strstr(text, ".."))
		return false;
	memcpy(ret, text, n + 1);
	return true;
}

/* A port in decimal, to the end of s; 0 if it is none. */
static uint16_t port_of(const char *s)
{
	char *end;
	unsigned long n = isdigit((unsigned char)*s) ? strtoul(s, &end, 10) : 0;

	return n && n <= UINT16_MAX && !*end ? (uint16_t)n : 0;
}

int qk_hosts_add(struct qk_hosts *h, const char *entry, bool deny)
{
	struct qk_host_rule rule = { .deny = deny };
	char name[QK_HOST_NAME + 1] = "";
	const char *host = entry, *end;

	if (strcmp(entry, "*")) {
		rule.below = !strncmp(entry, "*.", 2);
		host += rule.below ? 2 : 0;
		end = *host == '[' ? strchr(host, ']') : NULL;
		end = end ? end + 1 : host + strcspn(host, ":");
		if (!qk_host_normal(host, (size_t)(end - host), name))
			return -EINVAL;
		if (*end == ':')
			rule.port = port_of(end + 1);
		if (*end && !rule.port)
			return -EINVAL;
	}
	for (size_t i = 0; i < h->rules.n; i++) {
		const struct qk_host_rule *r = &h->rules.v[i];

		if (r->deny == deny && r->below == rule.below && r->port == rule.port && !strcmp(r->name, name))
			return 0;
	}
	if (h->rules.n == QK_HOSTS_MAX)
		return -E2BIG;
	rule.name = qk_strdup(name);
	qk_vec_push(&h->rules, rule);
	return 0;
}

void qk_hosts_release(struct qk_hosts *h)
{
	for (size_t i = 0; i < h->rules.n; i++)
		free(h->rules.v[i].name);
	qk_vec_release(&h->rules);
}

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static bool covers(const struct qk_host_rule *r, const char *host, uint16_t port)
{
	size_t n = strlen(host), len = strlen(r->name);

	if (r->port && r->port != port)
		return false;
	if (!len)
		return true;
	if (!r->below)
		return !strcmp(r->name, host);
	return n > len + 1 && host[n - len - 1] == '.' && !strcmp(host + n - len, r->name) &&
	       !is_address(host);
}

enum qk_host_word qk_hosts_judge(const struct qk_hosts *h, const char *host, uint16_t port)
{
	enum qk_host_word word = QK_HOST_UNLISTED;

	for (size_t i = 0; i < h->rules.n; i++) {
		if (!covers(&h->rules.v[i], host, port))
			continue;
		if (h->rules.v[i].deny)
			return QK_HOST_DENIED;
		word = QK_HOST_ALLOWED;
	}
	return word;
}

static bool is_here_4(struct in_addr a, bool *ret_loopback)
{
	uint32_t n = ntohl(a.s_addr);

	*ret_loopback = n >> 24 == 127;
	return *ret_loopback || n >> 24 == 0 || n >> 16 == 0xa9fe || n >> 28 >= 0xe;
}

/* Whether it means this machine or its link. */
static bool is_here(const struct sockaddr *address, bool *ret_loopback)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	struct in_addr four;

	if (address->sa_family == AF_INET)
		return is_here_4(((const struct sockaddr_in *)(const void *)address)->sin_addr, ret_loopback);
	*ret_loopback = IN6_IS_ADDR_LOOPBACK(six);
	if (*ret_loopback || IN6_IS_ADDR_UNSPECIFIED(six) || IN6_IS_ADDR_LINKLOCAL(six) ||
		IN6_IS_ADDR_MULTICAST(six) || IN6_IS_ADDR_SITELOCAL(six))
		return true;
	return embedded(six, &four) && is_here_4(four, ret_loopback);
}

static bool address_text(const struct sockaddr *address, char *ret)
{
	const void *at = address->sa_family == AF_INET
		? (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr
		: (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	char text[INET6_ADDRSTRLEN];

	return inet_ntop(address->sa_family, at, text, sizeof(text)) && normal_address(text, ret);
}

bool qk_hosts_reach(const struct qk_hosts *h, const struct sockaddr *address, uint16_t port)
{
	char text[QK_HOST_NAME + 1];
	bool loopback = false, named = false, here;

	if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
		!address_text(address, text))
		return false;
	here = is_here(address, &loopback);
	for (size_t i = 0; i < h->rules.n; i++) {
		const struct qk_host_rule *r = &h->rules.v[i];

		if (r->port && r->port != port)
			continue;
		if (!strcmp(r->name, text) || (loopback && !r->below && !strcmp(r->name, "localhost"))) {
			if (r->deny)
				return false;
			named = true;
		}
	}
	return !here || named;
}
