/* convert VALUE FROM TO: says what so many of one unit are in another. */
#include "number.h"
#include "units.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	const char *digits = getenv("CONVERT_DIGITS");
	char text[64];
	double value;
	int r;

	if (argc != 4 || number_parse(argv[1], &value)) {
		fprintf(stderr, "usage: convert VALUE FROM TO\n");
		return 2;
	}
	r = units_convert(value, argv[2], argv[3], &value);
	if (r) {
		fprintf(stderr, "convert: %s and %s: %s\n", argv[2], argv[3],
			r == -1 ? "not both are known" : "they do not measure the same");
		return 1;
	}
	number_format(text, sizeof(text), value, digits ? atoi(digits) : 6);
	printf("%s %s\n", text, argv[3]);
	return 0;
}
