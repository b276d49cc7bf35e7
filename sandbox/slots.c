#include "sandbox/slots.h"

#include "base/fdio.h"
#include "base/mem.h"
#include "base/path.h"
#include "sandbox/landlock.h"
#include "sandbox/namespace.h"
#include "base/newcalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void slot_name(char name[8], unsigned int i)
{
	snprintf(name, 8, "%u", i);
}

int qk_slots_grant(int layer_fd, int ruleset, uint64_t rights, struct qk_err *err)
{
	qk_autofd int dir = -1;
	char name[8];

	if (mkdirat(layer_fd, "slots", 0700) && errno != EEXIST)
		return qk_fail(err, errno, "make 'slots' in the layer");
	dir = qk_open_beneath(layer_fd, "slots", O_PATH | O_DIRECTORY, 0);
	for (unsigned int i = 0; dir >= 0 && i < QK_SLOTS; i++) {
		int fd, r;

		slot_name(name, i);
		fd = qk_open_beneath(dir, name, O_PATH, 0);
		if (fd == -ENOENT)
			fd = qk_open_beneath(dir, name, O_RDONLY | O_CREAT | O_EXCL, 0600);
		r = fd < 0 ? fd : qk_landlock_allow(ruleset, fd, rights);
		if (fd >= 0)
			close(fd);
		if (r)
			return qk_fail(err, -r, "landlock rule for 'slots/%s' in the layer", name);
	}
	return dir < 0 ? qk_fail(err, -dir, "open 'slots' in the layer") : 0;
}

int qk_slots_open(struct qk_slots *s, int layer_fd)
{
	s->dir = qk_open_beneath(layer_fd, "slots", O_PATH | O_DIRECTORY, 0);
	return s->dir < 0 ? s->dir : 0;
}

static bool uncover(struct qk_slots *s, unsigned int i)
{
	if (!s->v[i].path)
		return false;
	(void)umount2(s->v[i].path, MNT_DETACH | UMOUNT_NOFOLLOW);
	free(s->v[i].path);
	s->v[i].path = NULL;
	return true;
}

/* Fills the slot with what fd is open on, and makes it look like that. */
static int fill(struct qk_slots *s, unsigned int i, int fd)
{
	qk_autofd int slot = -1;
	struct stat st, now;
	struct timespec times[2];
	char name[8];
	int r;

	slot_name(name, i);
	/* ETXTBSY: something executes it still */
	slot = qk_open_beneath(s->dir, name, O_WRONLY | O_TRUNC, 0);
	if (slot < 0)
		return slot;
	s->v[i].used = true;
	if (fstat(fd, &st) || fstat(slot, &now))
		return -errno;
	r = qk_copy_fd(fd, slot);
	if (r)
		return r;
	if ((st.st_uid != now.st_uid || st.st_gid != now.st_gid) &&
		fchown(slot, st.st_uid, st.st_gid))
		return -errno;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return fchmod(slot, st.st_mode & 07777) || futimens(slot, times) ? -errno : 0;
}

int qk_slots_cover(struct qk_slots *s, int fd, int root_fd, const char *rel, const char *path)
{
	int r = -ENOENT;

	for (int tries = 0; s->dir >= 0 && tries < QK_SLOTS; tries++) {
		unsigned int i = s->turn++ % QK_SLOTS;
		qk_autofd int slot = -1;
		qk_autofd int mount = -1;
		qk_autofd int target = -1;
		char name[8];

		uncover(s, i);
		r = fill(s, i, fd);
		if (r == -ETXTBSY)
			continue;
		if (r)
			return r;
		slot_name(name, i);
		slot = qk_open_beneath(s->dir, name, O_PATH, 0);
		mount = slot < 0 ? slot : qk_namespace_copy(slot);
		target = qk_open_beneath(root_fd, rel, O_PATH, 0);
		if (mount < 0 || target < 0)
			return mount < 0 ? mount : target;
		r = qk_namespace_attach(mount, target);
		if (!r)
			s->v[i].path = qk_strdup(path);
		return r;
	}
	return r;
}

bool qk_slots_covers(const struct qk_slots *s, const char *path)
{
	for (unsigned int i = 0; i < QK_SLOTS; i++)
		if (s->v[i].path && !strcmp(s->v[i].path, path))
			return true;
	return false;
}

bool qk_slots_uncover(struct qk_slots *s, const char *path)
{
	bool any = false;

	for (unsigned int i = 0; i < QK_SLOTS; i++)
		if (s->v[i].path && qk_path_under(s->v[i].path, path))
			any |= uncover(s, i);
	return any;
}

void qk_slots_release(struct qk_slots *s)
{
	char name[8];

	for (unsigned int i = 0; i < QK_SLOTS; i++) {
		free(s->v[i].path);
		slot_name(name, i);
		if (s->v[i].used)
			close(qk_open_beneath(s->dir, name, O_WRONLY | O_TRUNC, 0));
	}
	if (s->dir >= 0)
		close(s->dir);
	*s = (struct qk_slots)QK_SLOTS_INIT;
}
