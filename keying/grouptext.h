/*
 * What a group of files counted as, file by file, kept in the store beside the results that name the
 * group by its digest alone: so that "why a miss" can tell which file. Once for all that share it.
 */
#ifndef QK_KEYING_GROUPTEXT_H
#define QK_KEYING_GROUPTEXT_H

#include "keying/parts.h"
#include "keying/store.h"

/* Keeps the lines of every group of files among the parts, all known, that is not there yet. */
void qk_grouptext_keep(struct qk_store *s, const struct qk_parts *p, struct qk_filehash *f);

/* Appends the lines, as qk_filegroup_text has them, of the group with that digest. False: not there. */
bool qk_grouptext_get(struct qk_store *s, const struct qk_digest *group, struct qk_buf *out);

#endif
