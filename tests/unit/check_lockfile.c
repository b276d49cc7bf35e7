#include "keying/lockfile.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "keying/yamldepth.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static struct qk_err err;
static struct qk_buf golden = QK_BUF_INIT;

static void setup(void)
{
	ck_assert_msg(
		!qk_read_file(AT_FDCWD, "tests/data/pnpm-9/pnpm-lock.yaml", 1 << 20, &golden, &err),
		"%s", err.msg);
}

static void teardown(void)
{
	qk_buf_release(&golden);
}

static struct qk_lockfile *parse(const char *text)
{
	struct qk_lockfile *l;

	ck_assert_msg(
		!qk_lockfile_parse("pnpm-lock.yaml", text, strlen(text), &l, &err), "%s", err.msg);
	return l;
}

/* The golden file with one text replaced everywhere. */
static char *edited(const char *from, const char *to)
{
	struct qk_buf b = QK_BUF_INIT;
	const char *s = golden.s, *hit;

	ck_assert_ptr_nonnull(strstr(s, from));
	for (; (hit = strstr(s, from)); s = hit + strlen(from)) {
		qk_buf_add(&b, s, (size_t)(hit - s));
		qk_buf_addstr(&b, to);
	}
	qk_buf_addstr(&b, s);
	return qk_buf_detach(&b);
}

static struct qk_digest importers(const char *text, const char *dirs)
{
	struct qk_lockfile *l = parse(text);
	qk_autostrv struct qk_strv words = { 0 }, local = { 0 };
	struct qk_digest d;

	qk_strv_split(&words, dirs);
	ck_assert_msg(!qk_lockfile_importers(
			      l, (const char *const *)words.v, words.n, &d, &local, &err),
		"%s", err.msg);
	qk_lockfile_free(l);
	return d;
}

static struct qk_digest packages(const char *text, const char *names, const char *unknown)
{
	struct qk_lockfile *l = parse(text);
	qk_autostrv struct qk_strv words = { 0 }, local = { 0 };
	struct qk_digest d;
	const char *not_there;

	qk_strv_split(&words, names);
	ck_assert_int_eq(qk_lockfile_packages(
				 l, (const char *const *)words.v, words.n, &d, &local, &not_there, &err),
		0);
	if (unknown)
		ck_assert_str_eq(not_there, unknown);
	else
		ck_assert_ptr_null(not_there);
	qk_lockfile_free(l);
	return d;
}

START_TEST(reached)
{
	static const struct {
		const char *dirs, *want;
	} rows[] = {
		{ ".", "is-number@6.0.0 is-odd@3.0.1" },
		{ "libs/a",
			"ansi-regex@5.0.1 emoji-regex@8.0.0 is-fullwidth-code-point@3.0.0 ms@2.1.3 "
			"string-width@4.2.3 strip-ansi@6.0.1" },
		/* A link to libs/a leads to what that installs. */
		{ "libs/b", "ansi-regex@5.0.1 debug@4.3.4(supports-color@8.1.1) emoji-regex@8.0.0 "
			    "has-flag@4.0.0 is-fullwidth-code-point@3.0.0 ms@2.1.2 ms@2.1.3 "
			    "string-width@4.2.3 strip-ansi@6.0.1 supports-color@8.1.1" },
		{ "none", "" },
		{ "", "" },
	};
	struct qk_lockfile *l = parse(golden.s);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		qk_autostrv struct qk_strv words = { 0 };
		struct qk_lockreach got;
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_strv_split(&words, rows[i].dirs);
		ck_assert_int_eq(
			qk_lockfile_reached(l, (const char *const *)words.v, words.n, NULL, 0,
				&got, &err),
			0);
		for (size_t k = 0; k < got.snapshots.n; k++)
			qk_buf_addf(&b, "%s%s", k ? " " : "", got.snapshots.v[k]);
		ck_assert_str_eq(b.s, rows[i].want);
		qk_lockreach_release(&got);
	}
	ck_assert(qk_lockfile_has_importer(l, "apps/web"));
	ck_assert(!qk_lockfile_has_importer(l, "apps"));
	qk_lockfile_free(l);
}
END_TEST

