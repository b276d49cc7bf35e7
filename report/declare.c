#include "report/declare.h"

#include "base/glob.h"
#include "base/path.h"

#include <string.h>

static const struct {
	enum qk_list list;
	unsigned int rights;
	enum qk_reason reason;
} lists[] = {
	{ QK_LIST_SIBLINGS, QK_READ | QK_WRITE, QK_BY_TARGET },
	{ QK_LIST_INPUTS, QK_READ, QK_BY_INPUT },
	{ QK_LIST_OUTPUTS, QK_READ | QK_WRITE, QK_BY_OUTPUT },
	{ QK_LIST_DEPFILE, QK_READ | QK_WRITE, QK_BY_DEPFILE },
	{ QK_LIST_SCRATCH, QK_READ | QK_WRITE, QK_BY_SCRATCH },
	{ QK_LIST_WARM, QK_READ | QK_WRITE, QK_BY_WARM },
	{ QK_LIST_IGNORE_READS, QK_READ, QK_BY_IGNORE },
	{ QK_LIST_ALLOW_READ, QK_READ, QK_BY_GRANT },
	{ QK_LIST_ALLOW_WRITE, QK_READ | QK_WRITE, QK_BY_GRANT },
};

enum qk_scope qk_declare_scope(const char *entry, char **ret_path)
{
	size_t n = strlen(entry);
	char *path = qk_strdup(entry);

	while (n > 3 && !strcmp(path + n - 3, "/**"))
		path[n -= 3] = '\0';
	if (!strcmp(path, "**"))
		strcpy(path, ".");
	*ret_path = path;
	return qk_glob_is_pattern(path) ? QK_GLOB : QK_TREE;
}

void qk_declare(struct qk_policy *p, const struct qk_request *r)
{
	qk_policy_add(p, r->cwd, r->target, QK_TREE, QK_WRITE, QK_BY_TARGET);
	qk_policy_add(p, r->cwd, r->target, QK_EXACT, QK_READ | QK_WRITE, QK_BY_TARGET);
	for (enum qk_list l = QK_LIST_PREREQS; l <= QK_LIST_ORDER; l++)
		for (size_t i = 0; i < r->lists[l].n; i++)
			qk_policy_add(p, r->cwd, r->lists[l].v[i], QK_EXACT, QK_READ,
				QK_BY_PREREQUISITE);
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
		for (size_t i = 0; i < r->lists[lists[k].list].n; i++) {
			qk_autofree char *path = NULL;
			enum qk_scope scope =
				qk_declare_scope(r->lists[lists[k].list].v[i], &path);

			qk_policy_add(p, r->cwd, path, scope, lists[k].rights, lists[k].reason);
		}
	}
}

bool qk_declare_ignores_write(const struct qk_request *r, const char *path)
{
	for (size_t i = 0; i < r->lists[QK_LIST_IGNORE_WRITES].n; i++) {
		const char *entry = r->lists[QK_LIST_IGNORE_WRITES].v[i];
		qk_autofree char *text = NULL, *full = NULL;
		enum qk_scope scope = qk_declare_scope(entry, &text);

		full = qk_path_join(r->cwd, text);
		if (scope == QK_GLOB ? qk_glob_match(full, path) : qk_path_under(path, full))
			return true;
	}
	return false;
}
