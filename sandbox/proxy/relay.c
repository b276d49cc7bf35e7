#include "sandbox/proxy/relay.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void qk_source_watch(struct qk_source *s, int epoll, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = s };
	int op = !events ? EPOLL_CTL_DEL : s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (s->fd < 0 || events == s->watched || (!events && !s->watched))
		return;
	if (!epoll_ctl(epoll, op, s->fd, &e))
		s->watched = events;
}

void qk_source_close(struct qk_source *s, int epoll)
{
	if (s->fd < 0)
		return;
	qk_source_watch(s, epoll, 0);
	close(s->fd);
	s->fd = -1;
}

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

bool qk_relay_write(struct qk_relay_side *to)
{
	ssize_t n = to->waiting.len ? send(to->source.fd, to->waiting.s, to->waiting.len,
						MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n < 0)
		return is_for_later();
	if ((size_t)n == to->waiting.len) {
		qk_buf_release(&to->waiting);
		return true;
	}
	memmove(to->waiting.s, to->waiting.s + n, to->waiting.len - (size_t)n);
	qk_buf_truncate(&to->waiting, to->waiting.len - (size_t)n);
	return true;
}

bool qk_relay_move(struct qk_relay_side *from, struct qk_relay_side *to)
{
	static char piece[QK_RELAY_PIECE];
	ssize_t n = recv(from->source.fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0)
		return is_for_later();
	if (!n) {
		from->ended = true;
		return true;
	}
	qk_buf_add(&to->waiting, piece, (size_t)n);
	return qk_relay_write(to);
}

static void pass_on_end(const struct qk_relay_side *from, struct qk_relay_side *to)
{
	if (!from->ended || to->waiting.len || to->shut)
		return;
	to->shut = true;
	(void)shutdown(to->source.fd, SHUT_WR);
}

static uint32_t wanted(const struct qk_relay_side *s, const struct qk_relay_side *other)
{
	return (!s->ended && !other->waiting.len ? EPOLLIN : 0u) | (s->waiting.len ? EPOLLOUT : 0u);
}

bool qk_relay_settle(struct qk_relay_side *a, struct qk_relay_side *b, int epoll)
{
	pass_on_end(a, b);
	pass_on_end(b, a);
	if (a->shut && b->shut)
		return true;
	qk_source_watch(&a->source, epoll, wanted(a, b));
	qk_source_watch(&b->source, epoll, wanted(b, a));
	return false;
}
