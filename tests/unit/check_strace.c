#include "base/buf.h"
#include "sandbox/recorder-strace.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

/*
 * Lines as strace writes them, "a", "b" and so on for the hexadecimal of names, against what is
 * understood. There is no such directory as /q: nothing is found there, all is taken from the text.
 * Nor are there such processes: the numbers are past the kernel's limit.
 */
static const struct {
	const char *lines, *expect;
	bool lost;
} rows[] = {
	{ "7777777 openat(-100</q>, 'a', 0) = 3</q/a>\n", "/q/a=r", false },
	{ "7777777 openat(-100</q>, 'a', 0) = -1 ENOENT (No such file or directory)\n", "", false },
	{ "7777777 openat(5</q/d>, 'a', 0x41, 0666) = 3</q/d/a>\n", "/q/d/a=wc", false },
	{ "7777777 unlink('a') = 0\n", "/q/a=wd", false },
	{ "7777777 unlink('a') = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n", "",
		false },
	{ "7777777 unlink(0x7f00) = -1 EFAULT (Bad address)\n", "", false },
	{ "7777777 rename('a', 'b') = 0\n", "/q/a=rwd /q/b=wc", false },
	{ "7777777 symlink('b', 'a') = 0\n", "/q/a=wc", false },
	{ "7777777 mkdir('a', 0777) = 0\n", "/q/a=wcD", false },
	{ "7777777 bind(3, {sa_family=0x1, sun_path='a'}, 110) = 0\n", "/q/a=wc", false },
	{ "7777777 bind(3, {sa_family=0x1, sun_path=@'a'}, 110) = 0\n", "", false },
	{ "7777777 bind(3, {sa_family=0x2, sin_port=0}, 16) = 0\n", "", false },
	{ "7777777 openat2(-100</q>, 'a', {flags=0x1, resolve=0x8}, 24) = 4</q/a>\n", "/q/a=w",
		false },
	/* refused though permissions allow it: by walls, and to be named */
	{ "7777777 openat(-100</q>, '/etc/passwd', 0) = -1 EACCES (Permission denied)\n",
		"/etc/passwd=r", false },
	/* a file that is open and has no name any more */
	{ "7777777 openat(-100</q>, 'a', 0) = 3</q/a>(deleted)\n", "", false },
	/* what was opened through a link that is gone by now: its name tells */
	{ "7777777 openat(-100</q>, 'k/a', 0) = 3</q/d/a>\n", "/q/k=f /q/d/a=r", false },
	{ "7777777 openat(-100</q>, 'a', 0) = 3</q/d/a>\n", "/q/a=f /q/d/a=r", false },
	{ "7777777 openat(-100</q>, 'd/../a', 0) = 3</q/a>\n", "/q/a=r", false },
	/* calls that others came between, and the threads and children that did */
	{ "7777777 unlink( <unfinished ...>\n8888888 unlink('b') = 0\n7777777 <... unlink "
	  "resumed>'a') = 0\n",
		"/q/b=wd /q/a=wd", false },
	{ "7777777 fchdir(3</q/d>) = 0\n7777777 vfork( <unfinished ...>\n8888888 unlink('a') = 0\n"
	  "7777777 <... vfork resumed>) = 8888888\n",
		"/q/d/a=wd", false },
	{ "7777777 clone(child_stack=NULL, flags=0x1200000|17, child_tidptr=0x7f) = 8888888\n"
	  "8888888 fchdir(3</q/d>) = 0\n7777777 unlink('a') = 0\n8888888 unlink('a') = 0\n",
		"/q/a=wd /q/d/a=wd", false },
	{ "7777777 clone3({flags=0x3d0f00, exit_signal=0} => {parent_tid=[8888888]}, 88) = "
	  "8888888\n"
	  "8888888 fchdir(3</q/d>) = 0\n7777777 unlink('a') = 0\n",
		"/q/d/a=wd", false },
	{ "7777777 clone3({flags=0x3d0f00}, 88) = 8888888\n8888888 unshare(0x200) = 0\n8888888 "
	  "fchdir(3</q/d>) = 0\n"
	  "7777777 unlink('a') = 0\n",
		"/q/a=wd", false },
	{ "7777777 clone3({flags=0x3d0f00}, 88) = 8888888\n8888888 execve('a', ['a'], 0x7f /* 3 "
	  "vars */ <unfinished "
	  "...>\n"
	  "7777777 +++ superseded by execve in pid 8888888 +++\n7777777 <... execve resumed>) = "
	  "0\n7777777 unlink('b') = "
	  "0\n",
		"/q/a=rx /q/b=wd", false },
	/* a number used again: another process, which starts where its parent is */
	{ "7777777 fork() = 8888888\n8888888 fchdir(3</q/d>) = 0\n8888888 +++ exited with 0 "
	  "+++\n7777777 fork() = 8888888\n8888888 "
	  "unlink('a') = 0\n",
		"/q/a=wd", false },
	{ "7777777 +++ killed by SIGKILL +++\n", "", false },
	/* what cannot be believed */
	{ "7777777 unlink('a'\n", "", true },
	{ "7777777 unlink(0x7f00) = 0\n", "", true },
	{ "7777777 openat(-100) = 3\n", "", true },
	{ "7777777 <... unlink resumed>'a') = 0\n", "", true },
	{ "strace: something went wrong\n", "", true },
	{ "7777777 chroot('a') = 0\n", "", true },
	{ "7777777 chroot('a') = -1 EPERM (Operation not permitted)\n", "", false },
	{ "7777777 unshare(0x20000) = 0\n", "", true },
	{ "7777777 mount('a', 'b', 'a', 0, NULL) = 0\n", "", true },
	{ "7777777 open_by_handle_at(3, {handle_bytes=8}, 0) = 4\n", "", true },
};

