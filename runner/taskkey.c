#include "runner/taskkey.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int run_runtimes(struct qk_taskkey *k, struct qk_err *err)
{
	for (size_t i = 0; i < k->spec->parts.list.n; i++) {
		struct qk_part *part = &k->spec->parts.list.v[i];
		int r = 0;

		if (part->kind == QK_PART_RUNTIME && !part->known)
			r = qk_runtime_run(part->name, k->req->root, &part->digest, err);
		if (r)
			return r;
		part->known |= part->kind == QK_PART_RUNTIME;
	}
	return 0;
}

/* Makes the paths of groups known: of those that have to be counted, or of all. */
static int load_groups(struct qk_taskkey *k, bool all)
{
	for (size_t i = 0; i < k->spec->parts.list.n; i++) {
		struct qk_filegroup *g = k->spec->parts.list.v[i].files;

		if (g && (all || !g->known) &&
			qk_filegroup_load(g, &k->spec->parts.arena, k->groups, k->groups_len))
			return -EBADMSG;
	}
	return 0;
}

int qk_taskkey_load(struct qk_taskkey *k)
{
	return load_groups(k, true);
}

static void map_groups(struct qk_taskkey *k)
{
	qk_autofree char *path = qk_asprintf("%s/groups.%llu", k->req->run,
		(unsigned long long)k->req->make_pid);
	qk_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return;
	k->groups = p;
	k->groups_len = (size_t)st.st_size;
}

int qk_taskkey_make(struct qk_taskkey *k, struct qk_digest *ret, struct qk_err *err)
{
	struct qk_taskspec *s = k->spec;
	struct qk_part *unknown;
	int r;

	if (s->unkeyed || !s->parts.list.n)
		return qk_fail(err, -ENOKEY, "%s", s->unkeyed ? s->unkeyed : "it has no key");
	map_groups(k);
	if (load_groups(k, false))
		return qk_fail(err, -EBADMSG, "the list of its inputs is damaged");
	if (!k->hash)
		return qk_fail(err, -ENOKEY, "the workspace cannot be read");
	r = qk_parts_hash(&s->parts, k->hash, 0, err);
	if (!r)
		r = run_runtimes(k, err);
	if (r)
		return r;
	unknown = qk_parts_unknown(&s->parts);
	if (unknown)
		return qk_fail(err, -ENOKEY, "it depends on %s, which has no key", unknown->name);
	qk_parts_fold(&s->parts, "task", NULL, ret);
	return 0;
}

bool qk_taskkey_stayed(struct qk_taskkey *k)
{
	if (load_groups(k, true))
		return false;
	for (size_t i = 0; i < k->spec->parts.list.n; i++) {
		const struct qk_part *part = &k->spec->parts.list.v[i];
		struct qk_digest now;

		if (part->kind == QK_PART_FILES && (qk_filegroup_look(part->files, k->hash, &now, NULL) ||
							   !qk_digest_eq(&now, &part->files->seen)))
			return false;
		if (part->kind == QK_PART_OUTPUTS &&
			(qk_outputs_count(part->globs, part->n_globs, part->value, k->hash, 0, &now,
				 NULL) ||
				!qk_digest_eq(&now, &part->digest)))
			return false;
	}
	return true;
}
