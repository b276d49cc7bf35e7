#include "keying/why.h"

#include "base/mem.h"
#include "keying/filehash.h"
#include "keying/grouptext.h"

#include <stdio.h>
#include <string.h>

enum { DIGITS = 8 }; /* of a digest: enough to tell two apart */

/* One line of a key's text. */
struct field {
	const char *tag, *name, *value, *note; /* unquoted; NULL where there is a lone dash, or nothing */
};

struct fields {
	struct qk_arena arena;
	QK_VEC(struct field) v;
};

static void fields_release(struct fields *f)
{
	qk_vec_release(&f->v);
	qk_arena_release(&f->arena);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* Takes one token off *s, up to a blank or the end of the line. */
static const char *token(struct qk_arena *a, const char **s)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	const char *p = *s;
	bool quoted = *p == '"';

	while (*p == ' ')
		p++;
	quoted = *p == '"';
	if (!*p || *p == '\n') {
		*s = p;
		return NULL;
	}
	for (p += quoted; *p && *p != '\n' && *p != (quoted ? '"' : ' '); p++) {
		if (*p != '\\' || !p[1]) {
			qk_buf_addch(&b, *p);
			continue;
		}
		p++;
		if (*p == 'x' && p[1] && p[2]) {
			qk_buf_addch(&b, (char)(hex_digit(p[1]) << 4 | hex_digit(p[2])));
			p += 2;
		} else {
			qk_buf_addch(&b, *p == 'n' ? '\n' : *p == 't' ? '\t' : *p);
		}
	}
	*s = p + (quoted && *p == '"');
	if (!quoted && !strcmp(b.s, "-"))
		return NULL;
	return qk_arena_strndup(a, b.s, b.len);
}

static void parse(struct fields *f, const char *text)
{
	while (*text) {
		struct field line = { .tag = token(&f->arena, &text) };

		line.name = token(&f->arena, &text);
		line.value = token(&f->arena, &text);
		line.note = token(&f->arena, &text);
		text += strcspn(text, "\n");
		text += *text == '\n';
		if (line.tag)
			qk_vec_push(&f->v, line);
	}
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static const char *shown(const char *s)
{
	return !s ? "nothing" : *s ? s : "empty";
}

/* The n-th field of a tag, before position end. */
static const struct field *nth(const struct fields *f, size_t end, const char *tag, size_t n)
{
	for (size_t i = 0; i < end; i++)
		if (!strcmp(f->v.v[i].tag, tag) && !n--)
			return &f->v.v[i];
	return NULL;
}

/* Where two lines of shell text part: the words there, ended by blanks and quotes. */
static char *differing_text(const char *was, const char *is)
{
	static const char ends[] = " \t\n\"";
	size_t same_len = 0, word = 0, a, b;

	for (; was[same_len] && was[same_len] == is[same_len]; same_len++)
		if (strchr(ends, was[same_len]))
			word = same_len + 1;
	a = strcspn(was + word, ends);
	b = strcspn(is + word, ends);
	return qk_asprintf("the command had %.*s where it has %.*s", a ? (int)a : 7, a ? was + word : "nothing",
		b ? (int)b : 7, b ? is + word : "nothing");
}

static char *differing_word(const struct fields *old, size_t old_n, const struct fields *now)
{
	for (size_t i = 0;; i++) {
		const struct field *a = nth(old, old_n, "word", i), *b = nth(now, now->v.n, "word", i);

		if (!a && !b)
			return NULL;
		if (!a)
			return qk_asprintf("word %zu of the command, %s, is new", i + 1, b->value);
		if (!b)
			return qk_asprintf("word %zu of the command, %s, is gone", i + 1, a->value);
		if (!same(a->value, b->value) && a->value && strchr(a->value, ' '))
			return differing_text(a->value, b->value ? b->value : "");
		if (!same(a->value, b->value))
			return qk_asprintf("word %zu of the command was %s and is %s", i + 1,
				shown(a->value), shown(b->value));
	}
}

static const struct field *named(const struct fields *f, size_t end, const struct field *like)
{
	for (size_t i = 0; i < end; i++)
		if (!strcmp(f->v.v[i].tag, like->tag) && same(f->v.v[i].name, like->name))
			return &f->v.v[i];
	return NULL;
}

static char *describe(const struct field *any, const char *was, const char *is)
{
	static const struct {
		const char *tag, *text;
	} kinds[] = { { "before", "the line before it" }, { "umask", "the umask" },
		{ "system", "QK_SYSTEM_READS" }, { "directory", "the directory it runs in" } };
	qk_autofree char *what = NULL;
	bool digest = !strcmp(any->tag, "runtime") || !strcmp(any->tag, "before");

	if (!strcmp(any->tag, "env"))
		what = qk_asprintf("the variable %s", shown(any->name));
	else if (!strcmp(any->tag, "runtime"))
		what = qk_asprintf("what '%s' prints", shown(any->name));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !what; i++)
		if (!strcmp(any->tag, kinds[i].tag))
			what = qk_strdup(kinds[i].text);
	if (!what)
		what = qk_asprintf("the field %s", any->tag);
	if (digest)
		return qk_asprintf("%s is not what it was", what);
	return qk_asprintf("%s was %s and is %s", what, shown(was), shown(is));
}

