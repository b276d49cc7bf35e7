#include "runner/env.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const outer[] = { "PATH=/bin", "QK_REQ=/run/requests.1:0:5", "QK_RUN=1 /run", "QK_SHELL=/bin/bash",
	"QK_PARENT=1:2", "QK_TASK=9:9", "MAKEFILES=/qk.mk /own.mk", "MAKEFLAGS= -j --jobserver-auth=3,4", "QK_REQUEST=kept",
	"QK_INPUTS=kept", "SANDBOX=audit", "EMPTY=", "ODD=a=b\nc\xff", "SHELL=/opt/qk/libexec/qk/sh" };

static struct qk_request request;

static void setup(void)
{
	clearenv();
	for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++)
		putenv((char *)outer[i]);
	request = (struct qk_request){ .make_pid = 77, .offset = 1234567890123, .shell = "/bin/bash -e",
		.makefiles = "/own.mk" };
}

/* The environment is exactly these entries, in any order. */
static void is_exactly(const struct qk_strv *env, const char *const *want)
{
	size_t n = 0;

	for (; want[n]; n++)
		ck_assert_msg(qk_strv_has(env, want[n]), "no %s", want[n]);
	ck_assert_uint_eq(env->n, n);
	ck_assert_ptr_null(env->v[n]);
}

START_TEST(task)
{
	static const char *const want[] = { "PATH=/bin", "MAKEFLAGS= -j --jobserver-auth=3,4", "QK_REQUEST=kept",
		"QK_INPUTS=kept", "SANDBOX=audit", "EMPTY=", "ODD=a=b\nc\xff", "SHELL=/bin/bash -e", "MAKEFILES=/own.mk",
		"QK_TASK=77:1234567890123", NULL };
	qk_autostrv struct qk_strv env = { 0 };

	qk_env_task(&env, &request, "/opt/qk/libexec/qk/sh");
	is_exactly(&env, want);
}
END_TEST

/* A SHELL that is not the runner is what the user, or the Makefile, exports. */
START_TEST(shell_of_the_user)
{
	qk_autostrv struct qk_strv env = { 0 };

	setenv("SHELL", "/usr/bin/zsh", 1);
	request.makefiles = NULL;
	qk_env_task(&env, &request, "/opt/qk/libexec/qk/sh");
	ck_assert(qk_strv_has(&env, "SHELL=/usr/bin/zsh"));
	for (size_t i = 0; i < env.n; i++)
		ck_assert(strncmp(env.v[i], "MAKEFILES=", 10) != 0); /* it was not set: it is not */
}
END_TEST

START_TEST(submake)
{
	static const char *const want[] = { "PATH=/bin", "QK_RUN=1 /run", "MAKEFILES=/qk.mk /own.mk",
		"MAKEFLAGS= -j --jobserver-auth=3,4", "QK_REQUEST=kept", "QK_INPUTS=kept", "SANDBOX=audit", "EMPTY=",
		"ODD=a=b\nc\xff", "SHELL=/opt/qk/libexec/qk/sh", "QK_PARENT=77:1234567890123", NULL };
	qk_autostrv struct qk_strv env = { 0 };

	qk_env_submake(&env, &request);
	is_exactly(&env, want);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("env");
	TCase *tc = tcase_create("env");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, task);
	tcase_add_test(tc, shell_of_the_user);
	tcase_add_test(tc, submake);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
