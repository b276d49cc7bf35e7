#include "sandbox/fastlane.h"

#include "base/path.h"
#include "sandbox/fastlane-program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* newer than the headers of some supported hosts */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef SECCOMP_ADDFD_FLAG_SETFD
#define SECCOMP_ADDFD_FLAG_SETFD (1UL << 0)
#endif

#if defined(__x86_64__)
enum { MACHINE_HAS_IT = 1 };
#else
enum { MACHINE_HAS_IT = 0 };
#endif

_Static_assert(QK_LANE_SEALS == (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW), "seals");

int qk_lane_host_open(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

long qk_lane_host_read(int fd, void *to, size_t n, uint64_t at)
{
	return pread(fd, to, n, (off_t)at);
}

void qk_lane_host_close(int fd)
{
	close(fd);
}

static int make_ring(void)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("qk-fastlane", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("qk-fastlane", flags);
	if (fd >= 0 && !ftruncate(fd, QK_LANE_BYTES) && !fcntl(fd, F_ADD_SEALS, QK_LANE_SEALS))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Beside fastlane.so lies fastlane-32.so. */
static bool name_libraries(struct qk_lane_ring *ring, const char *library)
{
	size_t dir = strlen(library);

	if (dir < strlen(QK_LANE_NAME_64))
		return false;
	dir -= strlen(QK_LANE_NAME_64);
	if (strcmp(library + dir, QK_LANE_NAME_64) || dir + sizeof(QK_LANE_NAME_32) > QK_LANE_LIBRARY)
		return false;
	/* both end an entry in a list, as the loader reads it */
	if (*library != '/' || strpbrk(library, ": \t"))
		return false;
	snprintf(ring->library[0], QK_LANE_LIBRARY, "%s", library);
	snprintf(ring->library[1], QK_LANE_LIBRARY, "%.*s%s", (int)dir, library, QK_LANE_NAME_32);
	return true;
}

int qk_fastlane_open(struct qk_fastlane *l, const char *library, bool lookups, struct qk_err *err)
{
	void *at;

	*l = (struct qk_fastlane)QK_FASTLANE_INIT;
	if (!MACHINE_HAS_IT)
		return qk_fail(err, -ENOSYS, "fast lane: not made for this machine");
	l->fd = make_ring();
	if (l->fd < 0)
		return qk_fail(err, errno, "fast lane: memory");
	at = mmap(NULL, QK_LANE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (at == MAP_FAILED) {
		close(qk_steal_fd(&l->fd));
		return qk_fail(err, errno, "fast lane: memory");
	}
	l->ring = at;
	if (!name_libraries(l->ring, library)) {
		qk_fastlane_release(l);
		return qk_fail(err, -EINVAL, "fast lane: '%s' cannot be preloaded by that name", library);
	}
	l->ring->flags = lookups ? QK_LANE_LOOKUPS : 0;
	l->ring->magic = QK_LANE_MAGIC;
	return 0;
}

void qk_fastlane_release(struct qk_fastlane *l)
{
	if (l->ring)
		munmap(l->ring, QK_LANE_BYTES);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct qk_fastlane)QK_FASTLANE_INIT;
}

void qk_fastlane_env(const struct qk_fastlane *l, const char *program, char *const *envp,
	struct qk_strv *ret)
{
	static const char name[] = QK_LANE_VARIABLE "=";
	enum qk_lane_width width = qk_lane_program(program);
	const char *library = width == QK_LANE_64   ? l->ring->library[0]
			      : width == QK_LANE_32 ? l->ring->library[1]
						    : NULL;
	bool there = false;

	if (library && access(library, R_OK))
		library = NULL;
	for (; envp && *envp; envp++) {
		if (library && !there && !strncmp(*envp, name, strlen(name))) {
			qk_strv_take(ret, qk_asprintf("%s:%s", *envp, library));
			there = true;
		} else {
			qk_strv_push(ret, *envp);
		}
	}
	if (library && !there)
		qk_strv_take(ret, qk_asprintf("%s%s", name, library));
}

void qk_fastlane_started(struct qk_fastlane *l, pid_t pid)
{
	l->started[pid % QK_FASTLANE_STARTS] = pid;
}

/* The number may be one that the program was started with. */
static bool number_is_free(pid_t pid)
{
	char name[64], text[8];

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, QK_LANE_FD);
	return readlink(name, text, sizeof(text)) < 0 && errno == ENOENT;
}

bool qk_fastlane_admit(
	struct qk_fastlane *l, int listener, uint64_t id, pid_t pid, const char *path)
{
	struct seccomp_notif_addfd add = {
		.id = id,
		.flags = SECCOMP_ADDFD_FLAG_SETFD,
		.srcfd = (uint32_t)l->fd,
		.newfd = QK_LANE_FD,
		.newfd_flags = O_CLOEXEC,
	};
	pid_t *slot = &l->started[pid % QK_FASTLANE_STARTS];

	if (*slot != pid || (strcmp(path, l->ring->library[0]) && strcmp(path, l->ring->library[1])))
		return false;
	*slot = 0;
	if (number_is_free(pid))
		ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add); /* fails where files are limited */
	return true;
}

