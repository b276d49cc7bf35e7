#include "keying/depfile.h"

#include "base/buf.h"
#include "base/path.h"

#include <string.h>

/* Reads one word at *s (not at a blank) into word; stops before an unescaped blank or end mark. */
static void read_word(const char **s, const char *end, struct qk_buf *word)
{
	qk_buf_reset(word);
	for (; *s < end; (*s)++) {
		char c = **s, next = *s + 1 < end ? (*s)[1] : '\0';

		if (c == '\\' && (next == ' ' || next == '#' || next == ':' || next == '\\')) {
			/* before a blank, backslashes pair up; elsewhere only "\\ " would matter */
			if (next == '\\') {
				qk_buf_addch(word, c);
				continue;
			}
			qk_buf_addch(word, next);
			(*s)++;
		} else if (c == '\\' && (next == '\n' || next == '\r')) {
			return;
		} else if (c == '$' && next == '$') {
			qk_buf_addch(word, '$');
			(*s)++;
		} else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			return;
		} else if (c == ':' && (next == ' ' || next == '\t' || next == '\n' || next == '\r' ||
					       next == '\\' || !next)) {
			return;
		} else {
			qk_buf_addch(word, c);
		}
	}
}

static bool names(const char *word, const char *target)
{
	while (!strncmp(word, "./", 2))
		word += 2;
	while (!strncmp(target, "./", 2))
		target += 2;
	return !strcmp(word, target) || !strcmp(qk_path_base(word), qk_path_base(target));
}

bool qk_depfile_parse(const char *text, size_t n, const char *target, struct qk_strv *prereqs)
{
	qk_autobuf struct qk_buf word = QK_BUF_INIT;
	const char *s = text, *end = text + n;
	bool after_colon = false, ours = false, found = false;

	if (memchr(text, '\0', n))
		return false;
	while (s < end) {
		if (*s == '\n') {
			after_colon = ours = false;
			s++;
		} else if (*s == '\\' && s + 1 < end && (s[1] == '\n' || s[1] == '\r')) {
			s += s[1] == '\r' && s + 2 < end && s[2] == '\n' ? 3 : 2;
		} else if (*s == ' ' || *s == '\t' || *s == '\r') {
			s++;
		} else if (*s == '#' && !after_colon) {
			while (s < end && *s != '\n')
				s++;
		} else if (*s == ':' && !after_colon) {
			after_colon = true;
			s++;
		} else {
			const char *at = s;

			read_word(&s, end, &word);
			if (s == at)
				s++; /* a lone ':' among the prerequisites */
			if (!after_colon && names(word.s, target))
				ours = found = true;
			else if (after_colon && ours && word.len)
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

	if (!strcmp(path, target) || !strstr(base, stem))
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