/* 'x' -> "\x78", <x> -> <\x78> as -xx has them. */
static void encode(const char *s, struct qk_buf *out)
{
	bool in = false;

	for (; *s; s++) {
		if (*s == '\'') {
			in = !in;
			qk_buf_addch(out, '"');
		} else if (*s == '<' && s[1] == '/') {
			in = true;
			qk_buf_addch(out, '<');
		} else if (*s == '>' && in) {
			in = false;
			qk_buf_addch(out, '>');
		} else if (in) {
			qk_buf_addf(out, "\\x%02x", *s);
		} else {
			qk_buf_addch(out, *s);
		}
	}
}

static void show(const struct qk_trace *t, struct qk_buf *out)
{
	for (size_t i = 0; i < t->entries.n; i++) {
		qk_buf_addf(out, "%s%s=", i ? " " : "", t->entries.v[i].path);
		for (int bit = 0; bit < 12; bit++)
			if (t->entries.v[i].flags >> bit & 1)
				qk_buf_addch(out, "rxlfpawcdDmo"[bit]);
	}
}

/* Feeds through a pipe, in pieces of any size. */
static void feed(struct qk_strace *s, const struct qk_buf *b, size_t piece)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	s->fd = ends[0];
	s->fifo = qk_strdup("/nonexistent/fifo");
	for (size_t at = 0; at < b->len; at += piece) {
		size_t n = b->len - at < piece ? b->len - at : piece;

		ck_assert_int_eq(write(ends[1], b->s + at, n), (ssize_t)n);
		ck_assert(qk_strace_serve(s));
	}
	close(ends[1]);
	ck_assert(!qk_strace_serve(s));
}

START_TEST(lines)
{
	static const size_t pieces[] = { 1, 7, 10000 };

	for (size_t i = 0; i < 3; i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT, got = QK_BUF_INIT;
		struct qk_strace s = { .trace = NULL, .fd = -1, .text = QK_BUF_INIT };
		struct qk_trace t;

		qk_trace_init(&t);
		s.trace = &t;
		s.first_cwd = "/q";
		qk_witness_init(&s.witness, &t);
		encode(rows[_i].lines, &b);
		feed(&s, &b, pieces[i]);
		show(&t, &got);
		ck_assert_msg(!strcmp(got.s, rows[_i].expect), "%sexpected '%s', got '%s' (%s)",
			rows[_i].lines, rows[_i].expect, got.s, t.incomplete ? t.incomplete : "");
		ck_assert_msg(!!t.incomplete == rows[_i].lost, "%s%s", rows[_i].lines,
			t.incomplete ? t.incomplete : "not lost");
		qk_strace_release(&s);
		qk_trace_release(&t);
	}
}
END_TEST

/* Cut and damaged lines: never a crash, and what is no whole call is never taken for one. */
START_TEST(damage)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	encode(rows[_i].lines, &b);
	for (size_t n = 0; n < b.len; n++) {
		struct qk_strace s = { .fd = -1, .text = QK_BUF_INIT, .first_cwd = "/q" };
		qk_autofree char *line = qk_strndup(b.s, n), *other = qk_strndup(b.s, b.len);
		struct qk_trace t;

		qk_trace_init(&t);
		s.trace = &t;
		qk_witness_init(&s.witness, &t);
		other[n] = '<';
		qk_strace_line(&s, line);
		qk_strace_line(&s, other);
		for (size_t i = 0; i < t.entries.n; i++)
			ck_assert_int_eq(t.entries.v[i].path[0], '/');
		qk_strace_release(&s);
		qk_trace_release(&t);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("strace");
	TCase *tc = tcase_create("strace");
	SRunner *sr = srunner_create(s);
	int n = (int)(sizeof(rows) / sizeof(*rows)), failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, lines, 0, n);
	tcase_add_loop_test(tc, damage, 0, n);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
