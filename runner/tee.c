#include "runner/tee.h"

#include "base/mem.h"
#include "base/newcalls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
	PIECE = 4096,  /* a pipe that can be written to takes so much without blocking */
	PATIENCE = 50, /* ms; signals are looked after between two tries */
	ABOVE = 10,    /* our descriptors stay clear of those a shell uses by number */
};

bool qk_tee_is_terminal(int fd)
{
	struct termios t;

	return !tcgetattr(fd, &t);
}

static void resize(const struct qk_tee_channel *c)
{
	struct winsize now, had;

	if (c->terminal && !ioctl(c->to, TIOCGWINSZ, &now) && !ioctl(c->from, TIOCGWINSZ, &had) &&
		memcmp(&now, &had, sizeof(now)))
		ioctl(c->from, TIOCSWINSZ, &now);
}

static void channel_close(struct qk_tee_channel *c)
{
	if (c->from >= 0)
		close(c->from);
	c->from = -1;
}

/* Reads what is there into the empty block. False if there is nothing, or never will be. */
static bool fill(struct qk_tee_channel *c)
{
	struct qk_tee *t = c->tee;
	ssize_t n;

	resize(c);
	do
		n = read(c->from, c->block, sizeof(c->block));
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		if (!n || errno != EAGAIN)
			channel_close(c); /* EIO: the last who had the terminal has closed it */
		return false;
	}
	c->have = (size_t)n;
	c->done = 0;
	if (t->capture.data.len + c->have > QK_TEE_MAX)
		t->too_much = true;
	if (!t->too_much)
		qk_capture_add(&t->capture, c->stream, c->block, c->have);
	return true;
}

/* Passes on what is in the block. False if the reader takes no more for now. */
static bool flush(struct qk_tee_channel *c)
{
	while (c->done < c->have) {
		struct pollfd p = { c->to, POLLOUT, 0 };
		size_t left = c->have - c->done;
		ssize_t n;

		if (poll(&p, 1, PATIENCE) <= 0)
			return false;
		n = write(c->to, c->block + c->done, left < PIECE ? left : PIECE);
		if (n > 0)
			c->done += (size_t)n;
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			/* the command is to meet what it would have met: nobody reads */
			c->tee->failed = true;
			channel_close(c);
			c->done = c->have;
		}
	}
	c->have = c->done = 0;
	return true;
}

static void ready(struct qk_run_watch *w)
{
	struct qk_tee_channel *c = w->arg;

	if (flush(c) && c->from >= 0 && fill(c))
		flush(c);
	w->fd = c->from;
}

static int above(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);

	close(fd);
	return moved;
}

/* A terminal like the one at fd, but that it passes bytes through as they are. */
static int open_terminal(int fd, int *ret_command)
{
	struct winsize size;
	struct termios how;
	char name[64];
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0)
		return -errno;
	if (grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof(name)))
		goto fail;
	slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		goto fail;
	if (!tcgetattr(fd, &how)) {
		how.c_oflag &= ~(tcflag_t)OPOST;
		how.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(slave, TCSANOW, &how);
	}
	if (!ioctl(fd, TIOCGWINSZ, &size))
		ioctl(slave, TIOCSWINSZ, &size);
	*ret_command = above(slave);
	return above(master);
fail:
	close(master);
	return -EIO;
}

static int open_pipe(int *ret_command)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	*ret_command = above(fds[1]);
	return above(fds[0]);
}

static int open_channel(struct qk_tee *t, int stream, int *ret_command)
{
	struct qk_tee_channel *c = &t->channels[t->n];

	c->tee = t;
	c->stream = stream;
	c->to = t->saved[stream - 1];
	c->have = c->done = 0;
	c->terminal = qk_tee_is_terminal(stream);
	c->from = c->terminal ? open_terminal(stream, ret_command) : open_pipe(ret_command);
	if (c->from < 0)
		return c->from;
	fcntl(c->from, F_SETFL, O_NONBLOCK | O_RDWR);
	t->watches[t->n] = (struct qk_run_watch){ c->from, ready, c };
	t->n++;
	return 0;
}

