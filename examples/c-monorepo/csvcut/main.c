/* csvcut NAME,... FILE: the named columns, in that order. */
#include "csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 256 };

/* Where the columns of a comma list stand in the header; -1 if one is missing. */
static int find_columns(const struct csv *c, char *list, size_t *ret)
{
	int n = 0;

	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		size_t i = 0;

		while (i < c->n && strcmp(csv_field(c, i), name))
			i++;
		if (i == c->n || n == MAX_COLUMNS) {
			fprintf(stderr, "csvcut: no column '%s'\n", name);
			return -1;
		}
		ret[n++] = i;
	}
	return n;
}

int main(int argc, char **argv)
{
	FILE *in = argc == 3 ? fopen(argv[2], "r") : NULL;
	size_t which[MAX_COLUMNS];
	struct csv c;
	int n = -1, r;

	if (!in) {
		fprintf(stderr, "usage: csvcut NAME,... FILE\n");
		return 2;
	}
	csv_open(&c, in);
	while ((r = csv_next(&c)) > 0) {
		if (n < 0 && (n = find_columns(&c, argv[1], which)) < 0)
			break;
		for (int i = 0; i < n; i++) {
			if (i)
				putchar(',');
			csv_print(stdout, csv_field(&c, which[i]));
		}
		putchar('\n');
	}
	csv_close(&c);
	fclose(in);
	return r != 0;
}
