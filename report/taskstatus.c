#include "report/taskstatus.h"

#include "base/fdio.h"
#include "base/record.h"
#include "report/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <uthash.h>

enum { STATUSES_MAX = 1 << 30, REASON_TASKS = 3 };

enum tag {
	TAG_ID = 1,
	TAG_STATUS,
	TAG_KEY,
	TAG_UNCACHED,
	TAG_EXIT,
	TAG_START,
	TAG_DURATION,
	TAG_SAVED,
	TAG_AS_DECLARED,
};

static const char *copy(struct qk_arena *a, const char *s)
{
	return s ? qk_arena_strdup(a, s) : NULL;
}

void qk_taskstatuses_add(struct qk_taskstatuses *l, const struct qk_taskstatus *s)
{
	struct qk_taskstatus own = *s;

	own.id = copy(&l->arena, s->id);
	own.key = copy(&l->arena, s->key);
	own.uncached = copy(&l->arena, s->uncached);
	qk_vec_push(&l->v, own);
}

void qk_taskstatuses_release(struct qk_taskstatuses *l)
{
	qk_vec_release(&l->v);
	qk_arena_release(&l->arena);
}

static void write_one(struct qk_buf *b, const struct qk_taskstatus *s)
{
	size_t begin = qk_record_begin(b);

	qk_record_putstr(b, TAG_ID, s->id);
	qk_record_putnum(b, TAG_STATUS, s->status);
	if (s->key)
		qk_record_putstr(b, TAG_KEY, s->key);
	if (s->uncached)
		qk_record_putstr(b, TAG_UNCACHED, s->uncached);
	qk_record_putnum(b, TAG_EXIT, (uint64_t)s->exit);
	qk_record_putnum(b, TAG_START, s->start_ms);
	qk_record_putnum(b, TAG_DURATION, s->duration_ms);
	qk_record_putnum(b, TAG_SAVED, s->saved_ms);
	qk_record_putnum(b, TAG_AS_DECLARED, s->as_declared);
	qk_record_end(b, begin);
}

int qk_taskstatuses_append(const struct qk_taskstatuses *l, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/statuses", run);
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", path);
	for (size_t i = 0; i < l->v.n; i++)
		write_one(&b, &l->v.v[i]);
	if (write(fd, b.s, b.len) != (ssize_t)b.len)
		return qk_fail(err, errno ? errno : ENOSPC, "write '%s'", path);
	return 0;
}

