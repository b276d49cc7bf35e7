/*
 * libexec/qk/ebpf RUN-DIRECTORY ROOT: loads the programs (program.c) for one run, and hands rings
 * to the runners of the run until the process that started it has ended. Says on descriptor 3
 * what stands in its way, or nothing; the rest happens in a process of its own in the background.
 *
 * Nothing is pinned: programs and maps end with this process, however it ends.
 */
#include "base/mem.h"
#include "sandbox/calls.h"
#include "sandbox/ebpf/event.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { SAY = 3, TEXT = 256, BACKLOG = 128, FIRST_RINGS = 2 };

/* The programs as the compiler left them. */
__asm__(".section .rodata\n.balign 16\n.globl qk_ebpf_object\nqk_ebpf_object:\n.incbin "
	"\"" QK_EBPF_OBJECT "\"\n.globl qk_ebpf_object_end\nqk_ebpf_object_end:\n.previous\n");
extern const char qk_ebpf_object[], qk_ebpf_object_end[];

/* As in program.c. */
struct thread {
	__u64 turn;
	__u32 slot, phase;
};
enum { STARTER = 1 };

/* A slot's ring stays when its task is over: to change the map of rings takes the kernel long. */
struct place {
	int conn;   /* of the runner that has it; -1: free */
	int runner; /* a pidfd */
	int ring;   /* -1: not made yet */
};

static struct helper {
	struct bpf_object *object;
	struct qk_ebpf_config config;
	int threads, slots, rings; /* maps */
	int listener, watched;     /* watched: a pidfd */
	struct place places[QK_EBPF_SLOTS];
	unsigned int n_places;
	char first_error[TEXT];
} helper = { .listener = -1, .watched = -1 };

static int __attribute__((format(printf, 2, 0)))
keep_error(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	size_t n;

	if (level != LIBBPF_WARN || helper.first_error[0])
		return 0;
	vsnprintf(helper.first_error, sizeof(helper.first_error), fmt, ap);
	n = strcspn(helper.first_error, "\n");
	helper.first_error[n] = '\0';
	return 0;
}

/* Says why not, and ends. */
static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdprintf(SAY, fmt, ap);
	va_end(ap);
	_exit(1);
}

static void set_call(enum qk_ebpf_entry entry, int nr, const struct qk_call *c)
{
	if (nr < 0 || nr >= QK_EBPF_NUMBERS)
		return;
	helper.config.calls[entry][nr] = (struct qk_ebpf_call){ .there = 1,
		.op = (__u8)c->op,
		.when = (__u8)c->when,
		.dir = c->dir,
		.path = c->path,
		.flags = c->flags,
		.dir2 = c->dir2,
		.path2 = c->path2,
		.bits = c->bits };
}

static void configure(const char *root)
{
	struct stat st;

	for (size_t i = 0; i < qk_calls_n; i++) {
		set_call(QK_EBPF_NATIVE, qk_calls[i].native, &qk_calls[i]);
		set_call(QK_EBPF_COMPAT, qk_calls[i].compat, &qk_calls[i]);
		set_call(QK_EBPF_X32, qk_calls[i].x32, &qk_calls[i]);
	}
	if (strlen(root) < QK_EBPF_ROOT && strcmp(root, "/")) {
		strcpy(helper.config.root, root);
		helper.config.root_len = (__u32)strlen(root);
	}
	if (!stat("/proc/self/ns/pid", &st)) {
		helper.config.pid_dev = st.st_dev;
		helper.config.pid_ino = st.st_ino;
	}
}

static int make_ring(__u32 slot)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, QK_EBPF_RING, NULL);

	if (fd >= 0 && bpf_map_update_elem(helper.rings, &slot, &fd, BPF_ANY)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * The first rings, while the programs are loaded: the kernel answers a change of the map of rings
 * after a grace period of RCU, which is as long as loading takes.
 */
static void *make_first_rings(void *arg)
{
	__u32 slots[FIRST_RINGS], n = 0;
	int fds[FIRST_RINGS];

	(void)arg;
	for (; n < FIRST_RINGS; n++) {
		slots[n] = n;
		fds[n] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, QK_EBPF_RING, NULL);
		if (fds[n] < 0)
			break;
	}
	if (n && !bpf_map_update_batch(helper.rings, slots, fds, &n, NULL))
		for (; helper.n_places < n; helper.n_places++)
			helper.places[helper.n_places] =
				(struct place){ -1, -1, fds[helper.n_places] };
	return NULL;
}

