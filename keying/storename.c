/*
 * Where a store is and how large it may grow, from what people say. Apart from the store itself, so
 * that make's process needs none of that.
 */
#include "keying/store.h"

#include "base/path.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

char *qk_store_dir(const char *root, const char *env, const char *configured)
{
	const char *dir = env && *env ? env : configured && *configured ? configured : ".qk/cache";

	return qk_path_join(root, dir);
}

int qk_store_parse_size(const char *text, uint64_t *ret, struct qk_err *err)
{
	static const char units[] = "kmgt";
	const char *unit;
	uint64_t factor = 1;
	char *end;
	double n;

	if (!isdigit((unsigned char)*text))
		return qk_fail(err, -EINVAL, "size '%s': a number is missing", text);
	n = strtod(text, &end);
	while (*end == ' ')
		end++;
	unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
	if (unit) {
		factor <<= 10 * (unit - units + 1);
		end++;
		if (*end == 'i')
			end++;
	}
	if (tolower((unsigned char)*end) == 'b')
		end++;
	if (*end)
		return qk_fail(err, -EINVAL, "size '%s': say it as 500M, 2G, 1.5T or bytes", text);
	if (n * (double)factor >= 1e18)
		return qk_fail(err, -EINVAL, "size '%s' is too large", text);
	*ret = (uint64_t)(n * (double)factor);
	return 0;
}
