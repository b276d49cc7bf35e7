#include "report/json.h"
#include "base/mem.h"

#include <cjson/cJSON.h>
#include <check.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/*
 * Python's surrogateescape the other way: \udc80 to \udcff become bytes again. cJSON refuses lone
 * surrogates, and passes bytes through.
 */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; to++) {
		unsigned int byte;

		if (!strncmp(s, "\\\\", 2)) {
			*to++ = *s++;
			*to = *s++;
		} else if (sscanf(s, "\\udc%2x", &byte) == 1) {
			*to = (char)byte;
			s += 6;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
}

static void comes_back(const char *text)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	cJSON *v;

	qk_json_string(&b, text);
	for (size_t i = 0; i < b.len; i++)
		ck_assert_msg((unsigned char)b.s[i] >= ' ' && b.s[i] != 0x7f, "a control byte in %s", b.s);
	unescape(b.s);
	v = cJSON_Parse(b.s);
	ck_assert_msg(v && cJSON_IsString(v), "%s", b.s);
	ck_assert_str_eq(v->valuestring, text);
	cJSON_Delete(v);
}

START_TEST(every_byte)
{
	char text[4] = { 'a', (char)_i, 'b', '\0' }, alone[2] = { (char)_i, '\0' };

	comes_back(text);
	comes_back(alone);
}
END_TEST

/* All pairs: beginnings of sequences, what follows them and what does not. */
START_TEST(every_pair)
{
	char text[3] = { (char)_i, 0, 0 };

	for (int c = 1; c < 256; c++) {
		text[1] = (char)c;
		comes_back(text);
	}
}
END_TEST

static const struct {
	const char *text, *json;
} strings[] = {
	{ "", "\"\"" },
	{ "a/b", "\"a/b\"" },
	{ "\"\\\n", "\"\\\"\\\\\\n\"" },
	{ "\t\r\x1b\x7f", "\"\\u0009\\u000d\\u001b\\u007f\"" },
	{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ "\xff", "\"\\udcff\"" },
	{ "\xc3", "\"\\udcc3\"" },		       /* cut short */
	{ "\xc3z", "\"\\udcc3z\"" },
	{ "\xe2\x82", "\"\\udce2\\udc82\"" },
	{ "\xc0\xaf", "\"\\udcc0\\udcaf\"" },	       /* overlong */
	{ "\xe0\x80\xaf", "\"\\udce0\\udc80\\udcaf\"" },
	{ "\xf0\x80\x80\xaf", "\"\\udcf0\\udc80\\udc80\\udcaf\"" },
	{ "\xed\xb2\x80", "\"\\udced\\udcb2\\udc80\"" }, /* a surrogate as UTF-8: not taken for one of ours */
	{ "\xf4\x90\x80\x80", "\"\\udcf4\\udc90\\udc80\\udc80\"" }, /* past U+10FFFF */
	{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },
	{ "\\udcff", "\"\\\\udcff\"" },
};

START_TEST(string)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_string(&b, strings[_i].text);
	ck_assert_str_eq(b.s, strings[_i].json);
	comes_back(strings[_i].text);
}
END_TEST

static struct qk_session session = { .mode = QK_MODE_AUDIT, .recorder = QK_RECORDER_SECCOMP,
	.recorder_note = (char *)"", .backend_note = (char *)"" };

/* The report, parsed; the caller deletes. */
static cJSON *parsed(const struct qk_report *rep)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	cJSON *doc;

	qk_json_report(&b, rep);
	ck_assert_int_eq(b.s[b.len - 1], '\n');
	doc = cJSON_ParseWithOpts(b.s, NULL, true);
	ck_assert_msg(doc != NULL, "no JSON:\n%s", b.s);
	return doc;
}

/* What stands at doc.a.b.c, as compact text; "none" where there is nothing. */
static void stands(const cJSON *doc, const char *path, const char *wanted)
{
	qk_autofree char *copy = qk_strdup(path);
	char *text;

	for (char *s = copy, *step; doc && (step = strsep(&s, ">"));)
		doc = cJSON_GetObjectItemCaseSensitive(doc, step);
	text = doc ? cJSON_PrintUnformatted(doc) : strdup("none");
	ck_assert_str_eq(text, wanted);
	free(text);
}

START_TEST(empty)
{
	struct qk_report rep = { .session = &session };
	cJSON *doc = parsed(&rep);

	stands(doc, "version", "1");
	stands(doc, "mode", "\"audit\"");
	stands(doc, "recorder", "\"seccomp\"");
	stands(doc, "backend", "none");
	stands(doc, "tasks", "{}");
	stands(doc, "unsandboxed", "{}");
	stands(doc, "refused", "{}");
	stands(doc, "unaudited", "{}");
	stands(doc, "restored", "[]");
	stands(doc, "packagesUnchecked", "{}");
	stands(doc, "incomplete", "none");
	cJSON_Delete(doc);
}
END_TEST

