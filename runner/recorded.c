#include "runner/recorded.h"

#include "base/glob.h"
#include "base/path.h"
#include "keying/outputs.h"
#include "report/declare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

enum {
	SEEN = QK_T_READ | QK_T_EXEC | QK_T_PRESENT | QK_T_FOLLOWED,
	CHANGED = QK_T_WRITTEN | QK_T_META,
};

/* A path once met. */
struct met {
	UT_hash_handle hh;
	char path[];
};

struct reading {
	struct qk_recorded *ret;
	const struct qk_request *req;
	const struct qk_trace *trace;
	const struct qk_policy *policy;
	const struct qk_snapshot *before;
	const struct qk_chain *chain;
	struct qk_pathview *view;
	const struct qk_outputs *outputs; /* of a task; NULL: a line */
	const char *tmpdir; /* clean; NULL if the workspace lies in it */
	struct met *leading; /* directories above something that counts */
	struct met *there;   /* directories known to be there */
	struct met *taken;   /* in the set already */
	struct qk_arena arena;
};

static const char *relative(const struct reading *rd, const char *path)
{
	const char *below = qk_path_below(path, rd->req->root);

	return !below ? path : *below ? below : ".";
}

/* Adds path to the hash; false if it was in it. */
static bool meet(struct reading *rd, struct met **hash, const char *path, size_t n)
{
	struct met *m;

	HASH_FIND(hh, *hash, path, n, m);
	if (m)
		return false;
	m = qk_arena_alloc(&rd->arena, sizeof(*m) + n + 1);
	memcpy(m->path, path, n);
	HASH_ADD(hh, *hash, path[0], n, m);
	return true;
}

static bool is_met(struct met *hash, const char *path)
{
	struct met *m;

	HASH_FIND_STR(hash, path, m);
	return m != NULL;
}

/* The first reason stays. It reads: before path after. */
static void unfit(struct reading *rd, const char *before, const char *path, const char *after)
{
	if (!rd->ret->unfit)
		rd->ret->unfit = qk_asprintf("%s%s%s", before, relative(rd, path), after);
}

static void moved(struct reading *rd, const char *before, const char *path, const char *after)
{
	rd->ret->moved |= !rd->ret->unfit;
	unfit(rd, before, path, after);
}

static bool in_list(const struct qk_request *r, enum qk_list list, const char *path)
{
	for (size_t i = 0; i < r->lists[list].n; i++) {
		qk_autofree char *name = NULL, *full = NULL;
		enum qk_scope scope = qk_declare_scope(r->lists[list].v[i], &name);

		full = qk_path_join(r->cwd, name);
		if (scope == QK_TREE ? qk_path_under(path, full)
				     : scope == QK_GLOB ? qk_glob_match(full, path) : !strcmp(full, path))
			return true;
	}
	return false;
}

static bool is_system(const char *path)
{
	return qk_path_under(path, "/dev") || qk_path_under(path, "/proc") || qk_path_under(path, "/sys");
}

static bool is_temporary(const struct reading *rd, const char *path)
{
	return rd->tmpdir && qk_path_under(path, rd->tmpdir);
}

/* What neither counts as read nor matters as written. */
static bool left_out(const struct reading *rd, const char *path)
{
	const struct qk_request *r = rd->req;

	return qk_path_under(path, r->state) || in_list(r, QK_LIST_SCRATCH, path) ||
	       in_list(r, QK_LIST_WARM, path);
}

