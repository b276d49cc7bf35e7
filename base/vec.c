#include "base/vec.h"

#include <string.h>

void qk_strv_take(struct qk_strv *sv, char *s)
{
	if (sv->n + 1 >= sv->cap) {
		sv->cap = sv->cap ? 2 * sv->cap : 8;
		sv->v = qk_realloc(sv->v, sv->cap, sizeof(*sv->v));
	}
	sv->v[sv->n++] = s;
	sv->v[sv->n] = NULL;
}

void qk_strv_push(struct qk_strv *sv, const char *s)
{
	qk_strv_take(sv, qk_strdup(s));
}

void qk_strv_split(struct qk_strv *sv, const char *s)
{
	static const char blanks[] = " \t\n\r";

	for (s += strspn(s, blanks); *s; s += strspn(s, blanks)) {
		size_t n = strcspn(s, blanks);

		qk_strv_take(sv, qk_strndup(s, n));
		s += n;
	}
}

bool qk_strv_has(const struct qk_strv *sv, const char *s)
{
	for (size_t i = 0; i < sv->n; i++)
		if (!strcmp(sv->v[i], s))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void qk_strv_sort(struct qk_strv *sv)
{
	if (sv->n)
		qsort(sv->v, sv->n, sizeof(*sv->v), compare);
}

void qk_strv_uniq(struct qk_strv *sv)
{
	size_t n = 0;

	for (size_t i = 0; i < sv->n; i++) {
		if (n && !strcmp(sv->v[n - 1], sv->v[i]))
			free(sv->v[i]);
		else
			sv->v[n++] = sv->v[i];
	}
	sv->n = n;
	if (sv->v)
		sv->v[n] = NULL;
}

void qk_strv_release(struct qk_strv *sv)
{
	for (size_t i = 0; i < sv->n; i++)
		free(sv->v[i]);
	free(sv->v);
	*sv = (struct qk_strv){ 0 };
}
