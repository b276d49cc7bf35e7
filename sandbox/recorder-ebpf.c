#include "sandbox/recorder-ebpf.h"

#include "sandbox/ebpf/event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uthash.h>

enum { SAY = 3, IO_URING_SETUP = 425, LOOKS_MAX = 1 << 15 };

/* A call that only looked and what came of it: told once, until the task changes something. */
struct qk_ebpf_look {
	const char *event; /* of equal length and bytes, but for its number and process */
	UT_hash_handle hh;
};

/* Through /proc, because dir may be longer than an address can be. */
static int connect_in(const char *dir, struct qk_err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	qk_autofd int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	qk_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/" QK_EBPF_SOCKET, at);
	if (at < 0 || fd < 0 || connect(fd, (const struct sockaddr *)&un, sizeof(un)))
		return qk_fail(
			err, errno, "eBPF recorder: its helper does not answer in '%s'", dir);
	return qk_steal_fd(&fd);
}

/* The helper's answer with the two descriptors; they are -1 if it sent none. */
static int receive(int conn, struct qk_ebpf_welcome *w, int fds[2], struct qk_err *err)
{
	union {
		char room[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { .room = "" };
	struct iovec io = { w, sizeof(*w) };
	struct msghdr m = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	struct cmsghdr *c;
	ssize_t n;

	fds[0] = fds[1] = -1;
	do
		n = recvmsg(conn, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	if (n != sizeof(*w) || w->version != QK_EBPF_VERSION)
		return qk_fail(
			err, -EPROTO, "eBPF recorder: its helper has ended or is another version");
	if (!w->turn || fds[0] < 0 || w->slot >= QK_EBPF_SLOTS)
		return qk_fail(err, -EAGAIN, "eBPF recorder: its helper has no ring buffer left");
	return 0;
}

static size_t slots_size(const struct qk_ebpf *e)
{
	return (QK_EBPF_SLOTS * sizeof(struct qk_ebpf_slot) + e->page - 1) & ~(e->page - 1);
}

static int map(struct qk_ebpf *e, int slots, struct qk_err *err)
{
	void *position = mmap(NULL, e->page, PROT_READ | PROT_WRITE, MAP_SHARED, e->ring, 0);
	void *filled = mmap(
		NULL, e->page + 2 * QK_EBPF_RING, PROT_READ, MAP_SHARED, e->ring, (off_t)e->page);
	void *state = mmap(NULL, slots_size(e), PROT_READ, MAP_SHARED, slots, 0);

	e->position = position == MAP_FAILED ? NULL : position;
	e->filled = filled == MAP_FAILED ? NULL : filled;
	e->slots = state == MAP_FAILED ? NULL : state;
	if (!e->position || !e->filled || !e->slots)
		return qk_fail(err, errno, "eBPF recorder: mapping its ring buffer");
	return 0;
}

int qk_ebpf_init(struct qk_ebpf *e, struct qk_trace *trace, const char *dir, struct qk_err *err)
{
	struct qk_ebpf_hello hello = { .version = QK_EBPF_VERSION, .lookups = trace->lookups };
	struct qk_ebpf_welcome w = { 0 };
	int fds[2] = { -1, -1 }, r;

	*e = (struct qk_ebpf){ .trace = trace,
		.conn = -1,
		.ring = -1,
		.key = QK_BUF_INIT,
		.page = (size_t)sysconf(_SC_PAGESIZE) };
	qk_witness_init(&e->witness, trace);
	if (trace->roots.n == 1 && !trace->changes_anywhere && strlen(trace->roots.v[0]) < sizeof(hello.root))
		strcpy(hello.root, trace->roots.v[0]);
	r = e->conn = connect_in(dir, err);
	if (r >= 0 && send(e->conn, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		r = qk_fail(err, errno, "eBPF recorder: asking its helper");
	if (r >= 0)
		r = receive(e->conn, &w, fds, err);
	e->ring = fds[0];
	e->slot = w.slot;
	e->turn = w.turn;
	if (r >= 0)
		r = map(e, fds[1], err);
	if (r >= 0) { /* what somebody else's task left there since is none of ours */
		const unsigned long *end = e->filled;

		__atomic_store_n((unsigned long *)e->position,
			__atomic_load_n(end, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	}
	if (fds[1] >= 0)
		close(fds[1]);
	return r < 0 ? r : 0;
}

static void forget_looks(struct qk_ebpf *e)
{
	HASH_CLEAR(hh, e->looks);
	qk_arena_release(&e->arena);
}

void qk_ebpf_release(struct qk_ebpf *e)
{
	if (e->position)
		munmap(e->position, e->page);
	if (e->filled)
		munmap((void *)e->filled, e->page + 2 * QK_EBPF_RING);
	if (e->slots)
		munmap((void *)e->slots, slots_size(e));
	if (e->ring >= 0)
		close(e->ring);
	if (e->conn >= 0)
		close(e->conn);
	e->ring = e->conn = -1;
	forget_looks(e);
	qk_buf_release(&e->key);
	qk_witness_release(&e->witness);
}

/* Calls that make more of the recording than their event doubtful. */
static bool doubtful(struct qk_ebpf *e, const struct qk_ebpf_event *ev)
{
	const char *does = NULL;

	switch (ev->op) {
	case QK_CALL_VIEW: does = "has changed what its paths mean"; break;
	case QK_CALL_MOUNT: does = "mounts a file system"; break;
	case QK_CALL_HANDLE: does = "opens files by handle"; break;
	case QK_CALL_REFUSED: does = "opens files by io_uring"; break;
	default: return false;
	}
	qk_trace_lost(e->trace, "a process (pid %u) %s", ev->pid, does);
	return true;
}

/*
 * Whether this very look has been told already. A compiler asks of each directory on the way of
 * each header whether it is a link, and each answer would be looked up again here.
 */
static bool looked_before(struct qk_ebpf *e, const struct qk_ebpf_event *ev, size_t size)
{
	const char *text = (const char *)(ev + 1);
	struct qk_ebpf_event *head;
	struct qk_ebpf_look *l;

	switch (ev->op) {
	case QK_CALL_LOOK:
	case QK_CALL_LOOK_LINK:
	case QK_CALL_READLINK: break;
	case QK_CALL_OPEN:
	case QK_CALL_OPEN2:
		if (ev->result < 0)
			break;
		if (ev->bits & QK_EBPF_CREATED || ev->flags & (O_ACCMODE | O_TRUNC))
			forget_looks(e);
		return false;
	case QK_CALL_EXEC: return false;
	default: forget_looks(e); return false;
	}
	if (!strncmp(text, "/proc/", 6) || !strncmp(text, "/dev/", 5))
		return false; /* means something else to each process */
	qk_buf_reset(&e->key);
	qk_buf_add(&e->key, (const char *)ev, size);
	head = (struct qk_ebpf_event *)(void *)e->key.s;
	head->turn = head->pid = 0;
	HASH_FIND(hh, e->looks, e->key.s, size, l);
	if (l)
		return true;
	if (HASH_COUNT(e->looks) == LOOKS_MAX)
		forget_looks(e);
	l = qk_arena_alloc(&e->arena, sizeof(*l));
	l->event = memcpy(qk_arena_alloc(&e->arena, size), e->key.s, size);
	HASH_ADD_KEYPTR(hh, e->looks, l->event, size, l);
	return false;
}

static void take(struct qk_ebpf *e, const struct qk_ebpf_event *ev, size_t size)
{
	const char *text[QK_EBPF_STRINGS], *p = (const char *)(ev + 1);
	size_t left = size - sizeof(*ev);
	struct qk_deed d = { .op = (enum qk_call_op)ev->op,
		.pid = (pid_t)ev->pid,
		.dirfd = AT_FDCWD,
		.dirfd2 = AT_FDCWD,
		.flags = ev->flags };
	struct qk_outcome o = { .err = ev->result < 0 ? -ev->result : 0 };

	for (int i = 0; i < QK_EBPF_STRINGS; i++) {
		size_t n = ev->len[i];

		text[i] = n ? p : NULL;
		if (n > left || (n && p[n - 1])) {
			qk_trace_lost(e->trace, "eBPF recorder: an event that is not understood");
			return;
		}
		p += n;
		left -= n;
	}
	if (doubtful(e, ev) || looked_before(e, ev, size))
		return;
	d.path = text[QK_EBPF_TEXT];
	d.path2 = text[QK_EBPF_TEXT2] ? text[QK_EBPF_TEXT2] : "";
	d.base = text[QK_EBPF_BASE];
	d.base2 = text[QK_EBPF_BASE2];
	if (ev->bits & QK_EBPF_OPENED) {
		o.opened = text[QK_EBPF_NAME] ? text[QK_EBPF_NAME] : "";
		o.known = true;
		o.made = ev->bits & QK_EBPF_CREATED;
		o.dir = ev->bits & QK_EBPF_DIR;
	}
	if (!d.path)
		return;
	if (d.path[0] != '/' &&
		!d.base) { /* a directory without a name: what was opened may have one */
		if (!o.opened || !*o.opened)
			return;
		d.path = o.opened;
		d.flags &= ~(uint64_t)AT_EMPTY_PATH;
	}
	if (text[QK_EBPF_TEXT2] && d.path2[0] != '/' && !d.base2)
		return;
	qk_witness_done(&e->witness, &d, &o);
}

void qk_ebpf_serve(struct qk_ebpf *e)
{
	unsigned long *position = e->position, at = *position, end;
	const char *data = (const char *)e->filled + e->page;

	while (at < (end = __atomic_load_n((const unsigned long *)e->filled, __ATOMIC_ACQUIRE))) {
		while (at < end) {
			const uint32_t *head =
				(const uint32_t *)(const void *)(data + (at & (QK_EBPF_RING - 1)));
			uint32_t n = __atomic_load_n(head, __ATOMIC_ACQUIRE);
			const struct qk_ebpf_event *ev = (const void *)(head + 2);

			if (n & BPF_RINGBUF_BUSY_BIT)
				return; /* being written: we are called again */
			if (!(n & BPF_RINGBUF_DISCARD_BIT) && n >= sizeof(*ev) &&
				ev->turn == e->turn && !e->trace->incomplete)
				take(e, ev, n);
			n &= ~(uint32_t)BPF_RINGBUF_DISCARD_BIT;
			at += (n + BPF_RINGBUF_HDR_SZ + 7) & ~7UL;
			__atomic_store_n(position, at, __ATOMIC_RELEASE);
		}
	}
}

void qk_ebpf_finish(struct qk_ebpf *e)
{
	const struct qk_ebpf_slot *s = (const struct qk_ebpf_slot *)e->slots + e->slot;
	struct pollfd p = { e->conn, POLLIN, 0 };

	qk_ebpf_serve(e);
	if (poll(&p, 1, 0))
		qk_trace_lost(e->trace, "the helper of the eBPF recorder has ended");
	if (s->turn != e->turn)
		qk_trace_lost(e->trace, "the eBPF recorder was taken away");
	if (s->lost)
		qk_trace_lost(e->trace, "%llu events were lost: more than the recorder could take",
			(unsigned long long)s->lost);
	if (s->unread)
		qk_trace_lost(
			e->trace, "%llu paths could not be read", (unsigned long long)s->unread);
}

void qk_ebpf_refuse_unseen(void)
{
	/* its number is the same by each entry, but for the bit that marks x32 */
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)QK_X32_BIT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IO_URING_SETUP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(*filter), filter };

	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &prog);
}

/* What the helper says until it is in the background, or has failed. */
static void listen_to(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n + 1 < size &&
		((got = read(fd, text + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	text[n] = '\0';
}

int qk_ebpf_start(const struct qk_ebpf_host *h, struct qk_err *err)
{
	char text[256];
	int ends[2], status = 0, there;
	pid_t pid;

	there = connect_in(h->dir, NULL);
	if (there >= 0) { /* a make within the run, with a mode of its own */
		close(there);
		return 0;
	}
	if (access(h->helper, X_OK))
		return qk_fail(err, errno == ENOENT ? -ENOSYS : -errno, "not built in ('%s': %s)",
			h->helper, strerror(errno));
	if (pipe2(ends, O_CLOEXEC))
		return qk_fail(err, errno, "pipe");
	pid = fork();
	if (!pid) {
		if (ends[1] == SAY ? fcntl(SAY, F_SETFD, 0) : dup2(ends[1], SAY) < 0)
			_exit(127);
		execl(h->helper, h->helper, h->dir, h->root, (char *)NULL);
		dprintf(SAY, "'%s': %s", h->helper, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	if (pid > 0)
		listen_to(ends[0], text, sizeof(text));
	close(ends[0]);
	if (pid < 0)
		return qk_fail(err, errno, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (text[0])
		return qk_fail(err, -EPERM, "%s", text);
	if (status)
		return qk_fail(err, -EIO, "its helper failed");
	return 0;
}

void qk_ebpf_stop(const char *dir)
{
	struct qk_ebpf_hello hello = { .version = QK_EBPF_VERSION, .lookups = QK_EBPF_STOP };
	qk_autofd int fd = connect_in(dir, NULL);
	char end;

	if (fd < 0)
		return;
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello))
		while (read(fd, &end, 1) < 0 && errno == EINTR) /* it has ended when this does */
			;
}