static bool counts_as_read(const struct reading *rd, const char *path)
{
	const struct qk_request *r = rd->req;
	bool inside = qk_path_under(path, r->root);

	if (is_system(path) || is_temporary(rd, path) || left_out(rd, path))
		return false;
	if (!inside && r->system_reads == QK_SYSTEM_OFF)
		return false;
	if (rd->outputs && inside && qk_outputs_match(rd->outputs, relative(rd, path)))
		return false;
	if (rd->outputs || !r->lists[QK_LIST_IGNORE_READS].n)
		return !in_list(r, QK_LIST_IGNORE_READS, path);
	/* a prerequisite that is ignored as well is a prerequisite */
	return !in_list(r, QK_LIST_IGNORE_READS, path) ||
	       (inside && qk_policy_judge(rd->policy, path, QK_READ).reason < QK_BY_IGNORE);
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Remembers every directory above path as leading to something. */
static void lead(struct reading *rd, const char *path)
{
	for (size_t n = qk_path_dirlen(path); n > 1; ) {
		if (!meet(rd, &rd->leading, path, n))
			return;
		while (n > 1 && path[n - 1] != '/')
			n--;
		n--;
	}
}

/* Length of the shortest path at or above the missing path that is missing too. */
static size_t first_missing(struct reading *rd, const char *path)
{
	qk_autofree char *dir = qk_strdup(path);
	size_t missing = strlen(path);

	for (;;) {
		size_t n = qk_path_dirlen(dir);
		struct stat st;

		if (n <= 1)
			return missing;
		dir[n] = '\0';
		if (is_met(rd->there, dir))
			return missing;
		if (!lstat(dir, &st)) {
			meet(rd, &rd->there, dir, n);
			return missing;
		}
		missing = n;
	}
}

static void take(struct reading *rd, const char *path, enum qk_pathclass class, unsigned int how)
{
	qk_pathset_add(&rd->ret->set, relative(rd, path), class, how);
}

/* One path looked at: 0 if it counts, and for directories the first time round, which only notes. */
static void look_at(struct reading *rd, const struct qk_trace_entry *e, bool notes)
{
	struct stat st;
	bool there = !lstat(e->path, &st);

	if (there && !S_ISDIR(st.st_mode) && later(st.st_ctim, rd->before->taken))
		moved(rd, "", e->path, " changed while it ran");
	if (!there && e->flags & SEEN)
		moved(rd, "", e->path, " was removed while it ran");
	if (there && S_ISDIR(st.st_mode) && e->flags & QK_T_ABSENT && !(e->flags & SEEN) &&
		later(st.st_ctim, rd->before->taken))
		moved(rd, "", e->path, " appeared while it ran");
	if (notes) {
		if (there && !S_ISDIR(st.st_mode))
			lead(rd, e->path);
		return;
	}
	if (!there) {
		size_t n = first_missing(rd, e->path);
		qk_autofree char *missing = qk_strndup(e->path, n);

		if (meet(rd, &rd->taken, missing, n))
			take(rd, missing, QK_PATH_LOOK, 0);
		return;
	}
	if (S_ISDIR(st.st_mode) && is_met(rd->leading, e->path))
		return;
	if (meet(rd, &rd->taken, e->path, strlen(e->path)))
		take(rd, e->path, QK_PATH_LOOK, 0);
}

/* True if the line made, changed or removed the name in the directory. */
static bool changes_in(const struct reading *rd, const char *dir, const char *name)
{
	qk_autofree char *path = qk_path_join(dir, name);
	const struct qk_trace_entry *e = qk_trace_find(rd->trace, path);

	return e && e->flags & QK_T_WRITTEN;
}

/* A name that came into the directory while the line ran, by somebody else. */
static void check_names(struct reading *rd, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct stat st;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode) ||
			!later(st.st_ctim, rd->before->taken) || changes_in(rd, dir, e->d_name))
			continue;
		moved(rd, "the directory ", dir, " changed while it ran");
	}
	if (d)
		closedir(d);
}

/* The name right below dir that leads to path, as a path; NULL if none does. */
static char *name_towards(const char *dir, const char *path)
{
	const char *below = qk_path_below(path, dir);

	return below && *below ? qk_strndup(path, (size_t)(below - path) + strcspn(below, "/")) : NULL;
}

/* A task's outputs may be there or not as it starts, and so may what leads to them. */
static size_t except_outputs(struct reading *rd, const char *dir)
{
	size_t n = 0;

	for (size_t i = 0; rd->outputs && i < rd->outputs->include.n; i++) {
		qk_autofree char *full = qk_path_join(rd->req->root, rd->outputs->include.v[i]);
		qk_autofree char *name = name_towards(dir, full);

		if (!name || qk_glob_is_pattern(name))
			continue;
		take(rd, name, QK_PATH_EXCEPT, 0);
		n++;
	}
	return n;
}

