#include "text.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

int text_number(const char *s, double *ret)
{
	char *end;
	double value = strtod(s, &end);

	if (end == s)
		return 0;
	if (!*end) {
		*ret = value;
		return 1;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].suffix)) {
			*ret = value * units[i].factor;
			return 1;
		}
	return 0;
}
