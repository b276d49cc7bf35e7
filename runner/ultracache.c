/*
 * The file `recording`: one record (base/record.h) per command, TRACE and, if the trace is not complete,
 * INCOMPLETE with the reason.
 */
#include "runner/ultracache.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/record.h"
#include "keying/pathsets.h"
#include "keying/workspace.h"
#include "runner/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TAG_TRACE = 1, TAG_INCOMPLETE, RECORDING_MAX = 1 << 30 };

void qk_ultracache_open(struct qk_ultracache *u, const struct qk_request *r, const struct qk_taskspec *spec,
	struct qk_filehash *files, struct qk_store *store, bool has_key)
{
	*u = (struct qk_ultracache){ .req = r, .spec = spec, .store = store, .text = QK_BUF_INIT,
		.would = QK_ENTRY_INIT };
	if (!spec->ultracache || !store || !has_key)
		return;
	u->decides = spec->ultracache == QK_ULTRACACHE_ON;
	u->tells = spec->ultracache == QK_ULTRACACHE_RECORD;
	u->record = spec->record;
	u->view = (struct qk_pathview){ .files = files, .system = (enum qk_system_reads)r->system_reads };
	qk_parts_fold_weak(&spec->parts, (unsigned int)r->system_reads, &u->text, &u->weak);
	u->recording = qk_asprintf("%s/recording.%llu.%llu", r->run, (unsigned long long)r->make_pid,
		(unsigned long long)r->offset);
}

/* Asks the recordings. *ret_n: how many there are. */
static bool find(struct qk_ultracache *u, struct qk_entry *ret, struct qk_digest *strong, size_t *ret_n)
{
	struct qk_pathsets sets;
	bool found = false;

	qk_pathsets_load(&sets, u->store, &u->weak);
	*ret_n = sets.n;
	for (size_t i = 0; i < sets.n && !found; i++)
		found = !qk_pathset_key(&sets.v[i], &u->weak, &u->view, true, NULL, strong, NULL) &&
			qk_store_get(u->store, strong, ret, NULL) == 1;
	qk_pathsets_release(&sets);
	return found;
}

bool qk_ultracache_find(struct qk_ultracache *u, struct qk_entry *ret, struct qk_digest *strong)
{
	bool found = false;
	size_t n;

	if (u->decides) {
		/* what is asked again after a while is looked at again */
		qk_pathview_release(&u->view);
		u->view.known = NULL;
		found = find(u, ret, strong, &n);
	}
	return found;
}

void qk_ultracache_ask(struct qk_ultracache *u, struct qk_taskstatus *status)
{
	struct qk_digest strong;
	size_t n;

	if (!u->tells || status->recordings)
		return;
	if (find(u, &u->would, &strong, &n))
		status->recordings = "restored";
	else
		status->recordings = n ? "run" : "none";
}

void qk_ultracache_begin(struct qk_ultracache *u)
{
	u->began = qk_snapshot_now();
}

void qk_ultracache_leave(const char *recording, const struct qk_trace *trace)
{
	qk_autofd int fd = open(recording, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	qk_autobuf struct qk_buf b = QK_BUF_INIT, part = QK_BUF_INIT;
	size_t begin = qk_record_begin(&b);

	qk_trace_write(trace, &part);
	qk_record_put(&b, TAG_TRACE, part.s, part.len);
	if (trace->incomplete)
		qk_record_putstr(&b, TAG_INCOMPLETE, trace->incomplete);
	qk_record_end(&b, begin);
	/* one that is missing or cut short is noticed: there is one for each command */
	if (fd >= 0)
		(void)qk_write_all(fd, b.s, b.len);
}

/* What the commands left, joined. Incomplete if that of one is missing. */
static void read_recording(const struct qk_ultracache *u, struct qk_trace *ret)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0, n = 0;

	(void)qk_read_file(AT_FDCWD, u->recording, RECORDING_MAX, &b, NULL);
	while (qk_record_next(b.s, b.len, &pos, &rec) > 0) {
		struct qk_trace one;

		qk_trace_init(&one);
		one.lookups = true;
		while (qk_field_next(&rec, &f) > 0) {
			if (f.tag == TAG_TRACE)
				n += !qk_trace_read(&one, f.p, f.n, NULL);
			else if (f.tag == TAG_INCOMPLETE)
				qk_trace_lost(ret, "%.*s", (int)f.n, f.p);
		}
		qk_trace_append(ret, &one);
		qk_trace_release(&one);
	}
	if (n != u->spec->commands.n)
		qk_trace_lost(ret, "what it did is not known completely");
}

