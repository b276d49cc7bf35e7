/* The runner's allocator, under other names beside libc's own. */
#define malloc heap_malloc
#define calloc heap_calloc
#define realloc heap_realloc
#define free heap_free
#define aligned_alloc heap_aligned_alloc
#include "runner/heap.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef aligned_alloc

#include <check.h>

enum { SLOTS = 200, ROUNDS = 20000 };

static struct slot {
	unsigned char *p;
	size_t n;
	unsigned char fill;
} slots[SLOTS];

static size_t some_size(void)
{
	static const size_t tops[] = { 40, 40, 40, 1100, 5000, 140000 };

	return (size_t)random() % tops[random() % 6];
}

static void check_slot(const struct slot *s)
{
	size_t i = 0;

	while (i < s->n && s->p[i] == s->fill)
		i++;
	ck_assert_msg(i == s->n, "byte %zu of %zu was written over", i, s->n);
}

START_TEST(pieces_are_apart)
{
	srandom(7);
	for (int round = 0; round < ROUNDS; round++) {
		struct slot *s = &slots[random() % SLOTS];
		size_t n = some_size(), kept = n < s->n ? n : s->n;

		switch (round % 8 ? random() % 3 : 3) {
		case 0:
			check_slot(s);
			heap_free(s->p);
			s->p = heap_malloc(n);
			break;
		case 1:
			heap_free(s->p);
			s->p = heap_calloc(1, n);
			s->fill = 0;
			s->n = n;
			check_slot(s);
			break;
		case 2:
			s->p = heap_realloc(s->p, n);
			s->n = kept;
			check_slot(s);
			break;
		default:
			check_slot(s);
			continue;
		}
		ck_assert_ptr_nonnull(s->p);
		ck_assert_uint_eq((uintptr_t)s->p % STEP, 0);
		s->n = n;
		s->fill = (unsigned char)random();
		memset(s->p, s->fill, n);
	}
}
END_TEST

START_TEST(given_back_is_used_again)
{
	char *before = at, *p = heap_malloc(100);

	for (int i = 0; i < 1000; i++) {
		heap_free(p);
		p = heap_malloc(97);
	}
	ck_assert_int_le(at - before, 200);
}
END_TEST

START_TEST(too_much_is_refused)
{
	volatile size_t all = SIZE_MAX;

	errno = 0;
	ck_assert(!heap_malloc(all) && errno == ENOMEM);
	errno = 0;
	ck_assert(!heap_calloc(all / 2, 3) && errno == ENOMEM);
	ck_assert(!heap_malloc(all / 2));
	ck_assert(heap_malloc(0));
	heap_free(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("heap");
	TCase *t = tcase_create("heap");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, pieces_are_apart);
	tcase_add_test(t, given_back_is_used_again);
	tcase_add_test(t, too_much_is_refused);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