void qk_taskstatuses_read(struct qk_taskstatuses *l, const char *run)
{
	qk_autofree char *path = qk_asprintf("%s/statuses", run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	size_t pos = 0;

	if (qk_read_file(AT_FDCWD, path, STATUSES_MAX, &b, NULL))
		return;
	while (qk_record_next(b.s, b.len, &pos, &rec) > 0) {
		struct qk_taskstatus s = { 0 };
		struct qk_field f;

		while (qk_field_next(&rec, &f) > 0)
			switch ((enum tag)f.tag) {
			case TAG_ID: s.id = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_STATUS: s.status = (enum qk_status)qk_field_num(&f); break;
			case TAG_KEY: s.key = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_UNCACHED:
				s.uncached = qk_arena_strndup(&l->arena, f.p, f.n);
				break;
			case TAG_EXIT: s.exit = (int)qk_field_num(&f); break;
			case TAG_START: s.start_ms = qk_field_num(&f); break;
			case TAG_DURATION: s.duration_ms = qk_field_num(&f); break;
			case TAG_AS_DECLARED: s.as_declared = qk_field_num(&f); break;
			case TAG_SAVED: s.saved_ms = qk_field_num(&f); break;
			}
		if (s.id && s.status <= QK_STATUS_NOTHING)
			qk_vec_push(&l->v, s);
	}
}

static void add_count(struct qk_buf *out, size_t n, const char *what, const char **sep)
{
	if (!n)
		return;
	qk_buf_addf(out, "%s%zu %s", *sep, n, what);
	*sep = ", ";
}

/* NULL where there is nothing to tell. */
static const char *reason(const struct qk_taskstatus *s)
{
	return s->as_declared ? NULL : s->uncached;
}

/* Why results were not cached, each reason once with the tasks it is of. */
static void add_reasons(struct qk_buf *out, const struct qk_taskstatuses *l)
{
	for (size_t i = 0; i < l->v.n; i++) {
		const char *why = reason(&l->v.v[i]);
		size_t n = 0;
		bool met = false;

		for (size_t k = 0; why && k < i && !met; k++)
			met = reason(&l->v.v[k]) && !strcmp(reason(&l->v.v[k]), why);
		if (!why || met)
			continue;
		qk_buf_addstr(out, "  not cached: ");
		for (size_t k = i; k < l->v.n; k++) {
			if (!reason(&l->v.v[k]) || strcmp(reason(&l->v.v[k]), why))
				continue;
			if (n++ < REASON_TASKS)
				qk_buf_addf(out, "%s%s", n > 1 ? ", " : "", l->v.v[k].id);
		}
		if (n > REASON_TASKS)
			qk_buf_addf(out, " and %zu more", n - REASON_TASKS);
		qk_buf_addf(out, ": %s\n", why);
	}
}

void qk_taskstatuses_text(struct qk_buf *out, const struct qk_taskstatuses *l)
{
	size_t n[QK_STATUS_NOTHING + 1] = { 0 }, failed = 0, all;
	const char *sep = "";

	for (size_t i = 0; i < l->v.n; i++) {
		const struct qk_taskstatus *s = &l->v.v[i];

		if (s->status == QK_STATUS_RAN && s->exit)
			failed++;
		else
			n[s->status]++;
	}
	all = l->v.n - n[QK_STATUS_NOTHING];
	if (!all)
		return;
	qk_buf_addf(out, "qk: %zu task%s: ", all, all == 1 ? "" : "s");
	add_count(out, n[QK_STATUS_RAN], "ran", &sep);
	add_count(out, failed, "failed", &sep);
	add_count(out, n[QK_STATUS_RESTORED], "restored", &sep);
	add_count(out, n[QK_STATUS_UP_TO_DATE], "up to date", &sep);
	qk_buf_addch(out, '\n');
	add_reasons(out, l);
}

static void add_member(struct qk_buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	qk_buf_addf(out, ", \"%s\": ", key);
	qk_json_string(out, value);
}

static const struct qk_report_task *audited(const struct qk_report *rep, const char *id)
{
	for (size_t i = 0; rep && i < rep->tasks.n; i++)
		if (rep->tasks.v[i].standing == QK_AUDITED && !strcmp(rep->tasks.v[i].name, id))
			return &rep->tasks.v[i];
	return NULL;
}

void qk_taskstatuses_json(
	struct qk_buf *out, const struct qk_taskstatuses *l, const struct qk_report *rep)
{
	static const char *const names[] = { "ran", "restored", "up-to-date", "nothing" };

	qk_buf_addstr(out, "{\n  \"version\": 1,\n  \"tasks\": {");
	for (size_t i = 0; i < l->v.n; i++) {
		const struct qk_taskstatus *s = &l->v.v[i];
		const struct qk_report_task *t = audited(rep, s->id);

		qk_buf_addf(out, "%s\n    ", i ? "," : "");
		qk_json_string(out, s->id);
		qk_buf_addf(out, ": { \"status\": \"%s\"",
			s->status == QK_STATUS_RAN && s->exit ? "failed" : names[s->status]);
		if (s->status == QK_STATUS_RAN && WIFEXITED(s->exit))
			qk_buf_addf(out, ", \"exit\": %d", WEXITSTATUS(s->exit));
		if (s->status == QK_STATUS_RAN && WIFSIGNALED(s->exit))
			qk_buf_addf(out, ", \"signal\": %d", WTERMSIG(s->exit));
		add_member(out, "key", s->key);
		add_member(out, "uncached", s->uncached);
		if (s->start_ms)
			qk_buf_addf(out, ", \"start\": %llu, \"duration\": %llu",
				(unsigned long long)s->start_ms, (unsigned long long)s->duration_ms);
		if (s->status == QK_STATUS_RESTORED)
			qk_buf_addf(out, ", \"saved\": %llu", (unsigned long long)s->saved_ms);
		if (t) {
			qk_buf_addstr(out, ", \"audit\": ");
			qk_json_findings(out, t);
		}
		qk_buf_addstr(out, " }");
	}
	qk_buf_addstr(out, l->v.n ? "\n  }\n}\n" : "}\n}\n");
}
