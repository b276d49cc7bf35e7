#include "sandbox/policy.h"

#include "base/glob.h"
#include "base/path.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

enum { RIGHTS = 2, MAX_LINKS = 40 };

/* What the exact and tree rules say of one path: the best reason for each right, 0 = none. */
struct node {
	const char *path;
	uint8_t exact[RIGHTS], tree[RIGHTS];
	uint8_t leads; /* rights that some rule at or beneath this path has */
	UT_hash_handle hh;
};

/* The resolved form of a directory, while rules are resolved. */
struct resolved {
	const char *path, *real;
	UT_hash_handle hh;
};

struct qk_policy_index {
	struct node *nodes;
	bool trees; /* any tree rule at all */
	QK_VEC(size_t) globs; /* positions in rules */
};

void qk_policy_init(struct qk_policy *p, const char *root, const char *state)
{
	*p = (struct qk_policy){ 0 };
	p->root = qk_arena_strdup(&p->arena, root);
	p->state = qk_arena_strdup(&p->arena, state);
	p->index = qk_zalloc(sizeof(*p->index));
}

void qk_policy_release(struct qk_policy *p)
{
	if (p->index) {
		HASH_CLEAR(hh, p->index->nodes);
		qk_vec_release(&p->index->globs);
		free(p->index);
	}
	qk_vec_release(&p->rules);
	qk_strv_release(&p->walls);
	qk_strv_release(&p->hidden);
	qk_arena_release(&p->arena);
	*p = (struct qk_policy){ 0 };
}

static struct node *find(const struct qk_policy *p, const char *path, size_t n)
{
	struct node *node;

	HASH_FIND(hh, p->index->nodes, path, n, node);
	return node;
}

static struct node *intern(struct qk_policy *p, const char *path, size_t n)
{
	struct node *node = find(p, path, n);

	if (node)
		return node;
	node = qk_arena_alloc(&p->arena, sizeof(*node));
	node->path = qk_arena_strndup(&p->arena, path, n);
	HASH_ADD_KEYPTR(hh, p->index->nodes, node->path, n, node);
	return node;
}

/* Length of the directory that holds the first n bytes of an absolute path; 0 above "/". */
static size_t parent_len(const char *path, size_t n)
{
	if (n <= 1)
		return 0;
	while (path[--n] != '/')
		;
	return n ? n : 1;
}

/* Marks path and every directory above it, up to root, as leading to something with these rights. */
static void mark_way(struct qk_policy *p, const char *path, unsigned int rights)
{
	size_t n = strlen(path);

	while (n && qk_path_under(path, p->root)) {
		struct node *node = intern(p, path, n);

		if ((node->leads & rights) == rights || n <= strlen(p->root)) {
			node->leads |= (uint8_t)rights;
			return;
		}
		node->leads |= (uint8_t)rights;
		n = parent_len(path, n);
	}
}

/* Files one rule under its path. False if an equal or better one was there. */
static bool file_rule(struct qk_policy *p, const struct qk_rule *r)
{
	struct node *node = intern(p, r->path, strlen(r->path));
	uint8_t *slot = r->scope == QK_TREE ? node->tree : node->exact;
	bool news = false;

	for (int i = 0; i < RIGHTS; i++) {
		if (!(r->rights & 1u << i) || (slot[i] && slot[i] <= r->reason))
			continue;
		slot[i] = (uint8_t)r->reason;
		news = true;
	}
	if (r->scope == QK_TREE)
		p->index->trees = true;
	mark_way(p, r->path, r->rights);
	return news;
}

void qk_policy_add(struct qk_policy *p, const char *base, const char *path, enum qk_scope scope,
	unsigned int rights, enum qk_reason reason)
{
	qk_autobuf struct qk_buf clean = QK_BUF_INIT;
	struct qk_rule rule = { .scope = scope, .rights = rights, .reason = reason };

	qk_path_clean(&clean, base, path);
	rule.path = qk_arena_strndup(&p->arena, clean.s, clean.len);
	if (scope == QK_GLOB) {
		qk_autofree char *dir = qk_strndup(rule.path, qk_glob_literal_dir(rule.path));

		qk_vec_push(&p->index->globs, p->rules.n);
		mark_way(p, dir, rights);
	} else if (!file_rule(p, &rule)) {
		return;
	}
	qk_vec_push(&p->rules, rule);
}

/* Resolution, while the rules are completed. */
struct resolver {
	struct qk_policy *p;
	struct resolved *dirs;
	enum qk_reason reason; /* of the rule in hand: links passed get it too */
	int links;
};

static const char *resolve(struct resolver *r, const char *path);

static const char *resolve_dir(struct resolver *r, const char *path, size_t n)
{
	struct resolved *d;

	if (n <= 1)
		return "/";
	HASH_FIND(hh, r->dirs, path, n, d);
	if (!d) {
		char *copy = qk_arena_strndup(&r->p->arena, path, n);
		const char *real = resolve(r, copy);

		/* a resolution that itself resolved this directory has filed it */
		HASH_FIND(hh, r->dirs, path, n, d);
		if (d)
			return d->real;
		d = qk_arena_alloc(&r->p->arena, sizeof(*d));
		d->path = copy;
		d->real = real;
		HASH_ADD_KEYPTR(hh, r->dirs, d->path, n, d);
	}
	return d->real;
}

