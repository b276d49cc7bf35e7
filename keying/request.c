#include "keying/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[] = "qk request 1";

enum { MODE_NONE = QK_MODE_ENFORCE + 1 };

enum request_tag {
	TAG_MAGIC = 1,
	TAG_MAKE_PID,
	TAG_PARENT_PID,
	TAG_PARENT_OFFSET,
	TAG_MODE,
	TAG_RECORDER,
	TAG_BACKEND,
	TAG_OFF,
	TAG_USES_MAKE,
	TAG_TARGET,
	TAG_CWD,
	TAG_ROOT,
	TAG_STATE,
	TAG_RUN,
	TAG_SHELL,
	TAG_MAKE,
	TAG_MAKEFILES,
	TAG_FASTLANE,
	TAG_TASK,
	TAG_PROJECT,
	TAG_CACHING = 40,
	TAG_SYSTEM_READS,
	TAG_CACHE_LIMIT,
	TAG_CACHE_DIR,
	TAG_EXPLICIT,
	TAG_STRICT,
	TAG_LISTS = 64, /* + enum qk_list */
};

const char *const qk_list_variables[QK_N_LISTS] = {
	[QK_LIST_PREREQS] = "^",
	[QK_LIST_ORDER] = "|",
	[QK_LIST_SIBLINGS] = NULL, /* no variable has them */
	[QK_LIST_INPUTS] = "QK_INPUTS",
	[QK_LIST_OUTPUTS] = "QK_OUTPUTS",
	[QK_LIST_SCRATCH] = "QK_SCRATCH",
	[QK_LIST_WARM] = "QK_WARM",
	[QK_LIST_IGNORE_READS] = "QK_IGNORE_READS",
	[QK_LIST_ENV] = "QK_ENV",
	[QK_LIST_RUNTIME] = "QK_RUNTIME",
	[QK_LIST_DEPFILE] = "QK_DEPFILE",
	[QK_LIST_ALLOW_READ] = "QK_ALLOW_READ",
	[QK_LIST_ALLOW_WRITE] = "QK_ALLOW_WRITE",
	[QK_LIST_IGNORE_WRITES] = "QK_IGNORE_WRITES",
	[QK_LIST_ALLOW_NETWORK] = "QK_ALLOW_NETWORK",
	[QK_LIST_DENY_NETWORK] = "QK_DENY_NETWORK",
	[QK_LIST_IGNORE_NETWORK] = "QK_IGNORE_NETWORK",
	[QK_LIST_ALLOW_LOCAL_BINDING] = "QK_ALLOW_LOCAL_BINDING",
	[QK_LIST_ALLOW_UNIX_SOCKETS] = "QK_ALLOW_UNIX_SOCKETS",
	[QK_LIST_ALLOW] = "QK_ALLOW",
};

static bool grants_all(const struct qk_request *r)
{
	for (size_t i = 0; i < r->lists[QK_LIST_ALLOW_NETWORK].n; i++)
		if (!strcmp(r->lists[QK_LIST_ALLOW_NETWORK].v[i], "true"))
			return true;
	return false;
}

bool qk_request_network_open(const struct qk_request *r)
{
	bool said = r->lists[QK_LIST_ALLOW_NETWORK].n || r->lists[QK_LIST_DENY_NETWORK].n;

	if (r->mode != QK_MODE_ENFORCE || (!r->is_explicit && !said))
		return true;
	return grants_all(r) && !r->lists[QK_LIST_DENY_NETWORK].n;
}

bool qk_request_network_filtered(const struct qk_request *r)
{
	return !qk_request_network_open(r) && r->lists[QK_LIST_ALLOW_NETWORK].n;
}

