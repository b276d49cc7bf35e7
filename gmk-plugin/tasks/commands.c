#include "gmk-plugin/tasks/commands.h"

#include "base/path.h"

#include <string.h>

/* Options that are not arguments of the command. */
static const char *const own_options[] = { "command", "commands", "color", "no-color", "parallel",
	"no-parallel", "readyWhen", "cwd", "args", "envFile", "__unparsed__", "env", "usePty",
	"streamOutput", "verbose", "forwardAllArgs", "tty", NULL };

/* One argument with a name, for {args.NAME}. */
struct argument {
	char *name, *value;
};

struct reading {
	struct qk_taskspec *s;
	const struct qk_task *t;
	char *given;  /* the option args, "" if there is none */
	const char *args; /* ARGS for this task, "" if there are none */
	QK_VEC(struct argument) named; /* a later one of a name counts */
};

static bool is_own(const char *name)
{
	for (size_t i = 0; own_options[i]; i++)
		if (!strcmp(own_options[i], name))
			return true;
	return false;
}

/* A scalar as text; NULL for what has no such form. The caller frees. */
static char *scalar(const struct qk_json *v)
{
	switch (v->type) {
	case QK_JSON_BOOL: return qk_strdup(v->boolean ? "true" : "false");
	case QK_JSON_NUMBER:
	case QK_JSON_STRING: return qk_strdup(v->s);
	default: return NULL;
	}
}

/* The text of a string, or of an array's strings with blanks between. */
static char *words_of(const struct qk_json *v)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (v && v->type != QK_JSON_ARRAY)
		return scalar(v) ? scalar(v) : qk_strdup("");
	for (uint32_t i = 0; v && i < v->n; i++) {
		qk_autofree char *word = scalar(v->items[i]);

		if (!word)
			continue;
		if (b.len)
			qk_buf_addch(&b, ' ');
		qk_buf_addstr(&b, word);
	}
	return qk_buf_detach(&b);
}

static void name_argument(struct reading *r, const char *name, size_t n, const char *value)
{
	struct argument a = { qk_strndup(name, n), qk_strdup(value) };

	qk_vec_push(&r->named, a);
}

/* "--name=value", "--name value" and "--name" in a text of words. */
static void name_arguments(struct reading *r, const char *text)
{
	qk_autostrv struct qk_strv words = { 0 };

	qk_strv_split(&words, text);
	for (size_t i = 0; i < words.n; i++) {
		const char *w = words.v[i];
		size_t n = strcspn(w, "=");

		if (w[0] != '-' || w[1] != '-' || !w[2])
			continue;
		if (w[n])
			name_argument(r, w + 2, n - 2, w + n + 1);
		else if (i + 1 < words.n && words.v[i + 1][0] != '-')
			name_argument(r, w + 2, n - 2, words.v[++i]);
		else
			name_argument(r, w + 2, n - 2, "true");
	}
}

static const char *argument(const struct reading *r, const char *name, size_t n)
{
	for (size_t i = r->named.n; i-- > 0;)
		if (strlen(r->named.v[i].name) == n && !memcmp(r->named.v[i].name, name, n))
			return r->named.v[i].value;
	return "";
}

static bool needs_quotes(const char *value)
{
	return !*value || value[strcspn(value, " \t\n\"'\\$`&|;<>()*?[]{}#~!")];
}

/* Options that are no option of the executor, as arguments: --name=value. */
static void add_unknown(struct reading *r, struct qk_buf *out)
{
	const struct qk_json *o = r->t->options;

	for (uint32_t i = 0; o && i < o->n; i++) {
		const char *name = o->members[i].key;
		qk_autofree char *value = is_own(name) ? NULL : scalar(o->members[i].value);

		if (!value || strcmp(argument(r, name, strlen(name)), value))
			continue;
		qk_buf_addf(out, " --%s=", name);
		if (!needs_quotes(value)) {
			qk_buf_addstr(out, value);
			continue;
		}
		qk_buf_addch(out, '"');
		for (const char *s = value; *s; s++) {
			if (*s == '"')
				qk_buf_addch(out, '\\');
			qk_buf_addch(out, *s);
		}
		qk_buf_addch(out, '"');
	}
}

static void add_words(struct qk_buf *out, const char *words)
{
	if (*words)
		qk_buf_addf(out, " %s", words);
}

