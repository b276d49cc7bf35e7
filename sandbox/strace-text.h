/*
 * The text of one line of strace: "PID name(arguments) = result", with every string in hexadecimal
 * (-xx) and every descriptor with its path (-y). All of it is taken apart in place.
 */
#ifndef QK_SANDBOX_STRACE_TEXT_H
#define QK_SANDBOX_STRACE_TEXT_H

#include <stdbool.h>

enum { QK_STRACE_ARGS = 8 };

/* Decodes \x61\x62... up to `end`. False if it is anything else. */
bool qk_strace_decode(char *s, char end);

/* Splits "a, {b, c}, d) = r" at its top level; returns what follows ")", or NULL. */
char *qk_strace_split(char *s, char *args[QK_STRACE_ARGS], int *n);

/* "-100<...>" or "3<...>": the directory it names, NULL if it names none. */
const char *qk_strace_descriptor(char *arg);

#endif
