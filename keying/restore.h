/*
 * Puts a stored result back into the workspace (K7).
 */
#ifndef QK_KEYING_RESTORE_H
#define QK_KEYING_RESTORE_H

#include "base/err.h"
#include "keying/filehash.h"
#include "keying/outputs.h"
#include "keying/store.h"

enum qk_restored {
	QK_RESTORED_NOTHING, /* a blob is missing or damaged: nothing was touched, the entry is gone
			      */
	QK_RESTORED_IN_PLACE, /* the outputs were there as stored: nothing was touched */
	QK_RESTORED_WRITTEN,  /* what the globs matched was removed, the stored tree is there */
};

/*
 * key: the entry's, so that one whose blobs are gone can be dropped. stage: an existing directory
 * (absolute) on the workspace's file system, outside the outputs.
 *
 * Everything is read, verified and written below stage before anything in the workspace is touched;
 * then each file is renamed into place. Modification times are those of the restoring. A directory
 * on the way that is a link is an error (-ELOOP): nothing is written through it.
 *
 * On an error after the first removal (a directory that cannot be written) the outputs are
 * incomplete: the task has to run.
 */
int qk_restore(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	const struct qk_outputs *o, struct qk_filehash *f, const char *stage, enum qk_restored *ret,
	struct qk_err *err);

#endif
