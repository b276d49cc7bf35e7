#include "runner/recipe-cache.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "base/path.h"
#include "base/record.h"
#include "keying/key.h"
#include "keying/pathsets.h"
#include "keying/restore.h"
#include "keying/why.h"
#include "runner/recipe-key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SCAN_MAX = 1 << 30, TAG_PATH = 1, TAG_STATE };

static void not_kept(struct qk_recipe_cache *c, const char *why)
{
	if (!c->result->uncached)
		c->result->uncached = qk_strdup(why);
}

static void release(struct qk_recipe_cache *c)
{
	qk_pathview_release(&c->view);
	qk_chain_release(&c->chain);
	qk_snapshot_release(&c->before);
	qk_buf_release(&c->text);
	qk_store_free(c->store);
	qk_filehash_free(c->files);
	c->store = NULL;
	c->files = NULL;
	c->on = false;
}

/* The text that a result may name the workspace's place by. */
static const char *place(const struct qk_request *r)
{
	static char *text;
	const char *pwd = getenv("PWD");

	if (!text)
		text = qk_asprintf("%s\n%s", r->root, pwd ? pwd : "");
	return text;
}

static const char *terminal(void)
{
	static char *text;
	const char *term = getenv("TERM");
	bool out = qk_tee_is_terminal(1), err = qk_tee_is_terminal(2);

	if (!text)
		text = qk_asprintf("%d%d %s", out, err, (out || err) && term ? term : "");
	return text;
}

/* Opens what the line needs. False: it has no key; the result says why. */
static bool open_all(struct qk_recipe_cache *c)
{
	const struct qk_request *r = c->req;
	qk_autofree char *digests = qk_asprintf("%s/digests", r->state);
	struct qk_err err = QK_ERR_INIT;

	if (qk_filehash_new(&c->files, r->root, digests, &err) ||
		qk_store_new(&c->store, r->cache_dir, r->cache_limit, &err)) {
		not_kept(c, err.msg);
		return false;
	}
	c->view = (struct qk_pathview){ .files = c->files,
		.system = (enum qk_system_reads)r->system_reads,
		.place = place(r),
		.terminal = terminal() };
	qk_chain_read(&c->chain, r);
	if (c->chain.tainted)
		return false;
	if (qk_recipe_key(r, c->argv->v, c->env->v, &c->chain,
		    r->caching & (QK_CACHING_STORE | QK_CACHING_EXPLAIN) ? &c->text : NULL, &c->weak, &err)) {
		not_kept(c, err.msg);
		c->chain.tainted = true;
		return false;
	}
	return true;
}

/* The fact's name for the last key of this line, whatever it was. */
static char *last_name(const struct qk_recipe_cache *c)
{
	const struct qk_request *r = c->req;
	qk_autofree char *target = qk_path_join(r->cwd, r->target);
	const char *below = qk_path_below(target, r->root);

	return qk_why_name(below ? below : target, c->chain.lines);
}

static void remember_last(struct qk_recipe_cache *c, const struct qk_digest *strong)
{
	qk_autofree char *name = last_name(c);
	struct qk_digest old;

	if (!qk_filehash_recall(c->files, name, &old) || !qk_digest_eq(&old, strong))
		qk_filehash_remember(c->files, name, strong);
}

/* The state that a result's entry will have once it is in place. */
static void state_of(const struct qk_treeent *e, struct qk_digest *ret)
{
	struct qk_filestate s = { .kind = e->kind,
		.executable = e->kind == QK_FILE_REGULAR && e->mode & 0100,
		.content = e->content };

	if (e->kind == QK_FILE_LINK)
		qk_digest_bytes(e->link, strlen(e->link), &s.content);
	qk_filestate_fold(&s);
	*ret = s.digest;
}

/* What a result leaves is known again by its state. */
static void remember_made(struct qk_recipe_cache *c, const struct qk_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		struct qk_digest state;

		state_of(&tree->v[i], &state);
		qk_pathview_made(&c->view, tree->v[i].path, &state);
	}
}

/* What the lines after a restored one are to know of it. */
static void hand_over(struct qk_recipe_cache *c, const struct qk_entry *e)
{
	if (e->loose.n)
		(void)qk_chain_wait(&c->chain, c->req, &c->weak, NULL, &e->loose, NULL);
	qk_chain_write(&c->chain, c->req, &c->weak);
}

