/* csvstat FILE: for every column, how many numbers it holds and what they are like. */
#include "csv.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct column {
	char *name;
	struct stats stats;
};

static struct column *read_names(struct csv *c, size_t *ret_n)
{
	struct column *columns = calloc(c->n, sizeof(*columns));

	for (size_t i = 0; columns && i < c->n; i++)
		columns[i].name = strdup(csv_field(c, i));
	*ret_n = columns ? c->n : 0;
	return columns;
}

int main(int argc, char **argv)
{
	FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
	struct column *columns = NULL;
	size_t n = 0;
	struct csv c;
	int r;

	if (!in) {
		fprintf(stderr, "usage: csvstat FILE\n");
		return 2;
	}
	csv_open(&c, in);
	r = csv_next(&c);
	if (r > 0)
		columns = read_names(&c, &n);
	while (r > 0 && (r = csv_next(&c)) > 0) {
		for (size_t i = 0; i < n; i++) {
			double x;

			if (text_number(csv_field(&c, i), &x))
				stats_add(&columns[i].stats, x);
		}
	}
	for (size_t i = 0; i < n; i++) {
		const struct stats *s = &columns[i].stats;

		printf("%s: %lu numbers", columns[i].name, s->n);
		if (s->n)
			printf(", %g to %g, mean %g, deviation %.3g", s->min, s->max, s->mean,
				stats_deviation(s));
		putchar('\n');
		free(columns[i].name);
	}
	free(columns);
	csv_close(&c);
	fclose(in);
	if (r < 0)
		fprintf(stderr, "csvstat: %s: unfinished quote\n", argv[1]);
	return r < 0;
}
