#include "report/taskstatus.h"

#include "base/fdio.h"
#include "base/record.h"
#include "report/json.h"
#include "report/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <uthash.h>

enum { STATUSES_MAX = 1 << 30, REASON_TASKS = 3, DIFFERING_SHOWN = 8 };

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
	TAG_RECORDINGS,
	TAG_DIFFERING,
	TAG_UNRECORDED,
	TAG_COMPARED, /* before the names that differ */
};

static const char *copy(struct qk_arena *a, const char *s)
{
	return s ? qk_arena_strdup(a, s) : NULL;
}

static const char *const *copy_names(struct qk_arena *a, const char *const *names)
{
	const char **own;
	size_t n = 0;

	while (names && names[n])
		n++;
	if (!names)
		return NULL;
	own = qk_arena_alloc(a, (n + 1) * sizeof(*own));
	for (size_t i = 0; i < n; i++)
		own[i] = qk_arena_strdup(a, names[i]);
	return own;
}

void qk_taskstatuses_add(struct qk_taskstatuses *l, const struct qk_taskstatus *s)
{
	struct qk_taskstatus own = *s;

	own.id = copy(&l->arena, s->id);
	own.key = copy(&l->arena, s->key);
	own.uncached = copy(&l->arena, s->uncached);
	own.recordings = copy(&l->arena, s->recordings);
	own.differing = copy_names(&l->arena, s->differing);
	own.unrecorded = copy(&l->arena, s->unrecorded);
	qk_vec_push(&l->v, own);
}

void qk_taskstatuses_release(struct qk_taskstatuses *l)
{
	qk_vec_release(&l->v);
	qk_arena_release(&l->arena);
}

static void put_text(struct qk_buf *b, enum tag tag, const char *s)
{
	if (s)
		qk_record_putstr(b, tag, s);
}

static void write_one(struct qk_buf *b, const struct qk_taskstatus *s)
{
	size_t begin = qk_record_begin(b);

	qk_record_putstr(b, TAG_ID, s->id);
	qk_record_putnum(b, TAG_STATUS, s->status);
	put_text(b, TAG_KEY, s->key);
	put_text(b, TAG_UNCACHED, s->uncached);
	put_text(b, TAG_RECORDINGS, s->recordings);
	if (s->differing)
		qk_record_putnum(b, TAG_COMPARED, 1);
	for (size_t i = 0; s->differing && s->differing[i]; i++)
		qk_record_putstr(b, TAG_DIFFERING, s->differing[i]);
	put_text(b, TAG_UNRECORDED, s->unrecorded);
	qk_record_putnum(b, TAG_EXIT, (uint64_t)s->exit);
	qk_record_putnum(b, TAG_START, s->start_ms);
	qk_record_putnum(b, TAG_DURATION, s->duration_ms);
	qk_record_putnum(b, TAG_SAVED, s->saved_ms);
	qk_record_putnum(b, TAG_AS_DECLARED, s->as_declared);
	qk_record_end(b, begin);
}

void qk_taskstatuses_put(struct qk_buf *out, const struct qk_taskstatuses *l)
{
	for (size_t i = 0; i < l->v.n; i++)
		write_one(out, &l->v.v[i]);
}

int qk_taskstatuses_append(const struct qk_taskstatuses *l, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/statuses", run);
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", path);
	qk_taskstatuses_put(&b, l);
	if (write(fd, b.s, b.len) != (ssize_t)b.len)
		return qk_fail(err, errno ? errno : ENOSPC, "write '%s'", path);
	return 0;
}

void qk_taskstatuses_take(struct qk_taskstatuses *l, const char *p, size_t n)
{
	static const char *const none[] = { NULL };
	struct qk_record rec;
	size_t pos = 0;

	while (qk_record_next(p, n, &pos, &rec) > 0) {
		struct qk_taskstatus s = { 0 };
		qk_autostrv struct qk_strv names = { 0 };
		bool compared = false;
		struct qk_field f;

		while (qk_field_next(&rec, &f) > 0)
			switch ((enum tag)f.tag) {
			case TAG_ID: s.id = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_STATUS: s.status = (enum qk_status)qk_field_num(&f); break;
			case TAG_KEY: s.key = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_UNCACHED:
				s.uncached = qk_arena_strndup(&l->arena, f.p, f.n);
				break;
			case TAG_RECORDINGS: s.recordings = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_COMPARED: compared = true; break;
			case TAG_DIFFERING: qk_strv_take(&names, qk_strndup(f.p, f.n)); break;
			case TAG_UNRECORDED: s.unrecorded = qk_arena_strndup(&l->arena, f.p, f.n); break;
			case TAG_EXIT: s.exit = (int)qk_field_num(&f); break;
			case TAG_START: s.start_ms = qk_field_num(&f); break;
			case TAG_DURATION: s.duration_ms = qk_field_num(&f); break;
			case TAG_AS_DECLARED: s.as_declared = qk_field_num(&f); break;
			case TAG_SAVED: s.saved_ms = qk_field_num(&f); break;
			}
		if (compared)
			s.differing = copy_names(&l->arena, names.n ? (const char *const *)names.v : none);
		if (s.id && s.status <= QK_STATUS_NOTHING)
			qk_vec_push(&l->v, s);
	}
}