/* QK_WHY: what this line would leave, as the lines after it are to find it. TAG_PATH, then TAG_STATE. */
static void leave_pretended(const struct qk_recipe_cache *c, const struct qk_entry *e)
{
	qk_autofree char *path = qk_path_join(c->req->run, "pretended");
	qk_autofd int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	size_t begin = qk_record_begin(&b);
	struct qk_digest state;

	for (size_t i = 0; i < e->tree.n; i++) {
		state_of(&e->tree.v[i], &state);
		qk_record_putstr(&b, TAG_PATH, e->tree.v[i].path);
		qk_record_put(&b, TAG_STATE, state.b, QK_DIGEST_SIZE);
	}
	qk_pathset_absent(&state);
	for (size_t i = 0; i < e->gone.n; i++) {
		qk_record_putstr(&b, TAG_PATH, e->gone.v[i]);
		qk_record_put(&b, TAG_STATE, state.b, QK_DIGEST_SIZE);
	}
	qk_record_end(&b, begin);
	if (fd >= 0)
		(void)qk_write_all(fd, b.s, b.len);
}

static void take_pretended(struct qk_recipe_cache *c)
{
	qk_autofree char *file = qk_path_join(c->req->run, "pretended"), *path = NULL;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_digest state;
	struct qk_record rec;
	struct qk_field f;
	size_t pos = 0;

	if (!c->chain.lines || qk_read_file(AT_FDCWD, file, SCAN_MAX, &b, NULL))
		return;
	while (qk_record_next(b.s, b.len, &pos, &rec) > 0)
		while (qk_field_next(&rec, &f) > 0) {
			if (f.tag == TAG_PATH) {
				free(path);
				path = qk_strndup(f.p, f.n);
			} else if (f.tag == TAG_STATE && path && f.n == QK_DIGEST_SIZE) {
				memcpy(state.b, f.p, f.n);
				qk_pathview_pretend(&c->view, path, &state);
			}
		}
}

/* Puts the stored result in place and ends, or comes back and the line runs. */
static void restore(struct qk_recipe_cache *c, const struct qk_digest *strong, const struct qk_entry *e)
{
	const struct qk_request *r = c->req;
	struct qk_err err = QK_ERR_INIT;
	enum qk_restored how;

	/* walls hide what a line before left in the open: such lines run */
	if (e->loose.n && r->mode == QK_MODE_ENFORCE)
		return;
	if (r->caching & QK_CACHING_ASK) {
		hand_over(c, e);
		leave_pretended(c, e);
		_exit(0);
	}
	if (qk_restore_changes(c->store, strong, e, c->files, r->run, &how, &err)) {
		not_kept(c, err.msg);
		return;
	}
	if (how == QK_RESTORED_NOTHING)
		return;
	remember_made(c, &e->tree);
	remember_last(c, strong);
	hand_over(c, e);
	c->result->fate = QK_FATE_RESTORED;
	if (qk_result_append(c->result, r->run, &err))
		fprintf(stderr, "qk: %s: result not recorded: %s\n", r->target, err.msg);
	(void)qk_capture_replay(e->output.s, e->output.len, STDOUT_FILENO, STDERR_FILENO);
	_exit(0);
}

/* What was assumed to be the result's own doing is: it stands there as the entry has it. */
static bool assumed_rightly(struct qk_recipe_cache *c, const struct qk_entry *e)
{
	for (size_t i = 0; i < c->view.assumed.n; i++) {
		const char *path = c->view.assumed.v[i];
		const struct qk_treeent *t = qk_tree_find(&e->tree, path);
		struct qk_digest now, then;

		if (!t || qk_pathview_look(&c->view, path, &now, NULL))
			return false;
		state_of(t, &then);
		if (!qk_digest_eq(&now, &then))
			return false;
	}
	return true;
}

/* Tries one set; remember: its states are worth keeping for others. */
static void try_set(struct qk_recipe_cache *c, const struct qk_pathset *set, bool remember)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT;
	struct qk_digest strong;

	if (qk_pathset_key(set, &c->weak, &c->view, remember, NULL, &strong, NULL) ||
		qk_store_get(c->store, &strong, &e, NULL) != 1 || !assumed_rightly(c, &e))
		return;
	restore(c, &strong, &e);
}

static void look_up(struct qk_recipe_cache *c)
{
	struct qk_pathsets sets;

	qk_pathsets_load(&sets, c->store, &c->weak);
	for (size_t i = 0; i < sets.n; i++) {
		/* the first nearly always decides: only then are states worth keeping */
		try_set(c, &sets.v[i], i > 0);
		if (!c->view.assumable)
			continue;
		c->view.assume = true;
		try_set(c, &sets.v[i], i > 0);
		c->view.assume = false;
		qk_strv_release(&c->view.assumed);
	}
	qk_pathsets_release(&sets);
}

