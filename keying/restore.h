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

/*
 * Does again what one command did, and no more: what the entry lists as gone is removed, each file
 * and link of its tree stands there with the time of now, missing directories are made. All else
 * stays as it is. stage may be shared by processes. QK_RESTORED_NOTHING: as above, nothing was
 * touched; after an error the command has to run.
 */
int qk_restore_changes(struct qk_store *s, const struct qk_digest *key, const struct qk_entry *e,
	struct qk_filehash *f, const char *stage, enum qk_restored *ret, struct qk_err *err);

#endif
