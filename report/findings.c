#include "report/findings.h"

#include "base/glob.h"
#include "base/path.h"
#include "report/declare.h"
#include "report/fix.h"
#include "report/holders.h"
#include "report/shared.h"
#include "report/tasks.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who wrote a path. */
struct writer {
	const char *path;
	QK_VEC(const struct qk_task *) tasks;
	UT_hash_handle hh;
};

/* Where a name stands among the report's tasks. */
struct place {
	const char *name;
	size_t at;
	UT_hash_handle hh;
};

struct judging {
	struct qk_report *rep;
	const struct qk_report_places *known; /* or NULL */
	struct qk_tasks tasks;
	struct writer *writers;
	struct place *places;
	struct qk_holders holders;
};

static const char *shown(struct judging *jd, const char *path)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_path_relative(&b, jd->rep->session->cwd, path);
	return qk_arena_strndup(&jd->rep->arena, b.s, b.len);
}

/* A path as the Makefile of the task would write it. */
static const char *local(struct judging *jd, const struct qk_task *t, const char *path)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_path_relative(&b, t->req.cwd, path);
	return qk_arena_strndup(&jd->rep->arena, b.s, b.len);
}

/* What mends a finding. Of a workspace a field and the value it lacks; the line is made of them. */
struct mending {
	struct qk_buf line, value;
	const char *field;
};

#define MENDING_INIT { QK_BUF_INIT, QK_BUF_INIT, NULL }
#define autocleared __attribute__((cleanup(clear)))

static void clear(struct mending *m)
{
	qk_buf_release(&m->line);
	qk_buf_release(&m->value);
}

static void set_field(struct mending *m, const struct qk_task *t, const char *field)
{
	const char *value = m->value.s;

	m->field = field;
	qk_fix_field(&m->line, t->req.target, field, &value, 1);
}

/* Without a line in m there is none; others are n names. */
static void add(struct judging *jd, struct qk_report_task *to, enum qk_kind kind, const char *path,
	const char *const *others, size_t n, const struct mending *m)
{
	struct qk_finding f = { .kind = kind, .path = path };

	if (m && m->line.len)
		f.fix = qk_arena_strdup(&jd->rep->arena, m->line.s);
	if (m && m->value.len)
		f.value = qk_arena_strdup(&jd->rep->arena, m->value.s);
	if (m)
		f.field = m->field;
	if (n)
		f.others = qk_arena_alloc(&jd->rep->arena, (n + 1) * sizeof(*f.others));
	for (size_t i = 0; i < n; i++)
		f.others[i] = qk_arena_strdup(&jd->rep->arena, others[i]);
	qk_vec_push(&to->findings, f);
}

static const struct writer *writers_of(struct judging *jd, const char *path)
{
	struct writer *w;

	HASH_FIND_STR(jd->writers, path, w);
	return w;
}

static bool may_write(const struct qk_task *t, const char *path)
{
	return qk_task_judged(t, path)->write.answer == QK_ALLOWED;
}

/* Another task wrote the path, and does not say so: then that one is to be mended. */
static const struct qk_task *stray_writer(struct judging *jd, const struct qk_task *t, const char *path)
{
	const struct writer *w = writers_of(jd, path);

	for (size_t i = 0; w && i < w->tasks.n; i++)
		if (w->tasks.v[i] != t && w->tasks.v[i]->req.task && !may_write(w->tasks.v[i], path))
			return w->tasks.v[i];
	return NULL;
}

/* An output of another task is waited for; what no input can select, no field mends. */
static void mend_read(struct judging *jd, struct mending *m, const struct qk_task *t, const char *path)
{
	const char *maker = jd->known ? jd->known->maker(t->req.target, path) : NULL;
	const struct qk_task *stray = stray_writer(jd, t, path);

	if (stray) {
		qk_fix_value(&m->value, &stray->req, path);
		set_field(m, stray, "outputs");
		qk_buf_reset(&m->value);
		m->field = NULL;
	} else if (maker) {
		qk_buf_addstr(&m->value, maker);
		set_field(m, t, "dependsOn");
	} else if (!jd->known || jd->known->selectable(path)) {
		qk_fix_value(&m->value, &t->req, path);
		set_field(m, t, "inputs");
	}
}