void qk_request_write(const struct qk_request *r, struct qk_buf *out)
{
	size_t begin = qk_record_begin(out);

	qk_record_putstr(out, TAG_MAGIC, magic);
	qk_record_putnum(out, TAG_MAKE_PID, r->make_pid);
	if (r->parent_pid) {
		qk_record_putnum(out, TAG_PARENT_PID, r->parent_pid);
		qk_record_putnum(out, TAG_PARENT_OFFSET, r->parent_offset);
	}
	qk_record_putnum(out, TAG_MODE, r->mode);
	qk_record_putnum(out, TAG_RECORDER, r->recorder);
	qk_record_putnum(out, TAG_BACKEND, r->backend);
	if (r->off)
		qk_record_putnum(out, TAG_OFF, 1);
	if (r->is_explicit)
		qk_record_putnum(out, TAG_EXPLICIT, 1);
	if (r->strict)
		qk_record_putnum(out, TAG_STRICT, 1);
	if (r->uses_make)
		qk_record_putnum(out, TAG_USES_MAKE, 1);
	qk_record_putstr(out, TAG_TARGET, r->target);
	qk_record_putstr(out, TAG_CWD, r->cwd);
	qk_record_putstr(out, TAG_ROOT, r->root);
	qk_record_putstr(out, TAG_STATE, r->state);
	qk_record_putstr(out, TAG_RUN, r->run);
	qk_record_putstr(out, TAG_SHELL, r->shell);
	qk_record_putstr(out, TAG_MAKE, r->make);
	if (r->fastlane)
		qk_record_putstr(out, TAG_FASTLANE, r->fastlane);
	if (r->makefiles)
		qk_record_putstr(out, TAG_MAKEFILES, r->makefiles);
	if (r->task)
		qk_record_put(out, TAG_TASK, r->task, r->task_len);
	if (r->project)
		qk_record_putstr(out, TAG_PROJECT, r->project);
	qk_record_putnum(out, TAG_SYSTEM_READS, r->system_reads);
	if (r->caching) {
		qk_record_putnum(out, TAG_CACHING, r->caching);
		qk_record_putnum(out, TAG_CACHE_LIMIT, r->cache_limit);
		qk_record_putstr(out, TAG_CACHE_DIR, r->cache_dir);
	}
	for (unsigned int l = 0; l < QK_N_LISTS; l++)
		for (size_t i = 0; i < r->lists[l].n; i++)
			qk_record_putstr(out, TAG_LISTS + l, r->lists[l].v[i]);
	qk_record_end(out, begin);
}

static const char **string_field(struct qk_request *r, unsigned int tag)
{
	switch (tag) {
	case TAG_TARGET: return &r->target;
	case TAG_CWD: return &r->cwd;
	case TAG_ROOT: return &r->root;
	case TAG_STATE: return &r->state;
	case TAG_RUN: return &r->run;
	case TAG_SHELL: return &r->shell;
	case TAG_MAKE: return &r->make;
	case TAG_MAKEFILES: return &r->makefiles;
	case TAG_FASTLANE: return &r->fastlane;
	case TAG_PROJECT: return &r->project;
	case TAG_CACHE_DIR: return &r->cache_dir;
	default: return NULL;
	}
}

/* False if no number is known by that tag. */
static bool number_field(struct qk_request *r, unsigned int tag, uint64_t v)
{
	switch (tag) {
	case TAG_MAKE_PID: r->make_pid = v; break;
	case TAG_PARENT_PID: r->parent_pid = v; break;
	case TAG_PARENT_OFFSET: r->parent_offset = v; break;
	case TAG_MODE: r->mode = (enum qk_mode)(v < MODE_NONE ? v : MODE_NONE); break;
	case TAG_RECORDER: r->recorder = v; break;
	case TAG_BACKEND: r->backend = v; break;
	case TAG_OFF: r->off = v; break;
	case TAG_EXPLICIT: r->is_explicit = v; break;
	case TAG_STRICT: r->strict = v; break;
	case TAG_USES_MAKE: r->uses_make = v; break;
	case TAG_CACHING: r->caching = v; break;
	case TAG_SYSTEM_READS: r->system_reads = v; break;
	case TAG_CACHE_LIMIT: r->cache_limit = v; break;
	default: return false;
	}
	return true;
}