/* The map of rings, before libbpf would make it. False: libbpf shall, and rings are made later. */
static bool make_rings_early(pthread_t *thread)
{
	struct bpf_map *map = bpf_object__find_map_by_name(helper.object, "rings");
	int sample = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, QK_EBPF_PAGE, NULL);
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (__u32)sample);

	helper.rings = sample < 0 || !map
			       ? -1
			       : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "rings", sizeof(__u32),
					 sizeof(__u32), QK_EBPF_SLOTS, &opts);
	if (sample >= 0)
		close(sample);
	return helper.rings >= 0 && !bpf_map__reuse_fd(map, helper.rings) &&
	       !pthread_create(thread, NULL, make_first_rings, NULL);
}

static int map_fd(const char *name)
{
	return bpf_object__find_map_fd_by_name(helper.object, name);
}

static void load(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "qk");
	struct bpf_map *map;
	struct bpf_program *p;
	bool configured = false, early;
	pthread_t rings;
	int r;

	libbpf_set_print(keep_error);
	helper.object = bpf_object__open_mem(
		qk_ebpf_object, (size_t)(qk_ebpf_object_end - qk_ebpf_object), &opts);
	if (!helper.object)
		give_up("its programs cannot be read: %s", helper.first_error);
	bpf_object__for_each_map(map, helper.object) if (strstr(bpf_map__name(map), ".rodata"))
		configured = configured || !bpf_map__set_initial_value(
						   map, &helper.config, sizeof(helper.config));
	if (!configured)
		give_up("its programs have no room for what they are to know");
	early = make_rings_early(&rings);
	r = bpf_object__load(helper.object);
	if (r == -EPERM || r == -EACCES)
		give_up("the kernel lets it load no programs (root, or CAP_BPF and CAP_PERFMON, "
			"can)");
	if (r)
		give_up("its programs cannot be loaded: %s",
			helper.first_error[0] ? helper.first_error : strerror(-r));
	bpf_object__for_each_program(p, helper.object) if (!bpf_program__attach(p))
		give_up("'%s' cannot be attached: %s", bpf_program__name(p), strerror(errno));
	helper.threads = map_fd("threads");
	helper.slots = map_fd("slots");
	if (early)
		pthread_join(rings, NULL);
	helper.rings = map_fd("rings");
}

/* In the run directory, whose name may be longer than an address. */
static void listen_in(const char *dir)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = QK_EBPF_SOCKET };

	helper.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	umask(077);
	if (helper.listener < 0 || chdir(dir) ||
		bind(helper.listener, (const struct sockaddr *)&un, sizeof(un)) ||
		listen(helper.listener, BACKLOG))
		give_up("a socket in '%s': %s", dir, strerror(errno));
	(void)!chdir("/");
}

/* A free slot with its ring, or -1. */
static int free_slot(void)
{
	unsigned int i = 0;

	while (i < helper.n_places && helper.places[i].conn >= 0)
		i++;
	if (i == helper.n_places) {
		if (i == QK_EBPF_SLOTS)
			return -1;
		helper.places[helper.n_places++] = (struct place){ -1, -1, -1 };
	}
	if (helper.places[i].ring < 0)
		helper.places[i].ring = make_ring(i);
	return helper.places[i].ring < 0 ? -1 : (int)i;
}

