/*
 * Tries ways out of the walls, each in a child: escape PID FILE WAY... with PID a process outside
 * them, of the same user, and FILE what may not be read. Says "out: WAY" or "held: WAY: why".
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t victim;
static const char *file;

/* 0 if the file can be read by this name, else -errno. */
static int reads(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY);
	char c;
	int r = fd >= 0 && read(fd, &c, 1) == 1 ? 0 : -errno;

	if (fd >= 0)
		close(fd);
	return r;
}

static int by_name(void)
{
	return reads(AT_FDCWD, file);
}

static int by_proc(const char *entry, const char *rest)
{
	char path[4096];

	snprintf(path, sizeof(path), "/proc/%d/%s%s", (int)victim, entry, rest);
	return reads(AT_FDCWD, path);
}

static int proc_root(void)
{
	return by_proc("root", file);
}

static int proc_cwd(void)
{
	return by_proc("cwd", strrchr(file, '/'));
}

static int trace(void)
{
	return ptrace(PTRACE_SEIZE, victim, NULL, NULL) ? -errno : 0;
}

/* A process that may be read answers that nothing is at this address. */
static int memory(void)
{
	char c;
	struct iovec here = { &c, 1 }, there = { NULL, 1 };

	if (process_vm_readv(victim, &here, 1, &there, 1, 0) == 1 || errno == EFAULT)
		return 0;
	return -errno;
}

static int their_descriptors(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, victim, 0);

	if (pidfd < 0)
		return -errno;
	return syscall(SYS_pidfd_getfd, pidfd, 0, 0) < 0 ? -errno : 0;
}

/* Directories among the descriptors that we were born with, and what lies above them. */
static int inherited(void)
{
	int r = -EBADF;

	for (int fd = 0; fd < 1024; fd++) {
		char up[4096];

		if (fcntl(fd, F_GETFD) < 0)
			continue;
		if (!reads(fd, strrchr(file, '/') + 1))
			return 0;
		snprintf(up, sizeof(up), "../../../../../../../../../../../../../../../..%s", file);
		r = reads(fd, up);
		if (!r)
			return 0;
	}
	return r;
}

static int unmount_it(void)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(file, '/') - file), file);
	if (umount2(dir, MNT_DETACH))
		return -errno;
	return reads(AT_FDCWD, file);
}

/* On a directory of our own, and off again at once: this may be run where nothing holds it. */
static int mount_something(void)
{
	const char *dir = "a-mount-point";
	int r;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	r = mount("none", dir, "tmpfs", 0, NULL) ? -errno : 0;
	if (!r)
		umount2(dir, MNT_DETACH);
	rmdir(dir);
	return r;
}

static int more_namespaces(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	unmount_it();
	return reads(AT_FDCWD, file);
}

static int their_namespace(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)victim);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNS))
		return -errno;
	return reads(AT_FDCWD, file);
}

/* The disk that the file lies on, by a device file of our own. */
static int device(void)
{
	const char *name = "the-device";
	struct stat st;
	int r;

	if (stat(file, &st) || mknod(name, S_IFBLK | 0600, st.st_dev))
		return -errno;
	r = reads(AT_FDCWD, name);
	unlink(name);
	return r;
}

static int handle(void)
{
	char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	struct file_handle *h = (struct file_handle *)room;
	int id, fd;

	h->handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(AT_FDCWD, file, h, &id, 0))
		return -errno;
	fd = open_by_handle_at(AT_FDCWD, h, O_RDONLY);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int become_root(void)
{
	return setuid(0) ? -errno : by_name();
}

/* What it opens, the recorder would not see. */
static int uring(void)
{
	char params[256] = { 0 };

	return syscall(SYS_io_uring_setup, 4, params) < 0 ? -errno : 0;
}

/* A terminal of our own does for the one of the user. */
static int typing(unsigned long request)
{
	int main_fd = posix_openpt(O_RDWR | O_NOCTTY), fd;
	const char *name;
	char c = 'x';

	if (main_fd < 0 || grantpt(main_fd) || unlockpt(main_fd))
		return -errno;
	name = ptsname(main_fd);
	if (setsid() < 0 || !name)
		return -errno;
	fd = open(name, O_RDWR);
	if (fd < 0)
		return -errno;
	return syscall(SYS_ioctl, fd, request, &c) ? -errno : 0;
}

static int terminal(void)
{
	return typing(TIOCSTI);
}

/* The kernel takes 32 bits of the request: more of them change nothing. */
static int terminal_wide(void)
{
	return typing((unsigned long)(1ULL << 32 | TIOCSTI));
}

static const struct {
	const char *name;
	int (*try)(void);
} ways[] = {
	{ "name", by_name },
	{ "proc-root", proc_root },
	{ "proc-cwd", proc_cwd },
	{ "ptrace", trace },
	{ "memory", memory },
	{ "their-descriptors", their_descriptors },
	{ "inherited", inherited },
	{ "unmount", unmount_it },
	{ "mount", mount_something },
	{ "more-namespaces", more_namespaces },
	{ "their-namespace", their_namespace },
	{ "device", device },
	{ "handle", handle },
	{ "become-root", become_root },
	{ "io_uring", uring },
	{ "terminal", terminal },
	{ "terminal-wide", terminal_wide },
};

/* In a child, so that one way does not stand in another's. */
static void try(size_t i)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		int r = ways[i].try();

		printf(r ? "held: %s: %s\n" : "out: %s\n", ways[i].name, strerror(-r));
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		printf("failed: %s\n", ways[i].name);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4 || argv[2][0] != '/')
		return 2;
	victim = atoi(argv[1]);
	file = argv[2];
	for (int a = 3; a < argc; a++) {
		size_t i = 0;

		while (i < sizeof(ways) / sizeof(*ways) && strcmp(ways[i].name, argv[a]))
			i++;
		if (i == sizeof(ways) / sizeof(*ways))
			return 2;
		try(i);
	}
	return 0;
}
