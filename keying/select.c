#include "keying/select.h"

#include "base/glob.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool qk_select_is_glob(const char *text)
{
	return strpbrk(text, "*|{}()[") != NULL;
}

struct pattern {
	const char *value;
	bool exclude;
	enum { BY_ANY, BY_NAME, BY_TAG, BY_DIRECTORY } by;
};

/* known says whether the text names a project as it stands: then a colon in it parts nothing. */
static struct pattern parse(const char *text, bool known)
{
	static const struct {
		const char *label;
		int by;
	} labels[] = {
		{ "name:", BY_NAME },
		{ "tag:", BY_TAG },
		{ "directory:", BY_DIRECTORY },
		{ "unlabeled:", BY_ANY },
	};
	struct pattern p = { .exclude = *text == '!' };

	p.value = text + p.exclude;
	if (known)
		p.by = BY_NAME;
	for (size_t i = 0; !known && i < sizeof(labels) / sizeof(*labels); i++) {
		size_t n = strlen(labels[i].label);

		if (!strncmp(p.value, labels[i].label, n)) {
			p.value += n;
			p.by = labels[i].by;
			break;
		}
	}
	return p;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '@';
}

/* "core" is a part of "libs/core_x" but not of "core-x". */
static bool part_of(const char *name, const char *part)
{
	size_t n = strlen(part), len = strlen(name);

	for (size_t i = 0; n && i + n <= len; i++)
		if (!strncasecmp(name + i, part, n) && (!i || !is_word(name[i - 1])) &&
			!is_word(name[i + n]))
			return true;
	return false;
}

static bool has_tag(const struct qk_project *p, const char *pattern)
{
	for (size_t i = 0; i < p->tags.n; i++)
		if (!strcmp(p->tags.v[i], pattern) ||
			(qk_select_is_glob(pattern) && qk_glob_match(pattern, p->tags.v[i])))
			return true;
	return false;
}

static bool by_name(const struct qk_project *p, const char *pattern)
{
	return qk_select_is_glob(pattern) ? qk_glob_match(pattern, p->name)
					  : part_of(p->name, pattern);
}

static bool by_directory(const struct qk_project *p, const char *pattern)
{
	return !strcmp(p->root, pattern) || qk_glob_match(pattern, p->root);
}

/* Sets or clears chosen for those of the n projects that the test takes; true if any changed. */
static bool mark(const struct qk_project *projects, size_t n, const struct pattern *p,
	bool (*takes)(const struct qk_project *, const char *), bool *chosen)
{
	bool changed = false;

	for (size_t i = 0; i < n; i++) {
		if (!takes(&projects[i], p->value))
			continue;
		changed |= chosen[i] == p->exclude;
		chosen[i] = !p->exclude;
	}
	return changed;
}

static bool any(const struct qk_project *p, const char *pattern)
{
	(void)p;
	(void)pattern;
	return true;
}

static bool is_named(const struct qk_project *p, const char *name)
{
	return !strcmp(p->name, name);
}

/* exact: the position of the project that the text (less its !) names, or n. */
static void apply(
	const struct qk_project *projects, size_t n, const char *text, size_t exact, bool *chosen)
{
	struct pattern p = parse(text, exact < n);

	if (exact < n) {
		mark(projects + exact, 1, &p, is_named, chosen + exact);
	} else if (!strcmp(p.value, "*")) {
		mark(projects, n, &p, any, chosen);
	} else if (p.by == BY_TAG) {
		mark(projects, n, &p, has_tag, chosen);
	} else if (p.by == BY_DIRECTORY) {
		mark(projects, n, &p, by_directory, chosen);
	} else if (p.by == BY_NAME && mark(projects, n, &p, is_named, chosen)) {
		return;
	} else if (!mark(projects, n, &p, by_name, chosen) && p.by == BY_ANY) {
		mark(projects, n, &p, by_directory, chosen);
	}
}

bool qk_select_one(const struct qk_project *project, const char *const *patterns, size_t n)
{
	bool chosen = n && patterns[0][0] == '!';

	for (size_t i = 0; i < n; i++)
		if (*patterns[i])
			apply(project, 1, patterns[i],
				strcmp(project->name, patterns[i] + (*patterns[i] == '!')) ? 1 : 0,
				&chosen);
	return chosen;
}

void qk_workspace_select(
	const struct qk_workspace *ws, const char *const *patterns, size_t n, bool *chosen)
{
	if (n && patterns[0][0] == '!')
		memset(chosen, true, ws->n_projects * sizeof(*chosen));
	for (size_t i = 0; i < n; i++) {
		const struct qk_project *named;

		if (!*patterns[i])
			continue;
		named = qk_workspace_project(ws, patterns[i] + (*patterns[i] == '!'));
		apply(ws->projects, ws->n_projects, patterns[i],
			named ? named->index : ws->n_projects, chosen);
	}
}
