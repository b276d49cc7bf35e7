/*
 * The preloaded library: its start, its system calls and its end of the ring. The wrappers are in
 * fastlane-files.c and fastlane-exec.c.
 */
#include "sandbox/fastlane-preload.h"

#include "sandbox/fastlane-program.h"

enum {
	GET_SEALS = 1034, /* fcntl */
	READ_WRITE = 3,
	SHARED = 1,
	NONBLOCK = 04000,
	CLOEXEC = 02000000,
};

struct qk_lane_ring *qk_lane_ring;

#if QK_LANE_WIDE
__attribute__((noinline)) long qk_lane_syscall(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#else
__attribute__((noinline)) long qk_lane_syscall(long nr, long a, long b, long c, long d, long e)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return r;
}
#endif

/* mmap has six arguments, and the last of ours is 0 or not there. */
static long map_ring(void)
{
#if QK_LANE_WIDE
	return qk_lane_syscall(NR_mmap, 0, QK_LANE_BYTES, READ_WRITE, SHARED, QK_LANE_FD);
#else
	long r;

	__asm__ volatile("push %%ebp; xor %%ebp, %%ebp; int $0x80; pop %%ebp"
			 : "=a"(r)
			 : "0"(NR_mmap), "b"(0), "c"(QK_LANE_BYTES), "d"(READ_WRITE), "S"(SHARED),
			 "D"(QK_LANE_FD)
			 : "memory");
	return r;
#endif
}

long qk_lane_done(long r)
{
	if (r >= 0 || r < -4095)
		return r;
	*__errno_location() = (int)-r;
	return -1;
}

void *qk_lane_next(const char *name)
{
	void *after_us = (void *)-1L; /* RTLD_NEXT */

	return dlsym ? dlsym(after_us, name) : NULL;
}

int qk_lane_host_open(const char *path)
{
	return (int)qk_lane_syscall(
		NR_openat, QK_AT_FDCWD, (long)path, CLOEXEC | NONBLOCK, 0, 0);
}

long qk_lane_host_read(int fd, void *to, size_t n, uint64_t at)
{
#if QK_LANE_WIDE
	return qk_lane_syscall(NR_pread64, fd, (long)to, (long)n, (long)at, 0);
#else
	return qk_lane_syscall(
		NR_pread64, fd, (long)to, (long)n, (long)(uint32_t)at, (long)(at >> 32));
#endif
}

void qk_lane_host_close(int fd)
{
	qk_lane_syscall(NR_close, fd, 0, 0, 0, 0);
}

bool qk_lane_looks(void)
{
	return qk_lane_ring && qk_lane_ring->flags & QK_LANE_LOOKUPS;
}

static bool starts(const char *s, const char *with)
{
	while (*with && *s == *with)
		s++, with++;
	return !*with;
}

/* What lies there is another thing for every process, or must not be opened twice. */
static bool personal(const char *path)
{
	return starts(path, "/proc/") || starts(path, "/dev/");
}

/* Appends a string and its NUL; false if it does not fit. */
static bool append(struct qk_lane_place *p, const char *s)
{
	while (p->len < QK_LANE_TEXT) {
		p->text[p->len] = *s;
		if (!*s)
			return true;
		p->len++;
		s++;
	}
	return false;
}

bool qk_lane_descriptor(struct qk_lane_place *p, int fd)
{
	static const char deleted[] = " (deleted)";
	char link[32] = "/proc/self/fd/", *end = link + sizeof("/proc/self/fd/") - 1;
	unsigned int n = (unsigned int)fd, digits = 1;
	long len;

	if (fd < 0)
		return false;
	for (unsigned int rest = n; rest > 9; rest /= 10)
		digits++;
	end[digits] = '\0';
	for (unsigned int i = digits; i--; n /= 10)
		end[i] = (char)('0' + n % 10);
	len = qk_lane_syscall(NR_readlink, (long)link, (long)p->text, QK_LANE_TEXT - 1, 0, 0);
	if (len <= 0 || len >= QK_LANE_TEXT - 1 || p->text[0] != '/')
		return false;
	p->text[len] = '\0';
	p->len = (uint32_t)len;
	return len < (long)sizeof(deleted) ||
	       !starts(p->text + len - (long)sizeof(deleted) + 1, deleted);
}

