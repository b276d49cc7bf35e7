/*
 * chain.PID in the run directory has one slot of 64 bytes a recipe, at the offset of the recipe's
 * request: requests are longer than that, so slots do not overlap.
 *
 *   slot     "qkchain1", u64 lines, weak key (16), u8 tainted, u8 waiting, zeros
 *
 * waiting.PID.OFFSET has one record (base/record.h) a line: WEAK and SET, or neither, and STRAY one
 * a path.
 */
#include "runner/chain.h"

#include "base/fdio.h"
#include "base/path.h"
#include "base/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAG_WEAK = 1, TAG_SET, TAG_STRAY, WAITING_MAX = 1 << 28 };

struct slot {
	char magic[8];
	uint64_t lines;
	struct qk_digest weak;
	uint8_t tainted, waiting;
	char zero[30];
};
static_assert(sizeof(struct slot) == 64, "slot size");

static const char magic[] = "qkchain1";

static int open_slots(const struct qk_request *r, int flags)
{
	qk_autofree char *path = qk_asprintf("%s/chain.%llu", r->run, (unsigned long long)r->make_pid);

	return open(path, flags | O_CLOEXEC, 0666);
}

static char *waiting_name(const struct qk_request *r)
{
	return qk_asprintf("%s/waiting.%llu.%llu", r->run, (unsigned long long)r->make_pid,
		(unsigned long long)r->offset);
}

static void read_waiting(const struct qk_request *r, struct qk_buf *out)
{
	qk_autofree char *path = waiting_name(r);

	if (qk_read_file(AT_FDCWD, path, WAITING_MAX, out, NULL))
		qk_buf_reset(out);
}

static void read_strays(struct qk_chain *c, const struct qk_request *r)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;

	read_waiting(r, &b);
	while (qk_record_next(b.s, b.len, &pos, &rec) > 0)
		while (qk_field_next(&rec, &f) > 0)
			if (f.tag == TAG_STRAY)
				qk_strv_take(&c->strays, qk_strndup(f.p, f.n));
}

void qk_chain_read(struct qk_chain *c, const struct qk_request *r)
{
	qk_autofd int fd = open_slots(r, O_RDONLY);
	struct slot s;

	*c = (struct qk_chain){ 0 };
	if (fd < 0 || pread(fd, &s, sizeof(s), (off_t)r->offset) != (ssize_t)sizeof(s) ||
		memcmp(s.magic, magic, sizeof(s.magic)))
		return;
	c->lines = s.lines;
	c->weak = s.weak;
	c->tainted = s.tainted;
	c->waiting = s.waiting;
	if (c->waiting)
		read_strays(c, r);
}

void qk_chain_release(struct qk_chain *c)
{
	qk_strv_release(&c->strays);
}

void qk_chain_write(struct qk_chain *c, const struct qk_request *r, const struct qk_digest *weak)
{
	struct slot s = { .lines = c->lines + 1,
		.weak = *weak,
		.tainted = c->tainted,
		.waiting = c->waiting };
	qk_autofd int fd = open_slots(r, O_WRONLY | O_CREAT);

	memcpy(s.magic, magic, sizeof(s.magic));
	if (fd >= 0)
		(void)!pwrite(fd, &s, sizeof(s), (off_t)r->offset);
}

int qk_chain_wait(struct qk_chain *c, const struct qk_request *r, const struct qk_digest *weak,
	const struct qk_pathset *set, const struct qk_strv *strays, struct qk_err *err)
{
	qk_autofree char *path = waiting_name(r);
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	qk_autobuf struct qk_buf b = QK_BUF_INIT, bytes = QK_BUF_INIT;
	size_t begin = qk_record_begin(&b);
	int ret;

	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", path);
	if (set) {
		qk_pathset_write(set, &bytes);
		qk_record_put(&b, TAG_WEAK, weak->b, QK_DIGEST_SIZE);
		qk_record_put(&b, TAG_SET, bytes.s, bytes.len);
	}
	for (size_t i = 0; i < strays->n; i++)
		qk_record_putstr(&b, TAG_STRAY, strays->v[i]);
	qk_record_end(&b, begin);
	ret = qk_write_all(fd, b.s, b.len);
	if (ret)
		return qk_fail(err, -ret, "write '%s'", path);
	c->waiting = true;
	return 0;
}

static int publish_record(struct qk_record *rec, struct qk_store *store, struct qk_err *err)
{
	struct qk_pathset set = { 0 };
	struct qk_digest weak;
	bool have_weak = false;
	struct qk_field f;
	int ret = 0;

	while (!ret && qk_field_next(rec, &f) > 0) {
		if (f.tag == TAG_WEAK && f.n == QK_DIGEST_SIZE) {
			memcpy(weak.b, f.p, QK_DIGEST_SIZE);
			have_weak = true;
		}
		if (f.tag == TAG_SET && have_weak && !qk_pathset_read(&set, f.p, f.n))
			ret = qk_pathsets_add(store, &weak, &set, err);
	}
	qk_pathset_release(&set);
	return ret;
}

int qk_chain_publish(struct qk_chain *c, const struct qk_request *r, struct qk_store *store,
	struct qk_err *err)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_record rec;
	size_t pos = 0;
	int ret = 0;

	if (!c->waiting)
		return 0;
	read_waiting(r, &b);
	while (!ret && qk_record_next(b.s, b.len, &pos, &rec) > 0)
		ret = publish_record(&rec, store, err);
	if (!ret) { /* once; the strays are still of interest */
		qk_autofree char *path = waiting_name(r);

		unlink(path);
		c->waiting = false;
		if (c->strays.n)
			ret = qk_chain_wait(c, r, NULL, NULL, &c->strays, err);
	}
	return ret;
}

static bool is_file(const struct qk_request *r, const char *name)
{
	qk_autofree char *path = qk_path_join(r->cwd, name);
	struct stat st;

	return !lstat(path, &st) && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

bool qk_chain_complete(const struct qk_request *r)
{
	if (!is_file(r, r->target))
		return false;
	for (size_t i = 0; i < r->lists[QK_LIST_SIBLINGS].n; i++)
		if (!is_file(r, r->lists[QK_LIST_SIBLINGS].v[i]))
			return false;
	return true;
}
