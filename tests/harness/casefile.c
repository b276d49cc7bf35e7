#include "tests/harness/casefile.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char *const mode_names[MODE_N] = { "bare", "off", "audit", "enforce", "cached", "hits" };

static const struct {
	const char *name;
	bool many;
} keys[] = {
	{ "makes", false },
	{ "modes", false },
	{ "recorders", false },
	{ "users", false },
	{ "walls", false },
	{ "needs", true },
	{ "tree", false },
	{ "env", true },
	{ "setup", false },
	{ "run", false },
	{ "status", false },
	{ "stdout", true },
	{ "stderr", true },
	{ "no-stdout", true },
	{ "no-stderr", true },
	{ "report", true },
	{ "check", true },
	{ "timeout", false },
	{ "left", false },
	{ "unordered", false },
	{ "file", true },
};

#define ALL_MODES ((1u << MODE_N) - 1)

/* "audit,enforce" -> bits; 0 if a name is not known. */
static unsigned int parse_modes(const char *s, size_t n)
{
	unsigned int bits = 0;

	while (n) {
		size_t len = 0;
		int m;

		while (len < n && s[len] != ',')
			len++;
		for (m = 0; m < MODE_N; m++)
			if (strlen(mode_names[m]) == len && !strncmp(mode_names[m], s, len))
				break;
		if (m == MODE_N)
			return 0;
		bits |= 1u << m;
		n -= len;
		s += len;
		if (n) {
			n--;
			s++;
		}
	}
	return bits;
}

static int check_key(const struct casefile *c, const struct entry *e, struct qk_err *err)
{
	size_t i;

	if (!strncmp(e->key, "file ", 5))
		return 0;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(keys[i].name, e->key))
			break;
	if (i == sizeof(keys) / sizeof(keys[0]))
		return qk_fail(
			err, -EINVAL, "%s/case:%d: unknown key '%s'", c->dir, e->line, e->key);
	if (keys[i].many)
		return 0;
	for (i = 0; i < c->entries.n; i++)
		if (!strcmp(c->entries.v[i].key, e->key) && (c->entries.v[i].modes & e->modes))
			return qk_fail(err, -EINVAL, "%s/case:%d: '%s' said twice", c->dir, e->line,
				e->key);
	return 0;
}

/* Splits "KEY[MODES]: VALUE" up to the colon. Returns where the value starts, NULL if it is none.
 */
static char *parse_head(struct casefile *c, char *line, struct entry *ret)
{
	char *colon = strstr(line, ": ");
	char *open, *close;

	if (!colon) {
		size_t n = strlen(line);

		if (!n || line[n - 1] != ':')
			return NULL;
		colon = line + n - 1;
	}
	ret->modes = ALL_MODES;
	open = memchr(line, '[', (size_t)(colon - line));
	close = colon > line && colon[-1] == ']' ? colon - 1 : NULL;
	if (open && close && open < close) {
		ret->modes = parse_modes(open + 1, (size_t)(close - open - 1));
		ret->key = qk_arena_strndup(&c->arena, line, (size_t)(open - line));
	} else {
		ret->key = qk_arena_strndup(&c->arena, line, (size_t)(colon - line));
	}
	colon++;
	return *colon == ' ' ? colon + 1 : colon;
}

static int parse(struct casefile *c, char *text, struct qk_err *err)
{
	int lineno = 0;
	char *next;

	for (char *line = text; line; line = next) {
		struct entry e = { 0 };
		struct qk_buf block = QK_BUF_INIT;
		char *value;
		int r;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		lineno++;
		if (!*line || *line == '#')
			continue;
		e.line = lineno;
		value = parse_head(c, line, &e);
		if (!value || !e.modes)
			return qk_fail(err, -EINVAL, "%s/case:%d: not 'key: value': %s", c->dir,
				lineno, line);
		while (!*value && next && (*next == '\t' || *next == '\n')) {
			char *end = strchr(next, '\n');

			if (!end)
				end = next + strlen(next);
			if (*next == '\t')
				next++;
			qk_buf_add(&block, next, (size_t)(end - next));
			qk_buf_addch(&block, '\n');
			lineno++;
			next = *end ? end + 1 : NULL;
		}
		if (!*value && block.len) {
			while (block.len > 1 && block.s[block.len - 2] == '\n')
				qk_buf_truncate(&block, block.len - 1);
			e.value = qk_arena_strndup(&c->arena, block.s, block.len);
		} else {
			e.value = qk_arena_strdup(&c->arena, value);
		}
		qk_buf_release(&block);
		r = check_key(c, &e, err);
		if (r < 0)
			return r;
		qk_vec_push(&c->entries, e);
	}
	return 0;
}

int casefile_read(struct casefile *c, const char *dir, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/case", dir);
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	int r;

	*c = (struct casefile){ 0 };
	c->name = qk_arena_strdup(&c->arena, qk_path_base(dir));
	c->dir = qk_arena_strdup(&c->arena, dir);
	r = qk_read_file(AT_FDCWD, path, 1 << 20, &text, err);
	if (r < 0)
		return r;
	r = parse(c, text.s, err);
	if (r < 0)
		return r;
	if (!casefile_get(c, "run", MODE_AUDIT, NULL))
		return qk_fail(err, -EINVAL, "%s: no 'run:'", path);
	return 0;
}

void casefile_release(struct casefile *c)
{
	qk_vec_release(&c->entries);
	qk_arena_release(&c->arena);
}

const char *casefile_get(
	const struct casefile *c, const char *key, enum mode m, const char *fallback)
{
	for (size_t i = 0; i < c->entries.n; i++) {
		const struct entry *e = &c->entries.v[i];

		if (!strcmp(e->key, key) && (e->modes & (1u << m)))
			return e->value;
	}
	return fallback;
}