static void listed(struct reading *rd, const struct qk_trace_entry *dir)
{
	size_t n = strlen(dir->path), own = 0;
	struct stat st;

	take(rd, dir->path, QK_PATH_LIST, 0);
	for (size_t i = 0; i < rd->trace->entries.n; i++) {
		const struct qk_trace_entry *e = &rd->trace->entries.v[i];

		if (!(e->flags & QK_T_WRITTEN) || qk_path_dirlen(e->path) != n || strncmp(e->path, dir->path, n))
			continue;
		take(rd, e->path, QK_PATH_EXCEPT, 0);
		own++;
	}
	own += except_outputs(rd, dir->path);
	/* qk's own directory is none of the workspace's doing */
	if (!strcmp(dir->path, rd->req->root)) {
		take(rd, rd->req->state, QK_PATH_EXCEPT, 0);
		own++;
	}
	if (lstat(dir->path, &st) || !later(st.st_ctim, rd->before->taken))
		return;
	if (own)
		check_names(rd, dir->path);
	else
		moved(rd, "the directory ", dir->path, " changed while it ran");
}

/* What a path that the line changed was before, as far as the line took that over. */
static void taken_over(struct reading *rd, const struct qk_trace_entry *e)
{
	unsigned int how = (e->flags & (QK_T_READ | QK_T_EXEC | QK_T_WANTED | QK_T_FOLLOWED) ? QK_OWN_READ : 0) |
			   (e->flags & QK_T_KEPT ? QK_OWN_KEPT : 0);
	const char *path = relative(rd, e->path);
	struct qk_before before = { 0 };
	struct qk_digest state;
	size_t i = 0;

	if (!how && !(e->flags & (QK_T_PRESENT | QK_T_ABSENT | QK_T_LISTED)))
		return;
	if (e->flags & QK_T_LISTED) {
		unfit(rd, "it lists and changes the directory ", e->path, "");
		return;
	}
	if (!(e->flags & QK_T_CREATED)) {
		while (i < rd->before->v.n && strcmp(rd->before->v.v[i].path, path))
			i++;
		if (i == rd->before->v.n) {
			unfit(rd, "it takes over what was in ", e->path,
				", which is no target and not named in QK_OUTPUTS");
			return;
		}
		before = rd->before->v.v[i].before;
	}
	how = qk_pathset_how(&before, how);
	qk_pathset_own(&before, how, &state);
	qk_pathview_set(rd->view, path, QK_PATH_OWN, &state);
	take(rd, e->path, QK_PATH_OWN, how);
}

static bool is_output(const struct reading *rd, const struct qk_trace_entry *e)
{
	struct qk_verdict v = qk_policy_judge(rd->policy, e->path, QK_WRITE);

	return v.answer == QK_ALLOWED &&
	       (v.reason == QK_BY_TARGET || v.reason == QK_BY_OUTPUT || v.reason == QK_BY_DEPFILE);
}

static void changed_outside(struct reading *rd, const struct qk_trace_entry *e)
{
	bool gone = e->flags & QK_T_REMOVED;

	if (e->flags & QK_T_CREATED && gone)
		return;
	if (qk_path_under(e->path, "/proc") || qk_path_under(e->path, "/sys"))
		return;
	if (qk_path_under(e->path, "/dev") && !(e->flags & QK_T_CREATED) && !gone)
		return; /* a device written to */
	if (is_temporary(rd, e->path) || is_system(e->path)) {
		rd->ret->tainted = true;
		unfit(rd, gone ? "it removed " : "it left ", e->path, gone ? "" : " behind");
		return;
	}
	unfit(rd, "it wrote ", e->path, ", outside the workspace");
}

static void changed(struct reading *rd, const struct qk_trace_entry *e)
{
	const char *path = relative(rd, e->path);
	bool gone = e->flags & QK_T_REMOVED;

	if (left_out(rd, e->path))
		return;
	if (!qk_path_under(e->path, rd->req->root) || is_temporary(rd, e->path)) {
		changed_outside(rd, e);
		return;
	}
	taken_over(rd, e);
	if (gone && e->flags & QK_T_CREATED)
		return;
	/* a directory made or removed can be again, whatever it is for: nothing is in it */
	if (e->flags & QK_T_DIR || is_output(rd, e) || (gone && qk_strv_has(&rd->chain->strays, path))) {
		qk_strv_push(gone ? &rd->ret->gone : &rd->ret->left, path);
		return;
	}
	if (gone || !(e->flags & QK_T_WRITTEN)) {
		unfit(rd, gone ? "it removed " : "it changed the mode of ", e->path,
			", which is no output of it");
		return;
	}
	qk_strv_push(&rd->ret->left, path);
	qk_strv_push(&rd->ret->strays, path);
}

