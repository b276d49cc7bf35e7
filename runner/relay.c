#include "runner/relay.h"

#include "base/clock.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/newcalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum {
	CHUNK = 1 << 16,
	CAPTURE_MAX = 256 << 20,
	LATE_MS = 100, /* for what a command started and did not wait for */
};

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
	       x.st_rdev == y.st_rdev;
}

/* Above 9: the job server and what make passes on keep their numbers. */
static int move_up(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	close(fd);
	return up;
}

static int open_pty(struct qk_relay_channel *c)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), theirs;
	struct termios t;
	struct winsize size;
	char name[64];

	if (master < 0)
		return -errno;
	if (grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof(name)) ||
		(theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		int e = errno;

		close(master);
		return -e;
	}
	/* the real terminal does what has to be done to newlines: once is enough */
	if (!tcgetattr(c->to, &t)) {
		t.c_oflag &= (tcflag_t)~OPOST;
		tcsetattr(theirs, TCSANOW, &t);
	}
	if (!ioctl(c->to, TIOCGWINSZ, &size))
		ioctl(theirs, TIOCSWINSZ, &size);
	c->from = move_up(master);
	c->theirs = move_up(theirs);
	return 0;
}

static int open_channel(struct qk_relay_channel *c, int to)
{
	int fds[2];

	*c = (struct qk_relay_channel){ .from = -1, .theirs = -1, .to = to, .pty = isatty(to) };
	if (c->pty)
		return open_pty(c);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	c->from = move_up(fds[0]);
	c->theirs = move_up(fds[1]);
	return 0;
}

int qk_relay_open(struct qk_relay *r, struct qk_err *err)
{
	int ret;

	r->n = 0;
	for (int to = 1; to <= 2; to++) {
		if (to == 2 && same_file(1, 2))
			break;
		ret = open_channel(&r->channels[r->n], to);
		if (ret) {
			qk_relay_release(r);
			return qk_fail(err, -ret, "its output cannot be captured");
		}
		fcntl(r->channels[r->n].from, F_SETFL, O_NONBLOCK);
		r->n++;
	}
	return 0;
}

void qk_relay_enter(const struct qk_relay *r)
{
	if (!r->n)
		return;
	dup2(r->channels[0].theirs, 1);
	dup2(r->channels[r->n - 1].theirs, 2);
}

void qk_relay_started(struct qk_relay *r)
{
	for (int i = 0; i < r->n; i++)
		if (r->channels[i].theirs >= 0)
			close(qk_steal_fd(&r->channels[i].theirs));
}

/* What was held back goes on its way after all. */
static void give_up_keeping(struct qk_relay *r)
{
	r->too_much = true;
	if (r->hold)
		(void)qk_capture_replay(r->capture.data.s, r->capture.data.len, 1, 2);
	r->hold = false;
}

/* False at the end of what there is for now. */
static bool pass_on(struct qk_relay *r, struct qk_relay_channel *c, bool keep)
{
	static char chunk[CHUNK];
	ssize_t n = read(c->from, chunk, sizeof(chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	/* EIO: nobody has the terminal's other side any more */
	if (n <= 0) {
		close(qk_steal_fd(&c->from));
		return false;
	}
	if (keep && r->seen)
		r->seen(r->arg, chunk, (size_t)n);
	keep = keep && r->keep;
	if (keep && r->capture.data.len + (size_t)n > CAPTURE_MAX)
		give_up_keeping(r);
	else if (keep && !r->too_much)
		qk_capture_add(&r->capture, c->to, chunk, (size_t)n);
	if (keep && r->hold && !r->too_much)
		return true;
	if (qk_write_all(c->to, chunk, (size_t)n)) {
		/* whoever prints is to notice that nobody reads, as if it were not for us */
		close(qk_steal_fd(&c->from));
		r->too_much = true;
		return false;
	}
	return true;
}

void qk_relay_serve(struct qk_relay *r, int i)
{
	if (r->channels[i].from >= 0)
		pass_on(r, &r->channels[i], true);
}

void qk_relay_resize(const struct qk_relay *r)
{
	struct winsize size;

	for (int i = 0; i < r->n; i++)
		if (r->channels[i].pty && r->channels[i].from >= 0 &&
			!ioctl(r->channels[i].to, TIOCGWINSZ, &size))
			ioctl(r->channels[i].from, TIOCSWINSZ, &size);
}

static bool is_open(const struct qk_relay *r)
{
	for (int i = 0; i < r->n; i++)
		if (r->channels[i].from >= 0)
			return true;
	return false;
}

/* Waits until something came or ms have passed. False then. */
static bool wait_for_some(struct qk_relay *r, int ms)
{
	struct pollfd p[2] = { { .fd = r->channels[0].from, .events = POLLIN },
		{ .fd = r->n > 1 ? r->channels[1].from : -1, .events = POLLIN } };

	return poll(p, 2, ms) > 0;
}

/* Goes on for whatever was left running, and holds open nothing else. */
static void __attribute__((noreturn)) stay_behind(struct qk_relay *r)
{
	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			signal(sig, SIG_IGN);
	for (int i = 0; i < r->n; i++)
		if (r->channels[i].from > 9)
			r->channels[i].from = dup2(r->channels[i].from, 3 + i);
	close(0);
	close_range(5, ~0U, 0);
	while (is_open(r)) {
		wait_for_some(r, -1);
		for (int i = 0; i < r->n; i++)
			while (r->channels[i].from >= 0 && pass_on(r, &r->channels[i], false))
				;
	}
	_exit(0);
}

bool qk_relay_finish(struct qk_relay *r)
{
	int64_t end = qk_clock_ms() + LATE_MS, left = LATE_MS;

	while (is_open(r) && left > 0) {
		for (int i = 0; i < r->n; i++)
			while (r->channels[i].from >= 0 && pass_on(r, &r->channels[i], true) &&
				qk_clock_ms() < end)
				;
		left = end - qk_clock_ms();
		if (is_open(r) && left > 0)
			wait_for_some(r, (int)left);
	}
	if (!is_open(r))
		return false;
	if (!fork())
		stay_behind(r);
	return true;
}

void qk_relay_release(struct qk_relay *r)
{
	for (int i = 0; i < r->n; i++) {
		qk_closep(&r->channels[i].from);
		qk_closep(&r->channels[i].theirs);
	}
	r->n = 0;
	qk_capture_release(&r->capture);
}
