#include "tests/harness/variant.h"

#include "base/fdio.h"
#include "base/vec.h"
#include "tests/harness/child.h"
#include "tests/harness/jsonpath.h"
#include "tests/harness/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOBODY = 65534, DEFAULT_SECONDS = 60 };

/* What one mode's run left behind, and what bare make's did. */
struct outcome {
	int status;
	struct qk_buf out, err, tree;
};

#define OUTCOME_INIT                                                                               \
	{                                                                                          \
		0, QK_BUF_INIT, QK_BUF_INIT, QK_BUF_INIT                                           \
	}

static void outcome_release(struct outcome *o)
{
	qk_buf_release(&o->out);
	qk_buf_release(&o->err);
	qk_buf_release(&o->tree);
}

/* One variant under way. */
struct run {
	const struct casefile *c;
	const struct variant *v;
	const struct place *at;
	enum mode mode;
	char *top;  /* temporary directory: bin/ home/ tmp/ bare/ t/ and the scripts' output */
	char *tree; /* the case works here; the same path in every mode, as make prints it */
	char *report;
	uid_t uid;
	gid_t gid;
	struct outcome now, bare;
};

static bool compares(const struct casefile *c)
{
	const char *modes = casefile_get(c, "modes", MODE_BARE, "");

	return strstr(modes, "bare") != NULL;
}

static void env_push(struct qk_strv *env, const char *name, const char *value)
{
	qk_strv_take(env, qk_asprintf("%s=%s", name, value));
}

static void make_env(const struct run *r, struct qk_strv *env)
{
	const char *path = getenv("PATH");
	static const char *const pass[] = { "ASAN_OPTIONS", "UBSAN_OPTIONS", "QK_FASTLANE", "CC" };
	bool held = r->mode == MODE_AUDIT || r->mode == MODE_ENFORCE;

	qk_strv_take(env, qk_asprintf("PATH=%s/bin:%s", r->top, path ? path : "/usr/bin:/bin"));
	qk_strv_take(env, qk_asprintf("HOME=%s/home", r->top));
	/* Not a directory above the workspace: Landlock alone cannot open one for new files. */
	qk_strv_take(env, qk_asprintf("TMPDIR=%s/tmp", r->top));
	qk_strv_take(env, r->mode == MODE_BARE ? qk_asprintf("QK=%s/bare", r->top)
					       : qk_asprintf("QK=%s/include", r->at->build));
	qk_strv_take(env, qk_asprintf("PROBES=%s/tests/probes", r->at->build));
	env_push(env, "SRC", r->at->source);
	env_push(env, "BUILD", r->at->build);
	env_push(env, "TOP", r->top);
	env_push(env, "REPORT", r->report);
	env_push(env, "LC_ALL", "C");
	env_push(env, "MODE", mode_names[r->mode]);
	for (size_t i = 0; i < sizeof(pass) / sizeof(pass[0]); i++)
		if (getenv(pass[i]))
			env_push(env, pass[i], getenv(pass[i]));
	if (r->mode >= MODE_CACHED) {
		env_push(env, "CACHE", "on");
		qk_strv_take(env, qk_asprintf("QK_CACHE_DIR=%s/cache", r->top));
	}
	if (held)
		env_push(env, "SANDBOX", mode_names[r->mode]);
	if (r->mode >= MODE_AUDIT) {
		env_push(env, "SANDBOX_REPORT", r->report);
		if (r->v->recorder)
			env_push(env, "QK_RECORDER", r->v->recorder);
	}
	if (r->mode == MODE_ENFORCE && !strcmp(r->v->walls, "inner"))
		env_push(env, "QK_TEST_WITHOUT", "held");
	if (r->mode == MODE_ENFORCE && !strcmp(r->v->walls, "landlock"))
		env_push(env, "QK_SANDBOX_OVERLAY", "0");
	for (size_t i = 0; i < r->c->entries.n; i++)
		if (!strcmp(r->c->entries.v[i].key, "env") &&
			(r->c->entries.v[i].modes & (1u << r->mode)))
			qk_strv_push(env, r->c->entries.v[i].value);
}