START_TEST(full)
{
	const char *maker[] = { "gen, or not", NULL }, *others[] = { "x, y", "z", NULL };
	const char *lib[] = { "lib", NULL }, *util[] = { "util", NULL };
	struct qk_finding findings[] = {
		{ QK_KIND_READ, "a\"b", NULL, "t: a\"b", false, NULL, NULL },
		{ QK_KIND_DEPENDENCY, "lib/a", lib, NULL, false, NULL, NULL },
		{ QK_KIND_DEPENDENCY, "lib/b", lib, NULL, false, NULL, NULL },
		{ QK_KIND_DEPENDENCY, "util/a", util, "f", false, NULL, NULL },
		{ QK_KIND_GRANTED, "g", NULL, NULL, true, NULL, NULL },
		{ QK_KIND_ORDERING, "o", maker, "t: gen", false, NULL, NULL },
		{ QK_KIND_WRITE, "w", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_WRITERS, "l", others, NULL, false, NULL, NULL },
		{ QK_KIND_LEFT, "sleep 5", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_GIT_WRITE, ".git/x", NULL, NULL, false, NULL, NULL },
		{ QK_KIND_UNUSED, "u", NULL, NULL, false, NULL, NULL },
	};
	struct qk_report_task tasks[] = {
		{ .name = "t", .findings = { findings, COUNT(findings), COUNT(findings) } },
		{ .name = "clean" },
		{ .name = "off", .standing = QK_UNSANDBOXED, .why = "o" },
		{ .name = "no", .standing = QK_REFUSED_RUN, .why = "r", .findings = { findings, 1, 1 } },
		{ .name = "lost", .standing = QK_UNAUDITED, .why = "" },
		{ .name = "hit", .standing = QK_RESTORED, .why = "restored" },
	};
	struct qk_session enforce = { .mode = QK_MODE_ENFORCE, .recorder = QK_RECORDER_STRACE,
		.backend = QK_BACKEND_LANDLOCK, .recorder_note = (char *)"rn", .backend_note = (char *)"bn" };
	struct qk_report rep = { .session = &enforce, .tasks = { tasks, COUNT(tasks), COUNT(tasks) },
		.trouble = (char *)"cut" };
	cJSON *doc = parsed(&rep);

	stands(doc, "mode", "\"enforce\"");
	stands(doc, "recorderNote", "\"rn\"");
	stands(doc, "backend", "\"landlock alone\"");
	stands(doc, "backendNote", "\"bn\"");
	stands(doc, "incomplete", "\"cut\"");
	stands(doc, "tasks>clean", "{}"); /* checked, and nothing found */
	stands(doc, "tasks>off", "none");
	stands(doc, "tasks>no>undeclaredReads", "[{\"path\":\"a\\\"b\",\"fix\":\"t: a\\\"b\"}]");
	stands(doc, "unsandboxed", "{\"off\":\"o\"}");
	stands(doc, "refused", "{\"no\":\"r\"}");
	stands(doc, "unaudited", "{\"lost\":\"\"}");
	stands(doc, "restored", "[\"hit\"]");
	stands(doc, "tasks>t>undeclaredReads",
		"[{\"path\":\"a\\\"b\",\"fix\":\"t: a\\\"b\"},{\"path\":\"g\",\"granted\":true}]");
	stands(doc, "tasks>t>dependencyReads", "{\"lib\":[{\"path\":\"lib/a\"},{\"path\":\"lib/b\"}],"
					       "\"util\":[{\"path\":\"util/a\",\"fix\":\"f\"}]}");
	stands(doc, "tasks>t>ordering",
		"[{\"path\":\"o\",\"madeBy\":\"gen, or not\",\"fix\":\"t: gen\"}]");
	stands(doc, "tasks>t>multipleWriters", "[{\"path\":\"l\",\"others\":[\"x, y\",\"z\"]}]");
	stands(doc, "tasks>t>strayWrites", "[{\"path\":\"w\"},{\"path\":\".git/x\"}]");
	stands(doc, "tasks>t>leftRunning", "[{\"process\":\"sleep 5\"}]");
	stands(doc, "tasks>t>unusedInputs", "[\"u\"]");
	stands(doc, "tasks>t>tsconfigReads", "none");
	cJSON_Delete(doc);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("json");
	TCase *tc = tcase_create("json");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, every_byte, 1, 256);
	tcase_add_loop_test(tc, every_pair, 1, 256);
	tcase_add_loop_test(tc, string, 0, COUNT(strings));
	tcase_add_test(tc, empty);
	tcase_add_test(tc, full);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed > 0;
}
