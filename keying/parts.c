#include "keying/parts.h"

#include "base/glob.h"
#include "keying/outputs.h"
#include "keying/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum tag {
	TAG_PART = 64, /* begins a part: its kind */
	TAG_TAG,
	TAG_NAME,
	TAG_VALUE,
	TAG_PATH, /* of a file group */
	TAG_GLOB,
	TAG_DIGEST, /* known */
	TAG_SEEN,
	TAG_AT, /* in place of paths */
	TAG_LEN,
};

extern char **environ;

void qk_parts_release(struct qk_parts *p)
{
	qk_vec_release(&p->list);
	qk_arena_release(&p->arena);
}

static const char *copy(struct qk_parts *p, const char *s)
{
	return s ? qk_arena_strdup(&p->arena, s) : NULL;
}

void qk_parts_text(struct qk_parts *p, const char *tag, const char *name, const char *value)
{
	struct qk_part part = { .kind = QK_PART_TEXT, .known = true };

	part.tag = copy(p, tag);
	part.name = copy(p, name);
	part.value = copy(p, value);
	qk_vec_push(&p->list, part);
}

void qk_parts_files(struct qk_parts *p, struct qk_filegroup *g)
{
	struct qk_part part = { .kind = QK_PART_FILES, .files = g };

	qk_vec_push(&p->list, part);
}

void qk_parts_runtime(struct qk_parts *p, const char *command)
{
	struct qk_part part = { .kind = QK_PART_RUNTIME, .name = copy(p, command) };

	qk_vec_push(&p->list, part);
}

void qk_parts_task(struct qk_parts *p, const char *task)
{
	struct qk_part part = { .kind = QK_PART_TASK, .name = copy(p, task) };

	qk_vec_push(&p->list, part);
}

void qk_parts_outputs(struct qk_parts *p, const char *task, const char *const *globs, size_t n,
	const char *filter)
{
	struct qk_part part = { .kind = QK_PART_OUTPUTS,
		.name = copy(p, task),
		.value = copy(p, filter),
		.n_globs = n };
	const char **own = qk_arena_alloc(&p->arena, (n + 1) * sizeof(*own));

	for (size_t i = 0; i < n; i++)
		own[i] = copy(p, globs[i]);
	part.globs = own;
	qk_vec_push(&p->list, part);
}

static int file_state(struct qk_filehash *f, const char *path, int flags, struct qk_filestate *s,
	struct qk_err *err)
{
	int r = qk_filehash_get(f, path, flags, s, err);

	if (r)
		return r;
	if (s->outside)
		return qk_fail(err, -EINVAL, "input '%s' leads out of the workspace", path);
	if (s->kind == QK_FILE_SPECIAL)
		return qk_fail(err, -EINVAL, "input '%s' is a device, socket or fifo", path);
	return 0;
}

static int fold_files(const struct qk_filegroup *g, struct qk_filehash *f, int flags,
	struct qk_hasher *h, struct qk_err *err)
{
	for (size_t i = 0; i < g->n; i++) {
		struct qk_filestate s;
		int r = file_state(f, g->paths[i], flags, &s, err);

		if (r)
			return r;
		qk_hasher_field(h, g->paths[i], strlen(g->paths[i]));
		qk_hasher_add(h, s.digest.b, QK_DIGEST_SIZE);
	}
	return 0;
}

int qk_filegroup_hash(struct qk_filegroup *g, struct qk_filehash *f, int flags, struct qk_err *err)
{
	struct qk_hasher h, seen;
	int r;

	if (g->known)
		return 0;
	qk_hasher_init(&h);
	qk_hasher_init(&seen);
	qk_filehash_watch(f, &seen);
	r = fold_files(g, f, flags, &h, err);
	qk_filehash_watch(f, NULL);
	if (r)
		return r;
	qk_hasher_done(&h, &g->digest);
	qk_hasher_done(&seen, &g->seen);
	g->known = true;
	return 0;
}

int qk_filegroup_load(struct qk_filegroup *g, struct qk_arena *a, const char *p, size_t n)
{
	const char *s = p + g->at, *end = s + g->len;
	const char **paths;
	size_t count = 0;

	if (!g->len || g->n)
		return 0;
	if (g->at > n || g->len > n - g->at || end[-1])
		return -EBADMSG;
	for (const char *c = s; c < end; c += strlen(c) + 1)
		count++;
	paths = qk_arena_alloc(a, (count + 1) * sizeof(*paths));
	for (; s < end; s += strlen(s) + 1)
		paths[g->n++] = s;
	g->paths = paths;
	return 0;
}

int qk_filegroup_look(const struct qk_filegroup *g, struct qk_filehash *f, struct qk_digest *ret,
	struct qk_err *err)
{
	struct qk_hasher h, seen;
	int r;