static void answer(int conn, const struct qk_ebpf_welcome *w, int ring)
{
	union {
		char room[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { .room = "" };
	struct iovec io = { (void *)w, sizeof(*w) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	int fds[2] = { ring, helper.slots };
	struct cmsghdr *c;

	if (ring >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
	}
	(void)!sendmsg(conn, &m, MSG_NOSIGNAL);
}

/* A runner has come: it gets a slot, and what it starts from now on is recorded. */
static void admit(int conn)
{
	struct qk_ebpf_welcome w = { .version = QK_EBPF_VERSION };
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);
	struct qk_ebpf_hello hello;
	struct qk_ebpf_slot s = { 0 };
	struct thread t = { .phase = STARTER };
	struct place *p;
	int slot = -1;

	if (recv(conn, &hello, sizeof(hello), 0) != sizeof(hello) ||
		hello.version != QK_EBPF_VERSION ||
		getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &n)) {
		close(conn);
		return;
	}
	if (hello.lookups == QK_EBPF_STOP)
		_exit(0);
	slot = free_slot();
	if (slot < 0) {
		answer(conn, &w, -1);
		close(conn);
		return;
	}
	p = &helper.places[slot];
	p->runner = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	w.slot = t.slot = (__u32)slot;
	bpf_map_lookup_elem(helper.slots, &t.slot, &s);
	w.turn = t.turn = s.turn + 1;
	hello.root[QK_EBPF_ROOT - 1] = '\0';
	s = (struct qk_ebpf_slot){ .turn = w.turn,
		.lookups = hello.lookups,
		.filter = !hello.lookups && hello.root[0] &&
			  !strcmp(hello.root, helper.config.root) };
	if (p->runner < 0 || bpf_map_update_elem(helper.slots, &t.slot, &s, BPF_ANY) ||
		bpf_map_update_elem(helper.threads, &p->runner, &t, BPF_ANY)) {
		w.turn = 0;
		answer(conn, &w, -1);
		close(conn);
		if (p->runner >= 0)
			close(p->runner);
		return;
	}
	p->conn = conn;
	answer(conn, &w, p->ring);
}

/* Its task is over: what is left of that leaves nothing any more. */
static void dismiss(struct place *p)
{
	__u32 slot = (__u32)(p - helper.places);
	struct qk_ebpf_slot s = { 0 };

	bpf_map_lookup_elem(helper.slots, &slot, &s);
	s.turn++;
	bpf_map_update_elem(helper.slots, &slot, &s, BPF_ANY);
	bpf_map_delete_elem(helper.threads, &p->runner);
	close(p->runner);
	close(p->conn);
	p->conn = p->runner = -1;
}

static void serve(void)
{
	static struct pollfd fds[QK_EBPF_SLOTS + 2];

	for (;;) {
		unsigned int n = helper.n_places;

		fds[0] = (struct pollfd){ helper.listener, POLLIN, 0 };
		fds[1] = (struct pollfd){ helper.watched, POLLIN, 0 };
		for (unsigned int i = 0; i < n; i++)
			fds[2 + i] = (struct pollfd){ helper.places[i].conn, POLLIN, 0 };
		if (poll(fds, 2 + n, -1) < 0)
			continue;
		if (fds[1].revents)
			return;
		for (unsigned int i = 0; i < n; i++)
			if (fds[2 + i].revents)
				dismiss(&helper.places[i]);
		if (fds[0].revents) {
			int conn = accept4(helper.listener, NULL, NULL, SOCK_CLOEXEC);

			if (conn >= 0)
				admit(conn);
		}
	}
}

/* Nobody shall wait for us, and no terminal reach us. */
static void go_into_background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork();

	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (pid > 0)
		_exit(0);
	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP && sig != SIGSEGV && sig != SIGABRT)
			signal(sig, SIG_IGN);
	for (int fd = 0; fd <= SAY; fd++)
		dup2(null, fd);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: ebpf RUN-DIRECTORY ROOT\n"
		      "A part of qk: loads the eBPF recorder for one run.\n",
			stderr);
		return 2;
	}
	if (fcntl(SAY, F_GETFD) < 0) {
		fputs("qk: ebpf: is started by qk alone\n", stderr);
		return 2;
	}
	close_range(SAY + 1, ~0U, 0);
	helper.watched = (int)syscall(SYS_pidfd_open, getppid(), 0);
	if (helper.watched < 0)
		give_up("pidfd_open: %s", strerror(errno));
	configure(argv[2]);
	load();
	listen_in(argv[1]);
	go_into_background();
	serve();
	return 0;
}
