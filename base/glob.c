#include "base/glob.h"

#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Matching keeps the set of text positions the pattern read so far can end at, and each element of
 * the pattern maps that set to the next one. Nothing is ever tried twice, so that no pattern takes
 * more than its length times the text's (times the text's again inside a repeated or negated
 * group).
 */
enum {
	TEXT_MAX = PATH_MAX,
	WORDS = TEXT_MAX / 64 + 1,
	DEPTH_MAX = 32, /* groups in groups; a deeper one matches nothing */
};

struct set {
	uint64_t w[WORDS];
};

struct matcher {
	const char *text;
	size_t n;
	size_t words;      /* of a set, in use for this text */
	const char *begin; /* of the whole pattern */
	bool reached_end;  /* some part of the pattern used up the text: a longer one may match */
};

static bool has(const struct set *s, size_t i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

static void put(struct set *s, size_t i)
{
	s->w[i / 64] |= (uint64_t)1 << i % 64;
}

static void clear(const struct matcher *m, struct set *s)
{
	memset(s->w, 0, m->words * sizeof(s->w[0]));
}

static void copy(const struct matcher *m, struct set *to, const struct set *from)
{
	memcpy(to->w, from->w, m->words * sizeof(to->w[0]));
}

/* to gains what from has; false if that was nothing new. */
static bool add(const struct matcher *m, struct set *to, const struct set *from)
{
	bool grew = false;

	for (size_t i = 0; i < m->words; i++) {
		grew |= (from->w[i] & ~to->w[i]) != 0;
		to->w[i] |= from->w[i];
	}
	return grew;
}

/* The first position of s at or behind i; m->n + 1 if there is none. */
static size_t next(const struct matcher *m, const struct set *s, size_t i)
{
	for (size_t word = i / 64; word < m->words; word++) {
		uint64_t w = s->w[word];

		if (word == i / 64)
			w &= ~(uint64_t)0 << i % 64;
		if (w)
			return word * 64 + (size_t)__builtin_ctzll(w);
	}
	return m->n + 1;
}

/* The end of a class that starts at p ('['), behind its ']'; NULL if it has none. */
static const char *class_end(const char *p, const char *end)
{
	p++;
	if (p < end && (*p == '!' || *p == '^'))
		p++;
	if (p < end && *p == ']')
		p++;
	for (; p < end && *p != '/'; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == ']')
			return p + 1;
	}
	return NULL;
}

/* One byte against the class between p ('[') and end (behind ']'). */
static bool class_has(const char *p, const char *end, char c)
{
	unsigned char u = (unsigned char)c;
	bool not, found = false;

	p++;
	end--;
	not = *p == '!' || *p == '^';
	p += not ;
	while (p < end) {
		unsigned char lo, hi;

		p += *p == '\\' && p + 1 < end;
		lo = hi = (unsigned char)*p++;
		if (p + 1 < end && *p == '-') {
			p++;
			p += *p == '\\' && p + 1 < end;
			hi = (unsigned char)*p++;
		}
		found |= lo <= u && u <= hi;
	}
	return c != '/' && found != not ;
}

static bool opens_group(const char *p, const char *end)
{
	return *p == '{' || (strchr("!@*+?", *p) && p + 1 < end && p[1] == '(');
}

/*
 * The end of the group that starts at p, behind its closing bracket; NULL if it is not closed and
 * thus no group. With bar, the first place where its alternatives part (or its closing bracket).
 */
static const char *group_end(const char *p, const char *end, const char **bar)
{
	char open = *p == '{' ? '{' : '(', close = *p == '{' ? '}' : ')',
	     part = *p == '{' ? ',' : '|';
	int depth = 0;

	p += open == '(';
	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end) {
			p++;
		} else if (*p == '[' && class_end(p, end)) {
			p = class_end(p, end) - 1;
		} else if (*p == open) {
			depth++;
		} else if (*p == close && !--depth) {
			if (bar && !*bar)
				*bar = p;
			return p + 1;
		} else if (*p == part && depth == 1 && bar && !*bar) {
			*bar = p;
		}
	}
	return NULL;
}

static void run(struct matcher *m, const char *p, const char *end, struct set *s, int depth);

/* out = where the alternatives of the group between p and end lead to from the positions in s. */
static void run_group(struct matcher *m, const char *p, const char *end, const struct set *s,
	struct set *out, int depth)
{
	char part = *p == '{' ? ',' : '|';
	const char *from = p + (*p == '{' ? 1 : 2);
	int nested = 0;

	clear(m, out);
	for (const char *q = from; q < end; q++) {
		bool last = q == end - 1;

		if (!last && *q == '\\') {
			q++;
		} else if (!last && *q == '[' && class_end(q, end)) {
			q = class_end(q, end) - 1;
		} else if (last || (*q == part && !nested)) {
			struct set one;

			copy(m, &one, s);
			run(m, from, q, &one, depth + 1);
			add(m, out, &one);
			from = q + 1;
		} else {
			nested += *q == (part == ',' ? '{' : '(');
			nested -= *q == (part == ',' ? '}' : ')');
		}
	}
}

