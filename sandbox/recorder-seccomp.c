#include "sandbox/recorder-seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* newer than the headers of some supported hosts */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#define SET_FLAGS SECCOMP_IOW(4, __u64)
#define SYNC_WAKE_UP 1ULL
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

enum { PATH_BYTES = 4096, FIRST_BYTES = 256, PAGE = 4096, LOADER_OPENS = 4 };

void qk_seccomp_init(struct qk_seccomp *s, struct qk_trace *trace, struct qk_fastlane *lane)
{
	*s = (struct qk_seccomp){ .listener = -1, .trace = trace, .lane = lane };
	qk_filter_compile(&s->filter, trace->lookups, lane);
	qk_witness_init(&s->witness, trace);
}

void qk_seccomp_release(struct qk_seccomp *s)
{
	if (s->listener >= 0)
		close(s->listener);
	qk_witness_release(&s->witness);
	s->listener = -1;
}

int qk_seccomp_install(const struct qk_seccomp *s)
{
	struct sock_fprog prog = { s->filter.n, (struct sock_filter *)s->filter.v };
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW |
			      SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	for (;;) {
		long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

		if (fd >= 0)
			return (int)fd;
		if (errno == EINVAL && flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
			flags &= ~SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV; /* before Linux 5.19 */
		else if (errno == EACCES && !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) &&
			 !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			continue; /* unprivileged: only so may a filter be installed */
		else
			return -errno;
	}
}

static unsigned long long mount_namespace(pid_t pid)
{
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), "/proc/%d/ns/mnt", pid);
	return stat(name, &st) ? 0 : st.st_ino;
}

void qk_seccomp_start(struct qk_seccomp *s, int listener)
{
	s->listener = listener;
	/* Both ends on one CPU: five times quicker (Linux 6.6; older kernels answer EINVAL). */
	ioctl(listener, SET_FLAGS, SYNC_WAKE_UP);
}

static const char *name_of(pid_t pid, char comm[64])
{
	char name[64];
	qk_autofd int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/comm", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, comm, 63);
	if (n > 0)
		comm[n - 1] = '\0';
	return n > 0 ? comm : "a process";
}

/* n bytes of a task's memory; short at the end of what is mapped. -errno if there is nothing. */
static ssize_t peek(pid_t pid, uint64_t at, void *to, size_t n)
{
	size_t first = PAGE - (size_t)(at % PAGE);
	struct iovec here = { to, n }, there[2] = {
		{ (void *)(uintptr_t)at, n < first ? n : first },
		{ (void *)(uintptr_t)(at + first), n < first ? 0 : n - first },
	};
	ssize_t got = process_vm_readv(pid, &here, 1, there, n > first ? 2 : 1, 0);

	return got < 0 ? -errno : got;
}

/* A string of a task. 0, or -errno; -ENAMETOOLONG if the kernel will not take it either. */
static int peek_string(pid_t pid, uint64_t at, char text[PATH_BYTES])
{
	ssize_t n = peek(pid, at, text, FIRST_BYTES);

	if (n < 0)
		return (int)n;
	if (memchr(text, '\0', (size_t)n))
		return 0;
	n = peek(pid, at, text, PATH_BYTES);
	if (n < 0)
		return (int)n;
	return memchr(text, '\0', (size_t)n) ? 0 : -ENAMETOOLONG;
}