int qk_request_read(
	struct qk_request *r, const char *p, size_t n, uint64_t offset, struct qk_err *err)
{
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;
	int more;

	*r = (struct qk_request){ .offset = offset, .mode = (enum qk_mode)MODE_NONE };
	if (qk_record_next(p, n, &pos, &rec) <= 0 || qk_field_next(&rec, &f) <= 0 ||
		f.tag != TAG_MAGIC || !qk_field_is(&f, magic))
		return qk_fail(err, -EBADMSG, "not a request of this version");
	while ((more = qk_field_next(&rec, &f)) > 0) {
		const char **s = string_field(r, f.tag);

		if ((s || f.tag >= TAG_LISTS) && memchr(f.p, '\0', f.n))
			return qk_fail(err, -EBADMSG, "request: field %u holds a NUL", f.tag);
		if (s) {
			*s = qk_arena_strndup(&r->arena, f.p, f.n);
		} else if (f.tag == TAG_TASK) {
			r->task = qk_arena_strndup(&r->arena, f.p, f.n);
			r->task_len = f.n;
		} else if (f.tag >= TAG_LISTS && f.tag < TAG_LISTS + QK_N_LISTS) {
			qk_vec_push(&r->lists[f.tag - TAG_LISTS],
				qk_arena_strndup(&r->arena, f.p, f.n));
		} else if (number_field(r, f.tag, qk_field_num(&f)) && f.n != sizeof(uint64_t)) {
			return qk_fail(err, -EBADMSG, "request: field %u holds no number", f.tag);
		}
	}
	if (more < 0)
		return qk_fail(err, -EBADMSG, "request: cut short");
	if (!r->target || !r->cwd || !r->root || !r->state || !r->run || !r->shell || !r->make)
		return qk_fail(err, -EBADMSG, "request: a field is missing");
	if (r->cwd[0] != '/' || r->root[0] != '/' || r->state[0] != '/' || r->run[0] != '/')
		return qk_fail(err, -EBADMSG, "request: a directory is not absolute");
	if (r->caching && (!r->cache_dir || r->cache_dir[0] != '/'))
		return qk_fail(err, -EBADMSG, "request: no directory to cache in");
	if (r->mode == (enum qk_mode)MODE_NONE)
		return qk_fail(err, -EBADMSG, "request: no mode that is known");
	return 0;
}

/* The decimal number that ends s at *end; *end moves to the ':' before it. */
static int number_before(const char *s, size_t *end, uint64_t *ret)
{
	size_t i = *end;
	char *rest;

	while (i && s[i - 1] != ':')
		i--;
	if (i < 2 || i == *end || s[i] < '0' || s[i] > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s + i, &rest, 10);
	if (errno || rest != s + *end)
		return -EINVAL;
	*end = i - 1;
	return 0;
}

int qk_request_load(struct qk_request *r, const char *value, struct qk_err *err)
{
	size_t end = strlen(value);
	qk_autofree char *file = NULL, *bytes = NULL;
	qk_autofd int fd = -1;
	uint64_t offset, len;
	ssize_t got;
	int ret;

	*r = (struct qk_request){ 0 };
	if (number_before(value, &end, &len) || number_before(value, &end, &offset) ||
		len > QK_RECORD_MAX)
		return qk_fail(err, -EINVAL, "QK_REQ='%s': not FILE:OFFSET:LENGTH", value);
	file = qk_strndup(value, end);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", file);
	bytes = qk_alloc(len);
	got = pread(fd, bytes, len, (off_t)offset);
	if (got < 0)
		return qk_fail(err, errno, "read '%s'", file);
	ret = qk_request_read(r, bytes, (size_t)got, offset, err);
	return ret ? qk_wrap(err, "'%s' at %llu", file, (unsigned long long)offset) : 0;
}

void qk_request_release(struct qk_request *r)
{
	for (size_t l = 0; l < QK_N_LISTS; l++)
		qk_vec_release(&r->lists[l]);
	qk_arena_release(&r->arena);
}
