#include "units.h"

#include "units_table.h"

#include <stddef.h>
#include <string.h>

static const struct unit *find(const char *name)
{
	for (int i = 0; i < unit_count; i++)
		if (!strcmp(unit_table[i].name, name))
			return &unit_table[i];
	return NULL;
}

int units_convert(double value, const char *from, const char *to, double *ret)
{
	const struct unit *a = find(from), *b = find(to);

	if (!a || !b)
		return -1;
	if (strcmp(a->kind, b->kind))
		return -2;
	*ret = value * a->factor / b->factor;
	return 0;
}
