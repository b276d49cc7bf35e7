#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qk_arena_block {
	struct qk_arena_block *next;
	size_t used, size;
	max_align_t data[];
};

enum {
	ARENA_FIRST = 1024 - 64, /* many arenas hold next to nothing */
	ARENA_BLOCK = 64 * 1024 - 64,
};

static void *must(void *p)
{
	if (!p) {
		static const char msg[] = "qk: out of memory\n";

		(void)!write(2, msg, sizeof(msg) - 1);
		abort();
	}
	return p;
}

void *qk_alloc(size_t n)
{
	return must(malloc(n ? n : 1));
}

void *qk_zalloc(size_t n)
{
	return must(calloc(1, n ? n : 1));
}

void *qk_realloc(void *p, size_t n, size_t size)
{
	return must(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *qk_strdup(const char *s)
{
	return must(strdup(s));
}

char *qk_strndup(const char *s, size_t n)
{
	char *p = qk_alloc(n + 1);

	if (n)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *qk_asprintf(const char *fmt, ...)
{
	char *p = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	return must(n < 0 ? NULL : p);
}

void *qk_arena_alloc(struct qk_arena *a, size_t n)
{
	struct qk_arena_block *b = a->head;
	void *p;

	n = (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!b || b->size - b->used < n) {
		size_t size = b ? 2 * b->size : ARENA_FIRST;
		bool large;

		if (size > ARENA_BLOCK)
			size = ARENA_BLOCK;
		large = n > size / 4;
		if (large)
			size = n;
		b = qk_alloc(sizeof(*b) + size);
		b->used = 0;
		b->size = size;
		if (large && a->head) { /* a large piece goes behind the block in use */
			b->next = a->head->next;
			a->head->next = b;
		} else {
			b->next = a->head;
			a->head = b;
		}
	}
	/* zeroed piece by piece: pages that nothing is put in are never touched */
	p = memset((char *)b->data + b->used, 0, n);
	b->used += n;
	return p;
}

char *qk_arena_strndup(struct qk_arena *a, const char *s, size_t n)
{
	char *p = qk_arena_alloc(a, n + 1);

	if (n)
		memcpy(p, s, n);
	return p;
}

char *qk_arena_strdup(struct qk_arena *a, const char *s)
{
	return qk_arena_strndup(a, s, strlen(s));
}

char *qk_arena_printf(struct qk_arena *a, const char *fmt, ...)
{
	qk_autofree char *tmp = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&tmp, fmt, ap);
	va_end(ap);
	must(n < 0 ? NULL : tmp);
	return qk_arena_strndup(a, tmp, (size_t)n);
}

void qk_arena_release(struct qk_arena *a)
{
	while (a->head) {
		struct qk_arena_block *next = a->head->next;

		free(a->head);
		a->head = next;
	}
}