static char *differing_weak(const struct fields *old, size_t old_n, const struct fields *now)
{
	char *why = differing_word(old, old_n, now);

	for (size_t i = 0; i < now->v.n && !why; i++) {
		const struct field *b = &now->v.v[i], *a = named(old, old_n, b);

		if (strcmp(b->tag, "word") && (!a || !same(a->value, b->value)))
			why = describe(b, a ? a->value : NULL, b->value);
	}
	for (size_t i = 0; i < old_n && !why; i++) {
		const struct field *a = &old->v.v[i];

		if (strcmp(a->tag, "word") && !named(now, now->v.n, a))
			why = describe(a, a->value, NULL);
	}
	return why;
}

static char *changed(const char *path, const char *was, const char *is)
{
	return qk_asprintf("%s has changed (%.*s became %.*s)", path, DIGITS, was, DIGITS, is);
}

static char *describe_path(const struct field *f, const struct qk_digest *was, const struct qk_digest *is)
{
	struct qk_filestate none = { 0 };
	char a[QK_DIGEST_HEX], b[QK_DIGEST_HEX];

	qk_filestate_fold(&none);
	qk_digest_hex(was, a);
	qk_digest_hex(is, b);
	if (!strcmp(f->tag, "list"))
		return qk_asprintf("the names in the directory %s are not what they were", f->name);
	if (!strcmp(f->tag, "own"))
		return qk_asprintf("%s, which it changes, is not what it was before", f->name);
	if (qk_digest_eq(was, &none.digest))
		return qk_asprintf("%s was looked for in vain and is there now", f->name);
	if (qk_digest_eq(is, &none.digest))
		return qk_asprintf("%s is gone", f->name);
	return changed(f->name, a, b);
}

/* The paths of the key's second half, in their order; exceptions stand before their listing. */
static char *differing_path(const struct fields *old, size_t from, struct qk_pathview *view, bool own)
{
	static const char *const tags[] = { "look", "list", "except", "own" };
	size_t except = 0; /* how many exceptions came before this field */

	for (size_t i = from; i < old->v.n; i++) {
		const struct field *f = &old->v.v[i];
		struct qk_pathset one = { 0 };
		struct qk_digest was, is;
		size_t class = 0, at = 0;
		char *why = NULL;

		if (!strcmp(f->tag, "place") && view->place && !same(f->value, view->place))
			return qk_strdup("the workspace stands elsewhere now, and the result names its place");
		if (!strcmp(f->tag, "terminal") && view->terminal && !same(f->value, view->terminal))
			return qk_strdup("what it prints may depend on the terminal, which is another one now");
		while (class < 4 && strcmp(f->tag, tags[class]))
			class++;
		if (class == QK_PATH_EXCEPT) {
			except++;
			continue;
		}
		/* what it makes itself comes last: it rarely is the cause */
		if ((class == QK_PATH_OWN) != own)
			class = 4;
		if (class == 4 || !f->name || !f->value || qk_digest_parse(f->value, &was))
			continue;
		/* how it takes over what is its own is not told; then too little is said, not too much */
		qk_pathset_add(&one, f->name, (enum qk_pathclass)class, 0);
		for (size_t k = i - except; k < i; k++)
			qk_pathset_add(&one, old->v.v[k].name, QK_PATH_EXCEPT, 0);
		except = 0;
		if (!qk_pathset_state(&one, &at, view, &is, NULL) && !qk_digest_eq(&was, &is))
			why = describe_path(f, &was, &is);
		qk_pathset_release(&one);
		if (why)
			return why;
	}
	return NULL;
}

