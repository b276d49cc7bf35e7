#include "keying/yamldepth.h"

#include <errno.h>

int qk_yaml_check_depth(const char *file, const char *p, size_t n, struct qk_err *err)
{
	size_t line = 1, column = 0, open = 0, dashes = 0;

	for (size_t i = 0; i < n; i++) {
		column++;
		if (p[i] == '[' || p[i] == '{')
			open++;
		else if ((p[i] == ']' || p[i] == '}') && open)
			open--;
		else if ((p[i] == '-' || p[i] == '?') && i + 1 < n && p[i + 1] == ' ')
			dashes++;
		if (open > QK_YAML_DEPTH || dashes > QK_YAML_DEPTH)
			return qk_fail(err, -EINVAL, "%s:%zu:%zu: nested more than %d deep", file, line,
				column, QK_YAML_DEPTH);
		if (p[i] == '\n') {
			line++;
			column = dashes = 0;
		}
	}
	return 0;
}
