#include "sandbox/proxy/speech.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SOCKS = 5, CONNECT = 1, FOUR = 1, NAME = 3, SIX = 4, HTTP_PORT = 80 };

static void take_off(struct qk_buf *b, size_t n)
{
	memmove(b->s, b->s + n, b->len - n);
	qk_buf_truncate(b, b->len - n);
}

/* --- SOCKS5 (RFC 1928) --- */

static enum qk_heard hear_greeting(struct qk_buf *in, struct qk_buf *answer)
{
	const unsigned char *p = (const unsigned char *)in->s;
	bool open;

	if (in->len < 2 || in->len < 2u + p[1])
		return QK_HEARD_PART;
	open = memchr(p + 2, 0, p[1]);
	take_off(in, 2u + p[1]);
	qk_buf_add(answer, open ? "\5\0" : "\5\377", 2);
	return open ? QK_HEARD_GREETING : QK_HEARD_NONSENSE;
}

static enum qk_heard hear_socks(struct qk_buf *in, struct qk_wish *ret)
{
	const unsigned char *p = (const unsigned char *)in->s;
	char text[INET6_ADDRSTRLEN];
	size_t at = 4, n;
	bool known;

	if (in->len < 5)
		return QK_HEARD_PART;
	if (p[0] != SOCKS || p[1] != CONNECT || p[2])
		return QK_HEARD_NONSENSE;
	at += p[3] == NAME;
	n = p[3] == FOUR ? 4 : p[3] == SIX ? 16 : p[3] == NAME ? p[4] : 0;
	if (!n)
		return QK_HEARD_NONSENSE;
	if (in->len < at + n + 2)
		return QK_HEARD_PART;
	if (p[3] == NAME)
		known = qk_host_normal(in->s + at, n, ret->host);
	else
		known = inet_ntop(p[3] == FOUR ? AF_INET : AF_INET6, p + at, text, sizeof(text)) &&
			qk_host_normal(text, strlen(text), ret->host);
	ret->port = (uint16_t)(p[at + n] << 8 | p[at + n + 1]);
	ret->manner = QK_MANNER_SOCKS;
	take_off(in, at + n + 2);
	return known && ret->port ? QK_HEARD_WISH : QK_HEARD_NONSENSE;
}

/* --- HTTP/1 (RFC 9112) --- */

/* The end of the head, behind the empty line; 0 if it is not there yet. */
static size_t head_length(const struct qk_buf *in)
{
	const char *p = in->s, *end = in->s + in->len;

	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		if (p < end && *p == '\r')
			p++;
		if (p < end && *p == '\n')
			return (size_t)(p + 1 - in->s);
	}
	return 0;
}

/* HOST, HOST:PORT or [ADDRESS]:PORT; what comes before an @ is passed over. */
static bool read_authority(const char *s, size_t n, uint16_t port, struct qk_wish *ret)
{
	const char *at = memrchr(s, '@', n), *colon, *end = s + n;
	unsigned long given;
	char *rest;

	s = at ? at + 1 : s;
	colon = memrchr(s, ':', (size_t)(end - s));
	if (colon && memchr(colon, ']', (size_t)(end - colon)))
		colon = NULL;
	ret->port = port;
	if (colon) {
		char digits[6] = "";

		if (end - colon - 1 > 5)
			return false;
		memcpy(digits, colon + 1, (size_t)(end - colon - 1));
		given = isdigit((unsigned char)*digits) ? strtoul(digits, &rest, 10) : 0;
		if (!given || given > UINT16_MAX || *rest)
			return false;
		ret->port = (uint16_t)given;
		end = colon;
	}
	/* an address of IPv6 has its brackets here */
	return ret->port && (*s == '[' || !memchr(s, ':', (size_t)(end - s))) &&
	       qk_host_normal(s, (size_t)(end - s), ret->host);
}

/* Headers that are between the client and us, and the one that the URI decides. */
static bool is_ours(const char *line, size_t n)
{
	static const char *const names[] = { "host", "connection", "proxy-connection", "keep-alive",
		"proxy-authorization", "te", "trailer", "upgrade" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);

		if (n > len && line[len] == ':' && !strncasecmp(line, names[i], len))
			return true;
	}
	return false;
}

static const char *line_end(const char *p, const char *end, const char **next)
{
	const char *nl = memchr(p, '\n', (size_t)(end - p));

	*next = nl + 1;
	return nl > p && nl[-1] == '\r' ? nl - 1 : nl;
}

