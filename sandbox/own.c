#include "sandbox/own.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/newcalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

static const char magic[] = "qkown 1\n";

enum { MAGIC = sizeof(magic) - 1, FILE_MAX = 64 << 20 };

struct qk_own_key {
	uint64_t ino;
	int64_t sec, nsec;
};

struct qk_own_file {
	struct qk_own_key key;
	UT_hash_handle hh;
};

static int key_of(int dirfd, const char *path, struct qk_own_key *ret)
{
	struct statx st;

	if (qk_statx(dirfd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &st))
		return -errno;
	*ret = (struct qk_own_key){ .ino = st.stx_ino };
	if (st.stx_mask & STATX_BTIME) {
		ret->sec = st.stx_btime.tv_sec;
		ret->nsec = st.stx_btime.tv_nsec;
	}
	return 0;
}

static bool has(const struct qk_own *o, const struct qk_own_key *key)
{
	struct qk_own_file *f;

	HASH_FIND(hh, o->files, key, sizeof(*key), f);
	return f != NULL;
}

static void add(struct qk_own *o, const struct qk_own_key *key)
{
	struct qk_own_file *f;

	if (has(o, key))
		return;
	f = qk_zalloc(sizeof(*f));
	f->key = *key;
	HASH_ADD(hh, o->files, key, sizeof(f->key), f);
}

int qk_own_add(struct qk_own *o, int fd)
{
	struct qk_own_key key;
	int r = key_of(fd, "", &key);

	if (r)
		return r;
	add(o, &key);
	o->changed = true;
	return 0;
}

bool qk_own_has(const struct qk_own *o, int fd)
{
	struct qk_own_key key;

	return o->files && !key_of(fd, "", &key) && has(o, &key);
}

bool qk_own_has_path(const struct qk_own *o, const char *path)
{
	struct qk_own_key key;

	return o->files && !key_of(AT_FDCWD, path, &key) && has(o, &key);
}

int qk_own_read(struct qk_own *o, int layer_fd, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	qk_autofd int fd = qk_open_beneath(layer_fd, "own", O_RDONLY, 0);
	struct qk_own_key key;
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : qk_read_file(layer_fd, "own", FILE_MAX, &text, NULL);
	if (r)
		return qk_fail(err, -r, "read 'own' in the layer");
	if (text.len < MAGIC || memcmp(text.s, magic, MAGIC) || (text.len - MAGIC) % sizeof(key))
		return qk_fail(err, -EBADMSG, "'own' in the layer: not what qk writes");
	for (size_t at = MAGIC; at < text.len; at += sizeof(key)) {
		memcpy(&key, text.s + at, sizeof(key));
		add(o, &key);
	}
	return 0;
}

int qk_own_write(struct qk_own *o, int layer_fd, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	qk_autofd int fd = -1;
	int r;

	if (!o->changed)
		return 0;
	qk_buf_add(&text, magic, MAGIC);
	for (const struct qk_own_file *f = o->files; f; f = f->hh.next)
		qk_buf_add(&text, (const char *)&f->key, sizeof(f->key));
	fd = qk_open_beneath(layer_fd, "own", O_WRONLY | O_CREAT | O_TRUNC, 0666);
	r = fd < 0 ? fd : qk_write_all(fd, text.s, text.len);
	if (r)
		return qk_fail(err, -r, "write 'own' in the layer");
	o->changed = false;
	return 0;
}

void qk_own_release(struct qk_own *o)
{
	struct qk_own_file *f = o->files, *next;

	HASH_CLEAR(hh, o->files);
	for (; f; f = next) {
		next = f->hh.next;
		free(f);
	}
	*o = (struct qk_own){ 0 };
}
