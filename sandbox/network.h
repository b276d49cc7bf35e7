/*
 * A network of the command's own: a namespace with nothing but a loopback interface that is up. What
 * the command may reach beyond is a socket that somebody outside serves.
 */
#ifndef QK_SANDBOX_NETWORK_H
#define QK_SANDBOX_NETWORK_H

#include "base/err.h"

/*
 * Enters a new network namespace and brings its loopback interface up. The caller is in a user
 * namespace of its own, or has CAP_SYS_ADMIN and CAP_NET_ADMIN where it is.
 */
int qk_network_enter(struct qk_err *err);

/*
 * Sockets of families that no network namespace holds (AF_VSOCK reaches the host of a virtual
 * machine) fail with EAFNOSUPPORT from now on, in this process and all it starts, and so does
 * io_uring_setup (ENOSYS), by which they could be had too. 32-bit programs on x86 get no socket by
 * socketcall(2), whose arguments a filter does not see. The caller has CAP_SYS_ADMIN in its user
 * namespace or no_new_privs. Async-signal-safe. 0 or -errno.
 */
int qk_network_guard(void);

#endif
