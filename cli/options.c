#include "cli/options.h"

#include "base/buf.h"
#include "cli/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const struct qk_option *by_letter(const struct qk_usage *u, char letter)
{
	for (const struct qk_option *o = u->options; o->name; o++)
		if (o->letter == letter)
			return o;
	return NULL;
}

static const struct qk_option *by_name(const struct qk_usage *u, const char *name, size_t n)
{
	for (const struct qk_option *o = u->options; o->name; o++)
		if (strlen(o->name) == n && !memcmp(o->name, name, n))
			return o;
	return NULL;
}

char *qk_options_hint(const char *word, const char *const *words, size_t n)
{
	const char *near = qk_nearest(word, words, n);

	return near ? qk_asprintf("; did you mean '%s'?", near) : qk_strdup("");
}

static int unknown(const struct qk_usage *u, const char *given, size_t n, struct qk_err *err)
{
	qk_autofree char *word = qk_strndup(given, n), *hint = NULL;
	qk_autostrv struct qk_strv names = { 0 };

	for (const struct qk_option *o = u->options; o->name; o++)
		qk_strv_take(&names, qk_asprintf("--%s", o->name));
	qk_strv_push(&names, "--help");
	hint = n > 2 ? qk_options_hint(word, (const char *const *)names.v, names.n) : qk_strdup("");
	return qk_fail(err, -EINVAL, "unknown option '%s'%s", word,
		*hint ? hint : "; --help lists them");
}

static void set(const struct qk_option *o, const char *value)
{
	qk_autofree char *copy = NULL;

	if (o->to)
		*o->to = value;
	if (!o->list)
		return;
	copy = qk_strdup(value);
	for (char *s = copy, *part; (part = strsep(&s, ","));)
		if (*part)
			qk_strv_push(o->list, part);
}

/* "--name", "--name=value"; *i moves over a value that is a word of its own. */
static int take_long(const struct qk_usage *u, int argc, char **argv, int *i, struct qk_err *err)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t n = equals ? (size_t)(equals - name) : strlen(name);
	const struct qk_option *o = by_name(u, name, n);

	if (!o && n == 4 && !memcmp(name, "help", n))
		return 1;
	if (!o)
		return unknown(u, argv[*i], n + 2, err);
	if (equals && !o->value)
		return qk_fail(err, -EINVAL, "--%s takes no value", o->name);
	if (equals || !o->value || o->optional) {
		set(o, equals ? equals + 1 : "");
		return 0;
	}
	if (++*i >= argc)
		return qk_fail(err, -EINVAL, "--%s needs its %s", o->name, o->value);
	set(o, argv[*i]);
	return 0;
}

/* "-x", "-xy", "-xVALUE". */
static int take_letters(const struct qk_usage *u, int argc, char **argv, int *i, struct qk_err *err)
{
	for (const char *s = argv[*i] + 1; *s; s++) {
		const struct qk_option *o = by_letter(u, *s);

		if (!o && *s == 'h')
			return 1;
		if (!o) {
			char word[] = { '-', *s, '\0' };

			return unknown(u, word, 2, err);
		}
		if (!o->value || o->optional) {
			set(o, "");
			continue;
		}
		if (!s[1] && ++*i >= argc)
			return qk_fail(err, -EINVAL, "-%c needs its %s", o->letter, o->value);
		set(o, s[1] ? s + 1 : argv[*i]);
		break;
	}
	return 0;
}

int qk_options_parse(const struct qk_usage *u, int argc, char **argv, struct qk_strv *words,
	char ***ret_rest, struct qk_err *err)
{
	int r = 0;

	*ret_rest = NULL;
	for (int i = 1; i < argc && !r; i++) {
		if (!strcmp(argv[i], "--")) {
			*ret_rest = argv + i + 1;
			break;
		}
		if (!strncmp(argv[i], "--", 2))
			r = take_long(u, argc, argv, &i, err);
		else if (argv[i][0] == '-' && argv[i][1])
			r = take_letters(u, argc, argv, &i, err);
		else
			qk_strv_push(words, argv[i]);
	}
	return r;
}

static char *spelled(const struct qk_option *o)
{
	char letter[] = { '-', o->letter, ',', ' ', '\0' };
	const char *value = o->value ? o->value : "";

	return qk_asprintf("%s--%s%s%s%s", o->letter ? letter : "    ", o->name,
		o->optional ? "[=" : o->value ? " " : "", value, o->optional ? "]" : "");
}

void qk_options_help(const struct qk_usage *u, FILE *to)
{
	static const char help[] = "-h, --help";
	size_t width = strlen(help);

	fprintf(to, "usage: qk %s%s%s\n\n%s", u->verb, *u->synopsis ? " " : "", u->synopsis, u->about);
	for (const struct qk_option *o = u->options; o->name; o++) {
		qk_autofree char *text = spelled(o);

		width = strlen(text) > width ? strlen(text) : width;
	}
	fprintf(to, "\n");
	for (const struct qk_option *o = u->options; o->name; o++) {
		qk_autofree char *text = spelled(o);

		fprintf(to, "  %-*s  %s\n", (int)width, text, o->help);
	}
	fprintf(to, "  %-*s  %s\n", (int)width, help, "show this");
}

int qk_options_complain(const struct qk_usage *u, const char *fmt, ...)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	qk_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "qk %s: %s\n", u->verb, text.s);
	return QK_EXIT_USAGE;
}

bool qk_options_begin(const struct qk_usage *u, int argc, char **argv, struct qk_strv *words,
	size_t max, char ***ret_rest, int *ret_status)
{
	struct qk_err err = QK_ERR_INIT;
	char **rest = NULL;
	int r = qk_options_parse(u, argc, argv, words, &rest, &err);

	*ret_status = 0;
	if (r > 0) {
		qk_options_help(u, stdout);
		return false;
	}
	if (r < 0) {
		*ret_status = qk_options_complain(u, "%s", err.msg);
		return false;
	}
	if (ret_rest)
		*ret_rest = rest;
	for (; !ret_rest && rest && *rest; rest++)
		qk_strv_push(words, *rest);
	if (words->n > max) {
		*ret_status = qk_options_complain(u, "'%s' is one word too many", words->v[max]);
		return false;
	}
	return true;
}