/* The path that an absolute clean path leads to; what is missing is left as written. */
static const char *resolve(struct resolver *r, const char *path)
{
	const char *dir = resolve_dir(r, path, qk_path_dirlen(path));
	char *here = qk_arena_alloc(&r->p->arena, strlen(dir) + strlen(path) + 2);
	qk_autobuf struct qk_buf to = QK_BUF_INIT;
	char text[PATH_MAX];
	ssize_t n;

	strcpy(here, strcmp(dir, "/") ? dir : "");
	strcat(here, "/");
	strcat(here, qk_path_base(path));
	n = readlink(here, text, sizeof(text) - 1);
	if (n <= 0 || ++r->links > MAX_LINKS)
		return here;
	text[n] = '\0';
	if (qk_path_under(here, r->p->root)) {
		struct qk_rule link = { here, QK_EXACT, QK_READ, r->reason };

		if (file_rule(r->p, &link))
			qk_vec_push(&r->p->rules, link);
	}
	/* ".." in a link's text is taken from where the directories before it really lead */
	qk_buf_addstr(&to, text[0] == '/' ? "/" : dir);
	for (char *s = text, *c; (c = strsep(&s, "/"));) {
		const char *step;
		qk_autofree char *next = NULL;

		if (!*c || !strcmp(c, "."))
			continue;
		next = qk_path_join(to.s, c);
		step = strcmp(c, "..") ? resolve(r, next) : next;
		qk_buf_reset(&to);
		qk_buf_addstr(&to, step);
	}
	return qk_arena_strndup(&r->p->arena, to.s, to.len);
}

void qk_policy_resolve(struct qk_policy *p)
{
	struct resolver r = { .p = p };
	size_t n = p->rules.n;

	for (size_t i = 0; i < n; i++) {
		struct qk_rule rule = p->rules.v[i];

		if (rule.scope == QK_GLOB || !strcmp(rule.path, "/"))
			continue;
		if (rule.reason == QK_BY_IGNORE)
			continue; /* a link is left out: it would open whatever it leads to */
		r.reason = rule.reason;
		r.links = 0;
		rule.path = resolve(&r, rule.path);
		/* where a link of the workspace leads out of it, whoever made the link grants nothing */
		if (qk_path_under(p->rules.v[i].path, p->root) && !qk_path_under(rule.path, p->root))
			rule.rights &= ~(unsigned int)QK_WRITE;
		if (strcmp(rule.path, p->rules.v[i].path) && file_rule(p, &rule))
			qk_vec_push(&p->rules, rule);
	}
	HASH_CLEAR(hh, r.dirs);
}

/* True if the component of n bytes names a dotenv file: .env, .env.*, .*.env */
static bool is_dotenv(const char *name)
{
	size_t n = strlen(name);

	if (!strncmp(name, ".env", 4) && (!name[4] || (name[4] == '.' && name[5])))
		return true;
	return n > 5 && name[0] == '.' && !strcmp(name + n - 4, ".env");
}

static bool has_component(const char *below, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = below; s; s = strchr(s, '/')) {
		s += *s == '/';
		if (!strncmp(s, name, n) && (!s[n] || s[n] == '/'))
			return true;
	}
	return false;
}

static struct qk_verdict by_name(const struct qk_policy *p, const char *path, enum qk_right right)
{
	const char *below = qk_path_below(path, p->root);

	if (qk_path_under(path, p->state))
		return (struct qk_verdict){ QK_ALLOWED, QK_BY_STATE };
	if (has_component(below, "node_modules"))
		return (struct qk_verdict){ right == QK_READ ? QK_ALLOWED : QK_TOLERATED, QK_BY_MODULES };
	if (has_component(below, ".git"))
		return (struct qk_verdict){ QK_TOLERATED, QK_BY_GIT };
	if (right == QK_READ && is_dotenv(qk_path_base(path)))
		return (struct qk_verdict){ QK_TOLERATED, QK_BY_DOTENV };
	return (struct qk_verdict){ QK_REFUSED, QK_BY_NOTHING };
}

static void better(unsigned int *best, unsigned int reason)
{
	if (reason && (!*best || reason < *best))
		*best = reason;
}

const char *qk_policy_wall_of(const struct qk_policy *p, const char *path)
{
	const char *innermost = NULL;

	for (size_t i = 0; i < p->walls.n; i++)
		if (qk_path_under(path, p->walls.v[i]) &&
			(!innermost || strlen(p->walls.v[i]) > strlen(innermost)))
			innermost = p->walls.v[i];
	return innermost;
}

bool qk_policy_has_walls(const struct qk_policy *p, const char *dir)
{
	for (size_t i = 0; i < p->walls.n; i++)
		if (qk_path_under(p->walls.v[i], dir) && strcmp(p->walls.v[i], dir))
			return true;
	return false;
}

