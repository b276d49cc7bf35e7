/*
 * The file: a header of 64 bytes, then slots of 64 bytes, an open-addressing table.
 *
 *   header  "qkdigst1", u32 n (log2 of the number of home slots), zeros
 *   slots   2^n + PROBE; an entry lies in one of the PROBE slots from its home on
 *   slot    name 16: digest of the name       stat 16: digest of the stat fields
 *           content 16: what is remembered    day u32: days since 1970 it was last of use
 *           zeros u32                         check u64: first half of the digest of the 56 before
 *
 * A slot is written by one pwrite of its 64 bytes; one torn by a race or a crash fails its check
 * and counts as free. An all-zero slot ends a search. pread rather than a mapping: a mapped file
 * that somebody truncates kills the reader, and make is the reader.
 *
 * No free slot within reach: the table is written anew into a file twice the size, without entries
 * unused for a month, and renamed over the old. Processes that still have the old one open go on
 * with it, and what they add is lost.
 */
#include "keying/digestcache.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

enum {
	PROBE = 32,
	FIRST_READ = 8, /* slots; nearly every search ends within them */
	BITS_MIN = 12,
	BITS_MAX = 22, /* 256 MiB; beyond it entries replace each other */
	REFRESH_DAYS = 7,
	KEEP_DAYS = 30,
};

struct slot {
	struct qk_digest name, stat, content;
	uint32_t day, zero;
	uint64_t check;
};
static_assert(sizeof(struct slot) == 64, "slot size");

struct header {
	char magic[8];
	uint32_t bits;
	char zero[52];
};
static_assert(sizeof(struct header) == 64, "header size");

static const char magic[8] = { 'q', 'k', 'd', 'i', 'g', 's', 't', '1' };

struct qk_digestcache {
	char *path;
	int fd;
	bool writable;
	uint32_t bits;
	uint32_t today;
};

static uint64_t check_of(const struct slot *s)
{
	struct qk_digest d;
	uint64_t check;

	qk_digest_bytes(s, offsetof(struct slot, check), &d);
	memcpy(&check, d.b, sizeof(check));
	return check;
}

static bool is_free(const struct slot *s)
{
	static const struct slot none;

	return !memcmp(s, &none, sizeof(none));
}

static uint64_t home_of(const struct qk_digest *name, uint32_t bits)
{
	uint64_t h;

	memcpy(&h, name->b, sizeof(h));
	return h & (((uint64_t)1 << bits) - 1);
}

static off_t offset_of(uint64_t slot)
{
	return (off_t)(sizeof(struct header) + slot * sizeof(struct slot));
}

static void stat_digest(const struct stat *st, struct qk_digest *ret)
{
	const uint64_t fields[] = {
		(uint64_t)st->st_size,
		(uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec,
		(uint64_t)st->st_ctim.tv_nsec,
		(uint64_t)st->st_ino,
		(uint64_t)st->st_dev,
		(uint64_t)st->st_mode,
	};

	qk_digest_bytes(fields, sizeof(fields), ret);
}

/* Makes an empty table beside path and returns its descriptor; its name is tmp. */
static int make_table(const char *tmp, uint32_t bits)
{
	struct header h = { .bits = bits };
	int fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	memcpy(h.magic, magic, sizeof(magic));
	if (qk_write_all(fd, &h, sizeof(h)) ||
		ftruncate(fd, offset_of(((uint64_t)1 << bits) + PROBE))) {
		close(fd);
		unlink(tmp);
		return -EIO;
	}
	return fd;
}

static bool read_header(int fd, uint32_t *ret_bits)
{
	struct header h;
	struct stat st;

	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || fstat(fd, &st) ||
		memcmp(h.magic, magic, sizeof(magic)) || h.bits < BITS_MIN || h.bits > BITS_MAX ||
		st.st_size != offset_of(((uint64_t)1 << h.bits) + PROBE))
		return false;
	*ret_bits = h.bits;
	return true;
}

static char *temporary_name(const char *path)
{
	static unsigned int serial;

	return qk_asprintf("%s.%d.%u.tmp", path, (int)getpid(), serial++);
}

struct qk_digestcache *qk_digestcache_new(const char *path)
{
	struct qk_digestcache *c;
	uint32_t bits = BITS_MIN;
	bool writable = true;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM)) {
		writable = false;
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0 && !read_header(fd, &bits)) {
		close(fd);
		fd = -1;
		bits = BITS_MIN;
	}
	if (fd < 0) {
		qk_autofree char *tmp = temporary_name(path);

		fd = writable ? make_table(tmp, bits) : -1;
		if (fd < 0)
			return NULL;
		if (rename(tmp, path)) {
			unlink(tmp);
			close(fd);
			return NULL;
		}
	}
	c = qk_zalloc(sizeof(*c));
	c->path = qk_strdup(path);
	c->fd = fd;
	c->writable = writable;
	c->bits = bits;
	c->today = (uint32_t)(time(NULL) / 86400);
	return c;
}

