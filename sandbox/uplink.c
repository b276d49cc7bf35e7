#include "sandbox/uplink.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 4096, LISTENER = 3 };

/* Through /proc, because the run directory may be longer than an address can be. */
static void address_in(struct sockaddr_un *un, int dir)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d/" QK_UPLINK_SOCKET, dir);
}

static pid_t start(const char *helper, const char *top, int listener)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (listener == LISTENER ? fcntl(LISTENER, F_SETFD, 0) : dup2(listener, LISTENER) < 0)
		_exit(127);
	execl(helper, helper, top, (char *)NULL);
	_exit(127);
}

int qk_uplink_start(const char *helper, const char *run, pid_t top, struct qk_err *err)
{
	qk_autofd int dir = open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
	qk_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	qk_autofree char *number = qk_asprintf("%d", (int)top);
	struct sockaddr_un un;
	int status = 0;
	pid_t pid;

	if (dir < 0 || fd < 0)
		return qk_fail(err, errno, "network: a socket in '%s'", run);
	address_in(&un, dir);
	if (bind(fd, (const struct sockaddr *)&un, sizeof(un)))
		return errno == EADDRINUSE ? 0 : qk_fail(err, errno, "network: a socket in '%s'", run);
	if (listen(fd, BACKLOG))
		return qk_fail(err, errno, "network: a socket in '%s'", run);
	if (access(helper, X_OK))
		return qk_fail(err, errno, "network: its proxy '%s'", helper);
	pid = start(helper, number, fd);
	if (pid < 0)
		return qk_fail(err, errno, "network: fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? qk_fail(err, -EIO, "network: its proxy '%s' failed", helper) : 0;
}

int qk_uplink_connect(struct qk_uplink *u, const char *run, struct qk_err *err)
{
	qk_autofd int dir = open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
	qk_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;

	address_in(&un, dir);
	if (dir < 0 || fd < 0 || connect(fd, (const struct sockaddr *)&un, sizeof(un)))
		return qk_fail(err, errno, "network: the proxy does not answer in '%s'", run);
	u->conn = qk_steal_fd(&fd);
	return 0;
}

static int listen_inside(struct qk_err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(QK_UPLINK_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	qk_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) || listen(fd, BACKLOG))
		return qk_fail(err, errno, "network: a socket on its loopback");
	return qk_steal_fd(&fd);
}

static int say(int conn, const void *text, size_t n, const int *fds, size_t n_fds)
{
	union {
		char room[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { .room = "" };
	struct iovec io = { (void *)text, n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t sent;

	if (n_fds) {
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		sent = sendmsg(conn, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int qk_uplink_open(struct qk_uplink *u, const struct qk_strv *allow, const struct qk_strv *deny,
	struct qk_err *err)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autofd int fd = listen_inside(err);
	int r;

	if (fd < 0)
		return fd;
	qk_buf_addstr(&b, QK_UPLINK_HELLO);
	for (size_t i = 0; i < allow->n; i++)
		qk_buf_addf(&b, "+%s\n", strcmp(allow->v[i], "true") ? allow->v[i] : "*");
	for (size_t i = 0; i < deny->n; i++)
		qk_buf_addf(&b, "-%s\n", deny->v[i]);
	if (b.len > QK_UPLINK_MESSAGE)
		return qk_fail(err, -E2BIG, "network: its hosts are more than %d bytes", QK_UPLINK_MESSAGE);
	r = say(u->conn, b.s, b.len, &fd, 1);
	return r ? qk_fail(err, -r, "network: the proxy") : 0;
}

int qk_uplink_end(struct qk_uplink *u, struct qk_strv *refused, struct qk_err *err)
{
	static char answer[QK_UPLINK_MESSAGE + 1];
	char *s = answer;
	ssize_t n = -1;
	int r;

	if (u->conn < 0)
		return 0;
	r = say(u->conn, QK_UPLINK_END, strlen(QK_UPLINK_END), NULL, 0);
	while (!r && (n = recv(u->conn, answer, sizeof(answer) - 1, 0)) < 0 && errno == EINTR)
		;
	qk_uplink_release(u);
	answer[n > 0 ? n : 0] = '\0';
	if (strncmp(answer, QK_UPLINK_OK, strlen(QK_UPLINK_OK)))
		return qk_fail(err, -EPIPE, "network: the proxy has ended, or could not do with its hosts");
	s += strlen(QK_UPLINK_OK);
	for (char *line; (line = strsep(&s, "\n"));)
		if (*line)
			qk_strv_push(refused, line);
	return 0;
}

void qk_uplink_release(struct qk_uplink *u)
{
	if (u->conn >= 0)
		close(u->conn);
	u->conn = -1;
}

void qk_uplink_env(void (*set)(void *arg, const char *name, const char *value), void *arg)
{
	static const struct {
		const char *lower, *upper, *scheme;
	} names[] = {
		{ "http_proxy", "HTTP_PROXY", "http" },
		{ "https_proxy", "HTTPS_PROXY", "http" },
		{ "all_proxy", "ALL_PROXY", "socks5h" },
	};
	static const char none[] = "localhost,127.0.0.1,::1";
	char url[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(url, sizeof(url), "%s://127.0.0.1:%d", names[i].scheme, QK_UPLINK_PORT);
		set(arg, names[i].lower, url);
		set(arg, names[i].upper, url);
	}
	set(arg, "no_proxy", none);
	set(arg, "NO_PROXY", none);
}

ssize_t qk_uplink_receive(int conn, char *text, size_t size, int fds[2])
{
	union {
		char room[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { .room = "" };
	struct iovec io = { text, size };
	struct msghdr m = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(conn, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	fds[0] = fds[1] = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	if (m.msg_flags & MSG_TRUNC) {
		errno = EMSGSIZE;
		n = -1;
	}
	return n;
}