/* The head as the server itself would be sent it, for one request. False: a line is none of a head. */
static bool rewrite(struct qk_buf *out, const char *method, size_t n_method, const char *path, size_t n_path,
	const struct qk_wish *w, const char *p, const char *end)
{
	qk_buf_add(out, method, n_method);
	qk_buf_addf(out, " %s", n_path && *path == '/' ? "" : "/");
	qk_buf_add(out, path, n_path);
	qk_buf_addf(out, " HTTP/1.1\r\nHost: %s%s%s", strchr(w->host, ':') ? "[" : "", w->host,
		strchr(w->host, ':') ? "]" : "");
	if (w->port != HTTP_PORT)
		qk_buf_addf(out, ":%u", w->port);
	qk_buf_addstr(out, "\r\nConnection: close\r\n");
	for (const char *next; p < end; p = next) {
		const char *stop = line_end(p, end, &next);
		size_t n = (size_t)(stop - p);

		if (!n)
			break;
		if (*p == ' ' || *p == '\t' || !memchr(p, ':', n) || memchr(p, '\0', n) || memchr(p, '\r', n))
			return false;
		if (is_ours(p, n))
			continue;
		qk_buf_add(out, p, n);
		qk_buf_addstr(out, "\r\n");
	}
	qk_buf_addstr(out, "\r\n");
	return true;
}

static bool is_token(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("!#$%&'*+-.^_`|~", s[i]))
			return false;
	return n && !memchr(s, '\0', n);
}

/* METHOD TARGET VERSION of one line. */
static enum qk_heard hear_request(
	const char *p, const char *end, struct qk_wish *ret, struct qk_buf *onward)
{
	const char *next, *stop = line_end(p, end, &next), *target, *version, *path;
	size_t n_method, n;

	target = memchr(p, ' ', (size_t)(stop - p));
	version = target ? memchr(target + 1, ' ', (size_t)(stop - target - 1)) : NULL;
	if (!version || stop - version != 9 || memcmp(version, " HTTP/1.", 8) || !isdigit((unsigned char)version[8]))
		return QK_HEARD_NONSENSE;
	n_method = (size_t)(target++ - p);
	if (!is_token(p, n_method))
		return QK_HEARD_NONSENSE;
	n = (size_t)(version - target);
	if (n_method == 7 && !memcmp(p, "CONNECT", 7)) {
		ret->manner = QK_MANNER_CONNECT;
		return read_authority(target, n, 0, ret) ? QK_HEARD_WISH : QK_HEARD_NONSENSE;
	}
	ret->manner = QK_MANNER_HTTP;
	if (n < 8 || strncasecmp(target, "http://", 7) || memchr(target, '\0', n))
		return QK_HEARD_NONSENSE;
	target += 7;
	for (path = target; path < version && !strchr("/?#", *path); path++)
		;
	if (!read_authority(target, (size_t)(path - target), HTTP_PORT, ret) ||
		!rewrite(onward, p, n_method, path, (size_t)(version - path), ret, next, end))
		return QK_HEARD_NONSENSE;
	return QK_HEARD_WISH;
}

enum qk_heard qk_speech_hear(struct qk_buf *in, bool greeted, struct qk_wish *ret, struct qk_buf *onward,
	struct qk_buf *answer)
{
	enum qk_heard heard;
	size_t n;

	ret->manner = greeted || (in->len && *in->s == SOCKS) ? QK_MANNER_SOCKS : QK_MANNER_HTTP;
	if (greeted)
		return hear_socks(in, ret);
	if (ret->manner == QK_MANNER_SOCKS)
		return hear_greeting(in, answer);
	/* what begins otherwise is no method: not waited for */
	if (in->len && !is_token(in->s, 1))
		return QK_HEARD_NONSENSE;
	n = head_length(in);
	if (!n)
		return QK_HEARD_PART;
	heard = hear_request(in->s, in->s + n, ret, onward);
	take_off(in, n);
	return heard;
}

void qk_speech_answer(struct qk_buf *out, enum qk_manner manner, enum qk_outcome how, const char *text)
{
	static const struct {
		const char *status;
		char socks; /* the reply's code; -1: none is sent */
	} answers[] = {
		[QK_OUTCOME_OPEN] = { "200 Connection established", 0 },
		[QK_OUTCOME_REFUSED] = { "403 Forbidden", 2 },
		[QK_OUTCOME_UNREACHABLE] = { "502 Bad Gateway", 4 },
		[QK_OUTCOME_NONSENSE] = { "400 Bad Request", 7 },
		[QK_OUTCOME_TOO_LONG] = { "431 Request Header Fields Too Large", 1 },
		[QK_OUTCOME_TOO_SLOW] = { "408 Request Timeout", 1 },
	};

	if (manner == QK_MANNER_SOCKS) {
		const char reply[10] = { SOCKS, answers[how].socks, 0, FOUR };

		qk_buf_add(out, reply, sizeof(reply));
	} else if (how == QK_OUTCOME_OPEN) {
		if (manner == QK_MANNER_CONNECT)
			qk_buf_addf(out, "HTTP/1.1 %s\r\n\r\n", answers[how].status);
	} else {
		qk_buf_addf(out,
			"HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\nqk: %s\n",
			answers[how].status, strlen(text) + 5, text);
	}
}

void qk_speech_name(struct qk_buf *out, const char *host, uint16_t port)
{
	bool six = strchr(host, ':');

	qk_buf_addf(out, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "", port);
}