static void add_read(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	enum qk_kind kind, const char *path)
{
	const char *project = kind == QK_KIND_DEPENDENCY ? jd->known->dependency(t->req.target, path) : NULL;
	autocleared struct mending m = MENDING_INIT;

	if (t->req.task)
		mend_read(jd, &m, t, path);
	else if (qk_fix_prerequisite(&m.line, t->req.target, local(jd, t, path)))
		qk_fix_entry(&m.value, local(jd, t, path));
	add(jd, to, kind, shown(jd, path), &project, project != NULL, &m);
}

static void add_write(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	enum qk_kind kind, const char *path)
{
	autocleared struct mending m = MENDING_INIT;

	if (qk_declare_ignores_write(&t->req, path))
		return;
	if (t->req.task) {
		qk_fix_value(&m.value, &t->req, path);
		set_field(&m, t, "outputs");
	} else {
		qk_fix_variable(&m.line, t->req.target, "QK_OUTPUTS", local(jd, t, path));
	}
	add(jd, to, kind, shown(jd, path), NULL, 0, &m);
}

/* x is to wait for y. */
static void mend_order(struct mending *m, const struct qk_task *x, const struct qk_task *y)
{
	if (x->req.task && y->req.task) {
		qk_buf_addstr(&m->value, y->req.target);
		set_field(m, x, "dependsOn");
	} else {
		qk_fix_prerequisite(&m->line, x->req.target, y->req.target);
	}
}

/* What the workspace knows makes more of a read outside the inputs. */
static enum qk_kind kind_in_workspace(struct judging *jd, const struct qk_task *t, const char *path,
	enum qk_kind kind)
{
	if (kind != QK_KIND_READ || !jd->known || !t->req.task)
		return kind;
	if (jd->known->manifest(path))
		return QK_KIND_MANIFEST;
	return jd->known->dependency(t->req.target, path) ? QK_KIND_DEPENDENCY : kind;
}

/* Another recipe made what this one read, and neither waits for the other. */
static bool judge_ordering(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	const struct qk_trace_entry *e)
{
	const struct writer *w = writers_of(jd, e->path);
	bool found = false;

	for (size_t i = 0; w && i < w->tasks.n; i++) {
		const struct qk_task *maker = w->tasks.v[i], *x = t, *y = maker;
		autocleared struct mending m = MENDING_INIT;

		if (maker == t || qk_tasks_ordered(&jd->tasks, t, maker, &x, &y))
			continue;
		mend_order(&m, x, y);
		add(jd, to, QK_KIND_ORDERING, shown(jd, e->path), &maker->name, 1, &m);
		found = true;
	}
	return found;
}

/* Who reads a package's package.json reads the package. */
static void judge_package(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	const char *path)
{
	autocleared struct mending m = MENDING_INIT;
	bool hoisted = false;
	const char *name;

	if (!jd->known || !t->req.task || t->req.mode != QK_MODE_AUDIT)
		return;
	name = jd->known->package(t->req.target, path, &hoisted);
	if (!name)
		return;
	if (!hoisted) {
		qk_buf_addstr(&m.value, name);
		set_field(&m, t, "externalDependencies");
	}
	add(jd, to, hoisted ? QK_KIND_HOISTED : QK_KIND_PACKAGE,
		qk_arena_strdup(&jd->rep->arena, name), NULL, 0, &m);
}

static void judge_read(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	const struct qk_trace_entry *e, const struct qk_judged *j)
{
	enum qk_kind kind = kind_in_workspace(jd, t, e->path, qk_kind_of_read(e->path, j->read));

	if (!(e->flags & (QK_T_READ | QK_T_FOLLOWED)) || e->flags & QK_T_DIR)
		return;
	if (e->flags & QK_T_FOLLOWED && e->flags & QK_T_CREATED)
		return; /* a link of its own making */
	if (e->flags & QK_T_READ && judge_ordering(jd, to, t, e))
		return;
	if (j->read.reason == QK_BY_MODULES)
		judge_package(jd, to, t, e->path);
	if (j->read.answer == QK_ALLOWED)
		return;
	if (t->req.mode == QK_MODE_ENFORCE && (kind == QK_KIND_MANIFEST || kind == QK_KIND_TOOLCHAIN))
		kind = QK_KIND_READ; /* a refusal is one whatever was refused */
	if (kind == QK_KIND_UNKEYED && qk_is_left_written(e) && j->write.answer != QK_ALLOWED)
		return; /* listed once, as written */
	add_read(jd, to, t, kind, e->path);
}

