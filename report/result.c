#include "report/result.h"

#include "base/fdio.h"
#include "base/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char magic[] = "qk result 1";

enum { RESULTS_MAX = 1 << 30, JUDGED_BYTES = 3 };

enum result_tag {
	TAG_MAGIC = 1,
	TAG_MAKE_PID,
	TAG_OFFSET,
	TAG_FATE,
	TAG_STATUS,
	TAG_WHY,
	TAG_INCOMPLETE,
	TAG_TRACE,
	TAG_JUDGED,
	TAG_DECLARED,
	TAG_LEFT,
	TAG_STRAY,
	TAG_UNCACHED,
	TAG_OWN_LAYER,
};

void qk_result_init(struct qk_result *r, uint64_t make_pid, uint64_t offset)
{
	*r = (struct qk_result){ .make_pid = make_pid, .offset = offset };
	qk_trace_init(&r->trace);
}

void qk_result_release(struct qk_result *r)
{
	free(r->why);
	free(r->uncached);
	qk_trace_release(&r->trace);
	qk_vec_release(&r->judged);
	qk_strv_release(&r->declared);
	qk_strv_release(&r->left);
	qk_strv_release(&r->stray);
}

void qk_result_judge(struct qk_result *r, const struct qk_policy *p)
{
	r->judged.n = 0;
	for (size_t i = 0; i < r->trace.entries.n; i++) {
		const char *path = r->trace.entries.v[i].path;
		struct qk_judged j = {
			.read = qk_policy_judge(p, path, QK_READ),
			.write = qk_policy_judge(p, path, QK_WRITE),
			.leads = r->trace.entries.v[i].flags & QK_T_DIR &&
				 qk_policy_leads_to(p, path, QK_WRITE),
		};

		qk_vec_push(&r->judged, j);
	}
}

static void put_list(struct qk_buf *b, enum result_tag tag, const struct qk_strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		qk_record_putstr(b, tag, list->v[i]);
}

