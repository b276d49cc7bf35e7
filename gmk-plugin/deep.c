#include "gmk-plugin/deep.h"

#include "base/mem.h"
#include "base/vec.h"
#include "gmk-plugin/gmkx.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uthash.h>

struct file;

/* The heads of make's struct dep and struct file; what follows in them differs by version. */
struct dep {
	struct dep *next;
	const char *name;
	struct file *file;
};

struct file {
	const char *name;
	const char *hname;
	const char *vpath;
	struct dep *deps;
	void *cmds;
	const char *stem;
	struct dep *also_make;
	struct file *prev; /* of several double-colon rules for one name */
};

struct seen {
	const struct file *file;
	UT_hash_handle hh;
};

static enum { UNKNOWN, FITS, DIFFERS } layout;

static struct file *(*lookup)(const char *name);

/* Copies n bytes from our own memory; false where there is none, instead of a fault. */
static bool peek(const void *from, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static bool peek_name(const char *from, const char *want)
{
	size_t n = strlen(want) + 1;
	qk_autofree char *got = qk_alloc(n);

	return from && peek(from, got, n) && !memcmp(got, want, n);
}

/* True if every prerequisite of f, as far as the layout lets us read them, is one of words. */
static bool prerequisites_fit(const struct file *f, const struct qk_strv *words)
{
	struct dep d;
	struct file df;
	size_t n = 0;

	for (const struct dep *at = f->deps; at; at = d.next) {
		bool found = false;

		if (!peek(at, &d, sizeof(d)) || !d.file || !peek(d.file, &df, sizeof(df)) || ++n > 100000)
			return false;
		for (size_t i = 0; i < words->n && !found; i++)
			found = peek_name(df.name, words->v[i]);
		if (!found && n > 1)
			return false;
		if (found || n == words->n)
			return true; /* one that fits is proof enough */
	}
	return !words->n;
}

static bool fits(const char *target)
{
	qk_autofree char *prereqs = qk_gmkx_expand("$^ $|");
	qk_autostrv struct qk_strv words = { 0 };
	struct file *f, copy;

	*(void **)&lookup = dlsym(RTLD_DEFAULT, "lookup_file");
	f = lookup ? lookup(target) : NULL;
	qk_strv_split(&words, prereqs);
	return f && peek(f, &copy, sizeof(copy)) && peek_name(copy.name, target) &&
	       prerequisites_fit(&copy, &words);
}

static struct file *find(const char *target)
{
	struct file *f = layout == FITS ? lookup(target) : NULL;

	return f && !strcmp(f->name, target) ? f : NULL;
}

static const char *dep_name(const struct dep *d)
{
	return d->file ? d->file->name : d->name;
}

/* The prerequisites of .PHONY; makefiles are read by the time the first is asked for. */
static struct phony {
	const char *name;
	UT_hash_handle hh;
} *phonies;

static void find_phonies(void)
{
	struct file *f = find(".PHONY");

	for (struct dep *d = f ? f->deps : NULL; d; d = d->next) {
		const char *name = dep_name(d);
		struct phony *p;

		if (!name)
			continue;
		HASH_FIND_STR(phonies, name, p);
		if (p)
			continue;
		p = qk_zalloc(sizeof(*p));
		p->name = qk_strdup(name);
		HASH_ADD_KEYPTR(hh, phonies, p->name, strlen(p->name), p);
	}
}

bool qk_deep_is_phony(const char *target)
{
	static bool found;
	struct phony *p;

	if (layout == UNKNOWN)
		layout = fits(target) ? FITS : DIFFERS;
	if (!found && layout == FITS)
		find_phonies();
	found = true;
	HASH_FIND_STR(phonies, target, p);
	return p != NULL;
}

void qk_deep_prerequisites(
	const char *target, void (*each)(const char *name, void *arg), void *arg)
{
	struct file *f = find(target);

	for (struct dep *d = f ? f->deps : NULL; d; d = d->next)
		if (dep_name(d))
			each(dep_name(d), arg);
}

void qk_deep_siblings(const char *target, void (*each)(const char *target, void *arg), void *arg)
{
	struct file *f;

	if (layout == UNKNOWN)
		layout = fits(target) ? FITS : DIFFERS;
	f = find(target);
	for (struct dep *d = f ? f->also_make : NULL; d; d = d->next)
		each(dep_name(d), arg);
}

void qk_deep_graph(struct qk_graph *g, uint64_t make_pid, const char *target)
{
	static struct seen *seen; /* of all targets: the graph is left once, at make's end */
	QK_VEC(struct file *) todo = { 0 };
	struct seen *s;
	struct file *f = find(target);

	if (f)
		qk_vec_push(&todo, f);
	while (todo.n) {
		f = todo.v[--todo.n];
		HASH_FIND_PTR(seen, &f, s);
		if (s)
			continue;
		s = qk_zalloc(sizeof(*s));
		s->file = f;
		HASH_ADD_PTR(seen, file, s);
		for (struct dep *d = f->deps; d; d = d->next) {
			if (!d->file)
				continue;
			qk_graph_add(g, make_pid, f->name, d->file->name);
			qk_vec_push(&todo, d->file);
		}
		for (struct dep *d = f->also_make; d; d = d->next)
			if (d->file && d->file != f)
				qk_graph_add(g, make_pid, d->file->name, f->name);
		if (f->prev)
			qk_vec_push(&todo, f->prev);
	}
	qk_vec_release(&todo);
}
