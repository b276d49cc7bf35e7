#include "tests/unit/walled.h"

#include "sandbox/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Servers of the test's own: TCP on the loopback, and an abstract socket. */
static int listen_on_loopback(int family, in_port_t *ret_port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in b = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *at = family == AF_INET ? (struct sockaddr *)&b : (struct sockaddr *)&a;
	socklen_t n = family == AF_INET ? sizeof(b) : sizeof(a);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, at, n) || listen(fd, 8) || getsockname(fd, at, &n))
		return -1;
	*ret_port = ntohs(family == AF_INET ? b.sin_port : a.sin6_port);
	return fd;
}

static void only_loopback(int way)
{
	qk_autofd int abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	qk_autofree char *name = qk_asprintf("qk-check-%d", (int)getpid());
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	in_port_t port = 0;
	qk_autofd int tcp = listen_on_loopback(AF_INET, &port);
	qk_autofree char *script = qk_asprintf(
		"perl -MIO::Socket -e '"
		"print \"out: tcp\\n\" if IO::Socket::INET->new(PeerAddr => \"127.0.0.1:%d\");"
		"my $l = IO::Socket::INET->new(LocalAddr => \"127.0.0.1\", Listen => 1) or die;"
		"print \"own loopback\\n\" if IO::Socket::INET->new(PeerAddr => \"127.0.0.1:\" . $l->sockport);"
		"my $u; socket($u, AF_UNIX, SOCK_STREAM, 0) or die;"
		"print \"out: abstract\\n\" if connect($u, pack(\"S a*\", AF_UNIX, \"\\0%s\"));"
		"print \"out: vsock\\n\" if socket($u, 40, SOCK_STREAM, 0);"
		"print \"\\$!: $!\\n\";"
		"print \"out: io_uring\\n\" if syscall(425, 1, pack(\"x120\")) >= 0;'"
		"; grep -c : /proc/net/dev; unshare -n true && echo out: unshare;"
		" nsenter -n -t %d true && echo out: nsenter; grep CapEff /proc/self/status",
		port, name, (int)getpid());

	un.sun_path[0] = '\0';
	strcpy(un.sun_path + 1, name);
	ck_assert_int_ge(tcp, 0);
	ck_assert_int_eq(bind(abstract, (struct sockaddr *)&un,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))), 0);
	ck_assert_int_eq(listen(abstract, 8), 0);
	in_walls(way, script);
}

START_TEST(closed_network)
{
	unsigned long long caps;

	SKIP_IF_CANNOT();
	closed = true;
	only_loopback(_i);
	ck_has_not(output, "out: ");
	ck_has(output, "own loopback\n");
	ck_has(output, "$!: Address family not supported by protocol\n");
	ck_has(output, "\n1\n"); /* interfaces */
	ck_assert_int_eq(sscanf(strstr(output.s, "CapEff:"), "CapEff: %llx", &caps), 1);
	ck_assert_uint_eq(caps & (1u << CAP_NET_ADMIN | 1u << CAP_SYS_ADMIN | 1u << CAP_SYS_PTRACE), 0);
}
END_TEST

/* The test can see: without the wall these ways lead out. */
START_TEST(open_network)
{
	SKIP_IF_CANNOT();
	closed = false;
	only_loopback(_i);
	ck_has(output, "out: tcp\n");
	ck_has(output, "out: abstract\n");
}
END_TEST

/* Where there is no namespace to be had, nothing runs. */
START_TEST(no_namespace)
{
	SKIP_IF_CANNOT();
	closed = true;
	setenv("QK_TEST_WITHOUT", "netns", 1);
	ck_assert_int_eq(in_walls(_i, "echo ran"), 99);
	unsetenv("QK_TEST_WITHOUT");
	ck_has_not(output, "ran");
	ck_has(report, "!network namespaces: ");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("network");
	TCase *tc = tcase_create("network");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, closed_network, 0, ALL);
	tcase_add_loop_test(tc, open_network, 0, ALL);
	tcase_add_loop_test(tc, no_namespace, 0, ALL);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