	qk_hasher_init(&h);
	qk_hasher_init(&seen);
	qk_filehash_watch(f, &seen);
	r = fold_files(g, f, QK_FILEHASH_STAT, &h, err);
	qk_filehash_watch(f, NULL);
	qk_hasher_done(&seen, ret);
	return r;
}

int qk_filegroup_text(
	const struct qk_filegroup *g, struct qk_filehash *f, struct qk_buf *out, struct qk_err *err)
{
	static const char *const notes[] = { "absent", NULL, "link", "directory", "special" };

	for (size_t i = 0; i < g->n; i++) {
		char hex[QK_DIGEST_HEX];
		struct qk_filestate s;
		int r = file_state(f, g->paths[i], 0, &s, err);
		const char *note;

		if (r)
			return r;
		note = s.executable ? "x" : notes[s.kind];
		qk_digest_hex(&s.content, hex);
		qk_buf_addstr(out, "file ");
		qk_key_quote(out, g->paths[i]);
		qk_buf_addf(out, " %s%s%s\n", hex, note ? " " : "", note ? note : "");
	}
	return 0;
}

int qk_outputs_count(const char *const *globs, size_t n, const char *filter, struct qk_filehash *f,
	int flags, struct qk_digest *ret, struct qk_err *err)
{
	qk_autotree struct qk_tree all = { 0 }, chosen = { 0 };
	struct qk_outputs o = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = qk_outputs_add(&o, globs[i], err);
	if (!r)
		r = qk_outputs_list(&o, qk_filehash_rootfd(f), 0, &all, err);
	for (size_t i = 0; i < all.n && !r && filter; i++)
		if (all.v[i].kind != QK_FILE_DIR && qk_glob_match(filter, all.v[i].path))
			qk_vec_push(&chosen, all.v[i]);
	if (!r)
		r = qk_outputs_digests(filter ? &chosen : &all, f, flags, err);
	if (!r)
		qk_tree_digest(filter ? &chosen : &all, ret);
	/* The entries are those of `all`. */
	chosen.n = 0;
	qk_outputs_release(&o);
	return r;
}

int qk_parts_hash(struct qk_parts *p, struct qk_filehash *f, int flags, struct qk_err *err)
{
	for (size_t i = 0; i < p->list.n; i++) {
		struct qk_part *part = &p->list.v[i];
		int r = 0;

		if (part->kind == QK_PART_FILES)
			r = qk_filegroup_hash(part->files, f, flags, err);
		if (part->kind == QK_PART_OUTPUTS && !part->known) {
			r = qk_outputs_count(part->globs, part->n_globs, part->value, f, flags,
				&part->digest, err);
			part->known = !r;
		}
		if (r)
			return r;
	}
	return 0;
}

static bool is_known(const struct qk_part *part)
{
	return part->kind == QK_PART_FILES ? part->files->known : part->known;
}

struct qk_part *qk_parts_unknown(struct qk_parts *p)
{
	for (size_t i = 0; i < p->list.n; i++)
		if (!is_known(&p->list.v[i]))
			return &p->list.v[i];
	return NULL;
}

static void fold_part(struct qk_key *k, const struct qk_part *part)
{
	static const char *const tags[] = { NULL, NULL, "files", "runtime", "outputs", "task" };

	if (part->kind == QK_PART_TEXT)
		qk_key_add(k, part->tag, part->name, part->value);
	else if (part->kind == QK_PART_FILES)
		qk_key_add_digest(k, "files", part->files->name, &part->files->digest, NULL);
	else
		qk_key_add_digest(k, tags[part->kind], part->name, &part->digest, part->value);
}

void qk_parts_fold(
	const struct qk_parts *p, const char *kind, struct qk_buf *text, struct qk_digest *ret)
{
	struct qk_key k;

	qk_key_init(&k, kind, text);
	for (size_t i = 0; i < p->list.n; i++)
		fold_part(&k, &p->list.v[i]);
	qk_key_done(&k, ret);
}

void qk_parts_fold_weak(const struct qk_parts *p, unsigned int system, struct qk_buf *text,
	struct qk_digest *ret)
{
	static const char *const systems[] = { "content", "stat", "off" };
	struct qk_key k;

	qk_key_init(&k, "recorded", text);
	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind != QK_PART_FILES && p->list.v[i].kind != QK_PART_OUTPUTS)
			fold_part(&k, &p->list.v[i]);
	qk_key_add(&k, "system", NULL, systems[system < 3 ? system : 0]);
	qk_key_done(&k, ret);
}

static void put_string(struct qk_buf *out, unsigned int tag, const char *s)
{
	if (s)
		qk_record_putstr(out, tag, s);
}

