#include "sandbox/proxy/server.h"

#include "base/clock.h"
#include "sandbox/proxy/lookup.h"
#include "sandbox/proxy/relay.h"
#include "sandbox/proxy/speech.h"
#include "sandbox/uplink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64, TICK_MS = 250, SPARE_FDS = 64, LEAVE_BYTES = 256 * 1024 };

enum kind { LISTENER, WATCHED, LOOKUPS, TASK, DOOR, CLIENT, SERVER };

struct task {
	struct qk_source control;
	struct qk_source door; /* the listening socket in its network */
	struct qk_strv refused;
	unsigned int clients;
	bool gone;
	struct task *next;
};

enum state {
	HEARING,
	LOOKING_UP,
	CONNECTING,
	RELAYING,
	LEAVING, /* the answer is sent, what still comes is thrown away */
	GONE,
};

struct client {
	struct task *task;
	enum state state;
	struct qk_relay_side near, far; /* the task's, the server's */
	struct qk_buf in, onward;       /* not understood yet; for the server, first */
	struct qk_wish wish;
	bool greeted, bridge;
	struct qk_lookup *lookup, *found; /* running; its result, while addresses are tried */
	struct addrinfo *trying;
	bool led_here; /* an address was passed over for what it means */
	size_t thrown; /* bytes, while leaving */
	int64_t deadline; /* of qk_clock_ms(); 0 = none */
	struct client *next;
};

static struct {
	int epoll;
	struct qk_proxy_limits limits;
	struct qk_source listener, watched, lookups;
	struct qk_hosts hosts;
	struct task *tasks;
	struct client *clients;
	unsigned int n_clients, max_clients;
	bool full; /* no more are let in until one leaves */
} all;

/* --- coming and going --- */

static bool has_room(const struct task *t)
{
	return t->clients < QK_PROXY_CLIENTS && all.n_clients < all.max_clients;
}

static void watch_doors(void)
{
	for (struct task *t = all.tasks; t; t = t->next)
		qk_source_watch(&t->door, all.epoll, has_room(t) ? EPOLLIN : 0);
}

static void drop_lookup(struct client *c)
{
	if (c->lookup)
		c->lookup->owner = NULL;
	if (c->found)
		qk_lookup_free(c->found);
	c->lookup = c->found = NULL;
	c->trying = NULL;
}

/* It is freed when the events at hand are done with. */
static void drop(struct client *c)
{
	if (c->state == GONE)
		return;
	c->state = GONE;
	drop_lookup(c);
	qk_source_close(&c->near.source, all.epoll);
	qk_source_close(&c->far.source, all.epoll);
	all.n_clients--;
	c->task->clients--;
	watch_doors();
}

static struct client *new_client(struct task *t, int fd)
{
	struct client *c = qk_zalloc(sizeof(*c));

	c->task = t;
	c->near = (struct qk_relay_side){ { CLIENT, fd, 0, c }, QK_BUF_INIT, false, false };
	c->far = (struct qk_relay_side){ { SERVER, -1, 0, c }, QK_BUF_INIT, false, false };
	c->in = c->onward = (struct qk_buf)QK_BUF_INIT;
	c->next = all.clients;
	all.clients = c;
	all.n_clients++;
	t->clients++;
	return c;
}

static void sweep(void)
{
	for (struct client **at = &all.clients; *at;) {
		struct client *c = *at;

		if (c->state != GONE) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		qk_buf_release(&c->near.waiting);
		qk_buf_release(&c->far.waiting);
		qk_buf_release(&c->in);
		qk_buf_release(&c->onward);
		free(c);
	}
	for (struct task **at = &all.tasks; *at;) {
		struct task *t = *at;

		if (!t->gone) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		qk_strv_release(&t->refused);
		free(t);
	}
}

static void end_task(struct task *t)
{
	t->gone = true;
	for (struct client *c = all.clients; c; c = c->next)
		if (c->task == t)
			drop(c);
	qk_source_close(&t->control, all.epoll);
	qk_source_close(&t->door, all.epoll);
}

/* --- one client --- */

static void relay(struct client *c)
{
	if (c->state != GONE && qk_relay_settle(&c->near, &c->far, all.epoll))
		drop(c);
}

