/*
 * Staying on one CPU for a moment. The kernel starts a child on another CPU than its parent's; where
 * the parent only waits for it, as after vfork, waking that other CPU is the dearest part.
 */
#ifndef QK_SANDBOX_ONECPU_H
#define QK_SANDBOX_ONECPU_H

#include <stddef.h>

/* The CPUs that the thread may run on, as the kernel holds them. bytes 0: nothing to give back. */
struct qk_onecpu {
	unsigned long mask[128];
	size_t bytes;
};

/* Fails silently: it only saves time. Children born meanwhile are held to the same CPU. */
void qk_onecpu_begin(struct qk_onecpu *c);
void qk_onecpu_end(const struct qk_onecpu *c);

#endif