int qk_result_append(const struct qk_result *r, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/results", run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT, part = QK_BUF_INIT;
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	size_t begin;
	ssize_t n;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", path);
	begin = qk_record_begin(&b);
	qk_record_putstr(&b, TAG_MAGIC, magic);
	qk_record_putnum(&b, TAG_MAKE_PID, r->make_pid);
	qk_record_putnum(&b, TAG_OFFSET, r->offset);
	qk_record_putnum(&b, TAG_FATE, r->fate);
	qk_record_putnum(&b, TAG_STATUS, (uint64_t)r->status);
	if (r->why)
		qk_record_putstr(&b, TAG_WHY, r->why);
	if (r->trace.incomplete)
		qk_record_putstr(&b, TAG_INCOMPLETE, r->trace.incomplete);
	if (r->trace.entries.n) {
		qk_trace_write(&r->trace, &part);
		qk_record_put(&b, TAG_TRACE, part.s, part.len);
		qk_buf_reset(&part);
		for (size_t i = 0; i < r->judged.n; i++) {
			const struct qk_judged *j = &r->judged.v[i];

			qk_buf_addch(&part, (char)(j->read.answer | j->write.answer << 2 | j->leads << 4));
			qk_buf_addch(&part, (char)j->read.reason);
			qk_buf_addch(&part, (char)j->write.reason);
		}
		qk_record_put(&b, TAG_JUDGED, part.s, part.len);
	}
	put_list(&b, TAG_DECLARED, &r->declared);
	put_list(&b, TAG_LEFT, &r->left);
	put_list(&b, TAG_STRAY, &r->stray);
	if (r->own_layer)
		qk_record_putnum(&b, TAG_OWN_LAYER, 1);
	if (r->uncached)
		qk_record_putstr(&b, TAG_UNCACHED, r->uncached);
	qk_record_end(&b, begin);
	do
		n = write(fd, b.s, b.len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return qk_fail(err, errno, "write '%s'", path);
	if ((size_t)n != b.len) /* the log ends here: a cut record is never believed */
		return qk_fail(err, ENOSPC, "write '%s'", path);
	return 0;
}

static int take_judged(struct qk_result *r, const struct qk_field *f, struct qk_err *err)
{
	const unsigned char *p = (const unsigned char *)f->p, *end = p + f->n;

	if (f->n != r->trace.entries.n * JUDGED_BYTES)
		return qk_fail(err, -EBADMSG, "verdicts do not fit the trace");
	for (; p < end; p += JUDGED_BYTES) {
		struct qk_judged j = {
			.read = { (enum qk_answer)(p[0] & 3), (enum qk_reason)p[1] },
			.write = { (enum qk_answer)(p[0] >> 2 & 3), (enum qk_reason)p[2] },
			.leads = p[0] >> 4 & 1,
		};

		if (j.read.answer > QK_ALLOWED || j.write.answer > QK_ALLOWED || p[0] >> 5 ||
			p[1] > QK_BY_OUTSIDE || p[2] > QK_BY_OUTSIDE)
			return qk_fail(err, -EBADMSG, "unknown verdict");
		qk_vec_push(&r->judged, j);
	}
	return 0;
}

static int take_field(struct qk_result *r, const struct qk_field *f, struct qk_err *err)
{
	switch ((enum result_tag)f->tag) {
	case TAG_MAKE_PID: r->make_pid = qk_field_num(f); break;
	case TAG_OFFSET: r->offset = qk_field_num(f); break;
	case TAG_FATE:
		if (qk_field_num(f) > QK_FATE_RESTORED)
			return qk_fail(err, -EBADMSG, "unknown fate of a line");
		r->fate = (enum qk_fate)qk_field_num(f);
		break;
	case TAG_STATUS: r->status = (int)qk_field_num(f); break;
	case TAG_WHY:
		free(r->why);
		r->why = qk_strndup(f->p, f->n);
		break;
	case TAG_INCOMPLETE: qk_trace_lost(&r->trace, "%.*s", (int)f->n, f->p); break;
	case TAG_TRACE: return qk_trace_read(&r->trace, f->p, f->n, err);
	case TAG_JUDGED: return take_judged(r, f, err);
	case TAG_DECLARED: qk_strv_take(&r->declared, qk_strndup(f->p, f->n)); break;
	case TAG_LEFT: qk_strv_take(&r->left, qk_strndup(f->p, f->n)); break;
	case TAG_UNCACHED:
		free(r->uncached);
		r->uncached = qk_strndup(f->p, f->n);
		break;
	case TAG_STRAY: qk_strv_take(&r->stray, qk_strndup(f->p, f->n)); break;
	case TAG_OWN_LAYER: r->own_layer = qk_field_num(f) != 0; break;
	case TAG_MAGIC: break;
	}
	return 0;
}

int qk_result_each(const char *run, qk_result_fn *each, void *arg, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/results", run);
	qk_autobuf struct qk_buf log = QK_BUF_INIT;
	struct qk_record rec;
	size_t pos = 0;
	int more, ret;

	ret = qk_read_file(AT_FDCWD, path, RESULTS_MAX, &log, err);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	while ((more = qk_record_next(log.s, log.len, &pos, &rec)) > 0) {
		struct qk_result r;
		struct qk_field f;

		qk_result_init(&r, 0, 0);
		if (qk_field_next(&rec, &f) <= 0 || f.tag != TAG_MAGIC || !qk_field_is(&f, magic))
			ret = qk_fail(err, -EBADMSG, "'%s': not a result of this version", path);
		while (!ret && (more = qk_field_next(&rec, &f)) > 0)
			if ((ret = take_field(&r, &f, err)))
				qk_wrap(err, "'%s'", path);
		if (!ret && (more < 0 || r.judged.n != r.trace.entries.n))
			ret = qk_fail(err, -EBADMSG, "'%s': a damaged result", path);
		if (!ret)
			each(&r, arg);
		qk_result_release(&r);
		if (ret)
			return ret;
	}
	return more < 0 ? qk_fail(err, -EBADMSG, "'%s': cut short", path) : 0;
}