static int write_text(const char *path, const char *text, struct qk_err *err)
{
	return qk_write_file(path, text, strlen(text), 0644, err);
}

/* bin/make is the variant's make, so that a case just says `make`. */
static int make_top(struct run *r, struct qk_err *err)
{
	const char *tmp = getenv("TMPDIR");
	const char *make = !strcmp(r->v->make, "4.4.1") ? r->at->make441 : r->at->make;
	qk_autofree char *bin = NULL, *link = NULL, *home = NULL, *bare = NULL, *mk = NULL;
	qk_autofree char *scrap = NULL;
	int e;

	r->top = qk_asprintf("%s/qk-case.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(r->top) || chmod(r->top, 0755) || chown(r->top, r->uid, r->gid))
		return qk_fail(err, errno, "make '%s'", r->top);
	r->tree = qk_asprintf("%s/t", r->top);
	r->report = qk_asprintf("%s/report.json", r->top);
	bin = qk_asprintf("%s/bin", r->top);
	link = qk_asprintf("%s/make", bin);
	home = qk_asprintf("%s/home", r->top);
	scrap = qk_asprintf("%s/tmp", r->top);
	bare = qk_asprintf("%s/bare", r->top);
	mk = qk_asprintf("%s/qk.mk", bare);
	if (mkdir(bin, 0755) || symlink(make ? make : "/none", link) || mkdir(home, 0755) || mkdir(bare, 0755) ||
		mkdir(scrap, 0755) || chown(home, r->uid, r->gid) || chown(scrap, r->uid, r->gid))
		return qk_fail(err, errno, "fill '%s'", r->top);
	e = write_text(mk, "", err);
	return e < 0 ? e : 0;
}

static int make_tree(const struct run *r, struct qk_err *err)
{
	qk_autofree char *own = qk_asprintf("%s/tree", r->c->dir);
	const char *from = casefile_get(r->c, "tree", r->mode, NULL);
	qk_autofree char *other = from ? qk_asprintf("%s/%s", r->at->source, from) : NULL;
	int e = 0;

	qk_remove_tree(AT_FDCWD, r->tree);
	if (mkdir(r->tree, 0755))
		return qk_fail(err, errno, "mkdir '%s'", r->tree);
	if (other)
		e = tree_copy(other, r->tree, err);
	if (e >= 0 && !access(own, F_OK))
		e = tree_copy(own, r->tree, err);
	for (size_t i = 0; e >= 0 && i < r->c->entries.n; i++) {
		const struct entry *f = &r->c->entries.v[i];
		qk_autofree char *path = NULL, *dir = NULL;
		size_t n = strlen(f->value);

		if (strncmp(f->key, "file ", 5) || !(f->modes & (1u << r->mode)))
			continue;
		path = qk_asprintf("%s/%s", r->tree, f->key + 5);
		dir = qk_strndup(path, (size_t)(strrchr(path, '/') - path));
		e = qk_mkdirs(dir, err);
		if (e >= 0 && n && f->value[n - 1] != '\n') {
			qk_autofree char *line = qk_asprintf("%s\n", f->value);

			e = write_text(path, line, err);
		} else if (e >= 0) {
			e = write_text(path, f->value, err);
		}
	}
	if (e >= 0)
		e = tree_chown(r->tree, r->uid, r->gid, err);
	return e;
}

/* Runs one of the case's scripts; its output goes to $TOP/NAME.out and $TOP/NAME.err. */
static int script(const struct run *r, const char *name, const char *text, struct child_result *ret,
	struct qk_err *err)
{
	qk_autostrv struct qk_strv env = { 0 };
	qk_autofree char *out = qk_asprintf("%s/%s.out", r->top, name);
	qk_autofree char *errors = qk_asprintf("%s/%s.err", r->top, name);
	struct child c = { .script = text,
		.dir = r->tree,
		.out = out,
		.err = errors,
		.uid = r->uid,
		.gid = r->gid };

	make_env(r, &env);
	c.env = env.v;
	c.seconds = atoi(casefile_get(r->c, "timeout", r->mode, "0"));
	if (c.seconds <= 0)
		c.seconds = DEFAULT_SECONDS;
	return child_run(&c, ret, err);
}

static void read_output(
	const struct run *r, const char *name, const char *which, struct qk_buf *ret)
{
	qk_autofree char *path = qk_asprintf("%s/%s.%s", r->top, name, which);

	qk_read_file(AT_FDCWD, path, 256 << 20, ret, NULL);
}

/* A script that only prepares or checks: it must succeed; its words are the reason if not. */
static int auxiliary(const struct run *r, const char *what, const char *text, struct qk_err *err)
{
	qk_autofree char *strict = qk_asprintf("set -eu\n%s", text);
	struct child_result res;
	int e = script(r, what, strict, &res, err);

	if (e >= 0 && (res.timed_out || res.status)) {
		qk_autobuf struct qk_buf words = QK_BUF_INIT;

		read_output(r, what, "out", &words);
		read_output(r, what, "err", &words);
		for (char *p = words.s; *p; p++)
			if (*p == '\n')
				*p = p[1] ? '|' : 0;
		e = qk_fail(err, -EINVAL, "%s: status %d%s: %.300s: %.300s", what, res.status,
			res.timed_out ? " (timed out)" : "", text, words.s);
	}
	child_result_release(&res);
	return e;
}

/*
 * qk's own summary is the one difference on stderr: a line of its own, and the indented lines that
 * follow it. A run of several makes has several.
 */
static void cut_summaries(struct qk_buf *b)
{
	char *to = b->s;
	bool inside = false;

	for (char *line = b->s; *line;) {
		size_t n = strcspn(line, "\n");

		n += line[n] == '\n';
		if (!strncmp(line, "Sandbox audit", 13) || !strncmp(line, "Sandbox enforce", 15) ||
			!strncmp(line, "Cache: ", 7))
			inside = true;
		else if (strncmp(line, "  ", 2))
			inside = false;
		if (!inside) {
			memmove(to, line, n);
			to += n;
		}
		line += n;
	}
	qk_buf_truncate(b, (size_t)(to - b->s));
}

static void sort_lines(struct qk_buf *b)
{
	qk_autostrv struct qk_strv lines = { 0 };

	for (char *p = b->s; *p;) {
		size_t n = strcspn(p, "\n");

		qk_strv_take(&lines, qk_strndup(p, n));
		p += n + (p[n] == '\n');
	}
	qk_strv_sort(&lines);
	qk_buf_reset(b);
	for (size_t i = 0; i < lines.n; i++)
		qk_buf_addf(b, "%s\n", lines.v[i]);
}

static int compare_outcomes(struct run *r, struct qk_err *err)
{
	bool unordered = casefile_get(r->c, "unordered", r->mode, NULL) != NULL;
	qk_autobuf struct qk_buf stripped = QK_BUF_INIT;
	qk_autofree char *diff = NULL;

	if (r->now.status != r->bare.status)
		return qk_fail(
			err, -EINVAL, "status %d, plain make %d", r->now.status, r->bare.status);
	qk_buf_add(&stripped, r->now.err.s, r->now.err.len);
	cut_summaries(&stripped);
	if (unordered) {
		sort_lines(&r->now.out);
		sort_lines(&r->bare.out);
		sort_lines(&stripped);
		sort_lines(&r->bare.err);
	}
	diff = text_difference(r->now.out.s, r->bare.out.s);
	if (diff)
		return qk_fail(err, -EINVAL, "stdout: %s of plain make", diff);
	diff = text_difference(stripped.s, r->bare.err.s);
	if (diff)
		return qk_fail(err, -EINVAL, "stderr: %s of plain make", diff);
	diff = text_difference(r->now.tree.s, r->bare.tree.s);
	if (diff)
		return qk_fail(err, -EINVAL, "files: %s of plain make", diff);
	return 0;
}

static int expect_text(
	const struct entry *e, const char *key, const char *text, bool wanted, struct qk_err *err)
{
	size_t n = strlen(e->value);
	qk_autofree char *value = qk_strndup(e->value, n && e->value[n - 1] == '\n' ? n - 1 : n);

	if (strcmp(e->key, key) || (strstr(text, value) != NULL) == wanted)
		return 0;
	return qk_fail(err, -EINVAL, "line %d: %s: %s", e->line, key, value);
}

static int expectations(const struct run *r, struct qk_err *err)
{
	cJSON *doc = NULL;
	int e = 0;

	for (size_t i = 0; e >= 0 && i < r->c->entries.n; i++) {
		const struct entry *x = &r->c->entries.v[i];

		if (!(x->modes & (1u << r->mode)))
			continue;
		e = expect_text(x, "stdout", r->now.out.s, true, err);
		if (e >= 0)
			e = expect_text(x, "no-stdout", r->now.out.s, false, err);
		if (e >= 0)
			e = expect_text(x, "stderr", r->now.err.s, true, err);
		if (e >= 0)
			e = expect_text(x, "no-stderr", r->now.err.s, false, err);
		if (e >= 0 && !strcmp(x->key, "check"))
			e = auxiliary(r, "check", x->value, err);
		if (e < 0 || strcmp(x->key, "report") || r->mode < MODE_AUDIT)
			continue;
		/* findings are a sandbox's: the others are asked only where they are named */
		if (r->mode >= MODE_CACHED && x->modes == (1u << MODE_N) - 1)
			continue;
		if (!doc)
			doc = json_read(r->report, err);
		e = doc ? json_ask(doc, x->value, err) : -EINVAL;
		if (e < 0)
			qk_wrap(err, "line %d", x->line);
	}
	cJSON_Delete(doc);
	return e;
}

static int judge(struct run *r, const struct child_result *res, struct qk_err *err)
{
	const char *status = casefile_get(r->c, "status", r->mode, compares(r->c) ? NULL : "0");
	const char *left = casefile_get(r->c, "left", r->mode, NULL);
	int e;

	if (res->timed_out)
		return qk_fail(err, -EINVAL, "timed out");
	if (res->left.n && (!left || strcmp(left, res->left.v[0])))
		return qk_fail(err, -EINVAL, "left running: %s", res->left.v[0]);
	if (left && !res->left.n)
		return qk_fail(err, -EINVAL, "%s was to be left running", left);
	if (status && atoi(status) != res->status)
		return qk_fail(err, -EINVAL, "status %d, wanted %s", res->status, status);
	e = expectations(r, err);
	if (e >= 0 && r->mode != MODE_BARE && compares(r->c))
		e = compare_outcomes(r, err);
	return e;
}

static int run_mode(struct run *r, struct qk_err *err)
{
	struct child_result res = { 0 };
	const char *setup = casefile_get(r->c, "setup", r->mode, NULL);
	int e = make_tree(r, err);

	unlink(r->report);
	if (e >= 0 && setup)
		e = auxiliary(r, "setup", setup, err);
	if (e >= 0)
		e = script(r, "run", casefile_get(r->c, "run", r->mode, "false"), &res, err);
	outcome_release(&r->now);
	if (e >= 0) {
		r->now.status = res.status;
		read_output(r, "run", "out", &r->now.out);
		read_output(r, "run", "err", &r->now.err);
		e = tree_snapshot(r->tree, r->mode >= MODE_AUDIT, &r->now.tree, err);
	}
	if (e >= 0)
		e = judge(r, &res, err);
	child_result_release(&res);
	return e;
}

/* Why this mode cannot be run here; NULL if it can. The caller frees. */
static char *cannot(const struct run *r, struct qk_err *err)
{
	if (!strcmp(r->v->make, "4.4.1") && !r->at->make441)
		return qk_strdup("no GNU Make 4.4.1 (tests/get-make.sh)");
	if (!strcmp(r->v->user, "nobody") && getuid())
		return qk_strdup("needs root to become another user");
	if (r->v->recorder && !strcmp(r->v->recorder, "ebpf") && r->at->no_ebpf)
		return qk_strdup(r->at->no_ebpf);
	for (size_t i = 0; i < r->c->entries.n; i++) {
		const struct entry *x = &r->c->entries.v[i];

		if (strcmp(x->key, "needs") || !(x->modes & (1u << r->mode)))
			continue;
		if (make_tree(r, err) < 0 || auxiliary(r, "needs", x->value, err) < 0)
			return qk_asprintf("not so here: %s", x->value);
	}
	return NULL;
}

static void add_dump(struct qk_buf *out, const char *what, const struct qk_buf *text)
{
	int lines = 0;

	for (const char *p = text->s; *p && lines < 40; lines++) {
		size_t n = strcspn(p, "\n");

		qk_buf_addf(out, "#   %s| %.*s\n", what, (int)(n < 300 ? n : 300), p);
		p += n + (p[n] == '\n');
	}
}

static void say(const struct run *r, const char *verdict, const char *why, struct qk_buf *out)
{
	qk_buf_addf(out, "%s %s [%s %s%s%s%s%s]%s%s\n", verdict, r->c->name,
		!strcmp(r->v->make, "system") ? "make" : r->v->make, mode_names[r->mode],
		r->v->recorder ? " " : "", r->v->recorder ? r->v->recorder : "",
		strcmp(r->v->user, "me") ? " nobody" : "",
		!strcmp(r->v->walls, "best")    ? ""
		: !strcmp(r->v->walls, "inner") ? " inner"
						: " landlock",
		why ? ": " : "", why ? why : "");
}

/* Every mode of the variant; bare comes first, because the others are compared with it. */
static void run_modes(struct run *r, struct qk_buf *out)
{
	qk_autostrv struct qk_strv modes = { 0 };

	qk_strv_split(&modes, casefile_get(r->c, "modes", MODE_BARE, "audit"));
	for (int m = 0; m < MODE_N; m++) {
		struct qk_err err = QK_ERR_INIT;
		qk_autofree char *why = NULL;

		if (!qk_strv_has(&modes, mode_names[m]))
			continue;
		r->mode = (enum mode)m;
		why = cannot(r, &err);
		if (why) {
			say(r, "skip", why, out);
			continue;
		}
		if (run_mode(r, &err) < 0) {
			say(r, "not ok", err.msg, out);
			add_dump(out, "out", &r->now.out);
			add_dump(out, "err", &r->now.err);
		} else {
			say(r, "ok", NULL, out);
			if (r->at->verbose) {
				add_dump(out, "out", &r->now.out);
				add_dump(out, "err", &r->now.err);
			}
		}
		if (m == MODE_BARE) {
			r->bare = r->now;
			r->now = (struct outcome)OUTCOME_INIT;
		}
	}
}

void variant_run(const struct casefile *c, const struct variant *v, const struct place *at,
	struct qk_buf *out)
{
	bool nobody = !strcmp(v->user, "nobody") && !getuid();
	struct run r = { .c = c,
		.v = v,
		.at = at,
		.now = OUTCOME_INIT,
		.bare = OUTCOME_INIT,
		.uid = nobody ? NOBODY : getuid(),
		.gid = nobody ? NOBODY : getgid() };
	struct qk_err err = QK_ERR_INIT;

	if (make_top(&r, &err) < 0)
		say(&r, "not ok", err.msg, out);
	else
		run_modes(&r, out);
	if (r.top && !getenv("KEEP"))
		qk_remove_tree(AT_FDCWD, r.top);
	free(r.top);
	free(r.tree);
	free(r.report);
	outcome_release(&r.now);
	outcome_release(&r.bare);
}
