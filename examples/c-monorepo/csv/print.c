#include "csv.h"

#include <string.h>

void csv_print(FILE *out, const char *field)
{
	if (!field[strcspn(field, ",\"\r\n")]) {
		fputs(field, out);
		return;
	}
	putc('"', out);
	for (; *field; field++) {
		if (*field == '"')
			putc('"', out);
		putc(*field, out);
	}
	putc('"', out);
}