/* !(..): from each position all places of its component that no alternative leads to. */
static void run_not(struct matcher *m, const char *p, const char *end, struct set *s, int depth)
{
	struct set out, one, met;

	clear(m, &out);
	for (size_t i = next(m, s, 0); i <= m->n; i = next(m, s, i + 1)) {
		clear(m, &one);
		put(&one, i);
		run_group(m, p, end, &one, &met, depth);
		for (size_t j = i;; j++) {
			if (!has(&met, j))
				put(&out, j);
			if (j == m->n || m->text[j] == '/')
				break;
		}
	}
	copy(m, s, &out);
}

static void run_extended(
	struct matcher *m, const char *p, const char *end, struct set *s, int depth)
{
	struct set once, more;

	if (*p == '!') {
		run_not(m, p, end, s, depth);
		return;
	}
	run_group(m, p, end, s, &once, depth);
	while (*p == '*' || *p == '+') {
		run_group(m, p, end, &once, &more, depth);
		if (!add(m, &once, &more))
			break;
	}
	if (*p == '*' || *p == '?')
		add(m, s, &once);
	else
		copy(m, s, &once);
}

/* True if the ** at p is a whole component; an alternative of a {} may begin or end one. */
static bool is_globstar(const struct matcher *m, const char *p, const char *end)
{
	if (end - p < 2 || p[0] != '*' || p[1] != '*')
		return false;
	if (p > m->begin && !strchr("/{,", p[-1]))
		return false;
	return p + 2 == end || p[2] == '/';
}

/* "**" and "**" + "/": to every component that follows, or to the end of every one. */
static void run_globstar(const struct matcher *m, bool slash, struct set *s)
{
	bool on = false;

	for (size_t i = 0; i <= m->n; i++) {
		on |= has(s, i) && (!i || m->text[i - 1] == '/');
		if (on && (slash ? !i || m->text[i - 1] == '/' : i == m->n || m->text[i] == '/'))
			put(s, i);
		else if (!slash || i)
			s->w[i / 64] &= ~((uint64_t)1 << i % 64);
	}
}

static void run_star(const struct matcher *m, struct set *s)
{
	bool on = false;

	for (size_t i = next(m, s, 0); i <= m->n; i++) {
		on |= has(s, i);
		if (on)
			put(s, i);
		on = on && i < m->n && m->text[i] != '/';
	}
}

/* One byte: a literal, '?' or a class. */
static void run_byte(const struct matcher *m, const char *p, const char *end, struct set *s)
{
	struct set out;

	clear(m, &out);
	for (size_t i = next(m, s, 0); i < m->n; i = next(m, s, i + 1)) {
		char c = m->text[i];
		bool yes;

		if (*p == '[' && end - p > 1)
			yes = class_has(p, end, c);
		else if (*p == '?')
			yes = c != '/';
		else
			yes = c == end[-1]; /* the byte itself, or the one behind its backslash */
		if (yes)
			put(&out, i + 1);
	}
	copy(m, s, &out);
}

static void run(struct matcher *m, const char *p, const char *end, struct set *s, int depth)
{
	if (depth > DEPTH_MAX) {
		clear(m, s);
		return;
	}
	while (p < end) {
		const char *after = p + 1;

		m->reached_end |= has(s, m->n);
		if (opens_group(p, end) && group_end(p, end, NULL)) {
			after = group_end(p, end, NULL);
			if (*p == '{') {
				struct set out;

				run_group(m, p, after, s, &out, depth);
				copy(m, s, &out);
			} else {
				run_extended(m, p, after, s, depth);
			}
		} else if (*p == '/' && after < end && is_globstar(m, after, end) &&
			   after + 2 == end) {
			/* "a/" + "**" at the end of the pattern: no component at all is "a" itself
			 */
			struct set none;

			clear(m, &none);
			for (size_t i = next(m, s, 0); i <= m->n; i = next(m, s, i + 1))
				if (i && (i == m->n || m->text[i] == '/'))
					put(&none, i);
			run_byte(m, p, after, s);
			run_globstar(m, false, s);
			add(m, s, &none);
			after += 2;
		} else if (*p == '*' && is_globstar(m, p, end)) {
			run_globstar(m, p + 2 < end, s);
			after = p + 2 + (p + 2 < end);
		} else if (*p == '*') {
			while (after < end && *after == '*' && !opens_group(after, end))
				after++;
			run_star(m, s);
		} else {
			if (*p == '\\' && after < end)
				after++;
			else if (*p == '[' && class_end(p, end))
				after = class_end(p, end);
			run_byte(m, p, after, s);
		}
		if (next(m, s, 0) > m->n)
			return;
		p = after;
	}
	m->reached_end |= has(s, m->n);
}

/* Length of the part before the first pattern character, all of a literal text. */
static size_t literal_len(const char *p)
{
	const char *s = p, *end = p + strlen(p);

	while (*s && !strchr("*?[{\\", *s) && !opens_group(s, end))
		s++;
	return (size_t)(s - p);
}

