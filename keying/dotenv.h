/*
 * Dotenv files: NAME=VALUE lines as the npm packages dotenv and dotenv-expand read them.
 *
 *   [export] NAME = value  # comment        NAME='as it is'        NAME="with \n"   NAME=`back ticks`
 *
 * Quoted values may hold newlines. $NAME, ${NAME} and ${NAME:-default} (or -default) in a value are
 * replaced, \$ stands for a dollar; what a name means is taken from the environment, and from what
 * the files say themselves.
 */
#ifndef QK_KEYING_DOTENV_H
#define QK_KEYING_DOTENV_H

#include "base/vec.h"

#include <stddef.h>

/* Names and their raw values, in the order of the text; a later one of a name replaces it. */
struct qk_dotenv {
	struct qk_strv names, values;
};

void qk_dotenv_release(struct qk_dotenv *d);

/* Adds what the text says. Lines that say nothing are passed over. */
void qk_dotenv_parse(struct qk_dotenv *d, const char *text, size_t n);

/*
 * Adds to env (NAME=VALUE strings) what d has and env has not, values expanded. Names already in env
 * keep their values.
 */
void qk_dotenv_apply(const struct qk_dotenv *d, struct qk_strv *env);

/* The value of a name in env, or NULL; and setting it. */
const char *qk_env_get(const struct qk_strv *env, const char *name);
void qk_env_set(struct qk_strv *env, const char *name, const char *value);

#endif