static void explain(struct qk_recipe_cache *c)
{
	qk_autofree char *name = last_name(c), *why = NULL;
	const struct qk_request *r = c->req;

	why = qk_why(c->store, &c->view, name, c->text.s);
	if (c->chain.lines)
		fprintf(stderr, "qk: %s, line %llu: runs: %s\n", r->target,
			(unsigned long long)c->chain.lines + 1, why);
	else
		fprintf(stderr, "qk: %s: runs: %s\n", r->target, why);
}

static void prepare(struct qk_recipe_cache *c, const struct qk_request *r, struct qk_result *result,
	const struct qk_strv *argv, const struct qk_strv *env)
{
	*c = (struct qk_recipe_cache){ .req = r,
		.result = result,
		.argv = argv,
		.env = env,
		.text = QK_BUF_INIT,
		.tee = { .saved = { -1, -1 }, .capture = QK_CAPTURE_INIT } };
}

/* One answer a run: what comes after the first difference follows from it. */
static void __attribute__((noreturn)) tell(const struct qk_recipe_cache *c, const char *why)
{
	qk_autofree char *mark = qk_path_join(c->req->run, "answered");
	int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd >= 0 && c->chain.lines)
		printf("%s, line %llu: %s\n", c->req->target, (unsigned long long)c->chain.lines + 1, why);
	else if (fd >= 0)
		printf("%s: %s\n", c->req->target, why);
	fflush(stdout);
	_exit(0);
}

void qk_recipe_cache_ask(struct qk_recipe_cache *c, const struct qk_request *r, struct qk_result *result,
	const struct qk_strv *argv, const struct qk_strv *env, const char *never)
{
	qk_autofree char *name = NULL;

	if (!(r->caching & QK_CACHING_EXPLAIN))
		_exit(0); /* of a target that was not asked for */
	prepare(c, r, result, argv, env);
	if (!open_all(c) || never)
		tell(c, never ? never : result->uncached ? result->uncached : "the line before it left what no key counts");
	take_pretended(c);
	look_up(c);
	name = last_name(c);
	tell(c, qk_why(c->store, &c->view, name, c->text.s));
}

void qk_recipe_cache_find(struct qk_recipe_cache *c, const struct qk_request *r, struct qk_result *result,
	const struct qk_strv *argv, const struct qk_strv *env)
{
	prepare(c, r, result, argv, env);
	if (!r->caching)
		return;
	c->on = open_all(c);
	if (c->on && r->caching & QK_CACHING_RESTORE)
		look_up(c);
	if (c->on && r->caching & QK_CACHING_EXPLAIN)
		explain(c);
	c->record = c->on && r->caching & QK_CACHING_RECORD;
	c->keep = c->record && r->caching & QK_CACHING_STORE;
}

void qk_recipe_cache_begin(struct qk_recipe_cache *c, struct qk_run_spec *spec)
{
	struct qk_err err = QK_ERR_INIT;

	if (!c->record)
		return;
	c->result->trace.lookups = true;
	qk_snapshot_take(&c->before, c->req, &c->chain, &c->view);
	c->began = qk_clock_ms();
	if (!c->keep)
		return;
	if (qk_tee_begin(&c->tee, &err)) {
		not_kept(c, err.msg);
		c->keep = false;
		return;
	}
	c->teeing = true;
	spec->watches = c->tee.watches;
	spec->n_watches = c->tee.n;
}

void qk_recipe_cache_ended(struct qk_recipe_cache *c, const struct qk_run_result *ran)
{
	if (c->teeing)
		qk_tee_end(&c->tee, ran->left.n > 0);
	c->teeing = false;
}

static bool holds(const struct qk_buf *b, const char *text)
{
	return text && *text && memmem(b->s, b->len, text, strlen(text));
}

/* True if the result has the workspace's place in it, so that it is no other place's. */
static bool names_place(struct qk_recipe_cache *c, const struct qk_tree *tree)
{
	const char *pwd = getenv("PWD");

	if (pwd && (*pwd != '/' || !pwd[1]))
		pwd = NULL;
	if (holds(&c->tee.capture.data, c->req->root) || holds(&c->tee.capture.data, pwd))
		return true;
	for (size_t i = 0; i < tree->n; i++) {
		const struct qk_treeent *e = &tree->v[i];
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		if (e->kind == QK_FILE_LINK)
			qk_buf_addstr(&b, e->link);
		else if (e->kind != QK_FILE_REGULAR)
			continue;
		else if (qk_read_file(qk_filehash_rootfd(c->files), e->path, SCAN_MAX, &b, NULL))
			return true;
		if (holds(&b, c->req->root) || holds(&b, pwd))
			return true;
	}
	return false;
}

