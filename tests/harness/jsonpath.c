#include "tests/harness/jsonpath.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/vec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* \udcXX -> byte XX, which cJSON would refuse as half a pair, and which it passes through as a
 * byte. */
static void bytes_back(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] == '\\') {
			*to++ = *s++;
		} else if (!strncmp(s, "\\udc", 4) && isxdigit((unsigned char)s[4]) &&
			   isxdigit((unsigned char)s[5]) && strchr("89abcdefABCDEF", s[4])) {
			char hex[3] = { s[4], s[5], 0 };

			*to++ = (char)strtoul(hex, NULL, 16);
			s += 6;
			continue;
		}
		*to++ = *s++;
	}
	*to = 0;
}

cJSON *json_read(const char *path, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	cJSON *doc;

	if (qk_read_file(AT_FDCWD, path, 64 << 20, &text, err) < 0)
		return NULL;
	bytes_back(text.s);
	doc = cJSON_Parse(text.s);
	if (!doc)
		qk_fail(err, -EINVAL, "the report is no JSON: %.200s", text.s);
	return doc;
}

/* The next word at *s, which is moved past it. NULL at the end. The caller frees. */
static char *next_word(const char **s)
{
	const char *end;
	size_t n;

	while (**s == ' ')
		(*s)++;
	if (!**s)
		return NULL;
	if (**s == '"') {
		qk_autofree char *raw = qk_strdup(*s);
		cJSON *v;
		char *word;

		/* Give the bytes back first: both sides of a comparison are then treated alike. */
		bytes_back(raw);
		v = cJSON_ParseWithOpts(raw, &end, 0);
		if (v && cJSON_IsString(v)) {
			const char *p = *s + 1;

			word = qk_strdup(v->valuestring);
			cJSON_Delete(v);
			while (*p && *p != '"')
				p += p[0] == '\\' && p[1] ? 2 : 1;
			*s = *p ? p + 1 : p;
			return word;
		}
		cJSON_Delete(v);
	}
	n = strcspn(*s, " ");
	*s += n;
	return qk_strndup(*s - n, n);
}

static void select_values(
	const cJSON *at, const struct qk_strv *steps, size_t i, struct qk_strv *ret)
{
	const cJSON *child;
	int index = 0;

	if (i == steps->n) {
		if (cJSON_IsString(at)) {
			qk_strv_push(ret, at->valuestring);
		} else {
			char *text = cJSON_PrintUnformatted(at);

			qk_strv_push(ret, text);
			cJSON_free(text);
		}
		return;
	}
	cJSON_ArrayForEach(child, at)
	{
		const char *step = steps->v[i];
		bool is_it = !strcmp(step, "*");

		if (cJSON_IsArray(at)) {
			qk_autofree char *n = qk_asprintf("%d", index++);

			is_it = is_it || !strcmp(step, n);
		} else {
			is_it = is_it || (child->string && !strcmp(step, child->string));
		}
		if (is_it)
			select_values(child, steps, i + 1, ret);
	}
}

static char *joined(const struct qk_strv *sv)
{
	struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < sv->n; i++)
		qk_buf_addf(&b, "%s'%s'", i ? " " : "", sv->v[i]);
	return qk_buf_detach(&b);
}

int json_ask(const cJSON *doc, const char *question, struct qk_err *err)
{
	qk_autostrv struct qk_strv steps = { 0 }, wanted = { 0 }, found = { 0 };
	qk_autofree char *op = NULL;
	qk_autofree char *there = NULL;
	const char *s = question;
	char *word;
	bool yes = true;

	while (!op && (word = next_word(&s))) {
		if (!strcmp(word, "=") || !strcmp(word, "has") || !strcmp(word, "lacks"))
			op = word;
		else
			qk_strv_take(&steps, word);
	}
	if (!op)
		return qk_fail(err, -EINVAL, "report: no =, has or lacks in '%s'", question);
	while ((word = next_word(&s)))
		qk_strv_take(&wanted, word);
	select_values(doc, &steps, 0, &found);
	qk_strv_sort(&found);
	qk_strv_sort(&wanted);
	if (*op == '=')
		yes = found.n == wanted.n;
	else if (!wanted.n)
		yes = *op == 'h' && found.n;
	for (size_t i = 0; yes && i < wanted.n; i++) {
		if (*op == '=')
			yes = !strcmp(found.v[i], wanted.v[i]);
		else
			yes = qk_strv_has(&found, wanted.v[i]) == (*op == 'h');
	}
	if (yes)
		return 0;
	there = joined(&found);
	return qk_fail(
		err, -EINVAL, "report: %s; there is %s", question, found.n ? there : "nothing");
}
