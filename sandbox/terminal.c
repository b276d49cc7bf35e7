#include "sandbox/terminal.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))

/* The kernel looks at the lower half of the request alone, and so does this. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define REQUEST LOAD(args[1])
#else
#define REQUEST BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1]) + 4)
#endif

#ifdef __x86_64__
enum { X32 = 0x40000000, IOCTL_X32 = X32 + 514, IOCTL_32 = 54 };
#endif

int qk_terminal_guard(void)
{
	struct sock_filter code[] = {
#ifdef __x86_64__
		LOAD(arch),
		IF(AUDIT_ARCH_I386, 0, 2),
		LOAD(nr),
		IF(IOCTL_32, 3, 6),
		LOAD(nr),
		IF(SYS_ioctl, 1, 0),
		IF(IOCTL_X32, 0, 3),
#else
		LOAD(nr),
		IF(SYS_ioctl, 0, 3),
#endif
		REQUEST,
		IF(TIOCSTI, 2, 0),
		IF(TIOCLINUX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ? -errno : 0;
}
