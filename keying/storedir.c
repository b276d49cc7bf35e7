#include "keying/storedir.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "keying/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SEALED_MAX = 1 << 27, DAY = 86400 };

static int make_rooms(const char *dir, struct qk_err *err)
{
	static const char *const rooms[] = { "entries", "blobs", "sets", "claims", "tmp" };
	int r = 0;

	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms) && !r; i++) {
		qk_autofree char *room = qk_asprintf("%s/%s", dir, rooms[i]);

		r = qk_mkdirs(room, err);
	}
	return r;
}

void qk_storedir_name(const char *room, const struct qk_digest *d, char ret[QK_STOREDIR_NAME])
{
	char hex[QK_DIGEST_HEX];

	qk_digest_hex(d, hex);
	snprintf(ret, QK_STOREDIR_NAME, "%s/%.2s/%s", room, hex, hex + 2);
}

int qk_storedir_open(struct qk_store *s, const char *dir, struct qk_err *err)
{
	int r;

	s->dir = qk_asprintf("%s/v1", dir);
	s->lockfd = -1;
	s->fd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0 || faccessat(s->fd, "tmp", W_OK, 0)) {
		r = make_rooms(s->dir, err);
		if (r)
			return qk_wrap(err, "cache directory '%s'", dir);
		if (s->fd < 0)
			s->fd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (s->fd < 0 || faccessat(s->fd, "tmp", W_OK, 0))
			return qk_fail(err, errno, "cache directory '%s'", dir);
	}
	return 0;
}

void qk_storedir_close(struct qk_store *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->lockfd >= 0)
		close(s->lockfd);
	free(s->dir);
}