void qk_taskstatuses_read(struct qk_taskstatuses *l, const char *run)
{
	qk_autofree char *path = qk_asprintf("%s/statuses", run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (!qk_read_file(AT_FDCWD, path, STATUSES_MAX, &b, NULL))
		qk_taskstatuses_take(l, b.s, b.len);
}

static void add_count(struct qk_buf *out, size_t n, const char *what, const char **sep)
{
	if (!n)
		return;
	qk_buf_addf(out, "%s%zu %s", *sep, n, what);
	*sep = ", ";
}

/* What is told of a task in one kind of line, or NULL. */
typedef const char *told(const struct qk_taskstatus *s);

static const char *uncached(const struct qk_taskstatus *s)
{
	return s->as_declared ? NULL : s->uncached;
}

static const char *unrecorded(const struct qk_taskstatus *s)
{
	return s->unrecorded;
}

/* "mode": "record": what the recordings would have decided. */
static const char *decided(const struct qk_taskstatus *s)
{
	return s->recordings && !strcmp(s->recordings, "none") ? "none yet" : s->recordings;
}

/* A line for each thing told, once with the tasks it is of. */
static void add_told(struct qk_buf *out, const struct qk_taskstatuses *l, const char *heading, told *of)
{
	for (size_t i = 0; i < l->v.n; i++) {
		const char *why = of(&l->v.v[i]);
		size_t n = 0;
		bool met = false;

		for (size_t k = 0; why && k < i && !met; k++)
			met = of(&l->v.v[k]) && !strcmp(of(&l->v.v[k]), why);
		if (!why || met)
			continue;
		qk_buf_addf(out, "  %s: ", heading);
		for (size_t k = i; k < l->v.n; k++) {
			if (!of(&l->v.v[k]) || strcmp(of(&l->v.v[k]), why))
				continue;
			if (n++ < REASON_TASKS)
				qk_buf_addf(out, "%s%s", n > 1 ? ", " : "", l->v.v[k].id);
		}
		if (n > REASON_TASKS)
			qk_buf_addf(out, " and %zu more", n - REASON_TASKS);
		qk_buf_addf(out, ": %s\n", why);
	}
}

/* Of tasks that the recordings would have restored as something else than what they now made. */
static void add_differing(struct qk_buf *out, const struct qk_taskstatuses *l)
{
	for (size_t i = 0; i < l->v.n; i++) {
		const char *const *names = l->v.v[i].differing;
		size_t n = 0;

		if (!names || !*names)
			continue;
		qk_buf_addf(out, "  recordings would have restored %s with other outputs than it made: ",
			l->v.v[i].id);
		for (; names[n]; n++) {
			if (n >= DIFFERING_SHOWN)
				continue;
			qk_buf_addstr(out, n ? ", " : "");
			qk_text_name(out, names[n]);
		}
		if (n > DIFFERING_SHOWN)
			qk_buf_addf(out, " and %zu more", n - DIFFERING_SHOWN);
		qk_buf_addch(out, '\n');
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
	add_told(out, l, "not cached", uncached);
	add_told(out, l, "recording not kept", unrecorded);
	add_told(out, l, "recordings would have had", decided);
	add_differing(out, l);
}

static void add_member(struct qk_buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	qk_buf_addf(out, ", \"%s\": ", key);
	qk_json_string(out, value);
}

static void add_differing_json(struct qk_buf *out, const char *const *names)
{
	if (!names)
		return;
	qk_buf_addstr(out, ", \"differing\": [");
	for (size_t n = 0; names[n]; n++) {
		qk_buf_addstr(out, n ? ", " : "");
		qk_json_string(out, names[n]);
	}
	qk_buf_addch(out, ']');
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
		add_member(out, "recordings", s->recordings);
		add_member(out, "unrecorded", s->unrecorded);
		add_differing_json(out, s->differing);
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