/* The best reason of rules on path and on what holds it, as far as the first `least` bytes. */
static unsigned int best_reason(const struct qk_policy *p, const char *path, size_t least,
	enum qk_right right)
{
	size_t len = strlen(path);
	int bit = right == QK_WRITE;
	unsigned int best = 0;
	const struct node *node = find(p, path, len);

	if (node)
		better(&best, node->exact[bit]);
	for (size_t n = len; n >= least && n; n = parent_len(path, n)) {
		node = find(p, path, n);
		if (node)
			better(&best, node->tree[bit]);
	}
	for (size_t i = 0; i < p->index->globs.n; i++) {
		const struct qk_rule *r = &p->rules.v[p->index->globs.v[i]];

		if (r->rights & right && qk_glob_literal_dir(r->path) >= least &&
			(!best || r->reason < best) && qk_glob_match(r->path, path))
			better(&best, r->reason);
	}
	return best;
}

static struct qk_verdict judge_outside(const struct qk_policy *p, const char *path, enum qk_right right)
{
	bool refused = p->closed && right == QK_WRITE && !qk_path_under(path, "/dev") &&
		!qk_path_under(path, "/proc") && !best_reason(p, path, 1, right);

	for (size_t i = 0; i < p->hidden.n && !refused; i++)
		refused = qk_path_under(path, p->hidden.v[i]);
	return (struct qk_verdict){ refused ? QK_REFUSED : QK_ALLOWED, QK_BY_OUTSIDE };
}

/* Rules that do not reach past a wall around path are left aside. */
static struct qk_verdict judge_closed(const struct qk_policy *p, const char *path, enum qk_right right)
{
	const char *wall = qk_policy_wall_of(p, path);
	unsigned int best;

	if (qk_path_under(path, p->state)) /* it shows an empty directory, for temporary files */
		return (struct qk_verdict){ QK_ALLOWED, QK_BY_STATE };
	best = best_reason(p, path, strlen(wall ? wall : p->root), right);
	return (struct qk_verdict){ best ? QK_ALLOWED : QK_REFUSED, (enum qk_reason)best };
}

struct qk_verdict qk_policy_judge(const struct qk_policy *p, const char *path, enum qk_right right)
{
	int bit = right == QK_WRITE;
	size_t len = strlen(path), rootlen = strlen(p->root);
	unsigned int best = 0;
	const struct node *node;

	if (!qk_path_under(path, p->root))
		return judge_outside(p, path, right);
	if (p->closed)
		return judge_closed(p, path, right);
	node = find(p, path, len);
	if (node)
		better(&best, node->exact[bit]);
	for (size_t n = len; p->index->trees && n >= rootlen && n;) {
		node = find(p, path, n);
		if (node)
			better(&best, node->tree[bit]);
		n = parent_len(path, n);
	}
	for (size_t i = 0; i < p->index->globs.n; i++) {
		const struct qk_rule *r = &p->rules.v[p->index->globs.v[i]];

		if (r->rights & right && (!best || r->reason < best) && qk_glob_match(r->path, path))
			better(&best, r->reason);
	}
	if (!best || best > QK_BY_GRANT)
		return by_name(p, path, right);
	if (best == QK_BY_GRANT && right == QK_READ) {
		struct qk_verdict named = by_name(p, path, right);

		return named.answer == QK_REFUSED ? (struct qk_verdict){ QK_TOLERATED, QK_BY_GRANT } : named;
	}
	return (struct qk_verdict){ QK_ALLOWED, (enum qk_reason)best };
}

bool qk_policy_leads_to(const struct qk_policy *p, const char *dir, enum qk_right right)
{
	const struct node *node = find(p, dir, strlen(dir));

	if (node && node->leads & right)
		return true;
	for (size_t i = 0; i < p->index->globs.n; i++) {
		const struct qk_rule *r = &p->rules.v[p->index->globs.v[i]];
		qk_autofree char *lit = qk_strndup(r->path, qk_glob_literal_dir(r->path));

		if (r->rights & right && qk_path_under(dir, lit))
			return true;
	}
	return false;
}

const char *qk_reason_name(enum qk_reason reason)
{
	static const char *const names[] = {
		[QK_BY_NOTHING] = "nothing",
		[QK_BY_TARGET] = "target",
		[QK_BY_OUTPUT] = "output",
		[QK_BY_PREREQUISITE] = "prerequisite",
		[QK_BY_INPUT] = "input",
		[QK_BY_DEPFILE] = "depfile",
		[QK_BY_DEPENDENCY] = "dependency's output",
		[QK_BY_SCRATCH] = "scratch",
		[QK_BY_WARM] = "warm path",
		[QK_BY_IGNORE] = "ignored read",
		[QK_BY_GRANT] = "grant",
		[QK_BY_MODULES] = "node_modules",
		[QK_BY_GIT] = ".git",
		[QK_BY_DOTENV] = "dotenv file",
		[QK_BY_STATE] = "qk's state",
		[QK_BY_OUTSIDE] = "outside the workspace",
	};

	return names[reason];
}