/* The command with its arguments in place of {args} and {args.x}, or behind it. */
static const char *interpolate(struct reading *r, const char *command, bool forward)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT, all = QK_BUF_INIT;
	bool named = strstr(command, "{args."), whole = strstr(command, "{args}");

	for (const char *s = command; *s;) {
		size_t n = strcspn(s, "}");

		if (named && !strncmp(s, "{args.", 6) && s[n]) {
			qk_buf_addstr(&b, argument(r, s + 6, n - 6));
			s += n + 1;
		} else if (!named && whole && !strncmp(s, "{args}", 6)) {
			qk_buf_reset(&all);
			add_unknown(r, &all);
			add_words(&all, r->args);
			add_words(&all, r->given);
			qk_buf_addstr(&b, all.len ? all.s + 1 : "");
			s += 6;
		} else {
			qk_buf_addch(&b, *s++);
		}
	}
	if (!named && !whole && forward) {
		add_unknown(r, &b);
		add_words(&b, r->given);
		add_words(&b, r->args);
	}
	return qk_arena_strndup(&r->s->arena, b.s, b.len);
}

static bool flag(const struct qk_json *o, const char *name, bool unset)
{
	const struct qk_json *v = qk_json_get(o, name);

	return v && v->type == QK_JSON_BOOL ? v->boolean : unset;
}

static void problem(struct reading *r, const struct qk_json *at, const char *what)
{
	struct qk_arena *a = &r->s->arena;

	if (!r->s->problem)
		r->s->problem = qk_arena_printf(a, "%s: %s",
			qk_json_place(a, at && at->line ? at : r->t->target->at), what);
}

static void read_commands(struct reading *r)
{
	const struct qk_json *o = r->t->options, *list = qk_json_get(o, "commands"),
			     *one = qk_json_get(o, "command");
	bool forward = flag(o, "forwardAllArgs", true);

	if (one && one->type != QK_JSON_NULL) {
		qk_autofree char *text = words_of(one);

		qk_vec_push(&r->s->commands, interpolate(r, text, forward));
		return;
	}
	if (!list || list->type != QK_JSON_ARRAY) {
		problem(r, list, "nx:run-commands has neither \"command\" nor \"commands\"");
		return;
	}
	for (uint32_t i = 0; i < list->n; i++) {
		const struct qk_json *item = list->items[i], *text = item;

		if (item->type == QK_JSON_OBJECT)
			text = qk_json_get(item, "command");
		if (!text || text->type != QK_JSON_STRING)
			problem(r, item, "a command must be a string, or an object with one");
		else
			qk_vec_push(&r->s->commands,
				interpolate(r, text->s, flag(item, "forwardAllArgs", forward)));
	}
	r->s->parallel = list->n > 1 && flag(o, "parallel", true) && !flag(o, "no-parallel", false);
}

static void read_env(struct reading *r, const struct qk_json *env)
{
	for (uint32_t i = 0; env && env->type == QK_JSON_OBJECT && i < env->n; i++) {
		qk_autofree char *value = scalar(env->members[i].value);

		if (value)
			qk_vec_push(&r->s->env,
				qk_arena_printf(&r->s->arena, "%s=%s", env->members[i].key, value));
	}
}

static void read_ready_when(struct reading *r, const struct qk_json *v)
{
	if (v && v->type == QK_JSON_STRING)
		qk_vec_push(&r->s->ready_when, v->s);
	for (uint32_t i = 0; v && v->type == QK_JSON_ARRAY && i < v->n; i++)
		if (v->items[i]->type == QK_JSON_STRING)
			qk_vec_push(&r->s->ready_when, v->items[i]->s);
}

static void read_run_commands(struct reading *r, const char *root)
{
	const struct qk_json *o = r->t->options, *cwd = qk_json_get(o, "cwd"),
			     *file = qk_json_get(o, "envFile");
	qk_autofree char *dir = NULL;

	r->given = words_of(qk_json_get(o, "args"));
	for (uint32_t i = 0; o && i < o->n; i++) {
		qk_autofree char *value =
			is_own(o->members[i].key) ? NULL : scalar(o->members[i].value);

		if (value)
			name_argument(r, o->members[i].key, strlen(o->members[i].key), value);
	}
	name_arguments(r, r->given);
	name_arguments(r, r->args);
	read_commands(r);
	read_env(r, qk_json_get(o, "env"));
	read_ready_when(r, qk_json_get(o, "readyWhen"));
	if (file && file->type == QK_JSON_STRING)
		r->s->env_file = file->s;
	dir = qk_path_join(root, cwd && cwd->type == QK_JSON_STRING ? cwd->s : ".");
	r->s->cwd = qk_arena_strdup(&r->s->arena, dir);
}

