#include "sandbox/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WRITES = QK_LL_WRITE_FILE | QK_LL_REMOVE_DIR | QK_LL_REMOVE_FILE | QK_LL_MAKE_CHAR |
		QK_LL_MAKE_DIR | QK_LL_MAKE_REG | QK_LL_MAKE_SOCK | QK_LL_MAKE_FIFO |
		QK_LL_MAKE_BLOCK | QK_LL_MAKE_SYM,
};

/*
 * From which ABI on a right may be asked for, by use. REFER is special: a domain that does not
 * handle it refuses every rename and link between directories, so a domain that is about reads
 * asks for it too, to grant it everywhere. The mounter makes no such call on its own behalf:
 * overlayfs renames within the work and upper directories by vfs calls that pass no such hook.
 */
static const struct {
	int abi;
	uint64_t rights[3]; /* by enum qk_landlock_use */
} levels[] = {
	{ 1, { QK_LL_READ, QK_LL_READ, QK_LL_READ | WRITES } },
	{ 2, { 0, QK_LL_REFER, QK_LL_REFER } },
	{ 3, { 0, 0, QK_LL_TRUNCATE } },
};

#define BY_NAME "dotenv files, .git and node_modules are open on the way to the recipe's directory only"

static const struct {
	int lifted_by;      /* the ABI that lifts it; 0 = none does */
	unsigned int uses;  /* bits of enum qk_landlock_use */
	enum { ALWAYS, UNATTENDED, ATTENDED } when; /* by the doorman */
	const char *text;
} limits[] = {
	{ 2, 1 << QK_LL_FOR_READS | 1 << QK_LL_FOR_ALL, ALWAYS,
		"renaming and linking between directories fails (before Linux 5.19)" },
	{ 3, 1 << QK_LL_FOR_ALL, ALWAYS,
		"truncating an undeclared file is not refused (before Linux 6.2)" },
	{ 0, 1 << QK_LL_FOR_READS, UNATTENDED,
		"files made where nothing is declared cannot be read back" },
	{ 0, 1 << QK_LL_FOR_READS, ATTENDED,
		"fifos made where nothing is declared cannot be read from" },
	{ 0, 1 << QK_LL_FOR_MOUNTER | 1 << QK_LL_FOR_READS, UNATTENDED, BY_NAME },
	{ 0, 1 << QK_LL_FOR_ALL, ALWAYS, BY_NAME },
	{ 0, 1 << QK_LL_FOR_ALL, ALWAYS, "outputs beside other files cannot be removed or renamed" },
};

uint64_t qk_landlock_handled(enum qk_landlock_use use, int abi)
{
	uint64_t rights = 0;

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
		if (abi >= levels[i].abi)
			rights |= levels[i].rights[use];
	return rights;
}

const char *qk_landlock_limit(enum qk_landlock_use use, int abi, bool attended, size_t i)
{
	for (size_t k = 0; k < sizeof(limits) / sizeof(*limits); k++) {
		if (!(limits[k].uses & 1u << use) || (limits[k].lifted_by && abi >= limits[k].lifted_by))
			continue;
		if (limits[k].when == (attended ? UNATTENDED : ATTENDED))
			continue;
		if (!i--)
			return limits[k].text;
	}
	return NULL;
}

int qk_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? -errno : (int)abi;
}

int qk_landlock_create(uint64_t handled)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = handled };
	long fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	return fd < 0 ? -errno : (int)fd;
}

int qk_landlock_allow(int ruleset, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0))
		return -errno;
	return 0;
}

int qk_landlock_restrict(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) ? -errno : 0;
}