/* Says how it ended and lets it leave. */
static void turn_away(struct client *c, enum qk_outcome how, const char *text)
{
	drop_lookup(c);
	qk_source_close(&c->far.source, all.epoll);
	qk_speech_answer(&c->near.waiting, c->wish.manner, how, text);
	c->state = LEAVING;
	c->deadline = qk_clock_ms() + all.limits.leave_ms;
	if (!qk_relay_write(&c->near)) {
		drop(c);
		return;
	}
	if (!c->near.waiting.len) {
		c->near.shut = true;
		(void)shutdown(c->near.source.fd, SHUT_WR);
	}
	qk_source_watch(&c->near.source, all.epoll, EPOLLIN | (c->near.waiting.len ? EPOLLOUT : 0u));
}

/* Notes what the task is to be told for: before the client hears of it. */
static void note(struct client *c, char kind, const char *address)
{
	qk_autobuf struct qk_buf line = QK_BUF_INIT;

	qk_buf_addch(&line, kind);
	qk_speech_name(&line, c->wish.host, c->wish.port);
	if (address)
		qk_buf_addf(&line, " %s", address);
	if (c->task->refused.n < QK_PROXY_REFUSED && !qk_strv_has(&c->task->refused, line.s))
		qk_strv_push(&c->task->refused, line.s);
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct client *c, enum qk_outcome how, const char *fmt, ...)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	va_list ap;

	qk_speech_name(&text, c->wish.host, c->wish.port);
	qk_buf_addstr(&text, ": ");
	va_start(ap, fmt);
	qk_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	turn_away(c, how, text.s);
}

static void connected(struct client *c)
{
	drop_lookup(c);
	c->deadline = 0;
	c->state = RELAYING;
	qk_speech_answer(&c->near.waiting, c->wish.manner, QK_OUTCOME_OPEN, "");
	qk_buf_add(&c->far.waiting, c->onward.s, c->onward.len);
	qk_buf_add(&c->far.waiting, c->in.s, c->in.len);
	qk_buf_release(&c->onward);
	qk_buf_release(&c->in);
	if (!qk_relay_write(&c->near) || !qk_relay_write(&c->far))
		drop(c);
	else
		relay(c);
}

/* Whether the address may be connected to; else the task is told. */
static bool may_reach(struct client *c, const struct addrinfo *a)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (qk_hosts_reach(&all.hosts, a->ai_addr, c->wish.port))
		return true;
	(void)getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	note(c, 'a', text);
	c->led_here = true;
	return false;
}

/* Goes on with the next address that lets itself be tried. */
static void try_addresses(struct client *c)
{
	int error = ENETUNREACH;

	qk_source_close(&c->far.source, all.epoll);
	for (; c->trying; c->trying = c->trying->ai_next) {
		const struct addrinfo *a = c->trying;
		int fd;

		if (!may_reach(c, a))
			continue;
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && (!connect(fd, a->ai_addr, a->ai_addrlen) || errno == EINPROGRESS)) {
			c->far.source.fd = fd;
			c->state = CONNECTING;
			c->deadline = qk_clock_ms() + all.limits.connect_ms;
			qk_source_watch(&c->far.source, all.epoll, EPOLLOUT);
			return;
		}
		error = errno;
		if (fd >= 0)
			close(fd);
	}
	if (c->led_here)
		refuse(c, QK_OUTCOME_REFUSED, "leads to an address of this machine that is not granted itself");
	else
		refuse(c, QK_OUTCOME_UNREACHABLE, "%s", strerror(error));
}

static void next_address(struct client *c, int error)
{
	c->trying = c->trying->ai_next;
	if (c->trying)
		try_addresses(c);
	else
		refuse(c, QK_OUTCOME_UNREACHABLE, "%s", strerror(error));
}

static void grant_or_refuse(struct client *c)
{
	enum qk_host_word word = qk_hosts_judge(&all.hosts, c->wish.host, c->wish.port);

	/* while it is served, nothing is read: what it sends stays where it is */
	qk_source_watch(&c->near.source, all.epoll, 0);
	if (word != QK_HOST_ALLOWED) {
		note(c, word == QK_HOST_DENIED ? 'd' : 'n', NULL);
		refuse(c, QK_OUTCOME_REFUSED, word == QK_HOST_DENIED ? "this host is denied"
								       : "no grant covers this host");
		return;
	}
	c->state = LOOKING_UP;
	c->deadline = 0;
	c->lookup = qk_lookup_begin(c->wish.host, c->wish.port, c);
	if (!c->lookup)
		refuse(c, QK_OUTCOME_UNREACHABLE, "its name cannot be looked up: no thread to be had");
}

