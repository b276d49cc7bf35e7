/* A temporary directory with files in it, for tests that read one. */
#ifndef QK_TESTS_UNIT_TREE_H
#define QK_TESTS_UNIT_TREE_H

#include "base/fdio.h"
#include "base/mem.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char tree[64];

static inline void tree_make(void)
{
	strcpy(tree, "/tmp/qk-tree-XXXXXX");
	ck_assert(mkdtemp(tree));
}

static inline void tree_remove(void)
{
	ck_assert_int_eq(qk_remove_tree(AT_FDCWD, tree), 0);
}

/* Writes tree/path, with its directories. */
static inline void tree_file(const char *path, const char *text)
{
	qk_autofree char *p = qk_asprintf("%s/%s", tree, path);
	qk_autofree char *dir = qk_strndup(p, (size_t)(strrchr(p, '/') - p));

	ck_assert_int_eq(qk_mkdirs(dir, NULL), 0);
	ck_assert_int_eq(qk_write_file(p, text, strlen(text), 0644, NULL), 0);
}

#endif
