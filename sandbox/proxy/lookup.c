#include "sandbox/proxy/lookup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

enum { THREADS = 16, STACK = 256 * 1024 };

/* Those to do and those done, first come first; guarded by lock. */
struct queue {
	struct qk_lookup *head, **tail;
};

static struct {
	pthread_mutex_t lock;
	struct queue todo, done;
	unsigned int threads;
	int event;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .event = -1 };

static void put(struct queue *q, struct qk_lookup *l)
{
	l->next = NULL;
	*q->tail = l;
	q->tail = &l->next;
}

static struct qk_lookup *take(struct queue *q)
{
	struct qk_lookup *l = q->head;

	if (l)
		q->head = l->next;
	if (!q->head)
		q->tail = &q->head;
	return l;
}

static void look(struct qk_lookup *l)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV };

	l->error = getaddrinfo(l->host, l->port, &hints, &l->found);
	if (l->error)
		l->found = NULL;
}

static void *work(void *unused)
{
	struct qk_lookup *l;

	(void)unused;
	pthread_mutex_lock(&all.lock);
	while ((l = take(&all.todo))) {
		pthread_mutex_unlock(&all.lock);
		look(l);
		pthread_mutex_lock(&all.lock);
		put(&all.done, l);
		eventfd_write(all.event, 1);
	}
	all.threads--;
	pthread_mutex_unlock(&all.lock);
	return NULL;
}

int qk_lookup_init(void)
{
	all.todo.tail = &all.todo.head;
	all.done.tail = &all.done.head;
	all.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return all.event < 0 ? -errno : all.event;
}

struct qk_lookup *qk_lookup_begin(const char *host, uint16_t port, void *owner)
{
	struct qk_lookup *l = qk_zalloc(sizeof(*l));
	pthread_attr_t attr;
	pthread_t thread;
	bool lost = false;

	snprintf(l->host, sizeof(l->host), "%s", host);
	snprintf(l->port, sizeof(l->port), "%u", port);
	l->owner = owner;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&all.lock);
	put(&all.todo, l);
	if (all.threads < THREADS && !pthread_create(&thread, &attr, work, NULL))
		all.threads++;
	if (!all.threads) {
		(void)take(&all.todo);
		lost = true;
	}
	pthread_mutex_unlock(&all.lock);
	pthread_attr_destroy(&attr);
	if (!lost)
		return l;
	free(l);
	return NULL;
}

struct qk_lookup *qk_lookup_ended(void)
{
	struct qk_lookup *l;
	eventfd_t n;

	pthread_mutex_lock(&all.lock);
	l = take(&all.done);
	if (!l)
		(void)eventfd_read(all.event, &n);
	pthread_mutex_unlock(&all.lock);
	return l;
}

void qk_lookup_free(struct qk_lookup *l)
{
	if (l->found)
		freeaddrinfo(l->found);
	free(l);
}
