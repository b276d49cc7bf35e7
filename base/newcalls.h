/*
 * System calls that a small C library (musl, for the runner) does not wrap. With glibc the wrappers
 * are its own; the names are the same. Include this in place of <sys/mount.h>.
 */
#ifndef QK_BASE_NEWCALLS_H
#define QK_BASE_NEWCALLS_H

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#ifndef __GLIBC__

#include <linux/mount.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int open_tree(int dirfd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int fsopen(const char *type, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fsconfig(int fd, unsigned int cmd, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int fsmount(int fd, unsigned int flags, unsigned int attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int close_range(unsigned int first, unsigned int last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int mount_setattr(int fd, const char *path, unsigned int flags, struct mount_attr *attr,
	size_t size)
{
	return (int)syscall(SYS_mount_setattr, fd, path, flags, attr, size);
}

static inline int renameat2(int from, const char *from_path, int to, const char *to_path, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, from, from_path, to, to_path, flags);
}

#ifndef STATX_BASIC_STATS
#error "statx is not declared"
#endif
static inline int qk_statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *st)
{
	return (int)syscall(SYS_statx, dirfd, path, flags, mask, st);
}

#else

#define qk_statx statx

#endif
#endif
