#include "runner/shell.h"
#include "base/buf.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static char self[PATH_MAX];

/* What argv's program, or the shell, makes of a line that starts this program with --show. */
static void output_of(char *const *argv, struct qk_buf *out)
{
	char block[4096];
	int fds[2];
	ssize_t n;

	ck_assert(!pipe(fds));
	if (!fork()) {
		dup2(fds[1], 1);
		dup2(open("/dev/null", O_WRONLY), 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while ((n = read(fds[0], block, sizeof(block))) > 0)
		qk_buf_add(out, block, (size_t)n);
	close(fds[0]);
	wait(NULL);
}

/* True if the line is plain; then the program started by itself must see what it sees from sh. */
static bool same_as_shell(const char *line)
{
	qk_autofree char *copy = qk_strdup(line);
	char *in[] = { (char *)"sh", (char *)"-c", copy, NULL };
	char *shell[] = { (char *)"/bin/sh", (char *)"-c", copy, NULL };
	qk_autobuf struct qk_buf direct = QK_BUF_INIT, through = QK_BUF_INIT;
	qk_autostrv struct qk_strv argv = { 0 };

	if (!qk_shell_argv(&argv, "/bin/sh", in)) {
		ck_assert_uint_eq(argv.n, 3);
		ck_assert_str_eq(argv.v[0], "/bin/sh");
		ck_assert_str_eq(argv.v[2], line);
		return false;
	}
	output_of(argv.v, &direct);
	output_of(shell, &through);
	ck_assert_msg(direct.len && !strcmp(direct.s, through.s), "'%s': '%s' is not '%s'", line, direct.s,
		through.s);
	return true;
}

static const struct {
	const char *args; /* of this program */
	bool plain;
} lines[] = {
	{ "", true },
	{ "a b", true },
	{ "  a \t b  ", true },
	{ "-o out/a.o -c src/a.c", true },
	{ "-DX=1 -I. -Wl,-z,now a=b", true },
	{ "a:b @c %d +e _f 100%", true },
	{ "--", true },
	{ "a;b", false },
	{ "a & b", false },
	{ "'a b'", false },
	{ "\"a\"", false },
	{ "a\\ b", false },
	{ "*.c", false },
	{ "a?", false },
	{ "[a]", false },
	{ "{a,b}", false },
	{ "~", false },
	{ "$HOME", false },
	{ "`a`", false },
	{ "a #b", false },
	{ "!a", false },
	{ "a ^b", false },
	{ "a|b", false },
	{ "a>b", false },
	{ "a<b", false },
	{ "(a)", false },
	{ "a\nb", false },
	{ "a\rb", false },
	{ "\xc3\xa4", false },
};

START_TEST(line)
{
	qk_autofree char *text = qk_asprintf("%s --show %s", self, lines[_i].args);

	ck_assert_msg(same_as_shell(text) == lines[_i].plain, "%s", text);
}
END_TEST

/* Whatever byte it is, where it is plain it means to the shell what it is. */
START_TEST(every_byte)
{
	static const char *const places[] = { "x%cy", "%cx", "x%c", "%c", "- %c x" };

	for (int i = 0; i < COUNT(places); i++) {
		char arg[16], c = (char)_i;
		const char *at = strstr(places[i], "%c");
		qk_autofree char *text = NULL;

		snprintf(arg, sizeof(arg), "%.*s%c%s", (int)(at - places[i]), places[i], c, at + 2);
		text = qk_asprintf("%s --show %s", self, arg);
		same_as_shell(text);
	}
}
END_TEST

/* What only a shell can do has no program of its name, or another meaning. */
static const char *const for_the_shell[] = { "cd /tmp", "exit 3", "export a", ". x", ": x", "exec true",
	"if true", "for x", "case x", "while true", "eval x", "set -e", "umask 022", "test -f x", "read x",
	"trap x", "ulimit -n", "wait", "type x", "unset x", "command x", "times", "a=b c", "a=b", "", "   ", "\t" };

START_TEST(shell_words)
{
	char *in[] = { (char *)"sh", (char *)"-c", (char *)for_the_shell[_i], NULL };
	qk_autostrv struct qk_strv argv = { 0 };

	ck_assert_msg(!qk_shell_argv(&argv, "/bin/sh", in), "%s", for_the_shell[_i]);
	ck_assert_str_eq(argv.v[0], "/bin/sh");
}
END_TEST

static const struct {
	const char *shell;
	const char *in[6];
	bool direct;
	const char *out; /* '|' between */
} argvs[] = {
	{ "/bin/sh", { "-c", "true a" }, true, "true|a" },
	{ "/bin/sh", { "-ec", "true a" }, true, "true|a" },
	{ "/bin/sh", { "-c", "a;b" }, false, "/bin/sh|-c|a;b" },
	{ "/bin/sh", { "-e", "-c", "true" }, false, "/bin/sh|-e|-c|true" },
	{ "/bin/sh", { "-xc", "true" }, false, "/bin/sh|-xc|true" },
	{ "/bin/sh", { "-c", "true", "x" }, false, "/bin/sh|-c|true|x" },
	{ "/bin/sh", { "-c" }, false, "/bin/sh|-c" },
	{ "/bin/sh", { NULL }, false, "/bin/sh" },
	{ "/bin/bash", { "-c", "true" }, false, "/bin/bash|-c|true" },
	{ "sh", { "-c", "true" }, false, "sh|-c|true" },
	{ "/usr/bin/env bash", { "-c", "true" }, false, "/usr/bin/env|bash|-c|true" },
	{ " /bin/sh  -u ", { "-c", "true" }, false, "/bin/sh|-u|-c|true" },
	{ "", { "-c", "a b" }, false, "/bin/sh|-c|a b" },
	{ "  ", { "-c", "a b" }, false, "/bin/sh|-c|a b" },
	{ "/usr/bin/python3", { "-c", "x\ny" }, false, "/usr/bin/python3|-c|x\ny" },
};

START_TEST(shell_argv)
{
	char *in[8] = { (char *)"sh" };
	qk_autostrv struct qk_strv argv = { 0 };
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (int i = 0; i < 6; i++)
		in[i + 1] = (char *)argvs[_i].in[i];
	ck_assert_int_eq(qk_shell_argv(&argv, argvs[_i].shell, in), argvs[_i].direct);
	for (size_t i = 0; i < argv.n; i++)
		qk_buf_addf(&b, "%s%s", i ? "|" : "", argv.v[i]);
	ck_assert_str_eq(b.s, argvs[_i].out);
	ck_assert_ptr_null(argv.v[argv.n]);
}
END_TEST

static const struct {
	const char *in[5];
	const char *line;
} given[] = {
	{ { "-c", "x y" }, "x y" },
	{ { "-ec", "x" }, "x" },
	{ { "-e", "-c", "x" }, "x" },
	{ { "-x", "-ec", "x", "y" }, "x" },
	{ { "-c" }, NULL },
	{ { "x" }, NULL },
	{ { NULL }, NULL },
	{ { "-c", "" }, "" },
};

START_TEST(shell_line)
{
	char *in[7] = { (char *)"sh" };
	const char *got;

	for (int i = 0; i < 5; i++)
		in[i + 1] = (char *)given[_i].in[i];
	got = qk_shell_line(in);
	if (given[_i].line)
		ck_assert_str_eq(got, given[_i].line);
	else
		ck_assert_ptr_null(got);
}
END_TEST

static const struct {
	const char *line, *word;
	bool there;
} mentions[] = {
	{ "make all", "make", true },
	{ "make", "make", true },
	{ "cd x && make", "make", true },
	{ "(make)", "make", true },
	{ "+make", "make", true },
	{ "x;make;y", "make", true },
	{ "A=1 /usr/bin/make -C x", "/usr/bin/make", true },
	{ "`make`", "make", true },
	{ "\"make\" x", "make", true },
	{ "cmake .", "make", false },
	{ "makefile", "make", false },
	{ "make-x", "make", false },
	{ "/usr/bin/make", "make", false },
	{ "cmake makex make", "make", true },
	{ "", "make", false },
	{ "make", "", false },
};

START_TEST(mentioned)
{
	ck_assert_int_eq(qk_shell_mentions(mentions[_i].line, mentions[_i].word), mentions[_i].there);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("shell");
	TCase *tc = tcase_create("shell");
	SRunner *sr;
	int failed;

	if (argc > 1 && !strcmp(argv[1], "--show")) {
		for (int i = 1; i < argc; i++)
			printf("<%s>\n", argv[i]);
		return 0;
	}
	if (!realpath("/proc/self/exe", self))
		return 1;
	sr = srunner_create(s);
	tcase_add_loop_test(tc, line, 0, COUNT(lines));
	tcase_add_loop_test(tc, every_byte, 1, 256);
	tcase_add_loop_test(tc, shell_words, 0, COUNT(for_the_shell));
	tcase_add_loop_test(tc, shell_argv, 0, COUNT(argvs));
	tcase_add_loop_test(tc, shell_line, 0, COUNT(given));
	tcase_add_loop_test(tc, mentioned, 0, COUNT(mentions));
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