/* What an edit of the lockfile changes, importer by importer. */
static const struct {
	const char *from, *to;
	bool root, a, b, web;
} edits[] = {
	{ "is-number@6.0.0", "is-number@6.0.1", true, false, false, false },
	{ "quJQXlTSUGL2LH9SUXo8VwsY4soanhgo6LNSm84E1LBcE8s3O0wpdiRzyR9z", "changed-integrity",
		false, true, true, true },
	{ "has-flag@4.0.0", "has-flag@4.0.2", false, false, true, true },
	{ "scheduler@0.23.2", "scheduler@0.23.3", false, false, false, true },
	{ "autoInstallPeers: true", "autoInstallPeers: false", true, true, true, true },
	/* How it was asked for does not count, nor what nobody installs. */
	{ "specifier: npm:string-width@4.2.3", "specifier: npm:string-width@^4.0.0", false, false,
		false, false },
	{ "snapshots:\n", "snapshots:\n\n  left-pad@1.0.0: {}\n", false, false, false, false },
	{ "optional: true", "optional: false", false, false, true, true },
};

START_TEST(what_counts)
{
	qk_autofree char *text = NULL;
	static const char *const dirs[] = { ".", "libs/a", "libs/b", "apps/web" };
	const bool want[] = { edits[_i].root, edits[_i].a, edits[_i].b, edits[_i].web };

	text = edited(edits[_i].from, edits[_i].to);
	if (!strncmp(edits[_i].from, "is-number", 9)) {
		/* The one who names it has to follow. */
		char *odd = strstr(text, "is-number: 6.0.0");

		ck_assert_ptr_nonnull(odd);
		odd[15] = '1';
	}
	if (!strncmp(edits[_i].from, "has-flag", 8))
		strstr(text, "has-flag: 4.0.0")[14] = '2';
	if (!strncmp(edits[_i].from, "scheduler", 9))
		strstr(text, "scheduler: 0.23.2")[16] = '3';
	for (int i = 0; i < 4; i++) {
		struct qk_digest x = importers(golden.s, dirs[i]), y = importers(text, dirs[i]);

		ck_assert_msg(qk_digest_eq(&x, &y) != want[i], "%s", dirs[i]);
	}
}
END_TEST

START_TEST(sets_of_importers)
{
	struct qk_digest a = importers(golden.s, "libs/a ."), b = importers(golden.s, ". libs/a"),
			 c = importers(golden.s, "libs/a"), d = importers(golden.s, "libs/a none");

	ck_assert(qk_digest_eq(&a, &b));
	ck_assert(!qk_digest_eq(&a, &c));
	ck_assert(qk_digest_eq(&c, &d));
}
END_TEST

START_TEST(named_packages)
{
	qk_autofree char *text =
		edited("has-flag@4.0.0:\n", "has-flag@4.0.0:\n    deprecated: yes\n");
	struct qk_digest none = packages(golden.s, "", NULL), ms = packages(golden.s, "ms", NULL),
			 color = packages(golden.s, "supports-color", NULL), x, y;

	ck_assert(!qk_digest_eq(&none, &ms));
	x = packages(golden.s, "ms ms", NULL);
	ck_assert(qk_digest_eq(&x, &ms));
	/* What a package reaches counts with it. */
	y = packages(text, "supports-color", NULL);
	ck_assert(!qk_digest_eq(&color, &y));
	y = packages(text, "ms", NULL);
	ck_assert(qk_digest_eq(&ms, &y));
	packages(golden.s, "ms nobody", "nobody");
}
END_TEST

