#include "gmk-plugin/keys.h"

#include "base/glob.h"
#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "gmk-plugin/plugin.h"
#include "gmk-plugin/taskpart.h"
#include "keying/filehash.h"
#include "keying/key.h"
#include "report/rundir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A key in the making. */
struct making {
	char *cwd, *root;
	struct qk_filehash *hash;
	struct qk_key key;
};

static void begin(struct making *m, const char *kind)
{
	qk_autofree char *digests = NULL;
	struct qk_err err = QK_ERR_INIT;

	*m = (struct making){ .cwd = getcwd(NULL, 0) };
	if (!m->cwd)
		qk_gmkx_fatal("qk: current directory: %s", strerror(errno));
	if (qk_rundir_root(qk_plugin.knobs.root, m->cwd, &m->root, &err))
		qk_gmkx_fatal("qk: %s", err.msg);
	digests = qk_path_join(m->root, ".qk/digests");
	if (qk_filehash_new(&m->hash, m->root, access(digests, F_OK) ? NULL : digests, &err))
		qk_gmkx_fatal("qk: qk-key: %s", err.msg);
	qk_key_init(&m->key, kind, NULL);
}

static char *end(struct making *m)
{
	char hex[QK_DIGEST_HEX];
	struct qk_digest d;

	qk_key_done(&m->key, &d);
	qk_digest_hex(&d, hex);
	qk_filehash_free(m->hash);
	free(m->cwd);
	free(m->root);
	return qk_strdup(hex);
}

/* Folds the state of a file or directory under its name as seen from the root. */
static void fold_file(struct making *m, const char *tag, const char *path)
{
	const char *below = qk_path_below(path, m->root);
	struct qk_filestate s;
	struct qk_err err = QK_ERR_INIT;

	if (qk_filehash_get(m->hash, path, 0, &s, &err))
		qk_gmkx_fatal("qk: qk-key: %s", err.msg);
	qk_key_add_digest(&m->key, tag, below ? below : path, &s.digest, NULL);
}

/* A file, a directory, or what a pattern matches. */
static void fold_name(struct making *m, const char *tag, const char *name)
{
	qk_autofree char *path = qk_path_join(m->cwd, name);
	qk_autostrv struct qk_strv found = { 0 };
	struct qk_err err = QK_ERR_INIT;

	if (!qk_glob_is_pattern(name) || !access(path, F_OK)) {
		fold_file(m, tag, path);
		return;
	}
	if (qk_glob_walk(path, &found, &err))
		qk_gmkx_fatal("qk: qk-key: %s", err.msg);
	for (size_t i = 0; i < found.n; i++)
		fold_file(m, tag, found.v[i]);
}

static void fold_words(struct making *m, const char *tag, const char *text)
{
	qk_autofree char *expanded = qk_gmkx_expand("%s", text);
	qk_autostrv struct qk_strv words = { 0 };

	qk_strv_split(&words, expanded);
	for (size_t i = 0; i < words.n; i++)
		fold_name(m, tag, words.v[i]);
}

/* An undefined variable expands to nothing, without --warn-undefined-variables having a say. */
#define LIST(name) "$(if $(filter-out undefined,$(origin " name ")),$(" name "))"

static char *key_of_target(const char *target)
{
	qk_autofree char *names = NULL, *path = NULL;
	qk_autostrv struct qk_strv variables = { 0 };
	struct making m;

	begin(&m, "target");
	path = qk_path_join(m.cwd, target);
	qk_key_add(&m.key, "target", qk_path_below(path, m.root) ? qk_path_below(path, m.root) : path,
		NULL);
	fold_words(&m, "prerequisite", "$^ $|");
	fold_words(&m, "input", LIST("QK_INPUTS"));
	names = qk_gmkx_expand(LIST("QK_ENV"));
	qk_strv_split(&variables, names);
	for (size_t i = 0; i < variables.n; i++) {
		qk_autofree char *defined = qk_gmkx_expand(
			"$(filter-out undefined default,$(origin %s))", variables.v[i]);
		qk_autofree char *value = *defined ? qk_gmkx_expand("$(%s)", variables.v[i]) : NULL;

		qk_key_add(&m.key, "env", variables.v[i], value);
	}
	return end(&m);
}

char *qk_keys_of(const char *text)
{
	qk_autostrv struct qk_strv names = { 0 };
	struct making m;

	qk_strv_split(&names, text);
	if (!names.n) {
		qk_autofree char *target = qk_gmkx_expand("$@");

		if (!*target)
			qk_gmkx_fatal("qk: $(qk-key ) without a name has a meaning in recipes alone");
		if (!qk_taskpart || !qk_taskpart->has(target))
			return key_of_target(target);
		qk_strv_push(&names, target);
	}
	if (names.n == 1 && qk_taskpart && qk_taskpart->has(names.v[0]))
		return qk_taskpart->key(names.v[0]);
	begin(&m, "names");
	for (size_t i = 0; i < names.n; i++) {
		qk_autofree char *key = NULL;

		if (!qk_taskpart || !qk_taskpart->has(names.v[i])) {
			fold_name(&m, "file", names.v[i]);
			continue;
		}
		key = qk_taskpart->key(names.v[i]);
		qk_key_add(&m.key, "task", names.v[i], key);
	}
	return end(&m);
}