/* Where the program was looked for before the command was started: no recorder saw that. */
static void look_for_program(struct reading *rd, const char *name, char *const *env)
{
	const char *path = NULL;

	for (; *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			path = *env + 5;
	for (; path && !strchr(name, '/'); path++) {
		size_t n = strcspn(path, ":");
		qk_autofree char *dir = n ? qk_strndup(path, n) : qk_strdup(".");
		qk_autofree char *full = qk_path_join(rd->req->cwd, dir), *file = qk_path_join(full, name);
		struct qk_trace_entry e = { .path = file };

		if (counts_as_read(rd, file))
			look_at(rd, &e, false);
		path += n;
		if (!access(file, X_OK) || !*path)
			return;
	}
}

static void find_tmpdir(struct reading *rd, char *const *env)
{
	qk_autofree char *clean = NULL;
	const char *dir = "/tmp";

	for (; *env; env++)
		if (!strncmp(*env, "TMPDIR=", 7) && (*env)[7])
			dir = *env + 7;
	clean = qk_path_join(rd->req->cwd, dir);
	if (!qk_path_under(rd->req->root, clean))
		rd->tmpdir = qk_arena_strdup(&rd->arena, clean);
}

/* What leads to a task's outputs may be there or not as it starts. */
static bool leads_to_output(const struct reading *rd, const char *path)
{
	for (size_t i = 0; rd->outputs && i < rd->outputs->include.n; i++) {
		qk_autofree char *full = qk_path_join(rd->req->root, rd->outputs->include.v[i]);

		if (qk_path_under(full, path))
			return true;
	}
	return false;
}

static void look(struct reading *rd, const struct qk_trace_entry *e, bool notes)
{
	if (!(e->flags & QK_T_LISTED) && leads_to_output(rd, e->path))
		return;
	if (notes)
		look_at(rd, e, true);
	else if (e->flags & QK_T_LISTED)
		listed(rd, e);
	else if (e->flags & (SEEN | QK_T_ABSENT))
		look_at(rd, e, false);
}

static void release(struct reading *rd)
{
	HASH_CLEAR(hh, rd->leading);
	HASH_CLEAR(hh, rd->there);
	HASH_CLEAR(hh, rd->taken);
	qk_arena_release(&rd->arena);
}

void qk_recorded_read(struct qk_recorded *ret, const struct qk_request *r, const struct qk_trace *trace,
	const struct qk_policy *policy, const struct qk_snapshot *before, const struct qk_chain *chain,
	struct qk_pathview *view, char *const *argv, char *const *env)
{
	struct reading rd = { .ret = ret,
		.req = r,
		.trace = trace,
		.policy = policy,
		.before = before,
		.chain = chain,
		.view = view };

	*ret = (struct qk_recorded){ 0 };
	find_tmpdir(&rd, env);
	for (size_t i = 0; i < trace->entries.n; i++) {
		const struct qk_trace_entry *e = &trace->entries.v[i];

		if (!(e->flags & CHANGED) && counts_as_read(&rd, e->path))
			look(&rd, e, true);
	}
	look_for_program(&rd, argv[0], env);
	for (size_t i = 0; i < trace->entries.n; i++) {
		const struct qk_trace_entry *e = &trace->entries.v[i];

		if (e->flags & CHANGED)
			changed(&rd, e);
		else if (counts_as_read(&rd, e->path))
			look(&rd, e, false);
	}
	for (size_t i = 0; i < before->v.n; i++)
		qk_strv_push(&ret->outputs, before->v.v[i].path);
	qk_strv_sort(&ret->gone);
	release(&rd);
}

/* Of a task: what it changed. */
static void changed_by_task(struct reading *rd, const struct qk_trace_entry *e)
{
	const uint32_t read = QK_T_READ | QK_T_EXEC | QK_T_FOLLOWED;
	const char *path = relative(rd, e->path);

	if (!qk_path_under(e->path, rd->req->root) || left_out(rd, e->path) || !(e->flags & read) ||
		e->flags & (QK_T_CREATED | QK_T_DIR) || qk_outputs_match(rd->outputs, path) ||
		strstr(e->path, "/node_modules/") || strstr(e->path, "/.git/"))
		return;
	if (!in_list(rd->req, QK_LIST_IGNORE_READS, e->path))
		unfit(rd, "it changes ", e->path, ", which it reads");
}

void qk_recorded_task(struct qk_recorded *ret, const struct qk_request *r, const struct qk_trace *trace,
	const struct qk_outputs *outputs, struct timespec began, char *const *env)
{
	struct qk_snapshot before = { .taken = began };
	struct reading rd = { .ret = ret, .req = r, .trace = trace, .before = &before, .outputs = outputs };

	*ret = (struct qk_recorded){ 0 };
	find_tmpdir(&rd, env);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < trace->entries.n; i++) {
			const struct qk_trace_entry *e = &trace->entries.v[i];

			if (e->flags & CHANGED && pass)
				changed_by_task(&rd, e);
			else if (!(e->flags & CHANGED) && counts_as_read(&rd, e->path))
				look(&rd, e, !pass);
		}
	release(&rd);
}