/* Where a key's second half begins, that of the path set. */
static size_t first_half(const struct fields *f)
{
	size_t half = 0;

	while (half < f->v.n && strcmp(f->v.v[half].tag, "weak"))
		half++;
	return half;
}

static enum qk_system_reads system_reads(const struct fields *f)
{
	const struct field *system = nth(f, f->v.n, "system", 0);

	return system && same(system->value, "stat")  ? QK_SYSTEM_STAT
	       : system && same(system->value, "off") ? QK_SYSTEM_OFF
						      : QK_SYSTEM_CONTENT;
}

char *qk_why_name(const char *target, uint64_t line)
{
	return qk_asprintf("last/%s#%llu", target, (unsigned long long)line);
}

char *qk_why(struct qk_store *s, struct qk_pathview *view, const char *name, const char *weak)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct fields old = { 0 }, now = { 0 };
	struct qk_digest last;
	char *why = NULL;
	size_t half;

	if (!qk_filehash_recall(view->files, name, &last))
		return qk_strdup("it has no result yet");
	if (qk_store_text(s, &last, &text, NULL) != 1)
		return qk_strdup("its last result is no longer in the store");
	parse(&old, text.s);
	parse(&now, weak ? weak : "");
	half = first_half(&old);
	if (weak)
		why = differing_weak(&old, half ? half - 1 : 0, &now);
	else
		view->system = system_reads(&old);
	if (!why)
		why = differing_path(&old, half, view, false);
	/* what it made last stands there for who asks afterwards, and need not keep it from being found */
	if (!why && weak)
		why = differing_path(&old, half, view, true);
	if (!why && weak)
		why = qk_strdup("its recording was not kept, or newer ones took its place");
	fields_release(&old);
	fields_release(&now);
	return why;
}

/* --- tasks of a workspace --- */

static char *differing_state(const struct field *was, const struct field *is)
{
	if (!same(was->value, is->value))
		return changed(is->name, was->value, is->value);
	if (same(was->note, is->note))
		return NULL;
	if (same(is->note, "x") && !was->note)
		return qk_asprintf("%s has become executable", is->name);
	if (same(was->note, "x") && !is->note)
		return qk_asprintf("%s is executable no more", is->name);
	return qk_asprintf("%s was %s and is %s", is->name, was->note ? was->note : "a file",
		is->note ? is->note : "a file");
}

/* Both are in byte order. */
static char *differing_file(const struct fields *old, const struct fields *now, const char *group)
{
	char *why = NULL;

	for (size_t i = 0, k = 0; (i < old->v.n || k < now->v.n) && !why;) {
		int order = i == old->v.n   ? 1
			    : k == now->v.n ? -1
					    : strcmp(shown(old->v.v[i].name), shown(now->v.v[k].name));

		if (order < 0)
			why = qk_asprintf("%s is gone from the files of %s", shown(old->v.v[i].name), group);
		else if (order > 0)
			why = qk_asprintf("%s is new among the files of %s", shown(now->v.v[k].name), group);
		else
			why = differing_state(&old->v.v[i], &now->v.v[k]);
		i += order <= 0;
		k += order >= 0;
	}
	return why;
}

/* Of a group of files whose digest was another: the file, if the store still tells. */
static char *differing_group(struct qk_store *s, const char *was, const struct qk_filegroup *g,
	struct qk_filehash *f)
{
	qk_autobuf struct qk_buf a = QK_BUF_INIT, b = QK_BUF_INIT;
	struct fields old = { 0 }, now = { 0 };
	struct qk_digest d;
	char *why = NULL;

	if (was && !qk_digest_parse(was, &d) && qk_grouptext_get(s, &d, &a) &&
		!qk_filegroup_text(g, f, &b, NULL)) {
		parse(&old, a.s);
		parse(&now, b.s);
		why = differing_file(&old, &now, g->name);
	}
	fields_release(&old);
	fields_release(&now);
	return why ? why : qk_asprintf("the files of %s are not what they were", g->name);
}

