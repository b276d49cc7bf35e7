/*
 * An entry file:
 *
 *   head    "qkentry1", u64 length and digest (16 bytes) of the result, the same of the text
 *   result  one record (base/record.h): KEY, TASK, HOW, DURATION, MADE, OUTPUT or OUTPUT_BLOB and
 *           OUTPUT_SIZE, GONE and LOOSE one a path, then the fields of the tree (keying/tree.h)
 *   text    the key's fields as text
 *
 * Files up to INLINE_MAX bytes lie in the entry itself, as long as they are few: most results are a
 * handful of small files, and one file is quicker to read than ten.
 */
#include "keying/store.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/record.h"
#include "keying/capture.h"
#include "keying/storedir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	INLINE_MAX = 4096,      /* bytes of one file */
	INLINE_SUM = 256 << 10, /* bytes of all in one entry, the printed output apart */
	OUTPUT_INLINE = 64 << 10,
};
static const uint64_t entry_max = 1 << 30, output_max = 1 << 30;

enum tag { /* apart from those of the tree, which are below 16 */
	TAG_KEY = 16,
	TAG_TASK,
	TAG_HOW,
	TAG_DURATION,
	TAG_MADE,
	TAG_OUTPUT,
	TAG_OUTPUT_BLOB,
	TAG_OUTPUT_SIZE,
	TAG_GONE,
	TAG_LOOSE,
};

struct head {
	char magic[8];
	uint64_t result_size;
	struct qk_digest result;
	uint64_t text_size;
	struct qk_digest text;
};
static_assert(sizeof(struct head) == 56, "head size");

static const char magic[8] = { 'q', 'k', 'e', 'n', 't', 'r', 'y', '1' };

void qk_entry_release(struct qk_entry *e)
{
	qk_tree_release(&e->tree);
	qk_strv_release(&e->gone);
	qk_strv_release(&e->loose);
	qk_buf_release(&e->output);
	free(e->task);
	free(e->how);
	free(e->text);
	*e = (struct qk_entry)QK_ENTRY_INIT;
}