static bool match(const char *pattern, const char *text, size_t n, bool *ret_may_go_on)
{
	struct matcher m = { .text = text, .n = n, .words = n / 64 + 1, .begin = pattern };
	size_t len = strlen(pattern), lit = literal_len(pattern);
	struct set s;

	if (ret_may_go_on)
		*ret_may_go_on = false;
	if (n >= TEXT_MAX)
		return false;
	if (lit == len && !ret_may_go_on)
		return lit == n && !memcmp(pattern, text, n);
	/* The literal beginning, up to its last '/', which "**" looks back at. */
	while (lit && pattern[lit - 1] != '/')
		lit--;
	lit -= lit > 0;
	if (lit && (n < lit || memcmp(pattern, text, lit))) {
		if (ret_may_go_on)
			*ret_may_go_on = n < lit && !memcmp(pattern, text, n);
		return false;
	}
	clear(&m, &s);
	put(&s, lit);
	run(&m, pattern + lit, pattern + len, &s, 0);
	if (ret_may_go_on)
		*ret_may_go_on = m.reached_end;
	return has(&s, n);
}

bool qk_glob_match(const char *pattern, const char *path)
{
	return match(pattern, path, strlen(path), NULL);
}

bool qk_glob_is_pattern(const char *text)
{
	return text[literal_len(text)] != '\0';
}

void qk_glob_quote(struct qk_buf *out, const char *path)
{
	for (const char *s = path; *s; s++) {
		if (strchr("*?[{\\", *s) || (strchr("!@+", *s) && s[1] == '('))
			qk_buf_addch(out, '\\');
		qk_buf_addch(out, *s);
	}
}

size_t qk_glob_literal_dir(const char *pattern)
{
	size_t n = literal_len(pattern);

	while (n && pattern[n - 1] != '/')
		n--;
	return n > 1 ? n - 1 : n;
}

/* Directories that are never entered by a wildcard. */
static bool is_private(const char *name)
{
	return !strcmp(name, ".git") || !strcmp(name, ".qk") || !strcmp(name, "node_modules");
}

static bool names_component(const char *pattern, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = pattern; (p = strstr(p, name)); p += n)
		if ((p == pattern || p[-1] == '/') && (!p[n] || p[n] == '/'))
			return true;
	return false;
}

struct walk {
	const char *pattern;
	struct qk_strv *out;
	struct qk_err *err;
	int result;
};

/* path names the directory; it is left as it was. */
static void walk_dir(struct walk *w, struct qk_buf *path, bool follow)
{
	int fd = open(path->s, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	qk_autostrv struct qk_strv dirs = { 0 };
	size_t len = path->len;
	struct dirent *e;

	if (!d) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && !w->result)
			w->result = qk_fail(w->err, errno, "list '%s'", path->s);
		if (fd >= 0)
			close(fd);
		return;
	}
	if (path->s[len - 1] != '/')
		qk_buf_addch(path, '/');
	while ((e = readdir(d))) {
		bool is_dir = e->d_type == DT_DIR, more;
		size_t dir_len = path->len;
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (is_private(e->d_name) && !names_component(w->pattern, e->d_name))
			continue;
		if (e->d_type == DT_UNKNOWN)
			is_dir = !fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
				 S_ISDIR(st.st_mode);
		qk_buf_addstr(path, e->d_name);
		if (match(w->pattern, path->s, path->len, NULL))
			qk_strv_push(w->out, path->s);
		if (is_dir) {
			qk_buf_addch(path, '/');
			match(w->pattern, path->s, path->len, &more);
			if (more)
				qk_strv_push(&dirs, e->d_name);
		}
		qk_buf_truncate(path, dir_len);
	}
	closedir(d); /* before going deeper: a deep tree needs no descriptor a level */
	for (size_t i = 0; i < dirs.n; i++) {
		size_t dir_len = path->len;

		qk_buf_addstr(path, dirs.v[i]);
		walk_dir(w, path, false);
		qk_buf_truncate(path, dir_len);
	}
	qk_buf_truncate(path, len);
}

int qk_glob_walk(const char *pattern, struct qk_strv *out, struct qk_err *err)
{
	struct walk w = { .pattern = pattern, .err = err };
	qk_autobuf struct qk_buf path = QK_BUF_INIT;
	qk_autostrv struct qk_strv found = { 0 };
	struct stat st;

	if (!qk_glob_is_pattern(pattern)) {
		if (!lstat(pattern, &st))
			qk_strv_push(out, pattern);
		return 0;
	}
	w.out = &found;
	qk_buf_add(&path, pattern, qk_glob_literal_dir(pattern));
	if (!path.len)
		return qk_fail(err, -EINVAL, "'%s' is not an absolute pattern", pattern);
	if (match(pattern, path.s, path.len, NULL) && !lstat(path.s, &st))
		qk_strv_push(&found, path.s);
	walk_dir(&w, &path, true);
	qk_strv_sort(&found);
	for (size_t i = 0; i < found.n; i++)
		qk_strv_push(out, found.v[i]);
	return w.result;
}
