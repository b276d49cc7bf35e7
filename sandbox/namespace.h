/*
 * The namespaces around one command: a user namespace in which everybody keeps the id they have
 * outside, and a mount namespace in it. Mounts as descriptors, moved into place.
 */
#ifndef QK_SANDBOX_NAMESPACE_H
#define QK_SANDBOX_NAMESPACE_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Enters new user and mount namespaces; the caller is single-threaded. Root, and anyone who may,
 * maps every id onto itself; an ordinary user maps itself alone, and setgroups(2) is denied.
 * Where there are no user namespaces (no_userns: pretend so) but CAP_SYS_ADMIN is held, a mount
 * namespace alone is entered. Nothing mounted here is seen outside; what is mounted outside later
 * is seen here.
 */
int qk_namespace_enter(bool no_userns, struct qk_err *err);

/* A detached copy of what is at fd, submounts included; move it with qk_namespace_attach. -errno. */
int qk_namespace_copy(int fd);

/* Attaches a detached mount over what target_fd names. 0 or -errno. */
int qk_namespace_attach(int mount_fd, int target_fd);

/*
 * Gives up the capabilities with which a command could undo the walls: the mounts (SYS_ADMIN),
 * what other processes hold open (SYS_PTRACE), files behind the mounts (DAC_READ_SEARCH opens by
 * handle), devices and the kernel itself. Root keeps what builds use: owners, modes, ids, kill,
 * chroot, nice, low ports. An ordinary user keeps none. The bounding set shrinks too, so exec and
 * setuid programs give nothing back. closed_network: nor does root keep NET_ADMIN, which without a user
 * namespace reaches every network there is. Async-signal-safe. 0, or -errno with the step.
 */
int qk_namespace_drop(bool closed_network, const char **ret_step);

#endif
