#include "keying/depfile.h"

#include "base/buf.h"
#include "base/path.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_line_end(const char *s, const char *end)
{
	return s < end && (*s == '\n' || (*s == '\r' && (s + 1 == end || s[1] == '\n')));
}

/*
 * Takes a run of backslashes. As make has it, they pair up before a blank, '#', ':' and the end of
 * the line, and an odd one makes the byte after them a part of the word; elsewhere each is itself.
 * False if the word ends here.
 */
static bool read_backslashes(const char **s, const char *end, struct qk_buf *word)
{
	const char *after = *s;
	size_t n;

	while (after < end && *after == '\\')
		after++;
	n = (size_t)(after - *s);
	if (after == end || (!is_blank(*after) && *after != '#' && *after != ':' && !is_line_end(after, end))) {
		qk_buf_add(word, *s, n);
		*s = after;
		return true;
	}
	qk_buf_add(word, *s, n / 2);
	if (n % 2 && is_line_end(after, end)) {
		*s = after - 1; /* the line goes on, the word does not */
		return false;
	}
	*s = after;
	if (n % 2)
		qk_buf_addch(word, *(*s)++);
	return true;
}

/* True if the word goes on at s. A ':' with nothing but a blank behind it ends a target. */
static bool in_word(const char *s, const char *end)
{
	if (is_blank(*s) || *s == '\n' || *s == '\r' || *s == '#')
		return false;
	return *s != ':' || (s + 1 < end && !is_blank(s[1]) && !is_line_end(s + 1, end) &&
				    !(s[1] == '\\' && is_line_end(s + 2, end)));
}

/* Reads one word at *s (not at a blank) into word; *s stays where none begins. */
static void read_word(const char **s, const char *end, struct qk_buf *word)
{
	qk_buf_reset(word);
	while (*s < end && in_word(*s, end)) {
		if (**s == '\\') {
			if (!read_backslashes(s, end, word))
				return;
			continue;
		}
		if (**s == '$' && *s + 1 < end && (*s)[1] == '$')
			(*s)++;
		qk_buf_addch(word, *(*s)++);
	}
}

/* The path without the "./" and "../" before it. */
static const char *stripped(const char *path)
{
	for (;;) {
		size_t dots = strspn(path, ".");

		if (!dots || dots > 2 || path[dots] != '/')
			return path;
		path += dots;
		path += strspn(path, "/");
	}
}

static bool names(const char *word, const char *target)
{
	const char *a = stripped(word), *b = stripped(target);
	size_t n = strlen(a), m = strlen(b);

	if (n > m)
		return names(target, word);
	return n && !strcmp(a, b + m - n) && (n == m || a[0] == '/' || b[m - n - 1] == '/');
}

bool qk_depfile_parse(const char *text, size_t n, const char *target, struct qk_strv *prereqs)
{
	qk_autobuf struct qk_buf word = QK_BUF_INIT;
	const char *s = text, *end = text + n;
	bool after_colon = false, ours = false, found = false;

	if (memchr(text, '\0', n))
		return false;
	while (s < end) {
		const char *at = s;

		if (*s == '\n') {
			after_colon = ours = false;
			s++;
		} else if (*s == '\\' && is_line_end(s + 1, end)) {
			s += s[1] == '\r' && s + 2 < end ? 3 : 2;
		} else if (is_blank(*s) || *s == '\r') {
			s++;
		} else if (*s == '#') {
			while (s < end && *s != '\n')
				s++;
		} else if (*s == ':' && !after_colon) {
			after_colon = true;
			found |= ours;
			s++;
		} else {
			read_word(&s, end, &word);
			if (s == at)
				s++; /* a lone ':' among the prerequisites */
			if (!after_colon)
				ours |= names(word.s, target);
			else if (ours && word.len)
				qk_strv_push(prereqs, word.s);
		}
	}
	return found;
}

static const char *const suffixes[] = { ".d", ".dep", ".deps", ".P", ".Po", ".Plo", ".Tpo", ".Td",
	".Tlo", ".dd", ".pp", ".tmp", ".mk" };

static bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && !strcmp(s + n - m, suffix);
}

static size_t stem_len(const char *base)
{
	const char *dot = strrchr(base, '.');

	return dot && dot > base ? (size_t)(dot - base) : strlen(base);
}

bool qk_depfile_plausible(const char *path, const char *target)
{
	const char *base = qk_path_base(path), *tbase = qk_path_base(target);
	qk_autofree char *stem = qk_strndup(tbase, stem_len(tbase));

	if (!strstr(base, stem))
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (has_suffix(base, suffixes[i]) || strstr(base, ".d."))
			return true;
	return false;
}

void qk_depfile_guess(const char *target, struct qk_strv *paths)
{
	size_t dir = strlen(target) - strlen(qk_path_base(target));
	const char *base = target + dir;
	int d = (int)dir, s = (int)stem_len(base);

	qk_strv_take(paths, qk_asprintf("%.*s%.*s.d", d, target, s, base));
	qk_strv_take(paths, qk_asprintf("%s.d", target));
	qk_strv_take(paths, qk_asprintf("%.*s.%s.d", d, target, base));
	qk_strv_take(paths, qk_asprintf("%.*s.%.*s.d", d, target, s, base));
	qk_strv_take(paths, qk_asprintf("%.*s.deps/%.*s.Po", d, target, s, base));
	qk_strv_take(paths, qk_asprintf("%.*s.deps/%.*s.Plo", d, target, s, base));
	qk_strv_take(paths, qk_asprintf("%.*s.deps/%.*s.d", d, target, s, base));
	qk_strv_take(paths, qk_asprintf("%.*s.%.*s.P", d, target, s, base));
}