static void hear(struct client *c)
{
	char piece[4096];
	ssize_t n = recv(c->near.source.fd, piece, sizeof(piece), 0);
	enum qk_heard heard;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(c);
		return;
	}
	qk_buf_add(&c->in, piece, (size_t)n);
	do {
		heard = qk_speech_hear(&c->in, c->greeted, &c->wish, &c->onward, &c->near.waiting);
		if (heard == QK_HEARD_GREETING)
			c->greeted = true;
	} while (heard == QK_HEARD_GREETING);
	if (!qk_relay_write(&c->near)) {
		drop(c);
		return;
	}
	if (heard == QK_HEARD_WISH)
		grant_or_refuse(c);
	else if (heard == QK_HEARD_NONSENSE)
		turn_away(c, QK_OUTCOME_NONSENSE,
			"this is a proxy: CONNECT, http:// URIs and SOCKS5 are what it knows");
	else if (c->in.len > QK_SPEECH_MAX)
		turn_away(c, QK_OUTCOME_TOO_LONG, "the request is too long");
}

/* Throws away what comes, until the client has gone. */
static void leave(struct client *c, uint32_t events)
{
	char piece[4096];
	ssize_t n = recv(c->near.source.fd, piece, sizeof(piece), 0);

	if (n > 0)
		c->thrown += (size_t)n;
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR) || c->thrown > LEAVE_BYTES) {
		drop(c);
		return;
	}
	if (!(events & EPOLLOUT))
		return;
	if (!qk_relay_write(&c->near)) {
		drop(c);
	} else if (!c->near.waiting.len) {
		c->near.shut = true;
		(void)shutdown(c->near.source.fd, SHUT_WR);
		qk_source_watch(&c->near.source, all.epoll, EPOLLIN);
	}
}

static void serve_side(struct client *c, bool near, uint32_t events)
{
	struct qk_relay_side *from = near ? &c->near : &c->far, *other = near ? &c->far : &c->near;
	socklen_t n = sizeof(int);
	int error = 0;

	if (c->state == HEARING) {
		hear(c);
	} else if (c->state == LEAVING) {
		leave(c, events);
	} else if (c->state == CONNECTING && !near) {
		if (getsockopt(from->source.fd, SOL_SOCKET, SO_ERROR, &error, &n) || error)
			next_address(c, error ? error : errno);
		else
			connected(c);
	} else if (c->state == RELAYING) {
		bool alive = true;

		if (events & EPOLLOUT)
			alive = qk_relay_write(from);
		if (alive && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !from->ended && !other->waiting.len)
			alive = qk_relay_move(from, other);
		if (!alive || (events & EPOLLERR && from->ended))
			drop(c);
		else
			relay(c);
	}
}

static void take_lookups(void)
{
	struct qk_lookup *l;

	while ((l = qk_lookup_ended())) {
		struct client *c = l->owner;

		if (!c) {
			qk_lookup_free(l);
			continue;
		}
		c->lookup = NULL;
		c->found = l;
		c->trying = l->found;
		if (l->error)
			refuse(c, QK_OUTCOME_UNREACHABLE, "%s", gai_strerror(l->error));
		else
			try_addresses(c);
	}
}

static void look_at_clock(void)
{
	int64_t now = qk_clock_ms();

	for (struct client *c = all.clients; c; c = c->next) {
		if (!c->deadline || c->deadline > now || c->state == GONE)
			continue;
		if (c->state == HEARING)
			turn_away(c, QK_OUTCOME_TOO_SLOW, "the request does not come to an end");
		else if (c->state == CONNECTING)
			next_address(c, ETIMEDOUT);
		else
			drop(c);
	}
}

/* --- tasks --- */

