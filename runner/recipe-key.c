#include "runner/recipe-key.h"

#include "base/fdio.h"
#include "base/path.h"
#include "keying/key.h"
#include "keying/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ENVIRON_MAX = 16 << 20 };

const char *const qk_recipe_key_variables[] = {
	"PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "SOURCE_DATE_EPOCH", "ZERO_AR_DATE",
	/* the GNU compilers, binutils and the loader */
	"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH",
	"COMPILER_PATH", "GCC_*", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "COLLECT_*",
	"LD_*", "GNUTARGET", "LDEMULATION",
	/* clang, and Apple's tools */
	"CCC_OVERRIDE_OPTIONS", "CLANG_*", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET",
	/* what else is found by the environment */
	"PKG_CONFIG*", "ACLOCAL_PATH", "PERL5*", "PERLLIB", "PYTHON*", "CLASSPATH", "JAVA_HOME",
	"NODE_*", "RUSTFLAGS", "GOFLAGS", "M4PATH", "BISON_PKGDATADIR", "TEXINPUTS", "XDG_DATA_DIRS",
	NULL,
};

/* Of make, of qk and of shells: no recipe's result should hang on these. */
static const char *const never[] = { "MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES",
	"MAKE_TERMOUT", "MAKE_TERMERR", "MAKE_RESTARTS", "MAKEFILES", "SANDBOX", "SANDBOX_REPORT", "CACHE",
	"SKIP_CACHE", "RECORD", "QK_*", "SHELL", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", NULL };

/* The name of entry ("NAME=value") is word, or begins with it if that ends in '*'. */
static bool names(const char *entry, const char *word)
{
	size_t n = strlen(word);

	if (n && word[n - 1] == '*')
		return !strncmp(entry, word, n - 1);
	return !strncmp(entry, word, n) && entry[n] == '=';
}

static bool names_any(const char *entry, const char *const *words)
{
	for (; *words; words++)
		if (names(entry, *words))
			return true;
	return false;
}

static bool is_in_list(const char *entry, const struct qk_request *r)
{
	for (size_t i = 0; i < r->lists[QK_LIST_ENV].n; i++)
		if (names(entry, r->lists[QK_LIST_ENV].v[i]))
			return true;
	return false;
}

/* True if the top make was started with the very same entry. */
static bool came_from_outside(const char *entry, const struct qk_buf *outside)
{
	for (size_t i = 0; i < outside->len; i += strlen(outside->s + i) + 1)
		if (!strcmp(outside->s + i, entry))
			return true;
	return false;
}

static void add_environment(struct qk_key *k, const struct qk_request *r, char *const *env)
{
	qk_autofree char *path = qk_asprintf("%s/environ", r->run);
	qk_autobuf struct qk_buf outside = QK_BUF_INIT;
	qk_autostrv struct qk_strv chosen = { 0 };

	/* the plugin's copy; without it everything counts as the makefiles' doing */
	if (qk_read_file(AT_FDCWD, path, ENVIRON_MAX, &outside, NULL))
		qk_buf_reset(&outside);
	for (; *env; env++)
		if (is_in_list(*env, r) || names_any(*env, qk_recipe_key_variables) ||
			(!names_any(*env, never) && !came_from_outside(*env, &outside)))
			qk_strv_push(&chosen, *env);
	qk_strv_sort(&chosen);
	for (size_t i = 0; i < chosen.n; i++) {
		char *value = strchr(chosen.v[i], '=');

		if (!value)
			continue;
		*value = '\0';
		qk_key_add(k, "env", chosen.v[i], value + 1);
	}
}

/* What the command prints, asked once per run. */
static int runtime(const char *command, const struct qk_request *r, struct qk_digest *ret, struct qk_err *err)
{
	qk_autofree char *slot = qk_asprintf("%s\n%s", r->cwd, command), *path = NULL;
	qk_autobuf struct qk_buf known = QK_BUF_INIT;
	char hex[QK_DIGEST_HEX];
	struct qk_digest d;
	int ret_code;

	qk_digest_bytes(slot, strlen(slot), &d);
	qk_digest_hex(&d, hex);
	path = qk_asprintf("%s/runtime.%s", r->run, hex);
	if (!qk_read_file(AT_FDCWD, path, QK_DIGEST_SIZE, &known, NULL) && known.len == QK_DIGEST_SIZE) {
		memcpy(ret->b, known.s, QK_DIGEST_SIZE);
		return 0;
	}
	ret_code = qk_runtime_run(command, r->cwd, ret, err);
	if (!ret_code)
		(void)qk_write_file(path, ret->b, QK_DIGEST_SIZE, 0666, NULL);
	return ret_code;
}

static int add_runtime(struct qk_key *k, const struct qk_request *r, struct qk_err *err)
{
	qk_autobuf struct qk_buf command = QK_BUF_INIT;
	struct qk_digest d;
	int ret;

	/* make's variable came apart at its blanks */
	for (size_t i = 0; i < r->lists[QK_LIST_RUNTIME].n; i++)
		qk_buf_addf(&command, "%s%s", i ? " " : "", r->lists[QK_LIST_RUNTIME].v[i]);
	if (!command.len)
		return 0;
	ret = runtime(command.s, r, &d, err);
	if (!ret)
		qk_key_add_digest(k, "runtime", command.s, &d, NULL);
	return ret;
}

int qk_recipe_key(const struct qk_request *r, char *const *argv, char *const *env,
	const struct qk_chain *before, struct qk_buf *text, struct qk_digest *ret, struct qk_err *err)
{
	static const char *const system[] = { "content", "stat", "off" };
	qk_autofree char *target = qk_path_join(r->cwd, r->target);
	const char *below = qk_path_below(r->cwd, r->root), *target_below = qk_path_below(target, r->root);
	char mask[16];
	mode_t bits = umask(022);
	struct qk_key k;
	int ret_code;

	umask(bits);
	snprintf(mask, sizeof(mask), "%04o", (unsigned int)bits);
	qk_key_init(&k, "recipe", text);
	qk_key_add(&k, "target", NULL, target_below ? target_below : target);
	qk_key_add(&k, "directory", NULL, below ? below : r->cwd);
	for (; *argv; argv++)
		qk_key_add(&k, "word", NULL, *argv);
	add_environment(&k, r, env);
	qk_key_add(&k, "umask", NULL, mask);
	qk_key_add(&k, "system", NULL, system[r->system_reads < 3 ? r->system_reads : 0]);
	ret_code = add_runtime(&k, r, err);
	if (before->lines)
		qk_key_add_digest(&k, "before", NULL, &before->weak, NULL);
	qk_key_done(&k, ret);
	return ret_code;
}
