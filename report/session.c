#include "report/session.h"

#include "base/fdio.h"
#include "base/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char magic[] = "qk session 1";

enum {
	TAG_MAGIC = 1,
	TAG_MODE,
	TAG_RECORDER,
	TAG_BACKEND,
	TAG_RECORDER_NOTE,
	TAG_BACKEND_NOTE,
	TAG_ROOT,
	TAG_STATE,
	TAG_CWD,
	TAG_FASTLANE,
	TAG_FASTLANE_NOTE,
	TAG_CACHING,
	TAG_SYSTEM_READS,
	TAG_CACHE_LIMIT,
	TAG_CACHE_DIR,
	SESSION_MAX = 1 << 16,
};

int qk_session_save(const struct qk_session *s, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/session", s->run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t begin = qk_record_begin(&b);

	qk_record_putstr(&b, TAG_MAGIC, magic);
	qk_record_putnum(&b, TAG_MODE, s->mode);
	qk_record_putnum(&b, TAG_RECORDER, s->recorder);
	qk_record_putnum(&b, TAG_BACKEND, s->backend);
	qk_record_putstr(&b, TAG_RECORDER_NOTE, s->recorder_note);
	qk_record_putstr(&b, TAG_BACKEND_NOTE, s->backend_note);
	qk_record_putstr(&b, TAG_ROOT, s->root);
	qk_record_putstr(&b, TAG_STATE, s->state);
	qk_record_putstr(&b, TAG_CWD, s->cwd);
	qk_record_putstr(&b, TAG_FASTLANE, s->fastlane ? s->fastlane : "");
	qk_record_putstr(&b, TAG_FASTLANE_NOTE, s->fastlane_note ? s->fastlane_note : "");
	qk_record_putnum(&b, TAG_CACHING, s->caching);
	qk_record_putnum(&b, TAG_SYSTEM_READS, s->system_reads);
	qk_record_putnum(&b, TAG_CACHE_LIMIT, s->cache_limit);
	qk_record_putstr(&b, TAG_CACHE_DIR, s->cache_dir ? s->cache_dir : "");
	qk_record_end(&b, begin);
	return qk_write_file(path, b.s, b.len, 0666, err);
}

static char **string_field(struct qk_session *s, unsigned int tag)
{
	switch (tag) {
	case TAG_RECORDER_NOTE: return &s->recorder_note;
	case TAG_BACKEND_NOTE: return &s->backend_note;
	case TAG_ROOT: return &s->root;
	case TAG_STATE: return &s->state;
	case TAG_CWD: return &s->cwd;
	case TAG_FASTLANE: return &s->fastlane;
	case TAG_FASTLANE_NOTE: return &s->fastlane_note;
	case TAG_CACHE_DIR: return &s->cache_dir;
	default: return NULL;
	}
}

/* 0, or -EBADMSG: a number out of range, a text with a NUL. */
static int take_field(struct qk_session *s, const struct qk_field *f)
{
	char **text = string_field(s, f->tag);
	uint64_t v = qk_field_num(f);

	if (text) {
		if (memchr(f->p, '\0', f->n))
			return -EBADMSG;
		free(*text);
		*text = qk_strndup(f->p, f->n);
		return 0;
	}
	switch (f->tag) {
	case TAG_MODE: s->mode = (enum qk_mode)v; return v > QK_MODE_ENFORCE ? -EBADMSG : 0;
	case TAG_RECORDER:
		s->recorder = (enum qk_recorder_kind)v;
		return v > QK_RECORDER_EBPF ? -EBADMSG : 0;
	case TAG_BACKEND:
		s->backend = (enum qk_backend)v;
		return v > QK_BACKEND_HELD_OVERLAY ? -EBADMSG : 0;
	case TAG_CACHING: s->caching = (__typeof__(s->caching))v; return 0;
	case TAG_SYSTEM_READS: s->system_reads = (__typeof__(s->system_reads))v; return 0;
	case TAG_CACHE_LIMIT: s->cache_limit = v; return 0;
	default: return 0;
	}
}

int qk_session_load(struct qk_session *s, const char *run, struct qk_err *err)
{
	qk_autofree char *path = qk_asprintf("%s/session", run);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;
	int ret, more;

	*s = (struct qk_session){ .run = qk_strdup(run) };
	ret = qk_read_file(AT_FDCWD, path, SESSION_MAX, &b, err);
	if (ret)
		return ret;
	if (qk_record_next(b.s, b.len, &pos, &rec) <= 0 || qk_field_next(&rec, &f) <= 0 ||
		f.tag != TAG_MAGIC || !qk_field_is(&f, magic))
		return qk_fail(err, -EBADMSG, "'%s': not a session of this version", path);
	while ((more = qk_field_next(&rec, &f)) > 0)
		if (take_field(s, &f))
			return qk_fail(err, -EBADMSG, "'%s': field %u is damaged", path, f.tag);
	if (more < 0)
		return qk_fail(err, -EBADMSG, "'%s': cut short", path);
	if (!s->root || !s->state || !s->cwd || !s->recorder_note || !s->backend_note)
		return qk_fail(err, -EBADMSG, "'%s': a field is missing", path);
	if (s->root[0] != '/' || s->state[0] != '/' || s->cwd[0] != '/')
		return qk_fail(err, -EBADMSG, "'%s': a directory is not absolute", path);
	return 0;
}

void qk_session_release(struct qk_session *s)
{
	free(s->recorder_note);
	free(s->backend_note);
	free(s->cache_dir);
	free(s->root);
	free(s->state);
	free(s->run);
	free(s->cwd);
	free(s->makefile);
	free(s->fastlane);
	free(s->fastlane_note);
	*s = (struct qk_session){ 0 };
}

/* Why no better back end, each reason once, and what the one that held cannot do. */
static char *backend_note(const struct qk_walls_host *host)
{
	const char *parts[] = { host->why_not_held, host->why_not_inner, host->why_not_landlock, host->limits };
	struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!*parts[i] || strstr(b.s, parts[i]))
			continue;
		if (b.len)
			qk_buf_addstr(&b, "; ");
		qk_buf_addstr(&b, parts[i]);
	}
	return qk_buf_detach(&b);
}

int qk_session_choose(struct qk_session *s, const char *recorder, const char *fastlane,
	const char *ebpf, bool no_overlay, struct qk_err *err)
{
	struct qk_ebpf_host host_ebpf = { ebpf, s->run, s->root };
	struct qk_lane_choice lane = { .library = fastlane };
	struct qk_walls_host host = { 0 };
	char why[512] = "";
	int ret = 0;

	if (s->mode != QK_MODE_OFF || s->caching & QK_CACHING_RECORD)
		ret = qk_recorder_choose_lane(
			recorder, &s->recorder, &lane, &host_ebpf, why, sizeof(why), err);
	if (ret)
		return ret;
	free(s->recorder_note);
	s->recorder_note = qk_strdup(why);
	free(s->fastlane);
	s->fastlane = qk_strdup(lane.works ? fastlane : "");
	free(s->fastlane_note);
	s->fastlane_note = qk_strdup(lane.why);
	if (s->mode == QK_MODE_ENFORCE)
		qk_walls_probe(s->run, no_overlay, s->recorder == QK_RECORDER_SECCOMP, &host);
	s->backend = host.backend;
	free(s->backend_note);
	s->backend_note = backend_note(&host);
	return 0;
}
