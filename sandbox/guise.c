#include "sandbox/guise.h"

#include "base/buf.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS_MAX = 1 << 20 };

/* What follows "name:" at the start of a line, or NULL. */
static const char *field(const char *status, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = status; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, name, n) && s[n] == ':')
			return s + n + 1;
	}
	return NULL;
}

bool qk_standing_parse(struct qk_standing *s, const char *status)
{
	const char *mask = field(status, "Umask"), *uid = field(status, "Uid");
	const char *gid = field(status, "Gid"), *groups = field(status, "Groups");
	const char *caps = field(status, "CapEff");
	char *end;

	*s = (struct qk_standing){ 0 };
	if (!mask || !uid || !gid || !groups || !caps || sscanf(mask, "%o", &s->umask) != 1 ||
		sscanf(uid, "%*u %*u %*u %u", &s->uid) != 1 ||
		sscanf(gid, "%*u %*u %*u %u", &s->gid) != 1 || sscanf(caps, "%llx", &s->capabilities) != 1)
		return false;
	for (;; groups = end) { /* the line after this one begins with a letter */
		unsigned long g = strtoul(groups, &end, 10);

		if (end == groups)
			break;
		qk_vec_push(&s->groups, (gid_t)g);
	}
	return true;
}

static int get_caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, data) ? -errno : 0;
}

static int set_caps(const struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static int read_standing(struct qk_standing *s, pid_t task)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "/proc/%d/status", task);
	r = qk_read_file(AT_FDCWD, name, STATUS_MAX, &text, NULL);
	return r ? r : qk_standing_parse(s, text.s) ? 0 : -EINVAL;
}

/* The ids of another user. Those of the same one are not even looked at: root's groups may differ. */
static int take_ids(struct qk_guise *saved, const struct qk_standing *s)
{
	int n;

	if (s->uid == saved->uid && s->gid == saved->gid)
		return 0;
	n = getgroups(0, NULL);
	saved->groups = qk_alloc(sizeof(*saved->groups) * (size_t)(n > 0 ? n : 1));
	n = getgroups(n, saved->groups);
	if (n < 0 || setgroups(s->groups.n, s->groups.v))
		return -errno;
	saved->n_groups = n;
	setfsgid(s->gid);
	setfsuid(s->uid);
	/* they say nothing of failure; asked again they tell */
	if ((gid_t)setfsgid((gid_t)-1) != s->gid || (uid_t)setfsuid((uid_t)-1) != s->uid)
		return -EPERM;
	return 0;
}

int qk_guise_on(struct qk_guise *saved, pid_t task)
{
	struct __user_cap_data_struct caps[2];
	struct qk_standing s;
	int r;

	*saved = (struct qk_guise){ .n_groups = -1 };
	r = get_caps(saved->caps);
	if (!r)
		r = read_standing(&s, task);
	if (r)
		return r;
	saved->uid = (uid_t)setfsuid((uid_t)-1);
	saved->gid = (gid_t)setfsgid((gid_t)-1);
	saved->umask = umask(s.umask);
	r = take_ids(saved, &s);
	memcpy(caps, saved->caps, sizeof(caps));
	for (int i = 0; i < 2; i++)
		caps[i].effective &= (unsigned int)(s.capabilities >> 32 * i);
	if (!r)
		r = set_caps(caps);
	if (r)
		qk_guise_off(saved);
	qk_vec_release(&s.groups);
	return r;
}

void qk_guise_off(struct qk_guise *saved)
{
	/* first what the rest needs; a change back to root's ids changes it again */
	(void)set_caps(saved->caps);
	if (saved->n_groups >= 0) {
		setfsuid(saved->uid);
		setfsgid(saved->gid);
		(void)setgroups((size_t)saved->n_groups, saved->groups);
		(void)set_caps(saved->caps);
	}
	free(saved->groups);
	saved->groups = NULL;
	umask(saved->umask);
}
