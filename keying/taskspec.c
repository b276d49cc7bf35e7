#include "keying/taskspec.h"

#include <errno.h>
#include <string.h>

static const char magic[] = "qk taskspec 1";

enum taskspec_tag { /* 64 to 79 are those of the parts */
	TAG_MAGIC = 1,
	TAG_ID,
	TAG_PROJECT,
	TAG_PROJECT_ROOT,
	TAG_TARGET,
	TAG_CONFIGURATION,
	TAG_PROBLEM,
	TAG_CWD,
	TAG_ENV_FILE,
	TAG_UNCACHED,
	TAG_UNKEYED,
	TAG_UNSANDBOXED,
	TAG_STORE,
	TAG_STORE_LIMIT,
	TAG_FLAGS,
	TAG_COMMAND,
	TAG_ENV,
	TAG_DOTENV,
	TAG_READY_WHEN,
	TAG_OUTPUT,
	TAG_SCRATCH,
	TAG_WARM,
	TAG_NEEDS,
	TAG_NUMBER,
	TAG_UNCHECKED,
	TAG_UNRECORDED,
	TAG_ULTRACACHE,
	TAG_WALL = 40,
	TAG_HIDDEN,
	TAG_WITHHELD,
	TAG_IGNORED_READ,
	TAG_IGNORED_WRITE,
	TAG_RULE = 48, /* scope, rights, reason, path */
	TAG_PARTS = 64,
};

enum {
	FLAG_PARALLEL = 1 << 0,
	FLAG_CONTINUOUS = 1 << 1,
	FLAG_SKIP = 1 << 2,
	FLAG_ALONE = 1 << 3,
	FLAG_BESIDE = 1 << 4,
	FLAG_FOREGROUND = 1 << 5,
	FLAG_EXPLICIT = 1 << 6,
	FLAG_WEAKER = 1 << 7,
	FLAG_EXPLAIN = 1 << 8,
	FLAG_RECORD = 1 << 9,
	RULE_HEAD = 3,
};

void qk_taskspec_release(struct qk_taskspec *s)
{
	qk_vec_release(&s->commands);
	qk_vec_release(&s->env);
	qk_vec_release(&s->dotenv);
	qk_vec_release(&s->ready_when);
	qk_vec_release(&s->outputs);
	qk_vec_release(&s->unchecked);
	qk_vec_release(&s->unrecorded);
	qk_vec_release(&s->scratch);
	qk_vec_release(&s->warm);
	qk_vec_release(&s->needs);
	qk_vec_release(&s->walls);
	qk_vec_release(&s->hidden);
	qk_vec_release(&s->withheld);
	qk_vec_release(&s->ignored_reads);
	qk_vec_release(&s->ignored_writes);
	qk_vec_release(&s->rules);
	qk_parts_release(&s->parts);
	qk_arena_release(&s->arena);
}

static const char **string_field(struct qk_taskspec *s, unsigned int tag)
{
	switch (tag) {
	case TAG_ID: return &s->id;
	case TAG_PROJECT: return &s->project;
	case TAG_PROJECT_ROOT: return &s->project_root;
	case TAG_TARGET: return &s->target;
	case TAG_CONFIGURATION: return &s->configuration;
	case TAG_PROBLEM: return &s->problem;
	case TAG_CWD: return &s->cwd;
	case TAG_ENV_FILE: return &s->env_file;
	case TAG_UNCACHED: return &s->uncached;
	case TAG_UNKEYED: return &s->unkeyed;
	case TAG_UNSANDBOXED: return &s->unsandboxed;
	case TAG_STORE: return &s->store;
	default: return NULL;
	}
}

static struct qk_texts *list_field(struct qk_taskspec *s, unsigned int tag)
{
	switch (tag) {
	case TAG_COMMAND: return &s->commands;
	case TAG_ENV: return &s->env;
	case TAG_DOTENV: return &s->dotenv;
	case TAG_READY_WHEN: return &s->ready_when;
	case TAG_OUTPUT: return &s->outputs;
	case TAG_UNCHECKED: return &s->unchecked;
	case TAG_UNRECORDED: return &s->unrecorded;
	case TAG_SCRATCH: return &s->scratch;
	case TAG_WARM: return &s->warm;
	case TAG_NEEDS: return &s->needs;
	case TAG_WALL: return &s->walls;
	case TAG_HIDDEN: return &s->hidden;
	case TAG_WITHHELD: return &s->withheld;
	case TAG_IGNORED_READ: return &s->ignored_reads;
	case TAG_IGNORED_WRITE: return &s->ignored_writes;
	default: return NULL;
	}
}