static void judge_write(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	const struct qk_trace_entry *e, const struct qk_judged *j, bool settled)
{
	if (!qk_is_left_written(e) || j->write.answer == QK_ALLOWED || j->write.reason == QK_BY_MODULES)
		return;
	if (j->write.reason == QK_BY_GIT) {
		add_write(jd, to, t, QK_KIND_GIT_WRITE, e->path);
		return;
	}
	if (settled)
		return; /* the layer says better what was left */
	if (e->flags & QK_T_DIR && !(e->flags & QK_T_REMOVED) &&
		(!(e->flags & QK_T_CREATED) || j->leads || qk_holders_have(&jd->holders, &t->trace, e->path)))
		return;
	add_write(jd, to, t, QK_KIND_WRITE, e->path);
}

static void judge_writers(struct judging *jd, struct qk_report_task *to, const struct qk_task *t,
	const struct qk_trace_entry *e)
{
	const struct writer *w = qk_is_left_written(e) ? writers_of(jd, e->path) : NULL;
	autocleared struct mending m = MENDING_INIT;
	const struct qk_task *x = t, *y = t;
	QK_VEC(const char *) others = { 0 };

	for (size_t i = 0; w && i < w->tasks.n; i++) {
		const struct qk_task *o = w->tasks.v[i];
		bool ordered;

		if (o == t || !strcmp(o->name, t->name))
			continue;
		ordered = qk_tasks_ordered(&jd->tasks, t, o, &x, &y);
		if (ordered && may_write(t, e->path) && may_write(o, e->path))
			continue; /* both say so, and one waits for the other */
		qk_vec_push(&others, o->name);
		/* the later one can wait for the earlier one, if it does not yet */
		if (!m.line.len && !qk_tasks_ordered(&jd->tasks, w->tasks.v[0] == t ? o : t,
					w->tasks.v[0] == t ? t : w->tasks.v[0], &x, &y))
			mend_order(&m, x, y);
	}
	if (others.n)
		add(jd, to, QK_KIND_WRITERS, shown(jd, e->path), others.v, others.n, &m);
	qk_vec_release(&others);
}

static void judge_unused(struct judging *jd, struct qk_report_task *to, const struct qk_task *t)
{
	for (enum qk_list l = QK_LIST_PREREQS; l <= QK_LIST_ORDER; l++) {
		for (size_t i = 0; i < t->req.lists[l].n; i++) {
			qk_autofree char *path = qk_path_join(t->req.cwd, t->req.lists[l].v[i]);
			char real[PATH_MAX];
			struct stat st;

			if (qk_trace_find(&t->trace, path) || stat(path, &st) || !S_ISREG(st.st_mode))
				continue;
			if (realpath(path, real) && qk_trace_find(&t->trace, real))
				continue;
			add(jd, to, QK_KIND_UNUSED, shown(jd, path), NULL, 0, NULL);
		}
	}
}

/* By kind and path; what lies in projects depended on, by project first. */
static int in_order(const void *a, const void *b)
{
	const struct qk_finding *x = a, *y = b;
	int paths = strcmp(x->path, y->path), others = 0;

	if (x->kind != y->kind)
		return (int)x->kind - (int)y->kind;
	if (x->others && y->others)
		others = strcmp(x->others[0], y->others[0]);
	if (x->kind == QK_KIND_DEPENDENCY)
		return others ? others : paths;
	return paths ? paths : others;
}

static void tidy_findings(struct qk_report_task *t)
{
	size_t n = 0;

	if (t->findings.n)
		qsort(t->findings.v, t->findings.n, sizeof(*t->findings.v), in_order);
	for (size_t i = 0; i < t->findings.n; i++)
		if (!n || in_order(&t->findings.v[n - 1], &t->findings.v[i]))
			t->findings.v[n++] = t->findings.v[i];
	t->findings.n = n;
}