/* Of the task's lists those that concern recordings, in the request's form. */
static void with_lists(struct qk_request *r, const struct qk_ultracache *u)
{
	const struct qk_taskspec *s = u->spec;
	const struct {
		enum qk_list to;
		const struct qk_texts *from;
	} lists[] = { { QK_LIST_SCRATCH, &s->scratch }, { QK_LIST_WARM, &s->warm },
		{ QK_LIST_IGNORE_READS, &s->unrecorded } };

	*r = *u->req;
	memset(r->lists, 0, sizeof(r->lists));
	r->cwd = r->root;
	for (size_t l = 0; l < sizeof(lists) / sizeof(*lists); l++)
		for (size_t i = 0; i < lists[l].from->n; i++)
			qk_vec_push(&r->lists[lists[l].to], lists[l].from->v[i]);
}

static int put(struct qk_ultracache *u, const struct qk_pathset *set, const struct qk_entry *e,
	struct qk_digest *strong, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_entry with_text = *e;
	int r;

	qk_buf_add(&text, u->text.s, u->text.len);
	qk_pathview_release(&u->view);
	u->view.known = NULL;
	r = qk_pathset_key(set, &u->weak, &u->view, false, &text, strong, err);
	with_text.text = text.s;
	if (!r)
		r = qk_store_put(u->store, strong, &with_text, qk_filehash_rootfd(u->view.files), err);
	if (!r)
		r = qk_pathsets_add(u->store, &u->weak, set, err);
	return r;
}

int qk_ultracache_keep(struct qk_ultracache *u, const struct qk_outputs *outputs, const struct qk_entry *e,
	const struct qk_strv *env, struct qk_taskstatus *status, struct qk_digest *strong, struct qk_err *err)
{
	struct qk_recorded rec = { 0 };
	struct qk_request r;
	struct qk_trace trace;
	struct qk_err why = QK_ERR_INIT;
	int ret = 0;

	qk_trace_init(&trace);
	trace.lookups = true;
	read_recording(u, &trace);
	with_lists(&r, u);
	if (trace.incomplete) {
		qk_fail(&why, -EIO, "%s", trace.incomplete);
	} else {
		qk_recorded_task(&rec, &r, &trace, outputs, u->began, env->v);
		if (rec.unfit && rec.moved)
			ret = qk_fail(err, -EBUSY, "%s", rec.unfit);
		if (rec.unfit)
			qk_fail(&why, -EINVAL, "%s", rec.unfit);
		else if (!put(u, &rec.set, e, strong, &why))
			ret = 1;
	}
	if (ret != 1)
		status->unrecorded = qk_strdup(why.msg);
	qk_recorded_release(&rec);
	qk_trace_release(&trace);
	for (size_t l = 0; l < QK_N_LISTS; l++)
		qk_vec_release(&r.lists[l]);
	return ret;
}

static bool is_unchecked(const struct qk_ultracache *u, const char *path)
{
	for (size_t i = 0; i < u->spec->unchecked.n; i++) {
		const char *glob = u->spec->unchecked.v[i];

		if (qk_glob_is_pattern(glob) ? qk_glob_match(glob, path) : qk_path_under(path, glob))
			return true;
	}
	return false;
}

static bool same(const struct qk_treeent *a, const struct qk_treeent *b)
{
	return a && a->kind == b->kind && (a->mode & 0100) == (b->mode & 0100) &&
	       (a->kind != QK_FILE_LINK || !strcmp(a->link, b->link)) &&
	       (a->kind != QK_FILE_REGULAR || qk_digest_eq(&a->content, &b->content));
}

void qk_ultracache_compare(struct qk_ultracache *u, const struct qk_tree *made, struct qk_taskstatus *status)
{
	const struct qk_tree *would = &u->would.tree;

	if (!u->tells || !status->recordings || strcmp(status->recordings, "restored"))
		return;
	for (size_t i = 0; i < made->n; i++)
		if (made->v[i].kind != QK_FILE_DIR && !is_unchecked(u, made->v[i].path) &&
			!same(qk_tree_find(would, made->v[i].path), &made->v[i]))
			qk_vec_push(&u->differing, made->v[i].path);
	for (size_t i = 0; i < would->n; i++)
		if (would->v[i].kind != QK_FILE_DIR && !is_unchecked(u, would->v[i].path) &&
			!qk_tree_find(made, would->v[i].path))
			qk_vec_push(&u->differing, would->v[i].path);
	qk_vec_push(&u->differing, NULL);
	status->differing = u->differing.v;
}
