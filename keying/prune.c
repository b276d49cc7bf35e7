/*
 * Keeps a store within its bounds. Entries go by last use, oldest first; a blob goes once no entry
 * names it. All of it happens under the exclusive lock, so that no blob goes between the moment
 * somebody found it there and the moment their entry names it.
 */
#include "keying/store.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/storedir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct kept {
	struct qk_digest name;
	uint64_t bytes;
	struct timespec used; /* of an entry */
	uint64_t refs;        /* of a blob */
};

typedef QK_VEC(struct kept) kept_vec;

static int by_name(const void *a, const void *b)
{
	return memcmp(
		((const struct kept *)a)->name.b, ((const struct kept *)b)->name.b, QK_DIGEST_SIZE);
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct kept *)a)->used,
			      *y = &((const struct kept *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	if (x->tv_nsec != y->tv_nsec)
		return x->tv_nsec < y->tv_nsec ? -1 : 1;
	return by_name(a, b);
}

/* Every file of a room: its two-digit directories and what is in them. Foreign names are passed. */
static int list_room(struct qk_store *s, const char *room, kept_vec *ret, struct qk_err *err)
{
	for (int i = 0; i < 256; i++) {
		char path[QK_STOREDIR_NAME], hex[QK_DIGEST_HEX];
		struct dirent *e;
		struct stat st;
		DIR *d;
		int fd;

		snprintf(path, sizeof(path), "%s/%02x", room, (unsigned int)i);
		fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno == ENOENT)
			continue;
		d = fd < 0 ? NULL : fdopendir(fd);
		if (!d) {
			int saved = errno;

			if (fd >= 0)
				close(fd);
			return qk_fail(err, saved, "list '%s/%s'", s->dir, path);
		}
		while ((e = readdir(d))) {
			struct kept k = { 0 };

			snprintf(hex, sizeof(hex), "%02x%.30s", (unsigned int)i, e->d_name);
			if (strlen(e->d_name) != 30 || qk_digest_parse(hex, &k.name) ||
				fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			k.bytes = qk_storedir_blocks((uint64_t)st.st_size);
			k.used = st.st_mtim;
			qk_vec_push(ret, k);
		}
		closedir(d);
	}
	return 0;
}

static struct kept *find(kept_vec *v, const struct qk_digest *name)
{
	struct kept key = { .name = *name };

	return v->n ? bsearch(&key, v->v, v->n, sizeof(key), by_name) : NULL;
}

static uint64_t drop(struct qk_store *s, const char *room, struct kept *k)
{
	char name[QK_STOREDIR_NAME];
	uint64_t bytes = k->bytes;

	qk_storedir_name(room, &k->name, name);
	unlinkat(s->fd, name, 0);
	k->bytes = 0;
	return bytes;
}

/* What nobody can be writing or holding any more: we have the exclusive lock. */
static void clear_room(struct qk_store *s, const char *room, bool locked_ones_stay)
{
	int fd = openat(s->fd, room, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d))) {
		qk_autofd int file = -1;

		if (e->d_name[0] == '.')
			continue;
		if (locked_ones_stay) {
			file = openat(
				fd, e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
			if (file < 0 || flock(file, LOCK_EX | LOCK_NB))
				continue;
		}
		unlinkat(fd, e->d_name, 0);
	}
	closedir(d);
}

/* Counts the entry in the references of every blob it names; 0 if the entry is no good. */
static int refer(struct qk_store *s, const struct kept *entry, kept_vec *blobs)
{
	struct qk_digest *names;
	size_t n;
	int r = qk_store_blobs(s, &entry->name, &names, &n);

	if (r <= 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct kept *b = find(blobs, &names[i]);

		if (b)
			b->refs++;
	}
	free(names);
	return 1;
}

static uint64_t drop_unnamed(struct qk_store *s, kept_vec *blobs)
{
	uint64_t freed = 0;

	for (size_t i = 0; i < blobs->n; i++)
		if (!blobs->v[i].refs && blobs->v[i].bytes)
			freed += drop(s, "blobs", &blobs->v[i]);
	return freed;
}

