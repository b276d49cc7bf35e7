#include "base/progress.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int terminal[2]; /* ours, and what a program has */
static char seen[512];

static void open_terminal(void)
{
	struct winsize w = { .ws_row = 24, .ws_col = 20 };

	setenv("TERM", "xterm", 1);
	terminal[0] = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	ck_assert(terminal[0] >= 0 && !grantpt(terminal[0]) && !unlockpt(terminal[0]));
	terminal[1] = open(ptsname(terminal[0]), O_RDWR | O_NOCTTY);
	ck_assert(terminal[1] >= 0 && !ioctl(terminal[1], TIOCSWINSZ, &w));
}

static void close_terminal(void)
{
	close(terminal[0]);
	close(terminal[1]);
}

static const char *shown(void)
{
	ssize_t n = read(terminal[0], seen, sizeof(seen) - 1);

	seen[n > 0 ? n : 0] = '\0';
	return seen;
}

START_TEST(line_comes_and_goes)
{
	struct qk_progress p;

	qk_progress_init(&p, terminal[1]);
	qk_progress_say(&p, 1000, "%d", 1);
	qk_progress_say(&p, 1000 + QK_PROGRESS_AFTER_MS - 1, "%d", 2);
	ck_assert_str_eq(shown(), "");
	qk_progress_say(&p, 1000 + QK_PROGRESS_AFTER_MS, "%d", 3);
	ck_assert_str_eq(shown(), "\r\033[K3\r");
	qk_progress_say(&p, 1001 + QK_PROGRESS_AFTER_MS, "%d", 4);
	ck_assert_str_eq(shown(), "");
	qk_progress_say(&p, 1000 + QK_PROGRESS_AFTER_MS + QK_PROGRESS_EVERY_MS, "%s", "wider than the terminal");
	ck_assert_str_eq(shown(), "\r\033[Kwider than the term\r");
	qk_progress_clear(&p);
	ck_assert_str_eq(shown(), "\r\033[K");
	qk_progress_clear(&p);
	/* what follows is other work */
	qk_progress_say(&p, 9000, "%d", 5);
	ck_assert_str_eq(shown(), "");
}
END_TEST

static void never(int fd)
{
	struct qk_progress p;

	qk_progress_init(&p, fd);
	qk_progress_say(&p, 1, "a");
	qk_progress_say(&p, 10000, "b");
	qk_progress_clear(&p);
}

START_TEST(nothing_elsewhere)
{
	int fds[2];
	char c;

	ck_assert(!pipe(fds));
	never(fds[1]);
	close(fds[1]);
	ck_assert_int_eq(read(fds[0], &c, 1), 0);
	close(fds[0]);
	setenv("TERM", "dumb", 1);
	never(terminal[1]);
	unsetenv("TERM");
	never(terminal[1]);
	ck_assert_str_eq(shown(), "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("progress");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, open_terminal, close_terminal);
	tcase_add_test(t, line_comes_and_goes);
	tcase_add_test(t, nothing_elsewhere);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
