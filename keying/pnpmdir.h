/*
 * Directories of pnpm's store: node_modules/.pnpm/NAME, NAME made of a snapshot's key. pnpm does that
 * in its package dependency-path (depPathToFilename): characters that some file system refuses become
 * '+', parentheses '_', and a name that is too long, or told from another by case alone, is cut and
 * gets a digest.
 */
#ifndef QK_KEYING_PNPMDIR_H
#define QK_KEYING_PNPMDIR_H

#include "base/buf.h"

#include <stddef.h>

enum qk_pnpmdir_form {
	QK_PNPMDIR_9,  /* MD5 in base 32 */
	QK_PNPMDIR_10, /* half of SHA-256 in hexadecimal */
	QK_PNPMDIR_FORMS,
};

enum { QK_PNPMDIR_MAX = 120 }; /* bytes of a name, where virtual-store-dir-max-length says nothing */

void qk_pnpmdir_name(struct qk_buf *out, const char *key, enum qk_pnpmdir_form form, size_t max);

#endif
