#include "cli/nearest.h"

#include "base/mem.h"

#include <string.h>

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance; anything above limit is limit + 1. */
static size_t slips(const char *a, const char *b, size_t limit)
{
	size_t na = strlen(a), nb = strlen(b), width = nb + 1;
	qk_autofree size_t *rows = NULL;
	size_t *before, *last, *row;

	if (na > nb + limit || nb > na + limit)
		return limit + 1;
	rows = qk_alloc(3 * width * sizeof(*rows));
	before = rows;
	last = rows + width;
	row = last + width;
	for (size_t j = 0; j <= nb; j++)
		last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *reuse = before;

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			row[j] = min(min(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], before[j - 2] + 1);
		}
		before = last;
		last = row;
		row = reuse;
	}
	return min(last[nb], limit + 1);
}

const char *qk_nearest(const char *word, const char *const *words, size_t n)
{
	size_t len = strlen(word), limit = len / 3 ? len / 3 : 1, best = limit + 1;
	const char *found = NULL;

	if (!len)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d = slips(word, words[i], best - 1);

		if (d < best && d < strlen(words[i])) {
			best = d;
			found = words[i];
			if (!best)
				return found;
		}
	}
	for (size_t i = 0; i < n && !found; i++)
		if (!strncmp(words[i], word, len))
			found = words[i];
	return found;
}
