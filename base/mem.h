/*
 * Memory: allocation that cannot fail (out of memory ends the program with a line), clean-up
 * attributes, and an arena for things thrown away together (a parsed document, a request).
 */
#ifndef QK_BASE_MEM_H
#define QK_BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *qk_alloc(size_t n) __attribute__((malloc, alloc_size(1)));            /* not zeroed */
void *qk_zalloc(size_t n) __attribute__((malloc, alloc_size(1)));           /* zeroed */
void *qk_realloc(void *p, size_t n, size_t size) __attribute__((alloc_size(2, 3)));
char *qk_strdup(const char *s) __attribute__((malloc));
char *qk_strndup(const char *s, size_t n) __attribute__((malloc)); /* always terminated */
char *qk_asprintf(const char *fmt, ...) __attribute__((malloc, format(printf, 1, 2)));

static inline void qk_freep(void *p)
{
	free(*(void **)p);
}

static inline void qk_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* qk_autofree char *p = ...; frees at the end of the scope. qk_autofd int fd = -1; closes. */
#define qk_autofree __attribute__((cleanup(qk_freep)))
#define qk_autofd __attribute__((cleanup(qk_closep)))

/* Hands over what a clean-up variable holds, leaving NULL (or -1) behind. */
#define qk_steal(pp)                                                                              \
	({                                                                                        \
		__typeof__(*(pp)) qk_stolen_ = *(pp);                                             \
		*(pp) = NULL;                                                                     \
		qk_stolen_;                                                                       \
	})
static inline int qk_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* An arena: pointers stay valid until _release. Zero-initialised is empty. */
struct qk_arena {
	struct qk_arena_block *head;
};

void *qk_arena_alloc(struct qk_arena *a, size_t n); /* zeroed, aligned for any type */
char *qk_arena_strndup(struct qk_arena *a, const char *s, size_t n);
char *qk_arena_strdup(struct qk_arena *a, const char *s);
char *qk_arena_printf(struct qk_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void qk_arena_release(struct qk_arena *a);

#endif
