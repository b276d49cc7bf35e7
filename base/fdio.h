/*
 * Files by descriptor: whole reads and writes, atomic replacement, copies that share blocks where
 * the file system can. Every descriptor made here is O_CLOEXEC.
 */
#ifndef QK_BASE_FDIO_H
#define QK_BASE_FDIO_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes all n bytes, going on after short writes and EINTR. 0 or -errno. */
int qk_write_all(int fd, const void *p, size_t n);

/*
 * Appends a whole file to out. max bounds what is read (larger: -EFBIG, nothing appended).
 * dirfd may be AT_FDCWD. Errors name the path; -ENOENT is the usual one. A pipe is not waited for:
 * it holds what is in it.
 */
int qk_read_file(int dirfd, const char *path, size_t max, struct qk_buf *out, struct qk_err *err);

/*
 * Replaces path by the n bytes at p: a temporary file beside it, then rename. Readers see the old
 * or the new file, never a part; on any failure the old one stays and the temporary is removed.
 * What is no regular file (a device, a fifo) is written to as it is.
 */
int qk_write_file(const char *path, const void *p, size_t n, mode_t mode, struct qk_err *err);

/*
 * Makes path and its missing parents (mode 0777 less umask). An existing directory is no error;
 * anything else in its place is -ENOTDIR.
 */
int qk_mkdirs(const char *path, struct qk_err *err);

/*
 * Copies the whole of one file to another, an empty one; both at their beginning: FICLONE, else
 * copy_file_range, else read and write. 0 or -errno.
 */
int qk_copy_fd(int from, int to);

/*
 * openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: opens path under
 * dirfd and follows no link anywhere, the last component included. Descriptor or -errno (-ELOOP
 * for a link on the way, -EXDEV for an escape). flags gain O_CLOEXEC.
 */
int qk_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/*
 * Removes what dirfd/path names, a whole tree included, with no link followed and directories
 * without permissions opened up first. A missing path is no error. 0 or the first -errno met
 * (the rest is removed all the same).
 */
int qk_remove_tree(int dirfd, const char *path);

#endif
