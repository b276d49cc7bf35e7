#include "sandbox/proxy/hosts.h"
#include "sandbox/proxy/speech.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct qk_hosts hosts;

static void setup(void)
{
	static const char *const allow[] = { "example.org", "*.x.org", "api.y.org:8443", "[2001:db8::1]:80",
		"10.1.2.3", "localhost:7001", "127.0.0.2:7002", "[::1]:7003" };

	hosts = (struct qk_hosts){ 0 };
	for (size_t i = 0; i < sizeof(allow) / sizeof(*allow); i++)
		ck_assert_msg(!qk_hosts_add(&hosts, allow[i], false), "%s", allow[i]);
	ck_assert_int_eq(qk_hosts_add(&hosts, "bad.x.org", true), 0);
	ck_assert_int_eq(qk_hosts_add(&hosts, "example.org:25", true), 0);
}

static void teardown(void)
{
	qk_hosts_release(&hosts);
}

static const struct {
	const char *host;
	uint16_t port;
	enum qk_host_word word;
} judged[] = {
	{ "example.org", 80, QK_HOST_ALLOWED },
	{ "EXAMPLE.org.", 443, QK_HOST_ALLOWED },
	{ "example.org", 25, QK_HOST_DENIED },
	{ "www.example.org", 80, QK_HOST_UNLISTED },
	{ "notexample.org", 80, QK_HOST_UNLISTED },
	{ "x.org", 80, QK_HOST_UNLISTED },
	{ "a.x.org", 80, QK_HOST_ALLOWED },
	{ "a.b.x.org", 80, QK_HOST_ALLOWED },
	{ "ax.org", 80, QK_HOST_UNLISTED },
	{ "bad.x.org", 80, QK_HOST_DENIED },
	{ "api.y.org", 8443, QK_HOST_ALLOWED },
	{ "api.y.org", 443, QK_HOST_UNLISTED },
	{ "2001:db8::1", 80, QK_HOST_ALLOWED },
	{ "[2001:DB8:0::1]", 80, QK_HOST_ALLOWED },
	{ "2001:db8::1", 81, QK_HOST_UNLISTED },
	{ "10.1.2.3", 1, QK_HOST_ALLOWED },
	{ "10.1.2.30", 1, QK_HOST_UNLISTED },
};

START_TEST(lists)
{
	char name[QK_HOST_NAME + 1];

	ck_assert_msg(qk_host_normal(judged[_i].host, strlen(judged[_i].host), name), "%s", judged[_i].host);
	ck_assert_msg(qk_hosts_judge(&hosts, name, judged[_i].port) == judged[_i].word, "%s", judged[_i].host);
}
END_TEST

/* What a name has led to: a name's grant does not open this machine. */
static const struct {
	const char *address;
	uint16_t port;
	bool reached;
} reach[] = {
	{ "93.184.216.34", 80, true },
	{ "2001:db8::7", 80, true },
	{ "127.0.0.1", 80, false },
	{ "127.0.0.1", 7001, true },
	{ "::1", 7001, true },
	{ "127.0.0.2", 7002, true },
	{ "127.0.0.2", 7003, false },
	{ "::1", 7003, true },
	{ "::1", 80, false },
	{ "0.0.0.0", 80, false },
	{ "::", 80, false },
	{ "169.254.169.254", 80, false },
	{ "fe80::1", 80, false },
	{ "224.0.0.1", 80, false },
	{ "ff02::1", 80, false },
	{ "255.255.255.255", 80, false },
	{ "::ffff:127.0.0.1", 80, false },
	{ "::ffff:169.254.169.254", 80, false },
	{ "::127.0.0.1", 80, false },
	{ "64:ff9b::7f00:1", 80, false },
};

START_TEST(addresses)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	const char *text = reach[_i].address;
	bool six = strchr(text, ':');

	ck_assert_int_eq(six ? inet_pton(AF_INET6, text, &in6.sin6_addr) : inet_pton(AF_INET, text, &in.sin_addr), 1);
	ck_assert_msg(qk_hosts_reach(&hosts, six ? (struct sockaddr *)&in6 : (struct sockaddr *)&in,
			      reach[_i].port) == reach[_i].reached, "%s:%d", text, reach[_i].port);
}
END_TEST