int qk_store_new(struct qk_store **ret, const char *dir, uint64_t limit, struct qk_err *err)
{
	struct qk_store *s = qk_zalloc(sizeof(*s));
	int r;

	s->limit = limit;
	r = qk_storedir_open(s, dir, err);
	if (r) {
		qk_store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void qk_store_free(struct qk_store *s)
{
	if (!s)
		return;
	qk_storedir_close(s);
	free(s);
}

/* Gives what was written to the temporary its final name, or removes it. Closes fd. */
static int finish(
	struct qk_store *s, int fd, const char *temp, const char *name, mode_t mode, int r)
{
	if (!r && fchmod(fd, mode))
		r = -errno;
	/* close tells of a write that failed late (NFS, quota). */
	if (close(fd) && !r)
		r = -errno;
	if (!r)
		r = qk_storedir_publish(s, temp, name);
	if (r)
		unlinkat(s->fd, temp, 0);
	return r;
}

/* A blob of that size is taken for whole here: whoever reads it finds out. */
static bool have_blob(struct qk_store *s, const char *name, uint64_t size)
{
	struct stat st;

	return !fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size;
}

static int put_bytes_blob(
	struct qk_store *s, const void *p, size_t n, const struct qk_digest *d, uint64_t *added)
{
	char name[QK_STOREDIR_NAME], temp[QK_STOREDIR_NAME];
	int fd;

	qk_storedir_name("blobs", d, name);
	if (have_blob(s, name, n))
		return 0;
	fd = qk_storedir_temp(s, temp);
	if (fd < 0)
		return fd;
	*added += qk_storedir_blocks(n);
	return finish(s, fd, temp, name, 0444, qk_write_all(fd, p, n));
}

/* Copies fd to a blob; what was copied must have the digest and size that e says. */
static int put_file_blob(struct qk_store *s, int from, const struct qk_treeent *e, uint64_t *added)
{
	char name[QK_STOREDIR_NAME], temp[QK_STOREDIR_NAME];
	struct qk_digest d;
	int fd, r;

	qk_storedir_name("blobs", &e->content, name);
	if (have_blob(s, name, e->size))
		return 0;
	fd = qk_storedir_temp(s, temp);
	if (fd < 0)
		return fd;
	r = qk_copy_fd(from, fd);
	if (!r && lseek(fd, 0, SEEK_SET))
		r = -errno;
	if (!r)
		r = qk_digest_fd(fd, &d);
	if (!r && !qk_digest_eq(&d, &e->content))
		r = -EBUSY;
	*added += qk_storedir_blocks(e->size);
	return finish(s, fd, temp, name, 0444, r);
}

static int read_small(int fd, struct qk_treeent *e)
{
	struct qk_digest d;
	size_t have = 0;

	e->data = qk_alloc(e->size + 1);
	for (;;) {
		/* One byte more than expected, so that a file that has grown is noticed. */
		ssize_t n = read(fd, e->data + have, e->size + 1 - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		if (!n || have > e->size)
			break;
	}
	if (have != e->size)
		return -EBUSY;
	qk_digest_bytes(e->data, have, &d);
	return qk_digest_eq(&d, &e->content) ? 0 : -EBUSY;
}

static int put_file(struct qk_store *s, int rootfd, struct qk_treeent *e, size_t *inlined,
	uint64_t *added, struct qk_err *err)
{
	qk_autofd int fd = qk_open_beneath(rootfd, e->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	int r;

	if (fd < 0)
		return qk_fail(err, -fd, "store '%s': open", e->path);
	if (e->size <= INLINE_MAX && *inlined + e->size <= INLINE_SUM) {
		*inlined += e->size;
		r = read_small(fd, e);
	} else {
		r = put_file_blob(s, fd, e, added);
	}
	if (r == -EBUSY)
		return qk_fail(err, -EBUSY, "store '%s': it changed after the task ended", e->path);
	return r ? qk_fail(err, -r, "store '%s'", e->path) : 0;
}

static int put_entry(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	const struct qk_tree *tree, uint64_t *added, struct qk_err *err)
{
	char name[QK_STOREDIR_NAME], temp[QK_STOREDIR_NAME];
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_digest output;
	struct head h = { .text_size = e->text ? strlen(e->text) : 0 };
	size_t begin;
	int fd, r;

	qk_buf_add(&b, &h, sizeof(h));
	begin = qk_record_begin(&b);
	qk_record_put(&b, TAG_KEY, key->b, QK_DIGEST_SIZE);
	qk_record_putstr(&b, TAG_TASK, e->task ? e->task : "");
	qk_record_putstr(&b, TAG_HOW, e->how ? e->how : "");
	qk_record_putnum(&b, TAG_DURATION, e->duration_ms);
	qk_record_putnum(&b, TAG_MADE, e->made);
	if (e->output.len > OUTPUT_INLINE) {
		qk_digest_bytes(e->output.s, e->output.len, &output);
		r = put_bytes_blob(s, e->output.s, e->output.len, &output, added);
		if (r)
			return qk_fail(err, -r, "store what the task printed");
		qk_record_put(&b, TAG_OUTPUT_BLOB, output.b, QK_DIGEST_SIZE);
		qk_record_putnum(&b, TAG_OUTPUT_SIZE, e->output.len);
	} else {
		qk_record_put(&b, TAG_OUTPUT, e->output.s, e->output.len);
	}
	for (size_t i = 0; i < e->gone.n; i++)
		qk_record_putstr(&b, TAG_GONE, e->gone.v[i]);
	for (size_t i = 0; i < e->loose.n; i++)
		qk_record_putstr(&b, TAG_LOOSE, e->loose.v[i]);
	qk_tree_write(tree, &b);
	if (b.len > entry_max)
		return qk_fail(err, EFBIG, "store: list of outputs");
	qk_record_end(&b, begin);
	memcpy(h.magic, magic, sizeof(magic));
	h.result_size = b.len - begin;
	qk_digest_bytes(b.s + begin, h.result_size, &h.result);
	qk_digest_bytes(e->text, h.text_size, &h.text);
	if (e->text)
		qk_buf_add(&b, e->text, h.text_size);
	memcpy(b.s, &h, sizeof(h));

	fd = qk_storedir_temp(s, temp);
	if (fd < 0)
		return qk_fail(err, -fd, "create a file in '%s/tmp'", s->dir);
	qk_storedir_name("entries", key, name);
	r = finish(s, fd, temp, name, 0644, qk_write_all(fd, b.s, b.len));
	*added += qk_storedir_blocks(b.len);
	return r ? qk_fail(err, -r, "store: write '%s/%s'", s->dir, name) : 0;
}

/* A copy of the list that shares its strings, so that small files' bytes can be hung in. */
static struct qk_tree shallow(const struct qk_tree *t)
{
	struct qk_tree c = { .v = qk_alloc((t->n ? t->n : 1) * sizeof(*t->v)), .n = t->n };

	if (t->n)
		memcpy(c.v, t->v, t->n * sizeof(*t->v));
	for (size_t i = 0; i < c.n; i++)
		c.v[i].data = NULL;
	return c;
}

int qk_store_put(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	int rootfd, struct qk_err *err)
{
	struct qk_tree tree;
	uint64_t added = 0;
	size_t inlined = 0;
	int r;

	if (e->output.len > output_max)
		return qk_fail(err, EFBIG, "store what the task printed");
	for (size_t i = 0; i < e->tree.n; i++)
		if (e->tree.v[i].kind == QK_FILE_SPECIAL)
			return qk_fail(err, -EINVAL, "output '%s' is a device, socket or fifo",
				e->tree.v[i].path);
	/* Without locks (an old network file system) pruning beside us costs entries, no more. */
	qk_storedir_lock(s, LOCK_SH);
	tree = shallow(&e->tree);
	r = 0;
	for (size_t i = 0; i < tree.n && !r; i++)
		if (tree.v[i].kind == QK_FILE_REGULAR && !qk_tree_twin(&tree, &tree.v[i]))
			r = put_file(s, rootfd, &tree.v[i], &inlined, &added, err);
	if (!r)
		r = put_entry(s, key, e, &tree, &added, err);
	for (size_t i = 0; i < tree.n; i++)
		free(tree.v[i].data);
	free(tree.v);
	qk_storedir_lock(s, LOCK_UN);
	if (added && qk_storedir_count(s, added) > s->limit && s->limit &&
		!qk_storedir_lock(s, LOCK_EX | LOCK_NB)) {
		/* A tenth less than allowed, or every further entry would prune again. */
		qk_store_prune(s, s->limit - s->limit / 10, NULL, NULL);
	}
	return r;
}

void qk_store_remove(struct qk_store *s, const struct qk_digest *key)
{
	char name[QK_STOREDIR_NAME];

	qk_storedir_name("entries", key, name);
	unlinkat(s->fd, name, 0);
}

/* Opens the entry and checks its head. 1, 0 or -errno; *ret is the caller's to close. */
static int open_entry(struct qk_store *s, const struct qk_digest *key, struct head *h, int *ret,
	struct qk_err *err)
{
	char name[QK_STOREDIR_NAME];
	qk_autofd int fd = -1;
	struct stat st;

	qk_storedir_name("entries", key, name);
	fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st))
		return qk_fail(err, errno, "open '%s/%s'", s->dir, name);
	if (pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h) ||
		memcmp(h->magic, magic, sizeof(magic)) || h->result_size > entry_max ||
		h->text_size > entry_max ||
		(uint64_t)st.st_size != sizeof(*h) + h->result_size + h->text_size) {
		qk_store_remove(s, key);
		return 0;
	}
	*ret = qk_steal_fd(&fd);
	return 1;
}

/* Reads a part of the entry that must have digest d. 1 or 0. */
static int read_part(
	int fd, uint64_t offset, uint64_t size, const struct qk_digest *d, struct qk_buf *out)
{
	struct qk_digest got;
	size_t start = out->len;

	qk_buf_reserve(out, size + 1);
	while (out->len - start < size) {
		ssize_t n = pread(fd, out->s + out->len, size - (out->len - start),
			(off_t)(offset + out->len - start));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out->len += (size_t)n;
	}
	out->s[out->len] = '\0';
	qk_digest_bytes(out->s + start, out->len - start, &got);
	if (out->len - start == size && qk_digest_eq(&got, d))
		return 1;
	qk_buf_truncate(out, start);
	return 0;
}

static int open_blob(struct qk_store *s, const struct qk_digest *d, char name[QK_STOREDIR_NAME])
{
	int fd;

	qk_storedir_name("blobs", d, name);
	fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int read_output(
	struct qk_store *s, const struct qk_digest *d, uint64_t size, struct qk_buf *out)
{
	char name[QK_STOREDIR_NAME];
	qk_autofd int fd = open_blob(s, d, name);

	if (fd < 0 || size > output_max)
		return 0;
	if (read_part(fd, 0, size, d, out))
		return 1;
	unlinkat(s->fd, name, 0);
	return 0;
}

/* *blob and *output_size: where the printed output is if it is not here; size 0 if it is. */
static int parse_result(const struct qk_digest *key, const struct qk_buf *b, struct qk_entry *ret,
	struct qk_digest *blob, uint64_t *output_size)
{
	bool key_seen = false;
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;
	int r;

	if (qk_record_next(b->s, b->len, &pos, &rec) != 1 || pos != b->len)
		return 0;
	while ((r = qk_field_next(&rec, &f)) == 1) {
		switch (f.tag) {
		case TAG_KEY: key_seen = f.n == QK_DIGEST_SIZE && !memcmp(f.p, key->b, f.n); break;
		case TAG_TASK:
			free(ret->task);
			ret->task = qk_strndup(f.p, f.n);
			break;
		case TAG_HOW:
			free(ret->how);
			ret->how = qk_strndup(f.p, f.n);
			break;
		case TAG_DURATION: ret->duration_ms = qk_field_num(&f); break;
		case TAG_MADE: ret->made = qk_field_num(&f); break;
		case TAG_OUTPUT: qk_buf_add(&ret->output, f.p, f.n); break;
		case TAG_OUTPUT_BLOB:
			if (f.n != QK_DIGEST_SIZE)
				return 0;
			memcpy(blob->b, f.p, f.n);
			break;
		case TAG_OUTPUT_SIZE: *output_size = qk_field_num(&f); break;
		case TAG_GONE:
		case TAG_LOOSE:
			if (!f.n || *f.p == '/' || memchr(f.p, '\0', f.n))
				return 0;
			qk_strv_take(f.tag == TAG_GONE ? &ret->gone : &ret->loose,
				qk_strndup(f.p, f.n));
			break;
		default:
			if (qk_tree_read(&ret->tree, &f))
				return 0;
		}
	}
	return !r && key_seen && !qk_tree_check(&ret->tree);
}

/* Opens, reads and checks all but the text. As qk_store_get. */
static int load(struct qk_store *s, const struct qk_digest *key, struct qk_entry *ret, int *ret_fd,
	struct qk_digest *blob, uint64_t *output_size, struct qk_err *err)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autofd int fd = -1;
	struct head h;
	int r = open_entry(s, key, &h, &fd, err);

	if (r <= 0)
		return r;
	*output_size = 0;
	if (!read_part(fd, sizeof(h), h.result_size, &h.result, &b) ||
		!parse_result(key, &b, ret, blob, output_size)) {
		qk_entry_release(ret);
		qk_store_remove(s, key);
		return 0;
	}
	*ret_fd = qk_steal_fd(&fd);
	return 1;
}

int qk_store_get(
	struct qk_store *s, const struct qk_digest *key, struct qk_entry *ret, struct qk_err *err)
{
	qk_autofd int fd = -1;
	struct qk_digest blob;
	uint64_t output_size;
	int r = load(s, key, ret, &fd, &blob, &output_size, err);

	if (r <= 0)
		return r;
	if ((output_size && !read_output(s, &blob, output_size, &ret->output)) ||
		qk_capture_check(ret->output.s, ret->output.len)) {
		qk_entry_release(ret);
		qk_store_remove(s, key);
		return 0;
	}
	/* Not ours to stamp in a store shared read-only: whoever owns it prunes it. */
	(void)futimens(fd, NULL);
	return 1;
}

int qk_store_blobs(
	struct qk_store *s, const struct qk_digest *key, struct qk_digest **ret, size_t *ret_n)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	qk_autofd int fd = -1;
	struct qk_digest blob;
	uint64_t output_size;
	size_t n = 0;
	int r = load(s, key, &e, &fd, &blob, &output_size, NULL);

	if (r <= 0)
		return r;
	*ret = qk_alloc((e.tree.n + 1) * sizeof(**ret));
	for (size_t i = 0; i < e.tree.n; i++)
		if (e.tree.v[i].kind == QK_FILE_REGULAR && !e.tree.v[i].data &&
			!qk_tree_twin(&e.tree, &e.tree.v[i]))
			(*ret)[n++] = e.tree.v[i].content;
	if (output_size)
		(*ret)[n++] = blob;
	*ret_n = n;
	return 1;
}

