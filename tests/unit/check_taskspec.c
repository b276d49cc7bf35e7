#include "keying/taskspec.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct qk_taskspec *s)
{
	static const char *const paths[] = { "a", "b c" }, *const globs[] = { "dist/**" };
	struct qk_filegroup *g = qk_arena_alloc(&s->parts.arena, sizeof(*g));

	s->id = "app:build:production";
	s->project = "app";
	s->project_root = "apps/app";
	s->target = "build";
	s->configuration = "production";
	s->cwd = "/w/apps/app";
	s->store = "/w/.qk/cache";
	s->uncached = "because";
	s->store_limit = 1ULL << 40;
	s->number = 12;
	s->parallel = s->alone = s->foreground = true;
	qk_vec_push(&s->commands, "one\ntwo");
	qk_vec_push(&s->commands, "");
	qk_vec_push(&s->env, "A=\xff");
	qk_vec_push(&s->needs, "3 4");
	s->ultracache = 2;
	s->record = s->explain = true;
	qk_vec_push(&s->unchecked, "dist/log");
	qk_vec_push(&s->unrecorded, "libs/**");
	qk_vec_push(&s->rules, ((struct qk_taskrule){ "dist", 1, 3, 2 }));
	g->name = "files";
	g->paths = paths;
	g->n = 2;
	g->known = true;
	g->digest.b[0] = 1;
	g->seen.b[15] = 2;
	qk_parts_text(&s->parts, "env", "A", NULL);
	qk_parts_files(&s->parts, g);
	qk_parts_outputs(&s->parts, "lib:build", globs, 1, NULL);
}

START_TEST(round_trip)
{
	struct qk_taskspec s = { 0 }, t;
	qk_autobuf struct qk_buf b = QK_BUF_INIT, again = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	fill(&s);
	qk_taskspec_write(&s, &b);
	ck_assert_int_eq(qk_taskspec_read(&t, b.s, b.len, &err), 0);
	ck_assert_str_eq(t.id, s.id);
	ck_assert_str_eq(t.configuration, "production");
	ck_assert_ptr_null(t.problem);
	ck_assert_uint_eq(t.store_limit, s.store_limit);
	ck_assert(t.parallel && t.alone && t.foreground && !t.skip && !t.continuous && !t.beside);
	ck_assert(t.ultracache == 2 && t.record && t.explain);
	ck_assert_str_eq(t.unchecked.v[0], "dist/log");
	ck_assert_str_eq(t.unrecorded.v[0], "libs/**");
	ck_assert_uint_eq(t.commands.n, 2);
	ck_assert_str_eq(t.commands.v[0], "one\ntwo");
	ck_assert_str_eq(t.env.v[0], "A=\xff");
	ck_assert_uint_eq(t.rules.v[0].rights, 3);
	ck_assert_str_eq(t.rules.v[0].path, "dist");
	ck_assert_uint_eq(t.parts.list.n, 3);
	ck_assert(t.parts.list.v[1].files->known);
	ck_assert_uint_eq(t.parts.list.v[1].files->seen.b[15], 2);
	qk_taskspec_write(&t, &again);
	ck_assert_uint_eq(again.len, b.len);
	ck_assert(!memcmp(again.s, b.s, b.len));
	qk_taskspec_release(&s);
	qk_taskspec_release(&t);
}
END_TEST

/* Every prefix and every changed byte is refused, or read as something; nothing is read past it. */
START_TEST(damaged)
{
	struct qk_taskspec s = { 0 }, t;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	fill(&s);
	qk_taskspec_write(&s, &b);
	for (size_t n = 0; n < b.len; n++) {
		qk_autofree char *copy = qk_alloc(n + 1);

		memcpy(copy, b.s, n);
		ck_assert_int_eq(qk_taskspec_read(&t, copy, n, NULL), -EBADMSG);
		qk_taskspec_release(&t);
	}
	for (size_t i = 0; i < b.len; i++) {
		qk_autofree char *copy = qk_alloc(b.len);

		memcpy(copy, b.s, b.len);
		copy[i] ^= 0x55;
		qk_taskspec_read(&t, copy, b.len, NULL);
		qk_taskspec_release(&t);
	}
	qk_taskspec_release(&s);
}
END_TEST

START_TEST(incomplete)
{
	struct qk_taskspec s = { .id = "a:b", .project = "a", .target = "b", .project_root = "." }, t;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;

	qk_taskspec_write(&s, &b);
	ck_assert_int_eq(qk_taskspec_read(&t, b.s, b.len, &err), -EBADMSG);
	qk_taskspec_release(&t);
	qk_buf_reset(&b);
	s.cwd = "relative";
	qk_taskspec_write(&s, &b);
	ck_assert_int_eq(qk_taskspec_read(&t, b.s, b.len, &err), -EBADMSG);
	qk_taskspec_release(&t);
	ck_assert_int_eq(qk_taskspec_read(&t, "", 0, &err), -EBADMSG);
	qk_taskspec_release(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("taskspec");
	TCase *c = tcase_create("taskspec");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(c, round_trip);
	tcase_add_test(c, damaged);
	tcase_add_test(c, incomplete);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed;
}
