/*
 * The project graph: a project depends on another if its package.json asks for that one's package
 * in a version the workspace has (workspace:, *, a file: of its directory, a range its version
 * lies in), or if implicitDependencies selects it; a pattern with ! there takes edges away.
 *
 * Nx may also read the imports of TypeScript and JavaScript sources; qk does not, and warns where Nx
 * would.
 */
#ifndef QK_KEYING_DEPENDS_H
#define QK_KEYING_DEPENDS_H

#include "keying/workspace.h"

/* Fills deps of every project; they, their names and index are set. */
void qk_depends_resolve(struct qk_workspace *ws);

#endif
