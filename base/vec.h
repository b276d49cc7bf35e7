/*
 * Vectors. `struct qk_strv` owns its strings. QK_VEC(type) makes a plain vector of values;
 * qk_vec_push(&v, value) appends, qk_vec_release(&v) frees the storage (not what values own).
 */
#ifndef QK_BASE_VEC_H
#define QK_BASE_VEC_H

#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

#define QK_VEC(type)                                                                              \
	struct {                                                                                  \
		type *v;                                                                          \
		size_t n, cap;                                                                    \
	}

#define qk_vec_push(vec, value)                                                                   \
	do {                                                                                      \
		if ((vec)->n == (vec)->cap) {                                                     \
			(vec)->cap = (vec)->cap ? 2 * (vec)->cap : 8;                             \
			(vec)->v = qk_realloc((vec)->v, (vec)->cap, sizeof(*(vec)->v));           \
		}                                                                                 \
		(vec)->v[(vec)->n++] = (value);                                                   \
	} while (0)

#define qk_vec_release(vec)                                                                       \
	do {                                                                                      \
		free((vec)->v);                                                                   \
		(vec)->v = NULL;                                                                  \
		(vec)->n = (vec)->cap = 0;                                                        \
	} while (0)

/* Strings, each owned. Zero-initialised is empty. v is NULL-terminated once something was pushed. */
struct qk_strv {
	char **v;
	size_t n, cap;
};

#define qk_autostrv __attribute__((cleanup(qk_strv_release)))

void qk_strv_push(struct qk_strv *sv, const char *s); /* copies */
void qk_strv_take(struct qk_strv *sv, char *s);       /* owns s from now on */
void qk_strv_split(struct qk_strv *sv, const char *s); /* pushes the words of s (blank-separated) */
bool qk_strv_has(const struct qk_strv *sv, const char *s);
void qk_strv_sort(struct qk_strv *sv); /* bytewise */
void qk_strv_uniq(struct qk_strv *sv); /* of a sorted one: drops repeats */
void qk_strv_release(struct qk_strv *sv);

#endif