/* One event, copied out of memory that others may write. 0 or -EBADMSG. */
static int tell(const struct qk_lane_slot *s, struct qk_witness *w)
{
	struct qk_deed d = { .pid = s->pid, .dirfd = AT_FDCWD, .dirfd2 = AT_FDCWD, .path = s->path };
	struct qk_outcome o = { .err = s->err };

	if (s->len >= QK_LANE_TEXT || s->path[s->len] || s->path[0] != '/' || strlen(s->path) != s->len)
		return -EBADMSG;
	switch (s->call) {
	case QK_LANE_OPEN:
		d.op = QK_CALL_OPEN;
		d.flags = s->flags & ~(uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC | O_PATH);
		break;
	case QK_LANE_LOOK:
		d.op = QK_CALL_LOOK;
		d.flags = s->flags & AT_SYMLINK_NOFOLLOW;
		break;
	case QK_LANE_READLINK: d.op = QK_CALL_READLINK; break;
	case QK_LANE_REALPATH:
		if (s->flags > s->len)
			return -EBADMSG;
		qk_witness_realpath(w, &d, s->flags);
		return 0;
	default: return -EBADMSG;
	}
	qk_witness_done(w, &d, &o);
	return 0;
}

static void damaged(struct qk_fastlane *l, struct qk_witness *w)
{
	qk_trace_lost(w->trace, "the fast lane's memory was written over");
	qk_fastlane_close(l);
}

void qk_fastlane_drain(struct qk_fastlane *l, struct qk_witness *w)
{
	uint32_t head;

	if (!l->ring)
		return;
	head = __atomic_load_n(&l->ring->head, __ATOMIC_ACQUIRE);
	if (head == l->tail)
		return;
	if (head - l->tail > QK_LANE_SLOTS) {
		damaged(l, w);
		return;
	}
	for (uint32_t i = l->tail; i != head; i++) {
		struct qk_lane_slot *s = &l->ring->slots[i % QK_LANE_SLOTS], copy;

		if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != QK_LANE_READY)
			continue; /* not yet written, and perhaps never; or taken before */
		memcpy(&copy, s, offsetof(struct qk_lane_slot, path));
		if (copy.len < QK_LANE_TEXT)
			memcpy(copy.path, s->path, copy.len + 1);
		if (!w->trace->incomplete && tell(&copy, w))
			damaged(l, w);
		__atomic_store_n(&s->state, QK_LANE_TAKEN, __ATOMIC_RELAXED);
		l->events++;
	}
	while (l->tail != head) {
		struct qk_lane_slot *s = &l->ring->slots[l->tail % QK_LANE_SLOTS];

		if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) != QK_LANE_TAKEN)
			break;
		__atomic_store_n(&s->state, QK_LANE_FREE, __ATOMIC_RELAXED);
		l->tail++;
	}
	__atomic_store_n(&l->ring->tail, l->tail, __ATOMIC_RELEASE);
}

void qk_fastlane_close(struct qk_fastlane *l)
{
	if (l->ring)
		__atomic_fetch_or(&l->ring->flags, QK_LANE_CLOSED, __ATOMIC_RELAXED);
}
