#include "sandbox/network.h"

#include "base/mem.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

int qk_network_enter(struct qk_err *err)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	qk_autofd int fd = -1;

	if (unshare(CLONE_NEWNET))
		return qk_fail(err, errno, "network namespaces: unshare");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		return qk_fail(err, errno, "network namespaces: bring up the loopback interface");
	return 0;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))

/* The kernel takes family and call for ints, and so does this. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST LOAD(args[0])
#else
#define FIRST BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + 4)
#endif

enum { IO_URING_SETUP = 425 };
#ifdef __x86_64__
enum { X32 = 0x40000000, SOCKET_32 = 359, SOCKETCALL_32 = 102, SOCKETCALL_SOCKET = 1 };
#endif

int qk_network_guard(void)
{
	struct sock_filter code[] = {
#ifdef __x86_64__
		LOAD(arch),
		IF(AUDIT_ARCH_I386, 0, 6),
		LOAD(nr),
		IF(SOCKET_32, 8, 0),
		IF(IO_URING_SETUP, 14, 0),
		IF(SOCKETCALL_32, 0, 11),
		FIRST,
		IF(SOCKETCALL_SOCKET, 10, 9),
		LOAD(nr),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)X32),
#else
		LOAD(nr),
#endif
		IF(SYS_socket, 1, 0),
		IF(IO_URING_SETUP, 7, 5),
		FIRST,
		IF(AF_UNIX, 3, 0),
		IF(AF_INET, 2, 0),
		IF(AF_INET6, 1, 0),
		IF(AF_NETLINK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}
