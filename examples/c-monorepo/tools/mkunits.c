/* Turns lines of "suffix factor" on stdin into a C table on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char line[128], suffix[16], factor[32];
	int lineno = 0;

	puts("/* Made by mkunits: do not edit. */");
	puts("static const struct {\n\tconst char *suffix;\n\tdouble factor;\n} units[] = {");
	while (fgets(line, sizeof(line), stdin)) {
		lineno++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%15s %31s", suffix, factor) != 2 || strpbrk(suffix, "\\\"")) {
			fprintf(stderr, "mkunits: line %d: not 'suffix factor'\n", lineno);
			return 1;
		}
		printf("\t{ \"%s\", %s },\n", suffix, factor);
	}
	puts("};");
	return ferror(stdout) != 0;
}
