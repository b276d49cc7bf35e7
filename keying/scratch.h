/*
 * What a scratch directory may be, as far as names tell: it is emptied before its task runs, so it
 * must not be able to hold anything else.
 */
#ifndef QK_KEYING_SCRATCH_H
#define QK_KEYING_SCRATCH_H

#include "keying/workspace.h"

/*
 * Why dir, relative to the workspace root and clean, cannot be a scratch directory, or NULL. Names
 * alone are looked at. The caller frees.
 */
char *qk_scratch_refuse(const struct qk_workspace *ws, const char *store, const char *dir);

#endif
