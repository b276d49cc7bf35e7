/*
 * Asking why a target is not restored: QK_WHY=TARGET, or the goal qk-why with TARGET=NAME. make goes
 * through the recipes as under -B -s; the runner tells of the lines of that target and runs none.
 */
#ifndef QK_GMK_PLUGIN_ASK_H
#define QK_GMK_PLUGIN_ASK_H

#include <stdbool.h>

/* What is asked about, allocated; NULL: nothing, or this make was started by one that asks. */
char *qk_ask_target(void);

/*
 * Once the knobs are read and the workspace's part is loaded. Answers and ends make where no recipe
 * is needed for that: nothing is stored here, or the target is a task. home ends in '/'.
 */
void qk_ask_begin(const char *home);

/* True if target, as $@ has it, is the one asked about. */
bool qk_ask_is(const char *target);

/* The recipe would be run by that shell, past the runner: ends make. */
void qk_ask_refuse(const char *target, const char *shell) __attribute__((noreturn));

/* At make's exit: what no line has said. */
void qk_ask_end(void);

#endif