/* A package manager runs preNAME, NAME and postNAME, the arguments behind NAME alone. */
static void read_script(struct reading *r, const char *root)
{
	static const char *const stages[] = { "pre", "", "post" };
	const struct qk_json *given = qk_json_get(r->t->options, "script"),
			     *scripts = qk_json_get(r->t->project->package, "scripts");
	const char *name = given && given->type == QK_JSON_STRING ? given->s : r->t->target->name;
	const struct qk_json *v = qk_json_get(scripts, name);
	qk_autofree char *dir = qk_path_join(root, r->t->project->root);

	r->s->cwd = qk_arena_strdup(&r->s->arena, dir);
	if (!v || v->type != QK_JSON_STRING) {
		problem(r, given, "package.json has no such script");
		return;
	}
	/* of the variables that package managers set, those that scripts are known to look at */
	qk_vec_push(&r->s->env, qk_arena_printf(&r->s->arena, "npm_lifecycle_event=%s", name));
	if (r->t->project->package_name)
		qk_vec_push(&r->s->env, qk_arena_printf(&r->s->arena, "npm_package_name=%s",
						r->t->project->package_name));
	if (r->t->project->package_version)
		qk_vec_push(&r->s->env, qk_arena_printf(&r->s->arena, "npm_package_version=%s",
						r->t->project->package_version));
	qk_vec_push(&r->s->env, qk_arena_printf(&r->s->arena, "npm_package_json=%s/package.json", dir));
	for (size_t i = 0; i < 3; i++) {
		qk_autofree char *stage = qk_asprintf("%s%s", stages[i], name);

		v = qk_json_get(scripts, stage);
		if (v && v->type == QK_JSON_STRING)
			qk_vec_push(&r->s->commands,
				*stages[i] || !*r->args ? v->s
							: qk_arena_printf(&r->s->arena, "%s %s",
								  v->s, r->args));
	}
}

void qk_commands_read(
	struct qk_taskspec *s, const struct qk_task *t, const char *root, const char *args)
{
	const char *executor = t->target->executor;
	struct reading r = { .s = s, .t = t, .args = "" };

	if (args && t->forwards_args)
		r.args = args;
	s->cwd = root;
	if (!strcmp(executor, "nx:run-commands")) {
		read_run_commands(&r, root);
	} else if (!strcmp(executor, "nx:run-script")) {
		read_script(&r, root);
	} else if (strcmp(executor, "nx:noop")) {
		qk_autofree char *what = qk_asprintf("executor %s is none that qk can run", executor);

		problem(&r, qk_json_get(t->target->at, "executor"), what);
	}
	for (size_t i = 0; i < r.named.n; i++) {
		free(r.named.v[i].name);
		free(r.named.v[i].value);
	}
	qk_vec_release(&r.named);
	free(r.given);
}

/* make takes these from the beginning of a recipe line, and ends a line at a newline. */
static void show_command(struct qk_buf *out, const char *text)
{
	if (!out->len && strchr("@+- \t", *text))
		qk_buf_addstr(out, "env "); /* no program's name begins so; what follows fails alike */
	for (; *text; text++)
		qk_buf_addstr(out, *text == '\n' ? "; " : (const char[]){ *text, '\0' });
}

void qk_commands_show(struct qk_buf *out, const struct qk_taskspec *s, const char *root)
{
	const char *below = qk_path_below(s->cwd, root);
	bool subshell = s->commands.n > 1;

	if (s->problem) {
		qk_buf_addf(out, ": %s", s->id);
		return;
	}
	if (!s->commands.n)
		qk_buf_addf(out, ": %s (nx:noop)", s->id);
	if (s->commands.n && (!below || *below))
		qk_buf_addf(out, "cd %s && ", below ? below : s->cwd);
	for (size_t i = 0; i < s->commands.n; i++) {
		if (i)
			qk_buf_addstr(out, s->parallel ? " & " : " && ");
		qk_buf_addstr(out, subshell ? "(" : "");
		show_command(out, s->commands.v[i]);
		qk_buf_addstr(out, subshell ? ")" : "");
	}
	if (s->parallel)
		qk_buf_addstr(out, " & wait");
}
