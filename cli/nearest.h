/*
 * What a mistyped word was most likely meant to be.
 */
#ifndef QK_CLI_NEAREST_H
#define QK_CLI_NEAREST_H

#include <stddef.h>

/*
 * The one of the n words that is nearest to `word`: the fewest single-character slips (a character
 * too many, too few, wrong, or two swapped) away, at most one for every three characters; else the
 * first that `word` begins. NULL if none is near. Of equals the first.
 */
const char *qk_nearest(const char *word, const char *const *words, size_t n);

#endif