int qk_storedir_temp(struct qk_store *s, char name[QK_STOREDIR_NAME])
{
	for (;;) {
		unsigned long long random;
		int fd;

		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -errno;
		snprintf(name, QK_STOREDIR_NAME, "tmp/%016llx", random);
		fd = openat(s->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
}

int qk_storedir_publish(struct qk_store *s, const char *temp, const char *name)
{
	char parent[QK_STOREDIR_NAME];
	char *slash;

	if (!renameat(s->fd, temp, s->fd, name))
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(parent, sizeof(parent), "%s", name);
	slash = strrchr(parent, '/');
	*slash = '\0';
	if (mkdirat(s->fd, parent, 0777) && errno == ENOENT) { /* the room itself: an older store */
		char *room = strchr(parent, '/');

		*room = '\0';
		(void)mkdirat(s->fd, parent, 0777);
		*room = '/';
		(void)mkdirat(s->fd, parent, 0777);
	}
	return renameat(s->fd, temp, s->fd, name) ? -errno : 0;
}

void qk_storedir_begin(struct qk_buf *b, const char *magic)
{
	static const struct qk_digest later;

	qk_buf_add(b, magic, 8);
	qk_buf_add(b, later.b, QK_DIGEST_SIZE);
}

int qk_storedir_write(struct qk_store *s, const char *name, struct qk_buf *b, struct qk_err *err)
{
	char temp[QK_STOREDIR_NAME];
	int fd = qk_storedir_temp(s, temp), r;
	struct qk_digest d;

	if (fd < 0)
		return qk_fail(err, -fd, "create a file in '%s/tmp'", s->dir);
	qk_digest_bytes(b->s + QK_STOREDIR_HEAD, b->len - QK_STOREDIR_HEAD, &d);
	memcpy(b->s + 8, d.b, QK_DIGEST_SIZE);
	r = qk_write_all(fd, b->s, b->len);
	if (!r && fchmod(fd, 0644))
		r = -errno;
	if (close(fd) && !r)
		r = -errno;
	if (!r)
		r = qk_storedir_publish(s, temp, name);
	if (r) {
		unlinkat(s->fd, temp, 0);
		return qk_fail(err, -r, "store: write '%s/%s'", s->dir, name);
	}
	qk_storedir_count(s, qk_storedir_blocks(b->len));
	return 0;
}

bool qk_storedir_read(struct qk_store *s, const char *name, const char *magic, struct qk_buf *out)
{
	qk_autofd int fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct qk_digest d;
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < QK_STOREDIR_HEAD ||
		st.st_size > SEALED_MAX)
		return false;
	size = (size_t)st.st_size;
	qk_buf_reserve(out, size);
	while (out->len < size) {
		ssize_t n = read(fd, out->s + out->len, size - out->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out->len += (size_t)n;
	}
	if (out->len == size) {
		qk_digest_bytes(out->s + QK_STOREDIR_HEAD, size - QK_STOREDIR_HEAD, &d);
		/* pruning goes by use; a day is fine enough, and most uses write nothing then */
		if (!memcmp(out->s, magic, 8) && !memcmp(out->s + 8, d.b, QK_DIGEST_SIZE)) {
			if (st.st_mtime + DAY < time(NULL))
				(void)futimens(fd, NULL);
			return true;
		}
	}
	unlinkat(s->fd, name, 0);
	qk_buf_reset(out);
	return false;
}

static int open_lock(struct qk_store *s)
{
	static const char zero[8];

	if (s->lockfd >= 0)
		return 0;
	s->lockfd = openat(s->fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->lockfd < 0)
		return -errno;
	/* Written once, so that a full disk cannot refuse to count later. */
	if (lseek(s->lockfd, 0, SEEK_END) < (off_t)sizeof(zero) &&
		pwrite(s->lockfd, zero, sizeof(zero), 0) != (ssize_t)sizeof(zero))
		return -errno;
	return 0;
}

int qk_storedir_lock(struct qk_store *s, int operation)
{
	int r = open_lock(s);

	if (r)
		return r;
	while (flock(s->lockfd, operation))
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* The count has a lock of its own kind (on its bytes): flock is held shared by many who add. */
static void count_lock(struct qk_store *s, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_len = 8 };

	while (fcntl(s->lockfd, F_OFD_SETLKW, &l) && errno == EINTR)
		;
}

static uint64_t change_count(struct qk_store *s, uint64_t bytes, bool set)
{
	uint64_t count = 0;

	if (open_lock(s))
		return 0;
	count_lock(s, F_WRLCK);
	if (!set && pread(s->lockfd, &count, sizeof(count), 0) != (ssize_t)sizeof(count))
		count = 0;
	count += bytes;
	if (pwrite(s->lockfd, &count, sizeof(count), 0) != (ssize_t)sizeof(count))
		count = 0;
	count_lock(s, F_UNLCK);
	return count;
}

uint64_t qk_storedir_count(struct qk_store *s, uint64_t bytes)
{
	return change_count(s, bytes, false);
}

void qk_storedir_set_count(struct qk_store *s, uint64_t bytes)
{
	change_count(s, bytes, true);
}

uint64_t qk_storedir_blocks(uint64_t size)
{
	return (size + 4095) & ~(uint64_t)4095;
}

static void claim_name(const struct qk_digest *key, char ret[QK_STOREDIR_NAME])
{
	char hex[QK_DIGEST_HEX];

	qk_digest_hex(key, hex);
	snprintf(ret, QK_STOREDIR_NAME, "claims/%s", hex);
}

int qk_store_claim(struct qk_store *s, const struct qk_digest *key)
{
	char name[QK_STOREDIR_NAME];

	claim_name(key, name);
	for (;;) {
		qk_autofd int fd =
			openat(s->fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		struct stat st;

		if (fd < 0)
			return -errno;
		while (flock(fd, LOCK_EX))
			if (errno != EINTR)
				return -errno;
		/* Whoever had it removed the name as they were done: ours is then nobody's. */
		if (!fstat(fd, &st) && st.st_nlink)
			return qk_steal_fd(&fd);
	}
}

void qk_store_yield(struct qk_store *s, const struct qk_digest *key, int fd)
{
	char name[QK_STOREDIR_NAME];

	if (fd < 0)
		return;
	claim_name(key, name);
	unlinkat(s->fd, name, 0);
	close(fd);
}