/*
 * Path sets that no entry has been found by for longer than the longest unused entry left: what they
 * led to is gone. Their use is noted once a day.
 */
static uint64_t drop_old_sets(struct qk_store *s, kept_vec *sets, const kept_vec *entries, uint64_t total,
	uint64_t limit)
{
	time_t oldest = time(NULL);
	uint64_t freed = 0;

	for (size_t i = 0; i < entries->n; i++)
		if (entries->v[i].bytes && entries->v[i].used.tv_sec < oldest)
			oldest = entries->v[i].used.tv_sec;
	for (size_t i = 0; i < sets->n; i++)
		if (sets->v[i].used.tv_sec + 2 * 86400 < oldest || (limit && total - freed > limit))
			freed += drop(s, "sets", &sets->v[i]);
	return freed;
}

/* Drops the entry and what only it named. */
static uint64_t drop_entry(struct qk_store *s, struct kept *entry, kept_vec *blobs)
{
	struct qk_digest *names = NULL;
	uint64_t freed = 0;
	size_t n = 0;

	if (qk_store_blobs(s, &entry->name, &names, &n) <= 0)
		n = 0;
	freed += drop(s, "entries", entry);
	for (size_t i = 0; i < n; i++) {
		struct kept *b = find(blobs, &names[i]);

		if (b && b->refs && !--b->refs)
			freed += drop(s, "blobs", b);
	}
	free(names);
	return freed;
}

static uint64_t sum(const kept_vec *v)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < v->n; i++)
		bytes += v->v[i].bytes;
	return bytes;
}

static void report(const kept_vec *entries, const kept_vec *blobs, const kept_vec *sets,
	struct qk_store_usage *ret)
{
	*ret = (struct qk_store_usage){ 0 };
	for (size_t i = 0; i < entries->n; i++)
		ret->entries += entries->v[i].bytes > 0;
	for (size_t i = 0; i < blobs->n; i++)
		ret->blobs += blobs->v[i].bytes > 0;
	ret->bytes = sum(entries) + sum(blobs) + sum(sets);
}

int qk_store_prune(
	struct qk_store *s, uint64_t limit, struct qk_store_usage *ret, struct qk_err *err)
{
	kept_vec entries = { 0 }, blobs = { 0 }, sets = { 0 };
	uint64_t total;
	int r;

	qk_storedir_lock(s, LOCK_EX);
	clear_room(s, "tmp", false);
	clear_room(s, "claims", true);
	r = list_room(s, "entries", &entries, err);
	if (!r)
		r = list_room(s, "blobs", &blobs, err);
	if (!r)
		r = list_room(s, "sets", &sets, err);
	if (r)
		goto out;
	if (blobs.n)
		qsort(blobs.v, blobs.n, sizeof(*blobs.v), by_name);
	if (entries.n)
		qsort(entries.v, entries.n, sizeof(*entries.v), by_use);
	if (sets.n)
		qsort(sets.v, sets.n, sizeof(*sets.v), by_use);
	for (size_t i = 0; i < entries.n; i++)
		if (!refer(s, &entries.v[i], &blobs))
			drop(s, "entries", &entries.v[i]);
	total = sum(&entries) + sum(&blobs) - drop_unnamed(s, &blobs) + sum(&sets);
	for (size_t i = 0; i < entries.n && limit && total > limit; i++)
		if (entries.v[i].bytes)
			total -= drop_entry(s, &entries.v[i], &blobs);
	total -= drop_old_sets(s, &sets, &entries, total, limit);
	qk_storedir_set_count(s, total);
	if (ret)
		report(&entries, &blobs, &sets, ret);
out:
	qk_vec_release(&entries);
	qk_vec_release(&blobs);
	qk_vec_release(&sets);
	qk_storedir_lock(s, LOCK_UN);
	return r;
}