void qk_taskspec_write(const struct qk_taskspec *s, struct qk_buf *out)
{
	struct qk_taskspec *fields = (struct qk_taskspec *)s; /* for the tables above; only read */
	size_t begin = qk_record_begin(out);

	qk_record_putstr(out, TAG_MAGIC, magic);
	for (unsigned int tag = TAG_ID; tag <= TAG_STORE; tag++)
		if (*string_field(fields, tag))
			qk_record_putstr(out, tag, *string_field(fields, tag));
	qk_record_putnum(out, TAG_STORE_LIMIT, s->store_limit);
	qk_record_putnum(out, TAG_NUMBER, s->number);
	qk_record_putnum(out, TAG_ULTRACACHE, s->ultracache);
	qk_record_putnum(out, TAG_FLAGS,
		(s->parallel ? FLAG_PARALLEL : 0) | (s->continuous ? FLAG_CONTINUOUS : 0) |
			(s->skip ? FLAG_SKIP : 0) | (s->alone ? FLAG_ALONE : 0) |
			(s->beside ? FLAG_BESIDE : 0) |
			(s->foreground ? FLAG_FOREGROUND : 0) |
			(s->explicit_grants ? FLAG_EXPLICIT : 0) |
			(s->weaker_when_nested ? FLAG_WEAKER : 0) |
			(s->explain ? FLAG_EXPLAIN : 0) | (s->record ? FLAG_RECORD : 0));
	for (unsigned int tag = TAG_COMMAND; tag <= TAG_IGNORED_WRITE; tag++) {
		const struct qk_texts *list = list_field(fields, tag);

		for (size_t i = 0; list && i < list->n; i++)
			qk_record_putstr(out, tag, list->v[i]);
	}
	for (size_t i = 0; i < s->rules.n; i++) {
		const struct qk_taskrule *r = &s->rules.v[i];
		size_t n = strlen(r->path);
		qk_autofree char *b = qk_alloc(RULE_HEAD + n);

		b[0] = (char)r->scope;
		b[1] = (char)r->rights;
		b[2] = (char)r->reason;
		memcpy(b + RULE_HEAD, r->path, n);
		qk_record_put(out, TAG_RULE, b, RULE_HEAD + n);
	}
	qk_parts_write(&s->parts, out);
	qk_record_end(out, begin);
}

static int read_field(struct qk_taskspec *s, const struct qk_field *f)
{
	const char **string = string_field(s, f->tag);
	struct qk_texts *list = list_field(s, f->tag);
	uint64_t flags;

	if (f->tag >= TAG_PARTS)
		return qk_parts_read(&s->parts, f);
	if ((string || list) && memchr(f->p, '\0', f->n))
		return -EBADMSG;
	if (string) {
		*string = qk_arena_strndup(&s->arena, f->p, f->n);
	} else if (list) {
		qk_vec_push(list, qk_arena_strndup(&s->arena, f->p, f->n));
	} else if (f->tag == TAG_STORE_LIMIT) {
		s->store_limit = qk_field_num(f);
	} else if (f->tag == TAG_NUMBER) {
		s->number = qk_field_num(f);
	} else if (f->tag == TAG_FLAGS) {
		flags = qk_field_num(f);
		s->parallel = flags & FLAG_PARALLEL;
		s->continuous = flags & FLAG_CONTINUOUS;
		s->skip = flags & FLAG_SKIP;
		s->alone = flags & FLAG_ALONE;
		s->beside = flags & FLAG_BESIDE;
		s->foreground = flags & FLAG_FOREGROUND;
		s->explicit_grants = flags & FLAG_EXPLICIT;
		s->weaker_when_nested = flags & FLAG_WEAKER;
		s->explain = flags & FLAG_EXPLAIN;
		s->record = flags & FLAG_RECORD;
	} else if (f->tag == TAG_ULTRACACHE) {
		s->ultracache = qk_field_num(f);
	} else if (f->tag == TAG_RULE) {
		struct qk_taskrule r;

		if (f->n <= RULE_HEAD || memchr(f->p + RULE_HEAD, '\0', f->n - RULE_HEAD))
			return -EBADMSG;
		r.scope = (uint8_t)f->p[0];
		r.rights = (uint8_t)f->p[1];
		r.reason = (uint8_t)f->p[2];
		r.path = qk_arena_strndup(&s->arena, f->p + RULE_HEAD, f->n - RULE_HEAD);
		qk_vec_push(&s->rules, r);
	}
	return 0;
}

int qk_taskspec_read(struct qk_taskspec *s, const char *p, size_t n, struct qk_err *err)
{
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;
	int more;

	*s = (struct qk_taskspec){ 0 };
	if (qk_record_next(p, n, &pos, &rec) <= 0 || qk_field_next(&rec, &f) <= 0 ||
		f.tag != TAG_MAGIC || !qk_field_is(&f, magic))
		return qk_fail(err, -EBADMSG, "not a task of this version");
	while ((more = qk_field_next(&rec, &f)) > 0)
		if (read_field(s, &f))
			return qk_fail(err, -EBADMSG, "task: field %u is damaged", f.tag);
	if (more < 0)
		return qk_fail(err, -EBADMSG, "task: cut short");
	if (!s->id || !s->project || !s->project_root || !s->target || !s->cwd)
		return qk_fail(err, -EBADMSG, "task: a field is missing");
	if (s->cwd[0] != '/' || (s->store && s->store[0] != '/'))
		return qk_fail(err, -EBADMSG, "task: a directory is not absolute");
	return 0;
}
