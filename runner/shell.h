/*
 * What make would have executed for a line, had the runner not stood in its place: the user's
 * shell with make's flags, or the program itself for a line so plain that make starts it without
 * a shell (construct_command_argv in make's job.c; here only a subset that is beyond doubt).
 */
#ifndef QK_RUNNER_SHELL_H
#define QK_RUNNER_SHELL_H

#include "base/vec.h"

#include <stdbool.h>

/*
 * Fills argv for the command that argv_in (this program's own arguments) and the words in shell
 * ask for. Returns true if argv names the program itself, to be searched on PATH.
 */
bool qk_shell_argv(struct qk_strv *argv, const char *shell, char *const *argv_in);

/* The text of the line in this program's own arguments: what follows -c. NULL if there is none. */
const char *qk_shell_line(char *const *argv_in);

/* True if word stands in line as a word of its own. */
bool qk_shell_mentions(const char *line, const char *word);

#endif
