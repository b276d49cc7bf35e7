#include "keying/sandboxspec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 253, MAX_LABEL = 63, MAX_PORT = 65535 };

static bool is_port(const char *s)
{
	char *end;
	long n = strtol(s, &end, 10);

	return isdigit((unsigned char)*s) && !*end && n >= 1 && n <= MAX_PORT;
}

/* n bytes of dot-separated labels. */
static bool is_name(const char *s, size_t n)
{
	size_t label = 0;

	if (!n || n > MAX_NAME)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool alnum = isalnum((unsigned char)s[i]) || s[i] == '_';

		if (s[i] == '.') {
			if (!label || s[i - 1] == '-')
				return false;
			label = 0;
			continue;
		}
		if (!(alnum || (s[i] == '-' && label)) || ++label > MAX_LABEL)
			return false;
	}
	return label && s[n - 1] != '-';
}

const char *qk_sandboxspec_host_problem(const char *text)
{
	const char *host = text, *port;
	size_t n;

	if (!*text)
		return "it is empty";
	if (strstr(text, "://") || strchr(text, '/'))
		return "a host is wanted, not a URL";
	if (*host == '[') {
		n = strspn(host + 1, "0123456789abcdefABCDEF:.");
		if (!n || host[1 + n] != ']')
			return "no address in the brackets";
		port = host + n + 2;
	} else {
		if (!strcmp(text, "*"))
			return "true opens the whole network, not *";
		if (!strncmp(host, "*.", 2))
			host += 2;
		n = strcspn(host, ":");
		if (memchr(host, '*', n))
			return "* stands only before the first dot";
		if (!is_name(host, n))
			return "no host has such a name";
		port = host + n;
	}
	if (*port && (*port != ':' || !is_port(port + 1)))
		return "a port is a number from 1 to 65535";
	return NULL;
}