void qk_recorded_release(struct qk_recorded *rec)
{
	qk_pathset_release(&rec->set);
	qk_strv_release(&rec->left);
	qk_strv_release(&rec->gone);
	qk_strv_release(&rec->strays);
	qk_strv_release(&rec->outputs);
	free(rec->unfit);
}

/* A name that an earlier line gave the same file. */
static void find_former_twin(const struct qk_recorded *rec, int rootfd, const struct qk_tree *t, struct qk_treeent *e)
{
	struct stat st;

	for (size_t i = 0; i < rec->outputs.n && !e->twin; i++)
		if (!qk_tree_find(t, rec->outputs.v[i]) &&
			!fstatat(rootfd, rec->outputs.v[i], &st, AT_SYMLINK_NOFOLLOW) &&
			(uint64_t)st.st_dev == e->dev && (uint64_t)st.st_ino == e->ino)
			e->twin = qk_strdup(rec->outputs.v[i]);
}

int qk_recorded_tree(const struct qk_recorded *rec, struct qk_filehash *files, struct qk_tree *ret,
	struct qk_err *err)
{
	int rootfd = qk_filehash_rootfd(files);

	for (size_t i = 0; i < rec->left.n; i++) {
		struct qk_treeent *e;
		struct stat st;
		char text[4096];
		ssize_t n;

		if (fstatat(rootfd, rec->left.v[i], &st, AT_SYMLINK_NOFOLLOW))
			return qk_fail(err, errno, "%s", rec->left.v[i]);
		e = qk_tree_add(ret, rec->left.v[i]);
		e->mode = S_ISLNK(st.st_mode) ? 0777 : st.st_mode & 07777;
		if (S_ISREG(st.st_mode)) {
			e->kind = QK_FILE_REGULAR;
			e->size = (uint64_t)st.st_size;
			if (st.st_nlink > 1) {
				e->dev = (uint64_t)st.st_dev;
				e->ino = (uint64_t)st.st_ino;
			}
		} else if (S_ISDIR(st.st_mode)) {
			e->kind = QK_FILE_DIR;
		} else if (S_ISLNK(st.st_mode)) {
			e->kind = QK_FILE_LINK;
			n = readlinkat(rootfd, e->path, text, sizeof(text));
			if (n < 0 || n == (ssize_t)sizeof(text))
				return qk_fail(err, n < 0 ? errno : ENAMETOOLONG, "%s", e->path);
			e->link = qk_strndup(text, (size_t)n);
		} else {
			return qk_fail(err, -EINVAL, "%s is a device, socket or fifo", e->path);
		}
	}
	qk_tree_sort(ret);
	qk_tree_uniq(ret);
	qk_tree_pair(ret);
	for (size_t i = 0; i < ret->n; i++)
		if (ret->v[i].ino && !ret->v[i].twin)
			find_former_twin(rec, rootfd, ret, &ret->v[i]);
	return qk_outputs_digests(ret, files, 0, err);
}
