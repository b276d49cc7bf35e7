#include "keying/sandboxspec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const good[] = { "x.org", "*.x.org", "x.org:443", "*.x.org:8080", "localhost",
	"127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535", "a-b.example", "_srv.x", "xn--nxasmq6b.org" };

static const struct {
	const char *text, *why;
} bad[] = {
	{ "", "it is empty" },
	{ "*", "true opens the whole network, not *" },
	{ "http://x.org", "a host is wanted, not a URL" },
	{ "x.org/path", "a host is wanted, not a URL" },
	{ "a.*.org", "* stands only before the first dot" },
	{ "*x.org", "* stands only before the first dot" },
	{ "x.org:", "a port is a number from 1 to 65535" },
	{ "x.org:0", "a port is a number from 1 to 65535" },
	{ "x.org:65536", "a port is a number from 1 to 65535" },
	{ "x.org:8a", "a port is a number from 1 to 65535" },
	{ "x.org:+8", "a port is a number from 1 to 65535" },
	{ "[::1]8", "a port is a number from 1 to 65535" },
	{ "[]", "no address in the brackets" },
	{ "[::1", "no address in the brackets" },
	{ "::1", "no host has such a name" },
	{ "*.", "no host has such a name" },
	{ ".x", "no host has such a name" },
	{ "x..y", "no host has such a name" },
	{ "x.", "no host has such a name" },
	{ "-x", "no host has such a name" },
	{ "x-.org", "no host has such a name" },
	{ "x y", "no host has such a name" },
	{ "user@x.org", "no host has such a name" },
};

START_TEST(hosts)
{
	const char *why = qk_sandboxspec_host_problem(good[_i]);

	ck_assert_msg(!why, "%s: %s", good[_i], why);
}
END_TEST

START_TEST(no_hosts)
{
	const char *why = qk_sandboxspec_host_problem(bad[_i].text);

	ck_assert_msg(why, "%s is taken", bad[_i].text);
	ck_assert_str_eq(why, bad[_i].why);
}
END_TEST

START_TEST(long_names)
{
	char label[] = "0123456789012345678901234567890123456789012345678901234567890123.org";

	ck_assert_ptr_nonnull(qk_sandboxspec_host_problem(label));
	ck_assert_ptr_null(qk_sandboxspec_host_problem(label + 1));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandboxspec");
	TCase *t = tcase_create("hosts");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, hosts, 0, sizeof(good) / sizeof(good[0]));
	tcase_add_loop_test(t, no_hosts, 0, sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(t, long_names);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
