/*
 * What of the world outside the workspace a closed policy hides (credential stores): in the mount
 * namespace of the task a directory shows empty, a file as /dev/null. What is not there is not
 * covered, and nothing is made for it.
 */
#ifndef QK_SANDBOX_HIDE_H
#define QK_SANDBOX_HIDE_H

#include "base/err.h"
#include "sandbox/policy.h"

/* Covers all of policy->hidden that is there, links followed. Within the task's mount namespace. */
int qk_hide(const struct qk_policy *policy, struct qk_err *err);

#endif
