/*
 * Where a verb was started: the root that a make started here would take, and its workspace.
 */
#ifndef QK_CLI_SITE_H
#define QK_CLI_SITE_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/taskgraph.h"
#include "keying/workspace.h"

#include <stdbool.h>
#include <stdint.h>

struct qk_site {
	char *cwd;         /* absolute; resolved */
	char *root;        /* the same */
	bool is_workspace; /* nx.json stands in root */
	struct qk_workspace *ws; /* after _load */
};

#define QK_SITE_INIT { NULL, NULL, false, NULL }
#define qk_autosite __attribute__((cleanup(qk_site_release)))

/* Fills cwd, root and is_workspace; QK_ROOT counts as it does for make. */
int qk_site_find(struct qk_site *s, struct qk_err *err);

/* The same, and loads the workspace. -ENOENT where there is none. */
int qk_site_load(struct qk_site *s, struct qk_err *err);
void qk_site_release(struct qk_site *s);

/* The project or task so named, or -ENOENT with the nearest name in the line. */
int qk_site_project(
	const struct qk_site *s, const char *name, const struct qk_project **ret, struct qk_err *err);
int qk_site_task(const struct qk_site *s, const char *id, const struct qk_target **ret,
	const char **ret_configuration, struct qk_err *err);

/* ids: appends "project:target" for every target, in order. */
void qk_site_ids(const struct qk_workspace *ws, struct qk_strv *ids);

/* True if make finds a makefile in the directory. */
bool qk_site_has_makefile(const char *dir);

/* Where the store of results is, or would be. The caller frees. */
char *qk_site_store(const struct qk_site *s);

/* QK_CACHE_SIZE, or what holds without it; 0 = no limit. */
int qk_site_store_limit(uint64_t *ret, struct qk_err *err);

#endif
