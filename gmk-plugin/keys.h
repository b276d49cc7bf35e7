/*
 * $(qk-key NAME…): a key for whoever wants to name a thing by what it is made of.
 *
 *   $(qk-key app:build)       the key of that task
 *   $(qk-key VERSION src)     of files, globs and directories: their paths, contents and executable bits
 *   $(qk-key )                in a recipe: its target's, over its name, the contents of its
 *                             prerequisites and QK_INPUTS, and the values of QK_ENV's variables
 *
 * Hashing happens in make's thread here: it was asked for.
 */
#ifndef QK_GMK_PLUGIN_KEYS_H
#define QK_GMK_PLUGIN_KEYS_H

/* 32 hexadecimal digits, allocated. Ends make if something cannot be read. */
char *qk_keys_of(const char *names);

#endif
