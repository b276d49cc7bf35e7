/*
 * malloc for the runner. It lives for one recipe line, allocates a few hundred small things and gives
 * few back; a general allocator maps, fills and unmaps a group of pages for each size it meets, which
 * cost more than all the work between. This one cuts sizes off one block after the other and keeps
 * what is given back by size. One thread only, as the runner has.
 *
 * In builds with a sanitizer, and where the runner is linked with another libc than musl, that one's
 * allocator is used (Makefile).
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	STEP = 16,             /* alignment of everything handed out */
	SMALL = 1024,          /* up to here sizes go in steps, above by doubling */
	LARGE = 128 * 1024,    /* from here on each piece is a mapping of its own */
	CLASSES = SMALL / STEP + 8,
	FIRST = 64 * 1024,
	BLOCK = 1024 * 1024,
};

struct piece {
	size_t size; /* what can be used behind this head */
	struct piece *next;
};

_Static_assert(sizeof(struct piece) == STEP, "a head keeps what follows aligned");

static char first[FIRST] __attribute__((aligned(STEP)));
static char *at = first, *end = first + FIRST;
static struct piece *given_back[CLASSES];

/* The class that holds size, which is rounded up to it. */
static unsigned int class_of(size_t *size)
{
	unsigned int class = SMALL / STEP;
	size_t top = 2 * (size_t)SMALL;

	if (*size <= SMALL) {
		*size = *size ? (*size + STEP - 1) / STEP * STEP : STEP;
		return (unsigned int)(*size / STEP - 1);
	}
	for (; top < *size; top *= 2)
		class++;
	*size = top;
	return class;
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static struct piece *cut(size_t size)
{
	struct piece *p;

	if ((size_t)(end - at) < sizeof(*p) + size) {
		char *block = map(BLOCK); /* what is left of the last one is lost */

		if (!block)
			return NULL;
		at = block;
		end = block + BLOCK;
	}
	p = (struct piece *)(void *)at;
	at += sizeof(*p) + size;
	p->size = size;
	return p;
}

/* Not malloc itself: compilers make calloc of malloc and memset, calloc's own included. */
static void *give(size_t size)
{
	struct piece *p, **list;

	if (size > PTRDIFF_MAX - sizeof(*p)) {
		errno = ENOMEM;
		return NULL;
	}
	if (size > LARGE) {
		p = map(sizeof(*p) + size);
		if (p)
			p->size = size;
	} else {
		list = &given_back[class_of(&size)];
		p = *list;
		if (p)
			*list = p->next;
		else
			p = cut(size);
	}
	if (!p)
		errno = ENOMEM;
	return p ? p + 1 : NULL;
}

void *malloc(size_t size)
{
	return give(size);
}

void free(void *ptr)
{
	struct piece *p = ptr, **list;
	size_t size;

	if (!p--)
		return;
	size = p->size;
	if (size > LARGE) {
		int saved = errno;

		munmap(p, sizeof(*p) + size);
		errno = saved;
		return;
	}
	list = &given_back[class_of(&size)];
	p->next = *list;
	*list = p;
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (size && n > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	p = give(n * size);
	if (p && n * size <= LARGE) /* a mapping is zero */
		memset(p, 0, n * size);
	return p;
}

void *realloc(void *ptr, size_t size)
{
	size_t old = ptr ? ((struct piece *)ptr - 1)->size : 0;
	void *p;

	if (ptr && size <= old && (old <= LARGE || size > old / 2))
		return ptr;
	if (ptr && old > LARGE && size > LARGE && size <= PTRDIFF_MAX - sizeof(struct piece)) {
		struct piece *moved = mremap((struct piece *)ptr - 1, sizeof(*moved) + old,
			sizeof(*moved) + size, MREMAP_MAYMOVE);

		if (moved == MAP_FAILED) {
			errno = ENOMEM;
			return NULL;
		}
		moved->size = size;
		return moved + 1;
	}
	p = give(size);
	if (p && ptr) {
		memcpy(p, ptr, old < size ? old : size);
		free(ptr);
	}
	return p;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	if (alignment <= STEP)
		return give(size);
	errno = EINVAL;
	return NULL;
}
