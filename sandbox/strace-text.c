#include "sandbox/strace-text.h"

#include <string.h>

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool qk_strace_decode(char *s, char end)
{
	char *to = s;

	while (*s && *s != end) {
		if (s[0] != '\\' || s[1] != 'x' || hex(s[2]) < 0 || hex(s[3]) < 0)
			return false;
		*to++ = (char)(hex(s[2]) << 4 | hex(s[3]));
		s += 4;
	}
	if (*s != end)
		return false;
	*to = '\0';
	return true;
}

char *qk_strace_split(char *s, char *args[QK_STRACE_ARGS], int *n)
{
	int depth = 0;

	*n = 0;
	args[(*n)++] = s;
	for (; *s; s++) {
		if (strchr("([{", *s)) {
			depth++;
		} else if (*s == ')' && !depth) {
			*s = '\0';
			return s + 1;
		} else if (strchr(")]}", *s)) {
			depth--;
		} else if (*s == ',' && s[1] == ' ' && !depth && *n < QK_STRACE_ARGS) {
			*s = '\0';
			args[(*n)++] = s + 2;
			s++;
		}
	}
	return NULL;
}

const char *qk_strace_descriptor(char *arg)
{
	char *open = strchr(arg, '<');

	return open && qk_strace_decode(open + 1, '>') ? open + 1 : NULL;
}