static bool is_one_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev;
}

static void on_sigpipe(int sig)
{
	(void)sig;
}

/* A write of ours that fails is no reason to die; the command is to have what it would have. */
static void take_sigpipe(struct qk_tee *t)
{
	struct sigaction old, act = { .sa_handler = on_sigpipe };

	sigaction(SIGPIPE, NULL, &old);
	t->took_sigpipe = old.sa_handler != SIG_IGN;
	if (t->took_sigpipe) /* a handler is gone after exec, ignoring would stay */
		sigaction(SIGPIPE, &act, NULL);
}

int qk_tee_begin(struct qk_tee *t, struct qk_err *err)
{
	int command[2] = { -1, -1 }, r = 0;
	bool there[2], one;
	struct stat st[2];

	t->capture = (struct qk_capture)QK_CAPTURE_INIT;
	t->too_much = t->failed = false;
	t->n = 0;
	for (int i = 0; i < 2; i++) {
		there[i] = !fstat(1 + i, &st[i]);
		t->saved[i] = there[i] ? fcntl(1 + i, F_DUPFD_CLOEXEC, ABOVE) : -1;
	}
	one = there[0] && there[1] && is_one_file(&st[0], &st[1]);
	for (int i = 0; i < 2 && !r; i++)
		if (there[i] && !(i && one))
			r = open_channel(t, 1 + i, &command[i]);
	if (r) {
		qk_tee_release(t);
		return qk_fail(err, -r, "a descriptor to keep what is printed");
	}
	take_sigpipe(t);
	for (int i = 0; i < 2; i++)
		if (there[i])
			dup2(command[i && one ? 0 : i], 1 + i);
	for (int i = 0; i < 2; i++)
		if (command[i] >= 0)
			close(command[i]);
	return 0;
}

/* Goes on passing bytes until nobody is left who could print. Holds nothing else open. */
static void __attribute__((noreturn)) keep(struct qk_tee *t)
{
	int at = 0;

	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			signal(sig, SIG_IGN);
	for (unsigned int i = 0; i < t->n; i++) {
		struct qk_tee_channel *c = &t->channels[i];

		/* all are above: putting them side by side below harms none */
		c->to = dup2(c->to, at++);
		if (c->from >= 0)
			c->from = dup2(c->from, at++);
	}
	close_range((unsigned int)at, ~0U, 0);
	(void)!chdir("/");
	t->too_much = true; /* nobody will ask for it */
	for (;;) {
		struct pollfd p[2];
		unsigned int open = 0;

		for (unsigned int i = 0; i < t->n; i++) {
			p[i] = (struct pollfd){ t->channels[i].from, POLLIN, 0 };
			open += p[i].fd >= 0;
		}
		if (!open)
			_exit(0);
		if (poll(p, t->n, -1) < 0)
			continue;
		for (unsigned int i = 0; i < t->n; i++)
			if (p[i].revents)
				ready(&t->watches[i]);
	}
}

void qk_tee_end(struct qk_tee *t, bool left_running)
{
	bool open = false;

	for (int i = 0; i < 2; i++)
		if (t->saved[i] >= 0)
			dup2(t->saved[i], 1 + i);
	for (unsigned int i = 0; i < t->n; i++) {
		struct qk_tee_channel *c = &t->channels[i];

		do
			while (!flush(c))
				;
		while (c->from >= 0 && fill(c));
		open |= c->from >= 0;
	}
	if (left_running && open && !fork())
		keep(t);
	for (unsigned int i = 0; i < t->n; i++)
		channel_close(&t->channels[i]);
	if (t->took_sigpipe)
		signal(SIGPIPE, SIG_DFL);
}

void qk_tee_release(struct qk_tee *t)
{
	for (unsigned int i = 0; i < t->n; i++)
		channel_close(&t->channels[i]);
	for (int i = 0; i < 2; i++)
		if (t->saved[i] >= 0)
			close(t->saved[i]);
	t->saved[0] = t->saved[1] = -1;
	t->n = 0;
	qk_capture_release(&t->capture);
}
