#include "keying/dotenv.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>

enum { EXPANSIONS_MAX = 100 }; /* a value that leads to itself ends there */

void qk_dotenv_release(struct qk_dotenv *d)
{
	qk_strv_release(&d->names);
	qk_strv_release(&d->values);
}

static size_t slot_of(const struct qk_strv *env, const char *name, size_t n)
{
	for (size_t i = 0; i < env->n; i++)
		if (!strncmp(env->v[i], name, n) && env->v[i][n] == '=')
			return i;
	return env->n;
}

const char *qk_env_get(const struct qk_strv *env, const char *name)
{
	size_t n = strlen(name), i = slot_of(env, name, n);

	return i < env->n ? env->v[i] + n + 1 : NULL;
}

void qk_env_set(struct qk_strv *env, const char *name, const char *value)
{
	size_t i = slot_of(env, name, strlen(name));
	char *entry = qk_asprintf("%s=%s", name, value);

	if (i < env->n) {
		free(env->v[i]);
		env->v[i] = entry;
	} else {
		qk_strv_take(env, entry);
	}
}

static void set(struct qk_dotenv *d, const char *name, size_t n, char *value)
{
	for (size_t i = 0; i < d->names.n; i++)
		if (strlen(d->names.v[i]) == n && !memcmp(d->names.v[i], name, n)) {
			free(d->values.v[i]);
			d->values.v[i] = value;
			return;
		}
	qk_strv_take(&d->names, qk_strndup(name, n));
	qk_strv_take(&d->values, value);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

/* A quoted value from its quote on, the end in *ret_end; NULL if nothing closes it. */
static char *quoted(const char *s, const char *end, const char **ret_end)
{
	char quote = *s++;
	struct qk_buf b = QK_BUF_INIT;

	for (; s < end; s++) {
		if (*s == quote) {
			*ret_end = s + 1;
			return qk_buf_detach(&b);
		}
		if (*s == '\\' && s + 1 < end && quote == '"' && (s[1] == 'n' || s[1] == 'r')) {
			qk_buf_addch(&b, *++s == 'n' ? '\n' : '\r');
		} else if (*s == '\\' && s + 1 < end && s[1] == quote) {
			qk_buf_addch(&b, *s++);
			qk_buf_addch(&b, *s);
		} else {
			qk_buf_addch(&b, *s);
		}
	}
	qk_buf_release(&b);
	return NULL;
}

static char *bare(const char *s, const char *eol)
{
	const char *end = s;

	while (end < eol && *end != '#')
		end++;
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	return qk_strndup(s, (size_t)(end - s));
}

void qk_dotenv_parse(struct qk_dotenv *d, const char *text, size_t n)
{
	const char *end = text + n, *next;

	for (const char *s = text; s < end; s = next) {
		const char *eol = memchr(s, '\n', (size_t)(end - s)), *name, *after;
		char *value;

		if (!eol)
			eol = end;
		next = eol < end ? eol + 1 : end;
		s = skip_blanks(s, eol);
		if (eol - s > 7 && !strncmp(s, "export", 6) && (s[6] == ' ' || s[6] == '\t'))
			s = skip_blanks(s + 6, eol);
		for (name = s; s < eol && is_name(*s); s++)
			;
		after = skip_blanks(s, eol);
		if (s == name || after == eol || (*after != '=' && (*after != ':' || after[1] != ' ')))
			continue;
		after = skip_blanks(after + 1, eol);
		value = after < eol && strchr("'\"`", *after) ? quoted(after, end, &after) : NULL;
		if (!value) {
			value = bare(after, eol);
		} else { /* it may have gone over several lines */
			eol = memchr(after, '\n', (size_t)(end - after));
			next = eol ? eol + 1 : end;
		}
		set(d, name, (size_t)(s - name), value);
	}
}

static const char *raw(const struct qk_dotenv *d, const char *name)
{
	for (size_t i = 0; i < d->names.n; i++)
		if (!strcmp(d->names.v[i], name))
			return d->values.v[i];
	return NULL;
}

struct expansion {
	const struct qk_dotenv *d;
	const struct qk_strv *env;
	int left;
};

static void expand(struct expansion *x, struct qk_buf *out, const char *value);

/* What ${NAME}, ${NAME:-default} or $NAME from s on means; returns what follows it. */
static const char *expand_name(struct expansion *x, struct qk_buf *out, const char *s)
{
	bool braces = s[1] == '{';
	const char *start = s + 1 + braces, *at = start, *end, *value;
	qk_autofree char *name = NULL, *fallback = NULL;

	while (isalnum((unsigned char)*at) || *at == '_')
		at++;
	end = at;
	if (braces) {
		const char *close = strchr(at, '}'), *dash = at;

		if (*dash == ':')
			dash++;
		if (close && *dash == '-')
			fallback = qk_strndup(dash + 1, (size_t)(close - dash - 1));
		else if (close != at)
			close = NULL;
		end = close ? close + 1 : NULL;
	}
	if (at == start || !end) {
		qk_buf_addch(out, *s);
		return s + 1;
	}
	name = qk_strndup(start, (size_t)(at - start));
	value = qk_env_get(x->env, name);
	if (value && *value) {
		qk_buf_addstr(out, value);
		return end;
	}
	value = raw(x->d, name);
	if (!value || !*value)
		value = fallback;
	if (value && x->left-- > 0)
		expand(x, out, value);
	return end;
}

static void expand(struct expansion *x, struct qk_buf *out, const char *value)
{
	while (*value) {
		if (*value == '\\' && value[1] == '$') {
			qk_buf_addch(out, '$');
			value += 2;
		} else if (*value == '$') {
			value = expand_name(x, out, value);
		} else {
			qk_buf_addch(out, *value++);
		}
	}
}

void qk_dotenv_apply(const struct qk_dotenv *d, struct qk_strv *env)
{
	qk_autostrv struct qk_strv values = { 0 };

	for (size_t i = 0; i < d->names.n; i++) {
		struct expansion x = { d, env, EXPANSIONS_MAX };
		struct qk_buf b = QK_BUF_INIT;

		expand(&x, &b, d->values.v[i]);
		qk_strv_take(&values, qk_buf_detach(&b));
	}
	for (size_t i = 0; i < d->names.n; i++)
		if (!qk_env_get(env, d->names.v[i]))
			qk_env_set(env, d->names.v[i], values.v[i]);
}
