/*
 * Keeps a command from typing: with TIOCSTI on its controlling terminal (and TIOCLINUX on a virtual
 * console) it could put lines into what the user's shell reads after make has ended.
 */
#ifndef QK_SANDBOX_TERMINAL_H
#define QK_SANDBOX_TERMINAL_H

/*
 * These requests fail with EPERM from now on, in this process and in all it starts. The caller has
 * CAP_SYS_ADMIN in its user namespace or no_new_privs. Async-signal-safe. 0 or -errno.
 */
int qk_terminal_guard(void);

#endif
