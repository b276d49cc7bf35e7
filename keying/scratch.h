/*
 * What a scratch directory or a warm path may be, as far as names tell: the one is emptied before its
 * task runs, the other put back, so neither must be able to hold anything else.
 */
#ifndef QK_KEYING_SCRATCH_H
#define QK_KEYING_SCRATCH_H

#include "keying/workspace.h"

/*
 * Why dir, relative to the workspace root and clean, cannot be a scratch directory, or NULL. Names
 * alone are looked at. The caller frees.
 */
char *qk_scratch_refuse(const struct qk_workspace *ws, const char *store, const char *dir);

/*
 * The same for a warm path, which may be a pattern and may lie in node_modules, where tools have their
 * caches.
 */
char *qk_warm_refuse(const struct qk_workspace *ws, const char *store, const char *pattern);

#endif