static const struct {
	const char *text;
	int code;
	const char *message;
} bad[] = {
	{ "", -EINVAL, "pnpm-lock.yaml:1:1: the lockfile is empty" },
	{ "- a\n", -EINVAL, "pnpm-lock.yaml:1:1: a lockfile must be a mapping" },
	{ "a: b\n", -EINVAL, "pnpm-lock.yaml:1:1: 'lockfileVersion' is missing" },
	{ "lockfileVersion: 5.4\n", -EOPNOTSUPP, "pnpm-lock.yaml:1: lockfileVersion 5.4 is not 9" },
	{ "lockfileVersion: '6.0'\n", -EOPNOTSUPP,
		"pnpm-lock.yaml:1: lockfileVersion 6.0 is not 9" },
	{ "lockfileVersion: '9.0'\nimporters: {\n  .: [", -EINVAL, NULL },
	{ "lockfileVersion: '9.0'\n<<<<<<< HEAD\nimporters:\n", -EINVAL, NULL },
	{ "lockfileVersion: '9.0'\n\timporters: {}\n", -EINVAL, NULL },
	{ "lockfileVersion: '9.0'\n", -EINVAL,
		"pnpm-lock.yaml:1:1: 'importers' must be a mapping" },
	{ "lockfileVersion: '9.0'\nimporters:\n  a: 3\n", -EINVAL,
		"pnpm-lock.yaml:3:3: an importer must be a mapping" },
	{ "lockfileVersion: '9.0'\nimporters:\n  a:\n    dependencies:\n      x: [1]\n", -EINVAL,
		"pnpm-lock.yaml:5:10: a package's version was expected" },
	{ "lockfileVersion: '9.0'\nimporters:\n  a: {}\n  a: {}\n", -EINVAL,
		"pnpm-lock.yaml:4:3: an importer is given twice" },
	{ "lockfileVersion: '9.0'\nimporters: {}\n---\nlockfileVersion: '9.0'\n", -EOPNOTSUPP,
		"pnpm-lock.yaml:4: more than one document" },
	{ "lockfileVersion: '9.0'\nimporters: {}\na: &a [x,x,x,x,x,x,x,x]\nb: &b "
	  "[*a,*a,*a,*a,*a,*a]\n"
	  "c: &c [*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d]\n",
		-EINVAL, "pnpm-lock.yaml:1:1: aliases, or values nested too deep" },
	{ "lockfileVersion: '9.0'\nimporters: {}\npackages:\n  x@1: {resolution: {integrity: "
	  "\"\xff\"}}\n",
		-EINVAL, NULL },
};

START_TEST(bad_text)
{
	struct qk_lockfile *l;
	int r = qk_lockfile_parse("pnpm-lock.yaml", bad[_i].text, strlen(bad[_i].text), &l, &err);

	ck_assert_int_eq(r, bad[_i].code);
	if (bad[_i].message)
		ck_assert_str_eq(err.msg, bad[_i].message);
	else
		ck_assert_msg(!strncmp(err.msg, "pnpm-lock.yaml:", 15), "%s", err.msg);
}
END_TEST

START_TEST(deep_nesting)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_lockfile *l;

	qk_buf_addstr(&b, "lockfileVersion: '9.0'\nimporters: {}\nx: ");
	for (int i = 0; i < 900; i++)
		qk_buf_addch(&b, '[');
	for (int i = 0; i < 900; i++)
		qk_buf_addch(&b, ']');
	ck_assert_int_eq(qk_lockfile_parse("pnpm-lock.yaml", b.s, b.len, &l, &err), -EINVAL);
}
END_TEST

START_TEST(nested_too_deep)
{
	static const char *const openings[] = { "[", "{", "- " };

	for (size_t i = 0; i < sizeof(openings) / sizeof(*openings); i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_buf_addstr(&b, "a:\n");
		for (int k = 0; k < QK_YAML_DEPTH; k++)
			qk_buf_addstr(&b, openings[i]);
		ck_assert_int_eq(qk_yaml_check_depth("f", b.s, b.len, &err), 0);
		qk_buf_addstr(&b, openings[i]);
		ck_assert_int_eq(qk_yaml_check_depth("f", b.s, b.len, &err), -EINVAL);
		ck_assert(!strncmp(err.msg, "f:2:", 4));
	}
	/* closed ones count no more, and neither do a line's in the next */
	{
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		for (int k = 0; k < 3 * QK_YAML_DEPTH; k++)
			qk_buf_addstr(&b, "- [{}]\n");
		ck_assert_int_eq(qk_yaml_check_depth("f", b.s, b.len, NULL), 0);
	}
}
END_TEST

/* Every prefix of a real file: an error or a lockfile, and never a crash. */
START_TEST(cut_short)
{
	for (size_t n = 0; n < golden.len; n += 7) {
		struct qk_lockfile *l;

		if (!qk_lockfile_parse("pnpm-lock.yaml", golden.s, n, &l, &err))
			qk_lockfile_free(l);
	}
}
END_TEST