void qk_digestcache_refresh(struct qk_digestcache *c)
{
	struct stat st, ours;
	uint32_t bits;
	int fd;

	if (!c || stat(c->path, &st) || fstat(c->fd, &ours) ||
		(st.st_ino == ours.st_ino && st.st_dev == ours.st_dev))
		return;
	fd = open(c->path, (c->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!read_header(fd, &bits)) {
		close(fd);
		return;
	}
	close(c->fd);
	c->fd = fd;
	c->bits = bits;
}

void qk_digestcache_free(struct qk_digestcache *c)
{
	if (!c)
		return;
	close(c->fd);
	free(c->path);
	free(c);
}

enum found { FOUND_NAME, FOUND_FREE, FOUND_NOTHING };

/* Looks for name from its home slot on; *at is the slot of the name, or the first to write it to.
 */
static enum found search(
	int fd, uint32_t bits, const struct qk_digest *name, struct slot *ret, uint64_t *at)
{
	uint64_t home = home_of(name, bits);
	bool have_free = false;
	struct slot s[PROBE];
	size_t done = 0;

	while (done < PROBE) {
		size_t want = done ? PROBE - done : FIRST_READ;
		ssize_t n = pread(fd, s, want * sizeof(*s), offset_of(home + done));

		if (n != (ssize_t)(want * sizeof(*s)))
			return FOUND_NOTHING;
		for (size_t i = 0; i < want; i++) {
			bool valid = s[i].check == check_of(&s[i]) && !is_free(&s[i]);

			if (valid && qk_digest_eq(&s[i].name, name)) {
				*ret = s[i];
				*at = home + done + i;
				return FOUND_NAME;
			}
			if (!valid && !have_free) {
				have_free = true;
				*at = home + done + i;
			}
			if (is_free(&s[i]))
				return FOUND_FREE;
		}
		done += want;
	}
	return have_free ? FOUND_FREE : FOUND_NOTHING;
}

static bool write_slot(int fd, uint64_t at, struct slot *s)
{
	s->check = check_of(s);
	return pwrite(fd, s, sizeof(*s), offset_of(at)) == (ssize_t)sizeof(*s);
}

bool qk_digestcache_find(
	struct qk_digestcache *c, const char *name, const struct stat *st, struct qk_digest *ret)
{
	struct qk_digest n, state;
	struct slot s;
	uint64_t at;

	if (!c)
		return false;
	qk_digest_bytes(name, strlen(name), &n);
	if (search(c->fd, c->bits, &n, &s, &at) != FOUND_NAME)
		return false;
	stat_digest(st, &state);
	if (!qk_digest_eq(&s.stat, &state))
		return false;
	*ret = s.content;
	if (c->writable && s.day + REFRESH_DAYS < c->today) {
		s.day = c->today;
		write_slot(c->fd, at, &s);
	}
	return true;
}

/* Copies what is still of use into a larger table; what finds no place there is left out. */
static void fill_table(const struct qk_digestcache *c, int to, uint32_t bits)
{
	uint64_t n = ((uint64_t)1 << c->bits) + PROBE;
	enum { BATCH = 512 };
	struct slot s[BATCH], other;
	uint64_t at;

	for (uint64_t i = 0; i < n; i += BATCH) {
		ssize_t got = pread(c->fd, s, sizeof(s), offset_of(i));

		for (ssize_t k = 0; k < got / (ssize_t)sizeof(*s); k++) {
			if (is_free(&s[k]) || s[k].check != check_of(&s[k]) ||
				s[k].day + KEEP_DAYS < c->today)
				continue;
			if (search(to, bits, &s[k].name, &other, &at) == FOUND_FREE)
				write_slot(to, at, &s[k]);
		}
	}
}

static bool grow(struct qk_digestcache *c)
{
	uint32_t bits = c->bits + 1;
	qk_autofree char *tmp = NULL;
	int fd;

	/* One process grows; the others replace entries meanwhile. */
	if (bits > BITS_MAX || flock(c->fd, LOCK_EX | LOCK_NB))
		return false;
	tmp = temporary_name(c->path);
	fd = make_table(tmp, bits);
	if (fd >= 0) {
		fill_table(c, fd, bits);
		if (rename(tmp, c->path)) {
			unlink(tmp);
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0) {
		flock(c->fd, LOCK_UN);
		return false;
	}
	close(c->fd);
	c->fd = fd;
	c->bits = bits;
	return true;
}

void qk_digestcache_put(struct qk_digestcache *c, const char *name, const struct stat *st,
	struct timespec hashed, const struct qk_digest *d)
{
	struct slot s = { .content = *d }, old;
	enum found found;
	uint64_t at = 0;

	if (!c || !c->writable || !qk_digestcache_settled(st, hashed))
		return;
	s.day = c->today;
	qk_digest_bytes(name, strlen(name), &s.name);
	stat_digest(st, &s.stat);
	found = search(c->fd, c->bits, &s.name, &old, &at);
	if (found == FOUND_NOTHING && grow(c))
		found = search(c->fd, c->bits, &s.name, &old, &at);
	if (found == FOUND_NOTHING)
		at = home_of(&s.name, c->bits);
	write_slot(c->fd, at, &s);
}

struct timespec qk_digestcache_clock(void)
{
	struct timespec now;

	/* The kernel stamps files with the coarse clock; the precise one runs ahead of it. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now;
}

static bool older(struct timespec t, struct timespec now)
{
	/*
	 * A tick is 10 ms at most where stamps have nanoseconds: two of them. A stamp of whole seconds comes
	 * from a file system that keeps no more (two seconds on FAT), or once in a billion by
	 * chance.
	 */
	int64_t margin = t.tv_nsec ? 20 * 1000000LL : 2100 * 1000000LL;
	int64_t age_s = (int64_t)now.tv_sec - t.tv_sec;

	if (age_s > 10)
		return true;
	if (age_s < -10)
		return false;
	return age_s * 1000000000LL + now.tv_nsec - t.tv_nsec > margin;
}

bool qk_digestcache_settled(const struct stat *st, struct timespec now)
{
	bool ahead = st->st_mtim.tv_sec > now.tv_sec ||
		     (st->st_mtim.tv_sec == now.tv_sec && st->st_mtim.tv_nsec > now.tv_nsec);

	return older(st->st_ctim, now) && (ahead || older(st->st_mtim, now));
}
