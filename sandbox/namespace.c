#include "sandbox/namespace.h"

#include "base/buf.h"
#include "base/fdio.h"
#include "base/mem.h"
#include "base/newcalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_MAP = 1 << 16 };

#define CAP(name) (UINT64_C(1) << CAP_##name)

/* All but ADMIN, PTRACE, DAC_READ_SEARCH and those that reach past namespaces altogether. */
static const uint64_t root_keeps = CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FOWNER) | CAP(FSETID) |
	CAP(KILL) | CAP(SETGID) | CAP(SETUID) | CAP(SETPCAP) | CAP(SETFCAP) | CAP(LINUX_IMMUTABLE) |
	CAP(NET_BIND_SERVICE) | CAP(NET_BROADCAST) | CAP(NET_ADMIN) | CAP(NET_RAW) | CAP(IPC_LOCK) |
	CAP(IPC_OWNER) | CAP(SYS_CHROOT) | CAP(SYS_NICE) | CAP(SYS_RESOURCE) | CAP(LEASE) |
	CAP(AUDIT_WRITE);

/* Writes one of our own files in /proc. */
static int write_proc(const char *path, const char *text)
{
	qk_autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int leave_at_once(void *unused)
{
	(void)unused;
	return 0;
}

/*
 * Turns the own map ("inside outside count" lines) into one that maps each id that exists here
 * onto itself. In the initial namespace that is all of them, in a container those it was given.
 */
static int own_map(const char *path, struct qk_buf *out)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	int r = qk_read_file(AT_FDCWD, path, MAX_MAP, &text, NULL);
	unsigned int inside, outside, count;
	int used;

	if (r)
		return r;
	for (const char *s = text.s; sscanf(s, "%u %u %u%n", &inside, &outside, &count, &used) == 3;
		s += used)
		qk_buf_addf(out, "%u %u %u\n", inside, inside, count);
	return out->len ? 0 : -EINVAL;
}

static int map_ids(pid_t pid, const char *which)
{
	qk_autofree char *from = qk_asprintf("/proc/self/%s", which);
	qk_autofree char *to = qk_asprintf("/proc/%d/%s", (int)pid, which);
	qk_autobuf struct qk_buf map = QK_BUF_INIT;
	int r = own_map(from, &map);

	return r ? r : write_proc(to, map.s);
}

/*
 * All ids may only be mapped by a process outside the new namespace. So a child is born in it and
 * ends at once; it stays a zombie, whose namespace we can still map and then join, until we have
 * waited for it. With vfork semantics nobody sleeps and nobody is woken.
 */
static int enter_mapping_all(void)
{
	static char stack[4096] __attribute__((aligned(16)));
	pid_t pid = clone(leave_at_once, stack + sizeof(stack),
		CLONE_NEWUSER | CLONE_VM | CLONE_VFORK, NULL);
	qk_autofree char *link = NULL;
	qk_autofd int ns = -1;
	int r;

	if (pid < 0)
		return -errno;
	r = map_ids(pid, "uid_map");
	if (!r)
		r = map_ids(pid, "gid_map");
	if (!r) {
		link = qk_asprintf("/proc/%d/ns/user", (int)pid);
		ns = open(link, O_RDONLY | O_CLOEXEC);
		if (ns < 0)
			r = -errno;
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (!r && setns(ns, CLONE_NEWUSER))
		r = -errno;
	return r;
}

static int enter_mapping_self(struct qk_err *err)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];
	int r;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return qk_fail(err, errno, "user namespaces: unshare");
	r = write_proc("/proc/self/setgroups", "deny");
	if (r)
		return qk_fail(err, -r, "user namespaces: write setgroups");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	r = write_proc("/proc/self/uid_map", map);
	if (r)
		return qk_fail(err, -r, "user namespaces: write uid_map");
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	r = write_proc("/proc/self/gid_map", map);
	if (r)
		return qk_fail(err, -r, "user namespaces: write gid_map");
	return 0;
}

static bool has_cap(int cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		return false;
	return data[cap / 32].effective & 1u << cap % 32;
}

int qk_namespace_enter(bool no_userns, struct qk_err *err)
{
	int r = -EPERM;

	if (!no_userns && has_cap(CAP_SETUID) && has_cap(CAP_SETGID))
		r = enter_mapping_all();
	if (!r) {
		if (unshare(CLONE_NEWNS))
			return qk_fail(err, errno, "mount namespaces: unshare");
		return 0;
	}
	if (has_cap(CAP_SYS_ADMIN) && !unshare(CLONE_NEWNS)) {
		/* in a user namespace of its own the new one is a slave by itself */
		if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
			return qk_fail(err, errno, "mount namespaces: make / a slave");
		return 0;
	}
	if (no_userns)
		return qk_fail(err, EPERM, "user namespaces: unshare");
	return enter_mapping_self(err);
}

int qk_namespace_copy(int fd)
{
	int tree = open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return tree < 0 ? -errno : tree;
}

int qk_namespace_attach(int mount_fd, int target_fd)
{
	return move_mount(mount_fd, "", target_fd, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) ? -errno : 0;
}

int qk_namespace_drop(bool closed_network, const char **ret_step)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uint64_t keep = geteuid() ? 0 : root_keeps & ~(closed_network ? CAP(NET_ADMIN) : 0);

	/* past the last capability the kernel knows, the call fails: nothing to drop there */
	for (int cap = 0; cap < 64; cap++) {
		if (keep & UINT64_C(1) << cap || !prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			continue;
		if (errno == EINVAL)
			break;
		if (!prctl(PR_CAPBSET_READ, cap, 0, 0, 0))
			continue; /* it was not there */
		*ret_step = "drop capabilities from the bounding set";
		return -errno;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)) {
		*ret_step = "clear ambient capabilities";
		return -errno;
	}
	if (syscall(SYS_capget, &head, data)) {
		*ret_step = "read capabilities";
		return -errno;
	}
	for (int i = 0; i < 2; i++) {
		uint32_t mask = (uint32_t)(keep >> 32 * i);

		data[i].effective &= mask;
		data[i].permitted &= mask;
		data[i].inheritable &= mask;
	}
	if (syscall(SYS_capset, &head, data)) {
		*ret_step = "drop capabilities";
		return -errno;
	}
	return 0;
}