START_TEST(missing_snapshot_is_said)
{
	static const char text[] = "lockfileVersion: '9.0'\nimporters:\n  a:\n    dependencies:\n"
				   "      x:\n        specifier: 1\n        version: 1.0.0\n";
	struct qk_lockfile *l = parse(text);
	static const char *const dirs[] = { "a" };
	qk_autostrv struct qk_strv local = { 0 };
	struct qk_digest d;

	ck_assert_int_eq(qk_lockfile_importers(l, dirs, 1, &d, &local, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "pnpm-lock.yaml:3: 'a' needs 'x@1.0.0', which is in no snapshot");
	qk_lockfile_free(l);
}
END_TEST

/*
 * pnpm 10 wrote this one, all from directories: a hoisted package, one patched, one injected, one
 * with a peer, an override, and a link out of the workspace.
 */
#define PATCH "patch_hash=c38ec67e250783e28a3097ed211e13dd2d97c28e94c65b4269af0544109dd2e2"

static void read_local(struct qk_buf *b)
{
	ck_assert_msg(!qk_read_file(AT_FDCWD, "tests/data/pnpm-10/pnpm-lock.yaml", 1 << 20, b, &err),
		"%s", err.msg);
}

START_TEST(local_packages_reached)
{
	static const struct {
		const char *dir, *want, *local;
	} rows[] = {
		{ ".", "tool@file:vendor/tool", "vendor/tool" },
		{ "apps/app", "host@file:vendor/host inj@file:libs/inj old@file:vendor/new "
			      "peer@file:vendor/peer(host@file:vendor/host) "
			      "phantom@file:vendor/phantom(" PATCH ") user@file:vendor/user",
			"libs/inj vendor/host vendor/new vendor/peer vendor/phantom vendor/tool vendor/user" },
		{ "libs/inj", "phantom@file:vendor/phantom(" PATCH ")", "vendor/phantom" },
		/* What it links to beside the workspace's projects is no importer: it installs nothing. */
		{ "libs/lib", "host@file:vendor/host", "vendor/host vendor/tool" },
	};
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_lockfile *l;

	read_local(&text);
	l = parse(text.s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		qk_autostrv struct qk_strv local = { 0 };
		struct qk_lockreach got;
		struct qk_digest d;
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		ck_assert_msg(
			!qk_lockfile_reached(l, &rows[i].dir, 1, NULL, 0, &got, &err), "%s", err.msg);
		for (size_t k = 0; k < got.snapshots.n; k++)
			qk_buf_addf(&b, "%s%s", k ? " " : "", got.snapshots.v[k]);
		ck_assert_str_eq(b.s, rows[i].want);
		qk_buf_reset(&b);
		ck_assert_msg(!qk_lockfile_importers(l, &rows[i].dir, 1, &d, &local, &err), "%s", err.msg);
		for (size_t k = 0; k < local.n; k++)
			qk_buf_addf(&b, "%s%s", k ? " " : "", local.v[k]);
		ck_assert_str_eq(b.s, rows[i].local);
		qk_lockreach_release(&got);
	}
	qk_lockfile_free(l);
}
END_TEST

/* Another patch counts for those that reach the patched package, and for nobody else. */
START_TEST(local_patch_counts)
{
	static const struct {
		const char *dir;
		bool counts;
	} rows[] = { { ".", false }, { "apps/app", true }, { "libs/inj", true },
		{ "libs/lib", false } };
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	qk_autofree char *other = NULL;

	read_local(&text);
	other = qk_strdup(text.s);
	for (char *p = other; (p = strstr(p, "c38ec67e")); p++)
		*p = 'd';
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct qk_digest a = importers(text.s, rows[i].dir);
		struct qk_digest b = importers(other, rows[i].dir);

		ck_assert_msg((memcmp(&a, &b, sizeof(a)) != 0) == rows[i].counts, "%s", rows[i].dir);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lockfile");
	TCase *t = tcase_create("lockfile");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, reached);
	tcase_add_loop_test(t, what_counts, 0, sizeof(edits) / sizeof(*edits));
	tcase_add_test(t, sets_of_importers);
	tcase_add_test(t, named_packages);
	tcase_add_loop_test(t, bad_text, 0, sizeof(bad) / sizeof(*bad));
	tcase_add_test(t, deep_nesting);
	tcase_add_test(t, nested_too_deep);
	tcase_add_test(t, cut_short);
	tcase_add_test(t, missing_snapshot_is_said);
	tcase_add_test(t, local_packages_reached);
	tcase_add_test(t, local_patch_counts);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
