#include "keying/filehash.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/digestcache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum {
	DEPTH_MAX = 64, /* directories in directories, links followed included */
	READ_TRIES = 3,
};

struct qk_filehash {
	char *root;
	int rootfd;
	struct qk_digestcache *cache;
	struct qk_hasher *watch;
	uint64_t files, bytes;
	/* The directories being counted, outermost first: a link back into one of them is circular.
	 */
	struct {
		dev_t dev;
		ino_t ino;
	} stack[DEPTH_MAX];
	int depth;
};

int qk_filehash_new(
	struct qk_filehash **ret, const char *root, const char *cache, struct qk_err *err)
{
	char real[PATH_MAX];
	struct qk_filehash *f;
	int fd;

	if (!realpath(root, real))
		return qk_fail(err, errno, "workspace root '%s'", root);
	fd = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return qk_fail(err, errno, "open '%s'", real);
	f = qk_zalloc(sizeof(*f));
	f->root = qk_strdup(real);
	f->rootfd = fd;
	f->cache = cache ? qk_digestcache_new(cache) : NULL;
	*ret = f;
	return 0;
}

void qk_filehash_free(struct qk_filehash *f)
{
	if (!f)
		return;
	qk_digestcache_free(f->cache);
	close(f->rootfd);
	free(f->root);
	free(f);
}

void qk_filehash_refresh(struct qk_filehash *f)
{
	qk_digestcache_refresh(f->cache);
}

int qk_filehash_rootfd(const struct qk_filehash *f)
{
	return f->rootfd;
}

void qk_filehash_cost(const struct qk_filehash *f, uint64_t *files, uint64_t *bytes)
{
	*files = f->files;
	*bytes = f->bytes;
}

