#include "runner/env.h"

#include <string.h>
#include <unistd.h>

static bool names(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool names_any(const char *entry, const char *const *list)
{
	for (; *list; list++)
		if (names(entry, *list))
			return true;
	return false;
}

void qk_env_task(struct qk_strv *env, const struct qk_request *r, const char *self)
{
	static const char *const ours[] = { "QK_REQ", "QK_RUN", "QK_SHELL", "QK_PARENT", "QK_TASK", "MAKEFILES",
		NULL };

	for (char **e = environ; *e; e++) {
		if (names(*e, "SHELL") && !strcmp(*e + strlen("SHELL="), self))
			qk_strv_take(env, qk_asprintf("SHELL=%s", r->shell));
		else if (!names_any(*e, ours))
			qk_strv_push(env, *e);
	}
	if (r->makefiles)
		qk_strv_take(env, qk_asprintf("MAKEFILES=%s", r->makefiles));
	qk_strv_take(env, qk_asprintf("QK_TASK=%llu:%llu", (unsigned long long)r->make_pid,
		(unsigned long long)r->offset));
}

void qk_env_submake(struct qk_strv *env, const struct qk_request *r)
{
	static const char *const ours[] = { "QK_REQ", "QK_SHELL", "QK_PARENT", "QK_TASK", NULL };

	for (char **e = environ; *e; e++)
		if (!names_any(*e, ours))
			qk_strv_push(env, *e);
	qk_strv_take(env, qk_asprintf("QK_PARENT=%llu:%llu", (unsigned long long)r->make_pid,
		(unsigned long long)r->offset));
}
