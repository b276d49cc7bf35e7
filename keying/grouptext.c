/* sets/ab/cd…: a sealed file (keying/storedir.h) "qkgroup1" with the lines. */
#include "keying/grouptext.h"

#include "keying/storedir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

static const char magic[] = "qkgroup1";

/* A name that no weak key has. */
static void name_of(const struct qk_digest *group, char ret[QK_STOREDIR_NAME])
{
	struct qk_hasher h;
	struct qk_digest d;

	qk_hasher_init(&h);
	qk_hasher_field(&h, magic, sizeof(magic));
	qk_hasher_add(&h, group->b, QK_DIGEST_SIZE);
	qk_hasher_done(&h, &d);
	qk_storedir_name("sets", &d, ret);
}

static void keep(struct qk_store *s, const struct qk_filegroup *g, struct qk_filehash *f)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[QK_STOREDIR_NAME];

	name_of(&g->digest, name);
	if (!faccessat(s->fd, name, F_OK, 0))
		return;
	qk_storedir_begin(&b, magic);
	if (!qk_filegroup_text(g, f, &b, NULL))
		(void)qk_storedir_write(s, name, &b, NULL);
}

void qk_grouptext_keep(struct qk_store *s, const struct qk_parts *p, struct qk_filehash *f)
{
	qk_storedir_lock(s, LOCK_SH);
	for (size_t i = 0; i < p->list.n; i++)
		if (p->list.v[i].kind == QK_PART_FILES)
			keep(s, p->list.v[i].files, f);
	qk_storedir_lock(s, LOCK_UN);
}

bool qk_grouptext_get(struct qk_store *s, const struct qk_digest *group, struct qk_buf *out)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	char name[QK_STOREDIR_NAME];

	name_of(group, name);
	if (!qk_storedir_read(s, name, magic, &b))
		return false;
	qk_buf_add(out, b.s + QK_STOREDIR_HEAD, b.len - QK_STOREDIR_HEAD);
	return true;
}