void qk_parts_write(const struct qk_parts *p, struct qk_buf *out)
{
	for (size_t i = 0; i < p->list.n; i++) {
		const struct qk_part *part = &p->list.v[i];
		const struct qk_filegroup *g = part->files;

		qk_record_putnum(out, TAG_PART, part->kind);
		put_string(out, TAG_TAG, part->tag);
		put_string(out, TAG_NAME, g ? g->name : part->name);
		put_string(out, TAG_VALUE, part->value);
		if (g && g->len) {
			qk_record_putnum(out, TAG_AT, g->at);
			qk_record_putnum(out, TAG_LEN, g->len);
		}
		for (size_t k = 0; g && !g->len && k < g->n; k++)
			qk_record_putstr(out, TAG_PATH, g->paths[k]);
		for (size_t k = 0; k < part->n_globs; k++)
			qk_record_putstr(out, TAG_GLOB, part->globs[k]);
		if (part->kind != QK_PART_TEXT && is_known(part))
			qk_record_put(
				out, TAG_DIGEST, g ? g->digest.b : part->digest.b, QK_DIGEST_SIZE);
		if (g && g->known)
			qk_record_put(out, TAG_SEEN, g->seen.b, QK_DIGEST_SIZE);
	}
}

/* Appends to a list that grows by doubling in the arena. */
static void append(struct qk_parts *p, const char *const **list, size_t *n, const char *s)
{
	if (!(*n & (*n - 1))) {
		const char **more = qk_arena_alloc(&p->arena, (*n ? 2 * *n : 1) * sizeof(*more));

		if (*n)
			memcpy(more, *list, *n * sizeof(*more));
		*list = more;
	}
	((const char **)(void *)*list)[(*n)++] = s;
}

static int read_part(struct qk_parts *p, const struct qk_field *f)
{
	struct qk_part part = { .kind = (enum qk_part_kind)qk_field_num(f) };

	if (part.kind < QK_PART_TEXT || part.kind > QK_PART_TASK)
		return -EBADMSG;
	part.known = part.kind == QK_PART_TEXT;
	if (part.kind == QK_PART_FILES)
		part.files = qk_arena_alloc(&p->arena, sizeof(*part.files));
	qk_vec_push(&p->list, part);
	return 0;
}

int qk_parts_read(struct qk_parts *p, const struct qk_field *f)
{
	struct qk_part *part = p->list.n ? &p->list.v[p->list.n - 1] : NULL;
	const char *s;

	if (f->tag < TAG_PART || f->tag > TAG_LEN)
		return 0;
	if (f->tag == TAG_PART)
		return read_part(p, f);
	if (!part)
		return -EBADMSG;
	if (f->tag == TAG_DIGEST) {
		if (f->n != QK_DIGEST_SIZE || part->kind == QK_PART_TEXT)
			return -EBADMSG;
		memcpy(part->files ? part->files->digest.b : part->digest.b, f->p, f->n);
		*(part->files ? &part->files->known : &part->known) = true;
		return 0;
	}
	if (f->tag == TAG_AT || f->tag == TAG_LEN) {
		if (!part->files)
			return -EBADMSG;
		*(f->tag == TAG_AT ? &part->files->at : &part->files->len) = qk_field_num(f);
		return 0;
	}
	if (f->tag == TAG_SEEN) {
		if (f->n != QK_DIGEST_SIZE || !part->files)
			return -EBADMSG;
		memcpy(part->files->seen.b, f->p, f->n);
		return 0;
	}
	if (memchr(f->p, '\0', f->n))
		return -EBADMSG;
	s = qk_arena_strndup(&p->arena, f->p, f->n);
	switch (f->tag) {
	case TAG_TAG: part->tag = s; break;
	case TAG_NAME: *(part->files ? &part->files->name : &part->name) = s; break;
	case TAG_VALUE: part->value = s; break;
	case TAG_PATH:
		if (!part->files)
			return -EBADMSG;
		append(p, &part->files->paths, &part->files->n, s);
		break;
	case TAG_GLOB: append(p, &part->globs, &part->n_globs, s); break;
	}
	return 0;
}

int qk_runtime_run(const char *command, const char *cwd, struct qk_digest *ret, struct qk_err *err)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], status = 0, r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return qk_fail(err, errno, "runtime input '%s'", command);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addchdir_np(&actions, cwd);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	r = posix_spawn(&pid, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (r) {
		close(fds[0]);
		return qk_fail(err, r, "runtime input '%s'", command);
	}
	r = qk_digest_fd(fds[0], ret);
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r)
		return qk_fail(err, -r, "runtime input '%s'", command);
	if (WIFSIGNALED(status))
		return qk_fail(err, -EINVAL, "runtime input '%s' died of signal %d", command,
			WTERMSIG(status));
	if (WEXITSTATUS(status))
		return qk_fail(err, -EINVAL, "runtime input '%s' exited with %d", command,
			WEXITSTATUS(status));
	return 0;
}
