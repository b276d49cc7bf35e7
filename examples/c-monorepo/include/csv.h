/* Comma-separated values as RFC 4180 has them: quoted fields may hold commas, quotes, newlines. */
#ifndef CSV_H
#define CSV_H

#include "text.h"

#include <stdio.h>

struct csv {
	FILE *in;
	struct text bytes; /* the fields of one record, each terminated */
	size_t *start;     /* where in bytes each begins */
	size_t n, cap;
};

void csv_open(struct csv *c, FILE *in);

/* Reads the next record: 1, 0 at the end, -1 without memory or with an unfinished quote. */
int csv_next(struct csv *c);
const char *csv_field(const struct csv *c, size_t i); /* "" past the last */
void csv_close(struct csv *c);                        /* not the file */

/* Writes one field, quoted if it has to be. */
void csv_print(FILE *out, const char *field);

#endif