static void judge_task(struct judging *jd, struct qk_report_task *to, const struct qk_task *t)
{
	bool settled = t->req.mode == QK_MODE_ENFORCE && t->req.backend != QK_BACKEND_LANDLOCK;

	for (size_t i = 0; i < t->trace.entries.n; i++) {
		const struct qk_trace_entry *e = &t->trace.entries.v[i];
		const struct qk_judged *j = qk_task_judged(t, e->path);

		if (!t->req.is_explicit) {
			judge_read(jd, to, t, e, j);
			judge_write(jd, to, t, e, j, settled);
		}
		judge_writers(jd, to, t, e);
	}
	/* its runner has judged it, by its grants */
	for (size_t i = 0; i < t->violations.n; i++)
		add(jd, to, t->violations.v[i][0] == 'w' ? QK_KIND_WRITE : QK_KIND_READ,
			shown(jd, t->violations.v[i] + 1), NULL, 0, NULL);
	if (t->fix)
		to->sandbox_fix = qk_arena_strdup(&jd->rep->arena, t->fix);
	for (size_t i = 0; settled && !t->req.is_explicit && i < t->stray.n; i++)
		add_write(jd, to, t, QK_KIND_WRITE, t->stray.v[i]);
	if (!t->restored && !t->req.is_explicit) /* the recording of a line that did not run is not here */
		judge_unused(jd, to, t);
}

static struct qk_report_task *report_task(struct judging *jd, const char *name)
{
	struct qk_report *rep = jd->rep;
	struct qk_report_task fresh = { .name = qk_arena_strdup(&rep->arena, name) };

	struct place *p;

	/* several double-colon rules, or the same target again, are one task to a reader */
	HASH_FIND_STR(jd->places, name, p);
	if (p)
		return &rep->tasks.v[p->at];
	p = qk_arena_alloc(&rep->arena, sizeof(*p));
	p->name = fresh.name;
	p->at = rep->tasks.n;
	HASH_ADD_KEYPTR(hh, jd->places, p->name, strlen(p->name), p);
	qk_vec_push(&rep->tasks, fresh);
	return &rep->tasks.v[p->at];
}

static void set_standing(struct judging *jd, struct qk_report_task *to, enum qk_standing standing,
	const char *why)
{
	if (standing <= to->standing)
		return;
	to->standing = standing;
	to->why = qk_arena_strdup(&jd->rep->arena, why ? why : "");
}

static void judge_standing(struct judging *jd, struct qk_report_task *to, const struct qk_task *t)
{
	to->workspace |= t->req.task != NULL;
	if (!to->directory) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_path_relative(&b, jd->rep->session->root, t->req.cwd);
		to->directory = qk_arena_strndup(&jd->rep->arena, b.s, b.len);
	}
	if (t->refused)
		set_standing(jd, to, QK_REFUSED_RUN, t->why);
	else if (t->unsandboxed)
		set_standing(jd, to, QK_UNSANDBOXED, t->why);
	else if (t->restored && !t->lines) /* a recipe's other lines may have run */
		set_standing(jd, to, QK_RESTORED, "restored");
	else if (!t->lines)
		set_standing(jd, to, QK_UNAUDITED, "its runner was killed");
	else if (t->trace.incomplete)
		set_standing(jd, to, QK_UNAUDITED, t->trace.incomplete);
	to->failed |= t->failed;
}

/* A failed task is not stored anyway: nothing need be said. */
static void judge_uncached(struct judging *jd, struct qk_report_task *to, const struct qk_task *t)
{
	if (t->failed || to->uncached)
		return;
	if (t->uncached)
		to->uncached = qk_arena_strdup(&jd->rep->arena, t->uncached);
}

static void note_writers(struct judging *jd, const struct qk_task *t)
{
	for (size_t i = 0; i < t->trace.entries.n; i++) {
		const struct qk_trace_entry *e = &t->trace.entries.v[i];
		struct writer *w;

		if (!(e->flags & QK_T_WRITTEN) || e->flags & (QK_T_REMOVED | QK_T_DIR) ||
			!qk_path_under(e->path, jd->rep->session->root))
			continue;
		HASH_FIND_STR(jd->writers, e->path, w);
		if (!w) {
			w = qk_arena_alloc(&jd->rep->arena, sizeof(*w));
			w->path = e->path;
			HASH_ADD_KEYPTR(hh, jd->writers, w->path, strlen(w->path), w);
		}
		qk_vec_push(&w->tasks, t);
	}
}

