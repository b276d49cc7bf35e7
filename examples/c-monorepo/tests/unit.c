#include "csv.h"
#include "stats.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(x)                                                                                  \
	do {                                                                                      \
		if (!(x)) {                                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                   \
			failures++;                                                               \
		}                                                                                 \
	} while (0)

static void check_numbers(void)
{
	double x = 0;

	CHECK(text_number("12", &x) && x == 12);
	CHECK(text_number("1.5k", &x) && x == 1500);
	CHECK(text_number("50%", &x) && x == 0.5);
	CHECK(!text_number("", &x));
	CHECK(!text_number("k", &x));
	CHECK(!text_number("1x", &x));
}

static void check_csv(void)
{
	char bytes[] = "a,\"b \"\"q\"\", c\",\r\n\"x\ny\"\n\"open";
	FILE *in = fmemopen(bytes, strlen(bytes), "r");
	struct csv c;

	csv_open(&c, in);
	CHECK(csv_next(&c) == 1 && c.n == 3);
	CHECK(!strcmp(csv_field(&c, 1), "b \"q\", c"));
	CHECK(!strcmp(csv_field(&c, 2), "") && !strcmp(csv_field(&c, 3), ""));
	CHECK(csv_next(&c) == 1 && c.n == 1 && !strcmp(csv_field(&c, 0), "x\ny"));
	CHECK(csv_next(&c) == -1);
	csv_close(&c);
	fclose(in);
}

static void check_stats(void)
{
	static const double xs[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct stats s = { 0 };

	CHECK(stats_deviation(&s) == 0);
	for (size_t i = 0; i < sizeof(xs) / sizeof(xs[0]); i++)
		stats_add(&s, xs[i]);
	CHECK(s.n == 8 && s.min == 2 && s.max == 9 && s.mean == 5);
	CHECK(fabs(stats_deviation(&s) - sqrt(32.0 / 7)) < 1e-12);
}

int main(void)
{
	check_numbers();
	check_csv();
	check_stats();
	return failures != 0;
}