bool qk_lane_place(struct qk_lane_place *p, int dirfd, const char *path)
{
	struct qk_lane_ring *r = qk_lane_ring;
	long n;

	if (!r || __atomic_load_n(&r->flags, __ATOMIC_RELAXED) & QK_LANE_CLOSED)
		return false;
	if (__atomic_load_n(&r->head, __ATOMIC_RELAXED) - __atomic_load_n(&r->tail, __ATOMIC_RELAXED) >=
		QK_LANE_SLOTS - QK_LANE_SPARE)
		return false;
	/* what only the kernel may touch is answered with EFAULT, by the plain call */
	if (!qk_lane_readable(path) || !*path)
		return false;
	p->len = p->from = 0;
	if (*path == '/')
		return !personal(path) && append(p, path);
	if (dirfd != QK_AT_FDCWD) {
		if (!qk_lane_descriptor(p, dirfd))
			return false;
	} else {
		n = qk_lane_syscall(NR_getcwd, (long)p->text, QK_LANE_TEXT, 0, 0, 0);
		if (n <= 1 || p->text[0] != '/')
			return false;
		p->len = (uint32_t)n - 1;
	}
	if (p->len > 1 && !append(p, "/"))
		return false;
	p->from = p->len;
	return append(p, path) && !personal(p->text);
}

/* The next slot, or NULL if none is free. */
static struct qk_lane_slot *reserve(struct qk_lane_ring *r)
{
	uint32_t at = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

	do {
		if (at - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= QK_LANE_SLOTS)
			return NULL;
	} while (!__atomic_compare_exchange_n(
		&r->head, &at, at + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return &r->slots[at % QK_LANE_SLOTS];
}

bool qk_lane_note(
	enum qk_lane_call call, uint32_t flags, int err, const struct qk_lane_place *place)
{
	struct qk_lane_ring *r = qk_lane_ring;
	struct qk_lane_slot *s = reserve(r);

	if (!s) {
		/* a notified call of nothing: whoever is notified takes out what has come */
		int saved = *__errno_location();

		syscall(NR_openat, QK_AT_FDCWD, (void *)0, 0);
		*__errno_location() = saved;
		s = reserve(r);
	}
	if (!s)
		return false;
	s->call = call;
	s->flags = flags;
	s->err = err;
	s->pid = (int32_t)qk_lane_syscall(NR_gettid, 0, 0, 0, 0, 0);
	s->len = place->len;
	for (uint32_t i = 0; i <= place->len; i++)
		s->path[i] = place->text[i];
	__atomic_store_n(&s->state, QK_LANE_READY, __ATOMIC_RELEASE);
	return true;
}

/* Our own entry, as the runner or the library before us wrote it. */
static bool is_ours(const char *path)
{
	size_t n = 0;

	while (path[n])
		n++;
	return (n >= sizeof(QK_LANE_NAME_64) - 1 &&
		       starts(path + n - sizeof(QK_LANE_NAME_64) + 1, QK_LANE_NAME_64)) ||
	       (n >= sizeof(QK_LANE_NAME_32) - 1 &&
		       starts(path + n - sizeof(QK_LANE_NAME_32) + 1, QK_LANE_NAME_32));
}

/* The user's own entry is to be as the user wrote it, and ours is to be seen by nobody. */
static void hide(char **env)
{
	for (; env && *env; env++) {
		char *value = *env + sizeof(QK_LANE_VARIABLE "=") - 1, *last = NULL;

		if (!starts(*env, QK_LANE_VARIABLE "=") || !is_ours(value))
			continue;
		for (char *s = value; *s; s++)
			if (*s == ':')
				last = s;
		if (last) {
			*last = '\0';
			return;
		}
		do
			env[0] = env[1];
		while (*env++);
		return;
	}
}

/* Whether the library lies where the filter looks for it. */
static bool in_place(void)
{
	uint64_t here = (uintptr_t)qk_lane_syscall;

	return here >> 16 == QK_LANE_AT >> 16;
}

static void take_ring(void)
{
	struct qk_lane_ring *r;
	long at;

	at = qk_lane_syscall(NR_fcntl, QK_LANE_FD, GET_SEALS, 0, 0, 0);
	if (at < 0 || (at & QK_LANE_SEALS) != QK_LANE_SEALS)
		return; /* none was given, or the number is the program's own */
	at = map_ring();
	if (at < 0 && at >= -4095)
		return;
	r = (struct qk_lane_ring *)at;
	if (r->magic != QK_LANE_MAGIC) {
		qk_lane_syscall(NR_munmap, at, QK_LANE_BYTES, 0, 0, 0);
		return;
	}
	qk_lane_host_close(QK_LANE_FD);
	if (in_place() && syscall && __errno_location && dlsym)
		qk_lane_ring = r;
}

/* glibc hands a constructor what main gets and may not have set environ yet; musl has. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	if (&environ && environ)
		hide(environ);
	else if (gnu_get_libc_version)
		hide(envp);
	take_ring();
}
