/*
 * Reads the array "units" of a JSON file and writes it as a C table.
 *
 *   tablegen units.json >units_table.c
 *
 * Each unit is {"name": "km", "kind": "length", "factor": 1000}. Only as much of JSON is understood
 * as such a file needs: strings without escapes, numbers, and members in any order.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	char name[16], kind[16], factor[32];
};

static const char *at;
static int line = 1;

static void fail(const char *what)
{
	fprintf(stderr, "tablegen: line %d: %s\n", line, what);
	exit(1);
}

static void skip_blanks(void)
{
	while (isspace((unsigned char)*at))
		line += *at++ == '\n';
}

static int take(char c)
{
	skip_blanks();
	if (*at != c)
		return 0;
	at++;
	return 1;
}

static void need(char c)
{
	char what[] = "'?' expected";

	what[1] = c;
	if (!take(c))
		fail(what);
}

static void copy(char *to, size_t size, const char *from, size_t n)
{
	if (n >= size)
		fail("too long");
	memcpy(to, from, n);
	to[n] = '\0';
}

/* A string or number, as text. */
static void scalar(char *to, size_t size)
{
	size_t n;

	if (take('"')) {
		n = strcspn(at, "\"\n");
		copy(to, size, at, n);
		at += n;
		need('"');
		return;
	}
	skip_blanks();
	n = strspn(at, "+-.0123456789eE");
	if (!n)
		fail("a string or a number expected");
	copy(to, size, at, n);
	at += n;
}

static struct unit read_unit(void)
{
	struct unit u = { "", "", "" };
	char key[16], other[256];

	do {
		scalar(key, sizeof(key));
		need(':');
		if (!strcmp(key, "name"))
			scalar(u.name, sizeof(u.name));
		else if (!strcmp(key, "kind"))
			scalar(u.kind, sizeof(u.kind));
		else if (!strcmp(key, "factor"))
			scalar(u.factor, sizeof(u.factor));
		else
			scalar(other, sizeof(other));
	} while (take(','));
	need('}');
	if (!*u.name || !*u.kind || !*u.factor)
		fail("a unit needs name, kind and factor");
	return u;
}

static void write_units(void)
{
	need('[');
	while (take('{')) {
		struct unit u = read_unit();

		printf("\t{ \"%s\", \"%s\", %s },\n", u.name, u.kind, u.factor);
		if (!take(','))
			break;
	}
	need(']');
}

int main(int argc, char **argv)
{
	static char text[1 << 16];
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	char key[32], other[256];
	size_t n;

	if (!f)
		return fprintf(stderr, "usage: tablegen FILE\n"), 2;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	at = text;
	puts("/* Made by tablegen; do not edit. */\n#include \"units_table.h\"\n\nconst struct unit unit_table[] = {");
	need('{');
	do {
		scalar(key, sizeof(key));
		need(':');
		if (!strcmp(key, "units"))
			write_units();
		else
			scalar(other, sizeof(other));
	} while (take(','));
	need('}');
	puts("};\n\nconst int unit_count = sizeof(unit_table) / sizeof(unit_table[0]);");
	return 0;
}