int qk_store_text(
	struct qk_store *s, const struct qk_digest *key, struct qk_buf *out, struct qk_err *err)
{
	qk_autofd int fd = -1;
	struct head h;
	int r = open_entry(s, key, &h, &fd, err);

	if (r <= 0)
		return r;
	if (read_part(fd, sizeof(h) + h.result_size, h.text_size, &h.text, out))
		return 1;
	qk_store_remove(s, key);
	return 0;
}

static bool clone(int from, int to)
{
	return !ioctl(to, FICLONE, from);
}

/* Copies a blob while hashing it. 1, 0 if it is not what it should be, or -errno of writing. */
static int copy_verified(int from, int to, const struct qk_treeent *e)
{
	char block[1 << 16];
	struct qk_hasher h;
	struct qk_digest d;
	uint64_t size = 0;

	qk_hasher_init(&h);
	for (;;) {
		ssize_t n = read(from, block, sizeof(block));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return 0;
		if (!n)
			break;
		size += (uint64_t)n;
		qk_hasher_add(&h, block, (size_t)n);
		r = qk_write_all(to, block, (size_t)n);
		if (r)
			return r;
	}
	qk_hasher_done(&h, &d);
	return size == e->size && qk_digest_eq(&d, &e->content);
}

int qk_store_fetch(struct qk_store *s, const struct qk_treeent *e, int to, struct qk_err *err)
{
	char name[QK_STOREDIR_NAME];
	qk_autofd int fd = -1;
	struct qk_digest d;
	int r;

	if (e->data) {
		r = qk_write_all(to, e->data, e->size);
		return r ? qk_fail(err, -r, "restore '%s'", e->path) : 1;
	}
	fd = open_blob(s, &e->content, name);
	if (fd < 0)
		return 0;
	/* Shared blocks where that can be had, and then the copy is what is verified. */
	if (e->size > INLINE_MAX && clone(fd, to)) {
		r = qk_digest_fd(to, &d);
		if (!r && !qk_digest_eq(&d, &e->content))
			r = -EBADMSG;
		r = r ? 0 : 1;
	} else {
		r = copy_verified(fd, to, e);
	}
	if (!r)
		unlinkat(s->fd, name, 0);
	return r < 0 ? qk_fail(err, -r, "restore '%s'", e->path) : r;
}
