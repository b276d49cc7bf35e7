#include "number.h"

#include <stdio.h>
#include <string.h>

static int failed;

static void parses(const char *text, int ret, double value)
{
	double got = 0;

	if (number_parse(text, &got) != ret || got != value) {
		printf("number_parse(\"%s\") gives %g\n", text, got);
		failed = 1;
	}
}

static void formats(double value, int digits, const char *text)
{
	char got[64];

	number_format(got, sizeof(got), value, digits);
	if (strcmp(got, text)) {
		printf("number_format(%g, %d) gives %s\n", value, digits, got);
		failed = 1;
	}
}

int main(void)
{
	parses("3", 0, 3);
	parses("-2.5e3", 0, -2500);
	parses("", -1, 0);
	parses("3x", -1, 0);
	parses("inf", -1, 0);
	formats(3, 2, "3");
	formats(3.10, 2, "3.1");
	formats(0.125, 2, "0.12");
	formats(100, 0, "100");
	puts(failed ? "text: failed" : "text: all is well");
	return failed;
}