static bool still_there(const struct qk_seccomp *s, uint64_t id)
{
	return !ioctl(s->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

/* Memory could not be read. Where the call itself will fail so, or is over, nothing is lost. */
static void unread(struct qk_seccomp *s, const struct seccomp_notif *n, int err)
{
	char comm[64];

	if (err == -EFAULT || err == -ENAMETOOLONG || !still_there(s, n->id))
		return;
	qk_trace_lost(s->trace, "the memory of %s (pid %d) cannot be read: %s",
		name_of((pid_t)n->pid, comm), (int)n->pid, strerror(-err));
}

static int socket_path(const struct seccomp_notif *n, uint64_t at, uint64_t len, char *text)
{
	struct sockaddr_un un = { 0 };
	size_t head = offsetof(struct sockaddr_un, sun_path);
	ssize_t got;

	if (len <= head || len > sizeof(un))
		return -EFAULT;
	got = peek((pid_t)n->pid, at, &un, (size_t)len);
	if (got < 0)
		return (int)got;
	if (un.sun_family != AF_UNIX || !un.sun_path[0])
		return -EFAULT; /* another family, or an abstract name: no file */
	memcpy(text, un.sun_path, (size_t)len - head);
	text[len - head] = '\0';
	return 0;
}

/* socketcall(SYS_BIND, args): three words of 32 bits. */
static int socketcall_path(const struct seccomp_notif *n, char *text)
{
	uint32_t args[3];
	ssize_t got = peek((pid_t)n->pid, n->data.args[1], args, sizeof(args));

	if (got != sizeof(args))
		return got < 0 ? (int)got : -EFAULT;
	return socket_path(n, args[1], args[2], text);
}

/* Some process has tried to change what paths mean: each caller is checked from then on. */
static bool same_view(struct qk_seccomp *s, const struct seccomp_notif *n)
{
	char name[64], root[8], comm[64];
	unsigned long long view = mount_namespace((pid_t)n->pid);
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/root", (int)n->pid);
	len = readlink(name, root, sizeof(root));
	if ((!view || view == s->view) && (len < 0 || (len == 1 && root[0] == '/')))
		return true;
	if (still_there(s, n->id))
		qk_trace_lost(s->trace, "%s (pid %d) has changed what its paths mean (%s)",
			name_of((pid_t)n->pid, comm), (int)n->pid,
			view == s->view ? "chroot" : "a mount namespace");
	return false;
}

static int dir_arg(const struct seccomp_notif *n, int position)
{
	return position == QK_NO_ARG ? AT_FDCWD : (int)(uint32_t)n->data.args[position];
}

/* The descriptor that answers an open with these flags; negative: the kernel shall go on. */
static int record(struct qk_seccomp *s, const struct seccomp_notif *n, uint64_t *ret_flags)
{
	const struct qk_call *c = qk_call_find(n->data.arch, (uint32_t)n->data.nr);
	char path[PATH_BYTES + 1], path2[PATH_BYTES + 1], comm[64];
	struct qk_deed d = { .pid = (pid_t)n->pid, .path = path, .path2 = path2 };
	int err = 0, fd = -1;

	if (s->trace->incomplete && !s->doorman)
		return -1; /* never judged */
	if (!c) {
		qk_trace_lost(s->trace, "%s (pid %d) makes system calls of an unknown kind",
			name_of(d.pid, comm), (int)d.pid);
		return -1;
	}
	d.op = c->op;
	s->by_lane += qk_filter_by_lane(c);
	s->programs += d.op == QK_CALL_EXEC;
	if (s->lane && (d.op == QK_CALL_FORBID || d.op == QK_CALL_VIEW))
		qk_fastlane_close(s->lane);
	if (d.op == QK_CALL_FORBID)
		return -1;
	if (d.op == QK_CALL_VIEW) {
		s->view_watched = true;
		s->view = mount_namespace(getpid());
		qk_resolver_forget(&s->witness.resolver);
		return -1;
	}
	if (d.op == QK_CALL_MOUNT) {
		/* what is mounted may be served by a task, which could not answer our looks while
		 * we look at one of its own calls */
		qk_trace_lost(s->trace, "%s (pid %d) mounts a file system", name_of(d.pid, comm),
			(int)d.pid);
		return -1;
	}
	if (d.op == QK_CALL_HANDLE) {
		qk_trace_lost(s->trace, "%s (pid %d) opens files by handle", name_of(d.pid, comm),
			(int)d.pid);
		return -1;
	}
	if (s->view_watched && !same_view(s, n))
		return -1;
	d.dirfd = dir_arg(n, c->dir);
	d.dirfd2 = dir_arg(n, c->dir2);
	d.flags = c->flags == QK_NO_ARG ? 0 : (uint32_t)n->data.args[c->flags];
	if (d.op == QK_CALL_OPEN || d.op == QK_CALL_CREAT) /* the argument after flags, or the path */
		d.mode = (uint32_t)n->data.args[(d.op == QK_CALL_OPEN ? c->flags : c->path) + 1];
	if (d.op == QK_CALL_BIND)
		err = socket_path(n, n->data.args[c->path], d.flags, path);
	else if (d.op == QK_CALL_SOCKETCALL)
		err = socketcall_path(n, path);
	else
		err = peek_string(d.pid, n->data.args[c->path], path);
	if (!err && c->path2 != QK_NO_ARG)
		err = peek_string(d.pid, n->data.args[c->path2], path2);
	if (!err && d.op == QK_CALL_OPEN2) {
		struct open_how how;
		ssize_t got = peek(d.pid, n->data.args[c->flags], &how, sizeof(how));

		err = got < 0 ? (int)got : got < (ssize_t)sizeof(how) ? -EFAULT : 0;
		d.flags = err ? 0 : how.flags;
		d.mode = err ? 0 : (unsigned int)how.mode;
		d.resolve = err ? 0 : how.resolve;
	}
	if (err) {
		unread(s, n, err);
		return -1;
	}
	if (d.op == QK_CALL_BIND || d.op == QK_CALL_SOCKETCALL) {
		d.op = QK_CALL_BIND;
		d.flags = 0;
	}
	/* the number may have been given to another process since */
	if (!still_there(s, n->id))
		return -1;
	if (s->lane && d.op == QK_CALL_EXEC)
		qk_fastlane_started(s->lane, d.pid);
	if (s->lane && d.op == QK_CALL_OPEN &&
		qk_fastlane_admit(s->lane, s->listener, n->id, d.pid, path))
		return -1;
	if (s->doorman)
		qk_doorman_make_way(s->doorman, &s->witness, &d);
	qk_witness_call(&s->witness, &d);
	if (s->doorman)
		fd = qk_doorman_open(s->doorman, &s->witness, &d);
	*ret_flags = d.flags;
	return fd;
}

static bool receive(int listener, struct seccomp_notif *n)
{
	memset(n, 0, sizeof(*n));
	return !ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, n);
}

static void let_go_on(int listener, const struct seccomp_notif *n)
{
	struct seccomp_notif_resp answer = { .id = n->id,
		.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/*
 * Answers an open with a copy of fd in the task's table. If there is no room for it the call fails
 * as it would have. Before Linux 5.14 the two steps are two calls.
 */
static void hand_over(int listener, const struct seccomp_notif *n, int fd, bool cloexec)
{
	struct seccomp_notif_addfd add = { .id = n->id, .srcfd = (uint32_t)fd,
		.flags = SECCOMP_ADDFD_FLAG_SEND, .newfd_flags = cloexec ? O_CLOEXEC : 0 };
	struct seccomp_notif_resp answer = { .id = n->id };
	int given = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	if (given >= 0)
		return;
	if (errno == EINVAL) {
		add.flags = 0;
		given = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	}
	if (given >= 0)
		answer.val = given;
	else
		answer.error = -errno;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void qk_seccomp_serve(struct qk_seccomp *s)
{
	struct seccomp_notif n;
	uint64_t flags = 0;
	qk_autofd int fd = -1;

	if (!receive(s->listener, &n))
		return; /* the asker died, or a signal came for it */
	if (s->lane)
		qk_fastlane_drain(s->lane, &s->witness);
	fd = record(s, &n, &flags);
	if (fd >= 0)
		hand_over(s->listener, &n, fd, flags & O_CLOEXEC);
	else
		let_go_on(s->listener, &n);
}

/* What a program's start opens, its loader does, which never goes by the lane. */
unsigned long qk_seccomp_for_lane(const struct qk_seccomp *s)
{
	unsigned long loaders = LOADER_OPENS * s->programs;

	return s->by_lane > loaders ? s->by_lane - loaders : 0;
}

void qk_seccomp_finish(struct qk_seccomp *s)
{
	if (!s->lane)
		return;
	qk_fastlane_close(s->lane);
	qk_fastlane_drain(s->lane, &s->witness);
}

void qk_seccomp_keep(struct qk_seccomp *s)
{
	struct pollfd p = { s->listener, POLLIN, 0 };
	struct seccomp_notif n;

	for (;;) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p.revents & POLLIN && receive(s->listener, &n))
			let_go_on(s->listener, &n);
		else if (p.revents & (POLLHUP | POLLERR | POLLNVAL))
			_exit(0);
	}
}