/* A pattern that matches nothing is likely misspelt; each is looked at once. */
static void judge_patterns(struct judging *jd, const struct qk_task *t)
{
	struct qk_report *rep = jd->rep;

	for (unsigned int l = QK_LIST_INPUTS; l <= QK_LIST_ALLOW_WRITE; l++) {
		for (size_t i = 0; i < t->req.lists[l].n; i++) {
			const char *entry = t->req.lists[l].v[i];
			qk_autofree char *path = NULL, *full = NULL;
			qk_autostrv struct qk_strv found = { 0 };
			bool known = l == QK_LIST_ENV || l == QK_LIST_RUNTIME || l == QK_LIST_DEPFILE ||
				     l == QK_LIST_IGNORE_READS;

			for (size_t k = 0; !known && k < rep->notices.n; k++)
				known = !strcmp(rep->notices.v[k].pattern, entry) &&
					!strcmp(rep->notices.v[k].variable, qk_list_variables[l]);
			if (known || !qk_glob_is_pattern(entry))
				continue;
			qk_declare_scope(entry, &path);
			full = qk_path_join(t->req.cwd, path);
			if (qk_glob_is_pattern(full) ? !qk_glob_walk(full, &found, NULL) && !found.n
						     : access(full, F_OK) != 0) {
				struct qk_report_notice n = { qk_arena_strdup(&rep->arena, t->name),
					qk_list_variables[l], qk_arena_strdup(&rep->arena, entry) };

				qk_vec_push(&rep->notices, n);
			}
		}
	}
}

void qk_report_read(struct qk_report *rep, const struct qk_session *session,
	const struct qk_report_places *places)
{
	struct judging jd = { .rep = rep, .known = places };
	struct writer *w, *next;

	*rep = (struct qk_report){ .session = session };
	qk_tasks_read(&jd.tasks, session);
	if (jd.tasks.trouble)
		rep->trouble = qk_strdup(jd.tasks.trouble);
	for (size_t i = 0; i < jd.tasks.v.n; i++)
		if (!jd.tasks.v.v[i]->trace.incomplete)
			note_writers(&jd, jd.tasks.v.v[i]);
	for (size_t i = 0; i < jd.tasks.v.n; i++) {
		struct qk_task *t = jd.tasks.v.v[i];
		struct qk_report_task *to;

		if (t->submakes && !t->lines)
			continue; /* its recipes are the tasks */
		if (t->req.task && t->req.mode == QK_MODE_OFF)
			continue; /* in a run that only holds those with grants of their own */
		to = report_task(&jd, t->name);
		judge_standing(&jd, to, t);
		judge_uncached(&jd, to, t);
		to->cacheable |= t->req.caching != 0;
		for (size_t k = 0; k < t->left.n; k++)
			add(&jd, to, QK_KIND_LEFT, qk_arena_strdup(&rep->arena, t->left.v[k]), NULL, 0,
				NULL);
		if (!t->trace.incomplete && t->req.mode != QK_MODE_OFF)
			judge_task(&jd, to, t);
		judge_patterns(&jd, t);
	}
	for (size_t i = 0; i < rep->tasks.n; i++)
		tidy_findings(&rep->tasks.v[i]);
	qk_shared_find(rep);
	qk_holders_release(&jd.holders);
	HASH_CLEAR(hh, jd.places);
	HASH_ITER(hh, jd.writers, w, next) {
		HASH_DEL(jd.writers, w);
		qk_vec_release(&w->tasks);
	}
	qk_tasks_release(&jd.tasks);
}

void qk_report_release(struct qk_report *rep)
{
	for (size_t i = 0; i < rep->tasks.n; i++)
		qk_vec_release(&rep->tasks.v[i].findings);
	qk_vec_release(&rep->tasks);
	qk_vec_release(&rep->notices);
	qk_vec_release(&rep->shared);
	qk_arena_release(&rep->arena);
	free(rep->trouble);
}

bool qk_report_went_beyond(const struct qk_report_task *t)
{
	for (size_t i = 0; i < t->findings.n; i++)
		if (qk_kinds[t->findings.v[i].kind].beyond)
			return true;
	return false;
}