static int store_result(struct qk_recipe_cache *c, const struct qk_recorded *rec, struct qk_tree *tree,
	const struct qk_digest *strong, const struct qk_buf *text, struct qk_err *err)
{
	const struct qk_request *r = c->req;
	static const char *const how[] = { "off", "audit", "enforce" };
	struct qk_entry e = { .tree = *tree,
		.gone = rec->gone,
		.loose = rec->strays,
		.output = c->tee.capture.data,
		.task = (char *)r->target,
		.how = (char *)how[r->mode],
		.text = text->s,
		.duration_ms = (uint64_t)(qk_clock_ms() - c->began),
		.made = (uint64_t)time(NULL) };

	return qk_store_put(c->store, strong, &e, qk_filehash_rootfd(c->files), err);
}

/* Publishes the line with those before it, or has it wait. */
static int hand_on(struct qk_recipe_cache *c, const struct qk_recorded *rec, struct qk_err *err)
{
	int ret;

	if (!qk_chain_complete(c->req))
		return qk_chain_wait(&c->chain, c->req, &c->weak, &rec->set, &rec->strays, err);
	ret = qk_chain_publish(&c->chain, c->req, c->store, err);
	if (!ret)
		ret = qk_pathsets_add(c->store, &c->weak, &rec->set, err);
	if (!ret && rec->strays.n)
		ret = qk_chain_wait(&c->chain, c->req, NULL, NULL, &rec->strays, err);
	return ret;
}

static void keep(struct qk_recipe_cache *c, struct qk_recorded *rec)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	qk_autotree struct qk_tree tree = { 0 };
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest strong;
	int ret;

	if (c->keep && c->tee.too_much)
		qk_fail(&err, -EFBIG, "it printed more than 64 MiB");
	ret = err.code ? -err.code : qk_recorded_tree(rec, c->files, &tree, &err);
	if (!ret && c->keep) {
		rec->set.flags = (names_place(c, &tree) ? QK_PATHSET_PLACE : 0) |
				 (c->tee.capture.data.len ? QK_PATHSET_TERMINAL : 0);
		qk_buf_add(&text, c->text.s, c->text.len);
	}
	if (!ret)
		ret = qk_pathset_key(&rec->set, &c->weak, &c->view, false, c->keep ? &text : NULL, &strong, &err);
	if (!ret && c->keep)
		ret = store_result(c, rec, &tree, &strong, &text, &err);
	if (!ret)
		ret = hand_on(c, rec, &err);
	if (ret) {
		not_kept(c, err.msg);
		return;
	}
	if (!c->keep)
		return;
	remember_made(c, &tree);
	remember_last(c, &strong);
}

/* Under walls: a read that was refused has left the command with less than it wanted. */
static const char *refused_read(const struct qk_recipe_cache *c, const struct qk_policy *policy)
{
	const struct qk_trace *t = &c->result->trace;

	for (size_t i = 0; c->req->mode == QK_MODE_ENFORCE && i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];

		if (e->flags & QK_T_READ && !(e->flags & QK_T_DIR) &&
			qk_policy_judge(policy, e->path, QK_READ).answer == QK_REFUSED)
			return e->path;
	}
	return NULL;
}

void qk_recipe_cache_finish(struct qk_recipe_cache *c, const struct qk_policy *policy, int status)
{
	struct qk_trace *t = &c->result->trace;
	const char *refused;
	bool walled;

	if (!c->req->caching)
		return;
	if (c->record) {
		struct qk_recorded rec;

		qk_recorded_read(&rec, c->req, t, policy, &c->before, &c->chain, &c->view,
			c->argv->v, c->env->v);
		refused = refused_read(c, policy);
		walled = rec.strays.n && c->req->mode == QK_MODE_ENFORCE;
		c->chain.tainted |= rec.tainted || t->incomplete;
		if (!status && t->incomplete)
			not_kept(c, t->incomplete);
		else if (!status && refused)
			not_kept(c, "it was refused a read");
		else if (!status && rec.unfit)
			not_kept(c, rec.unfit);
		else if (!status && walled)
			not_kept(c, "it left files beside its outputs, which the walls keep");
		else if (!status)
			keep(c, &rec);
		/* a layer holds what was left there under walls: not to be had, nor to be counted on */
		if (rec.strays.n && !walled && (status || c->result->uncached))
			(void)qk_chain_wait(&c->chain, c->req, &c->weak, NULL, &rec.strays, NULL);
		qk_recorded_release(&rec);
	}
	if (c->req->mode == QK_MODE_OFF) {
		qk_trace_release(t); /* nobody judges it */
		qk_trace_init(t);
	} else if (c->record) {
		qk_trace_narrow(t, c->req->root);
	}
	if (c->files)
		qk_chain_write(&c->chain, c->req, &c->weak);
	qk_tee_release(&c->tee);
	release(c);
}