/* The one name a path has in the digest cache: relative if it lies under the root. */
static const char *name_of(const struct qk_filehash *f, const char *path)
{
	const char *below = *path == '/' ? qk_path_below(path, f->root) : NULL;

	return below ? (*below ? below : ".") : path;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int read_content(struct qk_filehash *f, const char *name, struct stat *st,
	struct qk_digest *ret, struct qk_err *err)
{
	for (int i = 0; i < READ_TRIES; i++) {
		struct timespec now = qk_digestcache_clock();
		/* O_NONBLOCK: a fifo put in place of the file since stat must not hold us up. */
		qk_autofd int fd =
			openat(f->rootfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		struct stat after;
		int r;

		if (fd < 0)
			return qk_fail(err, errno, "open '%s'", name);
		if (fstat(fd, st))
			return qk_fail(err, errno, "stat '%s'", name);
		if (!S_ISREG(st->st_mode))
			break;
		r = qk_digest_fd(fd, ret);
		if (r)
			return qk_fail(err, -r, "read '%s'", name);
		if (fstat(fd, &after))
			return qk_fail(err, errno, "stat '%s'", name);
		f->files++;
		f->bytes += (uint64_t)after.st_size;
		if (same_file(st, &after)) {
			qk_digestcache_put(f->cache, name, st, now, ret);
			return 0;
		}
	}
	return qk_fail(err, EBUSY, "'%s' changes while it is read", name);
}

void qk_filestate_fold(struct qk_filestate *s)
{
	const char head[3] = { 'F', (char)('0' + s->kind), s->executable ? 'x' : '-' };
	struct qk_hasher h;

	qk_hasher_init(&h);
	qk_hasher_add(&h, head, sizeof(head));
	qk_hasher_add(&h, s->content.b, QK_DIGEST_SIZE);
	qk_hasher_done(&h, &s->digest);
}

static int state_at(struct qk_filehash *f, const char *name, int flags, struct qk_filestate *ret,
	struct qk_err *err);

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a directory, sorted, each with a letter in front for its type where types is true. */
static int list(struct qk_filehash *f, const char *name, bool types, struct qk_strv *ret,
	struct qk_err *err)
{
	int fd = openat(f->rootfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		int r = qk_fail(err, errno, "list '%s'", name);

		if (fd >= 0)
			close(fd);
		return r;
	}
	errno = 0;
	while ((e = readdir(d))) {
		const char *n = e->d_name;
		unsigned char type = e->d_type;
		struct stat st;

		if (n[0] == '.' && (!n[1] || (n[1] == '.' && !n[2])))
			continue;
		if (!types) {
			qk_strv_push(ret, n);
			continue;
		}
		if (type == DT_UNKNOWN && !fstatat(fd, n, &st, AT_SYMLINK_NOFOLLOW))
			type = (unsigned char)IFTODT(st.st_mode);
		qk_strv_take(ret, qk_asprintf("%s%c", n,
					  type == DT_DIR   ? '/'
					  : type == DT_LNK ? '@'
							   : ' '));
	}
	if (errno) {
		int r = qk_fail(err, errno, "list '%s'", name);

		closedir(d);
		return r;
	}
	closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

static int count_dir(struct qk_filehash *f, const char *name, const struct stat *st, int flags,
	struct qk_filestate *ret, struct qk_err *err)
{
	qk_autostrv struct qk_strv names = { 0 };
	struct qk_hasher h;
	int r;

	for (int i = 0; i < f->depth; i++)
		if (f->stack[i].dev == st->st_dev && f->stack[i].ino == st->st_ino) {
			qk_digest_bytes("circular", 8, &ret->content);
			return 0;
		}
	if (f->depth == DEPTH_MAX)
		return qk_fail(err, ELOOP, "directories below '%s'", name);
	r = list(f, name, false, &names, err);
	if (r)
		return r;
	f->stack[f->depth].dev = st->st_dev;
	f->stack[f->depth++].ino = st->st_ino;
	qk_hasher_init(&h);
	for (size_t i = 0; i < names.n && !r; i++) {
		const char *n = names.v[i];
		qk_autofree char *path = qk_asprintf("%s/%s", name, n);
		struct qk_filestate s;

		if (!strcmp(n, ".git") || !strcmp(n, ".qk") || !strcmp(n, "node_modules"))
			continue;
		r = state_at(f, path, flags & ~QK_FILEHASH_FOLLOW, &s, err);
		if (r)
			break;
		qk_hasher_field(&h, n, strlen(n));
		qk_hasher_add(&h, s.digest.b, QK_DIGEST_SIZE);
		ret->outside = ret->outside || s.outside;
	}
	f->depth--;
	qk_hasher_done(&h, &ret->content);
	return r;
}

/* What the link at name leads to, as its content; a dangling one has no state behind it. */
static int count_link(struct qk_filehash *f, const char *name, int flags, struct qk_filestate *ret,
	struct qk_err *err)
{
	qk_autofree char *full =
		*name == '/' ? qk_strdup(name) : qk_asprintf("%s/%s", f->root, name);
	char text[PATH_MAX], real[PATH_MAX];
	ssize_t n = readlinkat(f->rootfd, name, text, sizeof(text));
	struct qk_filestate s = { 0 };
	struct qk_hasher h;

	if (n < 0)
		return qk_fail(err, errno, "read link '%s'", name);
	if (flags & QK_FILEHASH_SHALLOW) {
		qk_digest_bytes(text, (size_t)n, &ret->content);
		return 0;
	}
	if (realpath(full, real)) {
		bool leaves = qk_path_under(full, f->root) && !qk_path_under(real, f->root);
		struct stat st;
		int r;

		/* Whatever lies outside is not ours to walk; the caller is told by the flag. */
		if (leaves && !stat(real, &st) && S_ISDIR(st.st_mode)) {
			s.kind = QK_FILE_DIR;
			qk_digest_bytes(real, strlen(real), &s.content);
			qk_filestate_fold(&s);
		} else {
			r = state_at(f, name_of(f, real), flags & ~QK_FILEHASH_FOLLOW, &s, err);
			if (r)
				return r;
		}
		ret->outside = leaves || s.outside;
	} else if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR) {
		return qk_fail(err, errno, "follow '%s'", name);
	}
	if (flags & QK_FILEHASH_FOLLOW) {
		bool outside = ret->outside;

		*ret = s;
		ret->outside = outside;
		return 0;
	}
	qk_hasher_init(&h);
	qk_hasher_field(&h, text, (size_t)n);
	qk_hasher_add(&h, s.digest.b, QK_DIGEST_SIZE);
	qk_hasher_done(&h, &ret->content);
	return 0;
}

void qk_filehash_watch(struct qk_filehash *f, struct qk_hasher *watch)
{
	f->watch = watch;
}

static void watch(struct qk_filehash *f, const struct stat *st)
{
	const uint64_t seen[] = { st->st_dev, st->st_ino, st->st_mode, (uint64_t)st->st_size,
		(uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
		(uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec };

	/* what a directory holds is looked at itself; its times change with what is ignored */
	qk_hasher_add(f->watch, seen, S_ISDIR(st->st_mode) ? 3 * sizeof(*seen) : sizeof(seen));
}

static int state_at(struct qk_filehash *f, const char *name, int flags, struct qk_filestate *ret,
	struct qk_err *err)
{
	struct stat st;
	int r = 0;

	*ret = (struct qk_filestate){ 0 };
	if (fstatat(f->rootfd, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return qk_fail(err, errno, "stat '%s'", name);
		if (f->watch)
			qk_hasher_add(f->watch, "-", 1);
		qk_filestate_fold(ret);
		return 0;
	}
	if (f->watch)
		watch(f, &st);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		ret->kind = QK_FILE_REGULAR;
		if (flags & QK_FILEHASH_STAT)
			break;
		if (!qk_digestcache_find(f->cache, name, &st, &ret->content)) {
			if (flags & QK_FILEHASH_CACHED)
				return -EAGAIN;
			r = read_content(f, name, &st, &ret->content, err);
		}
		ret->executable = st.st_mode & S_IXUSR;
		break;
	case S_IFLNK:
		ret->kind = QK_FILE_LINK;
		r = count_link(f, name, flags, ret, err);
		break;
	case S_IFDIR:
		ret->kind = QK_FILE_DIR;
		if (!(flags & QK_FILEHASH_SHALLOW))
			r = count_dir(f, name, &st, flags, ret, err);
		break;
	default: ret->kind = QK_FILE_SPECIAL;
	}
	if (!r)
		qk_filestate_fold(ret);
	return r;
}

int qk_filehash_get(struct qk_filehash *f, const char *path, int flags, struct qk_filestate *ret,
	struct qk_err *err)
{
	f->depth = 0;
	return state_at(f, name_of(f, path), flags, ret, err);
}

static void hash_names(const struct qk_strv *names, struct qk_digest *ret)
{
	struct qk_hasher h;

	qk_hasher_init(&h);
	for (size_t i = 0; i < names->n; i++)
		qk_hasher_field(&h, names->v[i], strlen(names->v[i]));
	qk_hasher_done(&h, ret);
}

int qk_filehash_listing(
	struct qk_filehash *f, const char *path, struct qk_digest *ret, struct qk_err *err)
{
	const char *name = name_of(f, path);
	/* No path has an empty component, so that this cannot be a file's name. */
	qk_autofree char *slot = qk_asprintf("//list/%s", name);
	struct timespec now = qk_digestcache_clock();
	qk_autostrv struct qk_strv names = { 0 };
	struct stat st, after;
	int r;

	if (fstatat(f->rootfd, name, &st, 0))
		return qk_fail(err, errno, "stat '%s'", name);
	if (qk_digestcache_find(f->cache, slot, &st, ret))
		return 0;
	r = list(f, name, true, &names, err);
	if (r)
		return r;
	hash_names(&names, ret);
	if (!fstatat(f->rootfd, name, &after, 0) && same_file(&st, &after))
		qk_digestcache_put(f->cache, slot, &st, now, ret);
	return 0;
}

int qk_filehash_listing_without(struct qk_filehash *f, const char *path, const char *const *names,
	size_t n, struct qk_digest *ret, struct qk_err *err)
{
	qk_autostrv struct qk_strv all = { 0 }, rest = { 0 };
	int r;

	if (!n)
		return qk_filehash_listing(f, path, ret, err);
	r = list(f, name_of(f, path), true, &all, err);
	if (r)
		return r;
	for (size_t i = 0; i < all.n; i++) {
		const char *name = all.v[i];
		size_t len = strlen(name) - 1; /* less the letter for its type */
		bool left_out = false;

		for (size_t k = 0; k < n && !left_out; k++)
			left_out = strlen(names[k]) == len && !memcmp(names[k], name, len);
		if (!left_out)
			qk_strv_push(&rest, name);
	}
	hash_names(&rest, ret);
	return 0;
}

/* What stat says of a file that is none: the same every time, and settled long ago. */
static const struct stat no_file;

void qk_filehash_remember(struct qk_filehash *f, const char *name, const struct qk_digest *d)
{
	qk_autofree char *slot = qk_asprintf("//fact/%s", name);

	qk_digestcache_put(f->cache, slot, &no_file, qk_digestcache_clock(), d);
}

bool qk_filehash_recall(struct qk_filehash *f, const char *name, struct qk_digest *ret)
{
	qk_autofree char *slot = qk_asprintf("//fact/%s", name);

	return qk_digestcache_find(f->cache, slot, &no_file, ret);
}
