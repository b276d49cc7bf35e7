/*
 * nx.json: the file it `extends` under it (a path, or a file of an installed package),
 * nx.local.json over it. Members of the top level replace each other, but namedInputs and
 * targetDefaults of nx.local.json are merged name by name.
 */
#ifndef QK_KEYING_NXJSON_H
#define QK_KEYING_NXJSON_H

#include "base/err.h"
#include "keying/workspace.h"

/* Fills nx and all fields of ws that come from it. Without an nx.json it is an empty object. */
int qk_nxjson_read(struct qk_workspace *ws, struct qk_err *err);

#endif
