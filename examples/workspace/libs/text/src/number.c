#include "number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int number_parse(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || value - value != 0)
		return -1;
	*ret = value;
	return 0;
}

void number_format(char *to, size_t size, double value, int digits)
{
	size_t n;

	snprintf(to, size, "%.*f", digits, value);
	if (!strchr(to, '.'))
		return;
	for (n = strlen(to); to[n - 1] == '0'; n--)
		;
	if (to[n - 1] == '.')
		n--;
	to[n] = '\0';
}