static void let_in(struct task *t)
{
	struct client *c;
	int fd;

	while (has_room(t)) {
		fd = accept4(t->door.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		c = new_client(t, fd);
		c->deadline = qk_clock_ms() + all.limits.speak_ms;
		qk_source_watch(&c->near.source, all.epoll, EPOLLIN);
	}
	qk_source_watch(&t->door, all.epoll, has_room(t) ? EPOLLIN : 0);
}

/* The lists of a hello. False: there is something else in it. */
static bool take_lists(char *s)
{
	for (char *line; (line = strsep(&s, "\n"));)
		if (*line && ((*line != '+' && *line != '-') || qk_hosts_add(&all.hosts, line + 1, *line == '-')))
			return false;
	return true;
}

static bool take_bridge(struct task *t, int fds[2])
{
	struct client *c;

	if (fds[0] < 0 || fds[1] < 0 || !has_room(t))
		return false;
	c = new_client(t, fds[0]);
	c->far.source.fd = fds[1];
	c->state = RELAYING;
	relay(c);
	return true;
}

static void tell_refused(struct task *t)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_buf_addstr(&b, QK_UPLINK_OK);
	for (size_t i = 0; i < t->refused.n; i++)
		qk_buf_addf(&b, "%s\n", t->refused.v[i]);
	(void)send(t->control.fd, b.s, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* One message of a task's runner; what is taken of fds is -1 then. False: that was the last. */
static bool obey(struct task *t, char *text, int fds[2])
{
	size_t hello = strlen(QK_UPLINK_HELLO);

	if (!strcmp(text, QK_UPLINK_END)) {
		tell_refused(t);
		return false;
	}
	if (!strcmp(text, QK_UPLINK_BRIDGE)) {
		if (take_bridge(t, fds))
			fds[0] = fds[1] = -1;
		return true;
	}
	if (strncmp(text, QK_UPLINK_HELLO, hello) || t->door.fd >= 0 || fds[0] < 0 || !take_lists(text + hello))
		return false;
	t->door.fd = fds[0];
	fds[0] = -1;
	qk_source_watch(&t->door, all.epoll, has_room(t) ? EPOLLIN : 0);
	return true;
}

static void hear_task(struct task *t)
{
	static char text[QK_UPLINK_MESSAGE + 1];
	int fds[2];
	ssize_t n = qk_uplink_receive(t->control.fd, text, sizeof(text) - 1, fds);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	text[n > 0 ? n : 0] = '\0';
	if (n <= 0 || !obey(t, text, fds))
		end_task(t);
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void admit(void)
{
	int fd = accept4(all.listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct task *t;

	if (fd < 0)
		return;
	t = qk_zalloc(sizeof(*t));
	t->control = (struct qk_source){ TASK, fd, 0, t };
	t->door = (struct qk_source){ DOOR, -1, 0, t };
	t->next = all.tasks;
	all.tasks = t;
	qk_source_watch(&t->control, all.epoll, EPOLLIN);
}

/* As many descriptors as may be had: two a client. */
static unsigned int room_for_clients(void)
{
	struct rlimit r = { 1024, 1024 };

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur > 65536)
		return 32768;
	return r.rlim_cur < 2 * SPARE_FDS ? 1 : (unsigned int)(r.rlim_cur - SPARE_FDS) / 2;
}

static void handle(struct qk_source *s, uint32_t events)
{
	if (s->fd < 0)
		return; /* closed by what came before it */
	switch ((enum kind)s->kind) {
	case LISTENER: admit(); return;
	case LOOKUPS: take_lookups(); return;
	case TASK: hear_task(s->owner); return;
	case DOOR: let_in(s->owner); return;
	case CLIENT: serve_side(s->owner, true, events); return;
	case SERVER: serve_side(s->owner, false, events); return;
	case WATCHED: return;
	}
}

int qk_proxy_serve(int listener, int watched, const struct qk_proxy_limits *limits, struct qk_err *err)
{
	struct epoll_event events[EVENTS];
	int lookups = qk_lookup_init();

	all.limits = *limits;
	all.max_clients = room_for_clients();
	all.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (lookups < 0 || all.epoll < 0)
		return qk_fail(err, errno, "proxy");
	all.listener = (struct qk_source){ LISTENER, listener, 0, NULL };
	all.watched = (struct qk_source){ WATCHED, watched, 0, NULL };
	all.lookups = (struct qk_source){ LOOKUPS, lookups, 0, NULL };
	qk_source_watch(&all.listener, all.epoll, EPOLLIN);
	qk_source_watch(&all.watched, all.epoll, EPOLLIN);
	qk_source_watch(&all.lookups, all.epoll, EPOLLIN);
	for (;;) {
		int n = epoll_wait(all.epoll, events, EVENTS, all.clients ? TICK_MS : -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == &all.watched)
				return 0;
			handle(events[i].data.ptr, events[i].events);
		}
		look_at_clock();
		sweep();
	}
}
