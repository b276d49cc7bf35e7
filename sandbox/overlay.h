/*
 * Makes one overlay mount, detached. Overlayfs opens lower files with the credentials of whoever
 * mounted it, a Landlock domain included: so a short-lived helper restricts itself and mounts.
 */
#ifndef QK_SANDBOX_OVERLAY_H
#define QK_SANDBOX_OVERLAY_H

#include "base/err.h"

/*
 * An overlay of lower_fd with upper_fd and work_fd (O_PATH directories), held by the ruleset, or
 * by nothing if ruleset_fd is negative. Returns the mount's descriptor, or -errno. It is mounted
 * `userxattr` (the only kind an ordinary user may have) and `volatile` (unmounting it would
 * otherwise sync the whole file system). /proc must be mounted.
 */
int qk_overlay_mount(int lower_fd, int upper_fd, int work_fd, int ruleset_fd, struct qk_err *err);

#endif
