#include "sandbox/landlock.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BASE = 0x1fff & ~(1 << 3) }; /* all rights of ABI 1 but listing directories */

static const struct {
	enum qk_landlock_use use;
	int abi;
	uint64_t handled;
} handled[] = {
	{ QK_LL_FOR_MOUNTER, -ENOSYS, 0 },
	{ QK_LL_FOR_MOUNTER, 0, 0 },
	{ QK_LL_FOR_MOUNTER, 1, 1 | 4 },
	{ QK_LL_FOR_MOUNTER, 7, 1 | 4 },
	{ QK_LL_FOR_READS, 0, 0 },
	{ QK_LL_FOR_READS, 1, 1 | 4 },
	{ QK_LL_FOR_READS, 2, 1 | 4 | 1 << 13 },
	{ QK_LL_FOR_READS, 7, 1 | 4 | 1 << 13 },
	{ QK_LL_FOR_ALL, -EOPNOTSUPP, 0 },
	{ QK_LL_FOR_ALL, 1, BASE },
	{ QK_LL_FOR_ALL, 2, BASE | 1 << 13 },
	{ QK_LL_FOR_ALL, 3, BASE | 1 << 13 | 1 << 14 },
	{ QK_LL_FOR_ALL, 7, BASE | 1 << 13 | 1 << 14 },
};

START_TEST(handled_rights)
{
	ck_assert_uint_eq(
		qk_landlock_handled(handled[_i].use, handled[_i].abi), handled[_i].handled);
}
END_TEST

static const struct {
	enum qk_landlock_use use;
	int abi;
	bool attended;
	size_t n;
	const char *has, *has_not;
} limits[] = {
	{ QK_LL_FOR_MOUNTER, 7, true, 0, NULL, NULL },
	{ QK_LL_FOR_MOUNTER, 7, false, 1, "node_modules", "read back" },
	{ QK_LL_FOR_READS, 1, false, 3, "between directories", "truncating" },
	{ QK_LL_FOR_READS, 2, false, 2, "read back", "between directories" },
	{ QK_LL_FOR_READS, 1, true, 2, "between directories", "node_modules" },
	{ QK_LL_FOR_READS, 2, true, 1, "fifos", "read back" },
	{ QK_LL_FOR_ALL, 1, true, 4, "truncating", NULL },
	{ QK_LL_FOR_ALL, 2, false, 3, "truncating", "between directories" },
	{ QK_LL_FOR_ALL, 3, true, 2, "removed or renamed", "truncating" },
	{ QK_LL_FOR_ALL, 3, false, 2, "node_modules", "read back" },
};

START_TEST(limits_by_abi)
{
	char all[1000] = "";
	const char *text;
	size_t n = 0;

	for (; (text = qk_landlock_limit(limits[_i].use, limits[_i].abi, limits[_i].attended, n)); n++)
		strcat(strcat(all, text), "\n");
	ck_assert_uint_eq(n, limits[_i].n);
	if (limits[_i].has)
		ck_assert_ptr_nonnull(strstr(all, limits[_i].has));
	if (limits[_i].has_not)
		ck_assert_ptr_null(strstr(all, limits[_i].has_not));
}
END_TEST

/* A granted directory, a file in it, and one beside it, as the kernel then treats them. */
START_TEST(kernel_agrees)
{
	char dir[] = "/tmp/check_landlock.XXXXXX", in[64], beside[64], granted[64];
	int abi = qk_landlock_abi(), status;
	pid_t pid;

	if (abi < 1) {
		printf("skipped: kernel_agrees: no Landlock here\n");
		return;
	}
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(granted, sizeof(granted), "%s/granted", dir);
	snprintf(in, sizeof(in), "%s/granted/file", dir);
	snprintf(beside, sizeof(beside), "%s/beside", dir);
	ck_assert_int_eq(mkdir(granted, 0755), 0);
	close(open(in, O_CREAT | O_WRONLY, 0644));
	close(open(beside, O_CREAT | O_WRONLY, 0644));
	pid = fork();
	if (!pid) {
		int rules = qk_landlock_create(qk_landlock_handled(QK_LL_FOR_READS, abi));
		int fd = open(granted, O_PATH | O_CLOEXEC);

		if (qk_landlock_allow(rules, fd, QK_LL_READ) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			qk_landlock_restrict(rules))
			_exit(1);
		if (open(in, O_RDONLY) < 0)
			_exit(2);
		if (open(beside, O_RDONLY) >= 0 || errno != EACCES)
			_exit(3);
		if (open(beside, O_WRONLY) < 0 || open(dir, O_RDONLY | O_DIRECTORY) < 0)
			_exit(4); /* neither is handled */
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	unlink(in);
	unlink(beside);
	rmdir(granted);
	rmdir(dir);
}
END_TEST

START_TEST(rule_errors)
{
	int abi = qk_landlock_abi(), rules, file;

	if (abi < 1) {
		printf("skipped: rule_errors: no Landlock here\n");
		return;
	}
	rules = qk_landlock_create(QK_LL_READ | QK_LL_MAKE_REG);
	file = open("/etc/passwd", O_PATH | O_CLOEXEC);
	ck_assert_int_ge(rules, 0);
	ck_assert_int_eq(qk_landlock_allow(rules, file, QK_LL_MAKE_REG), -EINVAL);
	ck_assert_int_eq(qk_landlock_allow(rules, file, QK_LL_WRITE_FILE), -EINVAL);
	ck_assert_int_eq(qk_landlock_allow(rules, file, QK_LL_READ), 0);
	ck_assert_int_eq(qk_landlock_allow(rules, -1, QK_LL_READ), -EBADF);
	ck_assert_int_eq(qk_landlock_create(UINT64_C(1) << 63), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("landlock");
	TCase *tc = tcase_create("landlock");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, handled_rights, 0, sizeof(handled) / sizeof(*handled));
	tcase_add_loop_test(tc, limits_by_abi, 0, sizeof(limits) / sizeof(*limits));
	tcase_add_test(tc, kernel_agrees);
	tcase_add_test(tc, rule_errors);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
