#include "report/history.h"

#include "base/fdio.h"
#include "base/path.h"
#include "base/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUN_MAX = 64 << 20 };

enum tag {
	TAG_ID = 1,
	TAG_MODE,
	TAG_GOALS,
	TAG_CWD,
	TAG_REPORT,
	TAG_STATUS,
	TAG_START,
	TAG_DURATION,
	TAG_UP_TO_DATE,
};

static bool is_id(const char *name)
{
	return *name && name[strspn(name, "0123456789-")] == '\0';
}

static int newest_first(const void *a, const void *b)
{
	return -strcmp(*(char *const *)a, *(char *const *)b);
}

void qk_history_list(const char *state, struct qk_strv *ret_ids)
{
	qk_autofree char *runs = qk_path_join(state, "runs");
	DIR *d = opendir(runs);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (is_id(e->d_name))
			qk_strv_push(ret_ids, e->d_name);
	if (d)
		closedir(d);
	if (ret_ids->n)
		qsort(ret_ids->v, ret_ids->n, sizeof(*ret_ids->v), newest_first);
}

static void forget(const char *state)
{
	qk_autostrv struct qk_strv ids = { 0 };

	qk_history_list(state, &ids);
	for (size_t i = QK_HISTORY_RUNS; i < ids.n; i++) {
		qk_autofree char *path = qk_asprintf("%s/runs/%s", state, ids.v[i]);

		unlink(path);
	}
}

int qk_history_add(const char *state, const struct qk_run *run, struct qk_err *err)
{
	qk_autofree char *runs = qk_path_join(state, "runs"), *path = qk_path_join(runs, run->id);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t begin = qk_record_begin(&b);
	int r;

	qk_record_putstr(&b, TAG_ID, run->id);
	qk_record_putstr(&b, TAG_MODE, run->mode);
	qk_record_putstr(&b, TAG_GOALS, run->goals);
	qk_record_putstr(&b, TAG_CWD, run->cwd);
	if (run->report && strlen(run->report) <= QK_HISTORY_REPORT_MAX)
		qk_record_putstr(&b, TAG_REPORT, run->report);
	qk_record_putnum(&b, TAG_STATUS, (uint64_t)run->status);
	qk_record_putnum(&b, TAG_START, run->start_ms);
	qk_record_putnum(&b, TAG_DURATION, run->duration_ms);
	qk_record_putnum(&b, TAG_UP_TO_DATE, run->up_to_date);
	qk_record_end(&b, begin);
	qk_taskstatuses_put(&b, &run->tasks);
	r = qk_mkdirs(runs, err);
	if (!r)
		r = qk_write_file(path, b.s, b.len, 0666, err);
	if (r)
		return qk_wrap(err, "run history");
	forget(state);
	return 0;
}

static const char *text(struct qk_run *run, const struct qk_field *f)
{
	return qk_arena_strndup(&run->tasks.arena, f->p, f->n);
}

static void read_header(struct qk_run *run, struct qk_record *rec)
{
	struct qk_field f;

	while (qk_field_next(rec, &f) > 0)
		switch ((enum tag)f.tag) {
		case TAG_ID: run->id = text(run, &f); break;
		case TAG_MODE: run->mode = text(run, &f); break;
		case TAG_GOALS: run->goals = text(run, &f); break;
		case TAG_CWD: run->cwd = text(run, &f); break;
		case TAG_REPORT: run->report = text(run, &f); break;
		case TAG_STATUS: run->status = (int)qk_field_num(&f); break;
		case TAG_START: run->start_ms = qk_field_num(&f); break;
		case TAG_DURATION: run->duration_ms = qk_field_num(&f); break;
		case TAG_UP_TO_DATE: run->up_to_date = qk_field_num(&f); break;
		}
}

int qk_history_read(const char *state, const char *id, struct qk_run *ret, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/runs/%s", state, id);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	size_t pos = 0;
	int r;

	*ret = (struct qk_run){ 0 };
	if (!is_id(id))
		return qk_fail(err, -ENOENT, "no run '%s'", id);
	r = qk_read_file(AT_FDCWD, path, RUN_MAX, &b, err);
	if (r == -ENOENT)
		return qk_fail(err, -ENOENT, "no run '%s': qk show runs lists those that are kept", id);
	if (r)
		return r;
	if (qk_record_next(b.s, b.len, &pos, &rec) > 0)
		read_header(ret, &rec);
	if (!ret->id || strcmp(ret->id, id) || !ret->mode || !ret->goals || !ret->cwd) {
		qk_run_release(ret);
		return qk_fail(err, -EBADMSG, "'%s' is damaged", path);
	}
	qk_taskstatuses_take(&ret->tasks, b.s + pos, b.len - pos);
	return 0;
}

void qk_run_release(struct qk_run *run)
{
	qk_taskstatuses_release(&run->tasks);
	*run = (struct qk_run){ 0 };
}

size_t qk_run_count(const struct qk_run *run, enum qk_status status, bool failed)
{
	size_t n = status == QK_STATUS_UP_TO_DATE ? run->up_to_date : 0;

	for (size_t i = 0; i < run->tasks.v.n; i++)
		n += run->tasks.v.v[i].status == status && (run->tasks.v.v[i].exit != 0) == failed;
	return n;
}