static char *describe_part(const struct field *any, const struct field *was, const struct field *is)
{
	const char *name = shown(any->name);

	if (!strcmp(any->tag, "outputs"))
		return qk_asprintf("the outputs of %s are not what they were", name);
	if (!strcmp(any->tag, "task"))
		return qk_asprintf("the key of %s, which it depends on, is another", name);
	if (!strcmp(any->tag, "files"))
		return qk_asprintf("the files of %s count %s", name, is ? "now" : "no more");
	if (!strcmp(any->tag, "options") && was && is && was->value && is->value)
		return differing_text(was->value, is->value);
	if (!strcmp(any->tag, "runtime"))
		return qk_asprintf("what '%s' prints is not what it was", name);
	if (!strcmp(any->tag, "env"))
		return qk_asprintf("the variable %s was %s and is %s", name, shown(was ? was->value : NULL),
			shown(is ? is->value : NULL));
	if (!any->name || !*any->name)
		return qk_asprintf("the %s was %s and is %s", any->tag, shown(was ? was->value : NULL),
			shown(is ? is->value : NULL));
	return qk_asprintf("the %s %s was %s and is %s", any->tag, name, shown(was ? was->value : NULL),
		shown(is ? is->value : NULL));
}

/* Fields of one tag and name can be several: the n-th of one key is compared with that of the other. */
static const struct field *counterpart(const struct fields *in, const struct fields *of, size_t at)
{
	size_t before = 0;

	for (size_t i = 0; i < at; i++)
		before += !strcmp(of->v.v[i].tag, of->v.v[at].tag) && same(of->v.v[i].name, of->v.v[at].name);
	for (size_t i = 0; i < in->v.n; i++)
		if (!strcmp(in->v.v[i].tag, of->v.v[at].tag) && same(in->v.v[i].name, of->v.v[at].name) &&
			!before--)
			return &in->v.v[i];
	return NULL;
}

static const struct qk_filegroup *group_of(const struct qk_parts *p, const char *name)
{
	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == QK_PART_FILES && same(p->list.v[i].files->name, name))
			return p->list.v[i].files;
	return NULL;
}

/* Of the fields of a task's key; old_n: so many of the old one's. */
static char *differing_fields(struct qk_store *s, const struct fields *old, size_t old_n,
	const struct fields *now, const struct qk_parts *parts, struct qk_filehash *f)
{
	char *why = NULL;

	for (size_t i = 0; i < now->v.n && !why; i++) {
		const struct field *b = &now->v.v[i], *a = counterpart(old, now, i);
		const struct qk_filegroup *g = !strcmp(b->tag, "files") ? group_of(parts, b->name) : NULL;

		if (a && same(a->value, b->value) && same(a->note, b->note))
			continue;
		why = g && a ? differing_group(s, a->value, g, f) : describe_part(b, a, b);
	}
	for (size_t i = 0; i < old_n && !why; i++)
		if (!counterpart(now, old, i))
			why = describe_part(&old->v.v[i], &old->v.v[i], NULL);
	return why;
}

char *qk_why_task(struct qk_store *s, const struct qk_digest *last, const struct qk_parts *parts,
	struct qk_filehash *f)
{
	qk_autobuf struct qk_buf was = QK_BUF_INIT, is = QK_BUF_INIT;
	struct fields old = { 0 }, now = { 0 };
	struct qk_digest key;
	char *why;

	if (qk_store_text(s, last, &was, NULL) != 1)
		return qk_strdup("its last result is no longer in the store");
	qk_parts_fold(parts, "task", &is, &key);
	parse(&old, was.s);
	parse(&now, is.s);
	why = differing_fields(s, &old, old.v.n, &now, parts, f);
	fields_release(&old);
	fields_release(&now);
	return why;
}

char *qk_why_recorded(struct qk_store *s, const struct qk_digest *strong, const struct qk_parts *parts,
	struct qk_pathview *view)
{
	qk_autobuf struct qk_buf was = QK_BUF_INIT, is = QK_BUF_INIT;
	struct fields old = { 0 }, now = { 0 };
	struct qk_digest weak;
	size_t half;
	char *why;

	if (qk_store_text(s, strong, &was, NULL) != 1)
		return qk_strdup("its last result is no longer in the store");
	parse(&old, was.s);
	half = first_half(&old);
	view->system = system_reads(&old);
	qk_parts_fold_weak(parts, view->system, &is, &weak);
	parse(&now, is.s);
	/* the last of the first half is the head of the second */
	why = differing_fields(s, &old, half ? half - 1 : 0, &now, parts, view->files);
	if (!why)
		why = differing_path(&old, half, view, false);
	fields_release(&old);
	fields_release(&now);
	return why;
}