START_TEST(entries)
{
	static const char *const none[] = { "", "*.", "a b", "x:0", "x:65536", "x:y", "[::1", "http://x", "a/b" };

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		ck_assert_msg(qk_hosts_add(&hosts, none[i], false) == -22, "'%s'", none[i]);
}
END_TEST

#define BYTES(s) s, sizeof(s) - 1

static const struct {
	const char *said;
	size_t n;
	bool greeted;
	enum qk_heard heard;
	const char *host;
	uint16_t port;
} speech[] = {
	{ BYTES("CONNECT a.org:443 HTTP/1.1\r\nHost: b.org\r\n\r\n"), false, QK_HEARD_WISH, "a.org", 443 },
	{ BYTES("CONNECT [::1]:443 HTTP/1.1\r\n\r\n"), false, QK_HEARD_WISH, "::1", 443 },
	{ BYTES("GET http://A.org/x HTTP/1.1\r\nHost: b.org\r\n\r\n"), false, QK_HEARD_WISH, "a.org", 80 },
	{ BYTES("GET http://a.org:81/ HTTP/1.0\r\n\r\n"), false, QK_HEARD_WISH, "a.org", 81 },
	{ BYTES("GET http://a.org/ HTTP/1.1\r\n"), false, QK_HEARD_PART, NULL, 0 },
	{ BYTES("GET /x HTTP/1.1\r\nHost: a.org\r\n\r\n"), false, QK_HEARD_NONSENSE, NULL, 0 },
	{ BYTES("CONNECT a.org HTTP/1.1\r\n\r\n"), false, QK_HEARD_NONSENSE, NULL, 0 },
	{ BYTES("CONNECT a.org:99999 HTTP/1.1\r\n\r\n"), false, QK_HEARD_NONSENSE, NULL, 0 },
	{ BYTES("\x05\x01\x00"), false, QK_HEARD_GREETING, NULL, 0 },
	{ BYTES("\x05\x02\x00"), false, QK_HEARD_PART, NULL, 0 },
	{ BYTES("\x05\x01\x00\x03\x05" "a.org\x01\xbb"), true, QK_HEARD_WISH, "a.org", 443 },
	{ BYTES("\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"), true, QK_HEARD_WISH, "127.0.0.1", 80 },
	{ BYTES("\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50"), true, QK_HEARD_WISH, "::1", 80 },
	{ BYTES("\x05\x01\x00\x03\x05" "a.o"), true, QK_HEARD_PART, NULL, 0 },
	{ BYTES("\x04\x01\x00\x50\x7f\x00\x00\x01\x00"), false, QK_HEARD_NONSENSE, NULL, 0 },
};

START_TEST(said)
{
	qk_autobuf struct qk_buf in = QK_BUF_INIT, onward = QK_BUF_INIT, answer = QK_BUF_INIT;
	struct qk_wish wish = { .port = 0 };
	enum qk_heard heard;

	qk_buf_add(&in, speech[_i].said, speech[_i].n);
	heard = qk_speech_hear(&in, speech[_i].greeted, &wish, &onward, &answer);
	ck_assert_msg(heard == speech[_i].heard, "%d: heard %d", _i, (int)heard);
	if (heard != QK_HEARD_WISH)
		return;
	ck_assert_str_eq(wish.host, speech[_i].host);
	ck_assert_int_eq(wish.port, speech[_i].port);
	ck_assert_ptr_null(onward.len ? strstr(onward.s, "b.org") : NULL); /* the URI says the host */
}
END_TEST

/* Whatever is said, in whatever pieces, is a part, a wish or nonsense. */
START_TEST(noise)
{
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		qk_autobuf struct qk_buf in = QK_BUF_INIT, onward = QK_BUF_INIT, answer = QK_BUF_INIT;
		size_t from = (size_t)random() % (sizeof(speech) / sizeof(*speech));
		struct qk_wish wish;

		for (size_t i = 0; i < speech[from].n; i++)
			qk_buf_addch(&in, random() % 8 ? speech[from].said[i] : (char)random());
		qk_speech_hear(&in, speech[from].greeted, &wish, &onward, &answer);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("proxy");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, lists, 0, sizeof(judged) / sizeof(*judged));
	tcase_add_loop_test(tc, addresses, 0, sizeof(reach) / sizeof(*reach));
	tcase_add_test(tc, entries);
	tcase_add_loop_test(tc, said, 0, sizeof(speech) / sizeof(*speech));
	tcase_add_test(tc, noise);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
