#include "sandbox/trace.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * A script of accesses, one per word: letter and path (relative to /w). r read, x exec, w write,
 * c create, m mkdir, d remove, t meta, l list, f follow, p present, a absent; "n:from:to" renames
 * a file, "N" a directory, "o" a file onto an existing one, "e" exchanges files, "E" directories.
 */
static void feed(struct qk_trace *t, const char *script)
{
	static const char letters[] = "rxwcmdtlfpa";
	static const enum qk_event events[] = { QK_EV_READ, QK_EV_EXEC, QK_EV_WRITE, QK_EV_CREATE,
		QK_EV_MKDIR, QK_EV_REMOVE, QK_EV_META, QK_EV_LIST, QK_EV_FOLLOW, QK_EV_PRESENT,
		QK_EV_ABSENT };
	char word[200], from[100], to[100], path[220];
	int n;

	for (; sscanf(script, " %199s%n", word, &n) == 1; script += n) {
		if (word[1] == ':' && strchr("nNoeE", word[0])) {
			qk_autofree char *a = NULL, *b = NULL;

			ck_assert_int_eq(sscanf(word + 2, "%99[^:]:%99s", from, to), 2);
			a = qk_asprintf(from[0] == '/' ? "%s" : "/w/%s", from);
			b = qk_asprintf(to[0] == '/' ? "%s" : "/w/%s", to);
			qk_trace_rename(t, a, b, word[0] == 'N' || word[0] == 'E', word[0] == 'o',
				word[0] == 'e' || word[0] == 'E');
			continue;
		}
		ck_assert_ptr_nonnull(strchr(letters, word[0]));
		snprintf(path, sizeof(path), word[2] == '/' ? "%s" : "/w/%s", word + 2);
		qk_trace_event(t, events[strchr(letters, word[0]) - letters], path);
	}
}

static void show(const struct qk_trace *t, struct qk_buf *out)
{
	static const char names[] = "rxlfpawcdDmo"; /* in the order of enum qk_touch */

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct qk_trace_entry *e = &t->entries.v[i];

		if (out->len)
			qk_buf_addch(out, ' ');
		qk_buf_addstr(out, strncmp(e->path, "/w/", 3) ? e->path : e->path + 3);
		qk_buf_addch(out, '=');
		for (int bit = 0; bit < 12; bit++)
			if (e->flags >> bit & 1)
				qk_buf_addch(out, names[bit]);
	}
}

static const struct {
	const char *script, *expect;
} rows[] = {
	{ "r:a", "a=r" },
	{ "r:a r:a x:a", "a=rx" },
	{ "l:d", "d=lD" },
	{ "f:k r:a", "k=f a=r" },
	{ "p:a a:b", "a=p b=a" },
	/* read first and written then: an input all the same */
	{ "r:a w:a", "a=rw" },
	/* written first: its own */
	{ "w:a r:a", "a=wo" },
	{ "c:a r:a", "a=wco" },
	{ "c:a x:a", "a=wco" },
	{ "m:d l:d", "d=wcDo" },
	{ "c:k f:k", "k=wco" },
	{ "a:a c:a", "a=awc" },
	{ "c:a a:a p:a", "a=wc" },
	/* made and removed again */
	{ "c:a d:a", "a=wcd" },
	{ "c:a d:a c:a", "a=wc" },
	/* replaced by a new one: it was there before */
	{ "d:a c:a", "a=w" },
	{ "d:a", "a=wd" },
	{ "t:a", "a=m" },
	{ "c:a t:a", "a=wcm" },
	/* a removal that did not happen, as the next look shows */
	{ "d:a r:a", "a=wo" },
	/* what is missing in a directory of one's own is one's own doing */
	{ "m:d a:d/x a:e/x", "d=wcD e/x=a" },
	{ "d:a m:a", "a=wD" },
	{ "m:a d:a c:a", "a=wc" },

	/* a file renamed: the contents of what was not one's own are read */
	{ "c:t n:t:a", "t=wcd a=wc" },
	{ "n:t:a", "t=rwd a=wc" },
	{ "c:t o:t:a", "t=wcd a=w" },
	{ "r:a c:t o:t:a r:a", "a=rwo t=wcd" },
	{ "c:t n:t:/x/y", "t=wcd /x/y=wc" },
	{ "c:b e:a:b", "b=wc a=rw" },
	{ "n:a:a", "" },

	/* a directory renamed: what is beneath comes along */
	{ "m:t c:t/f N:t:o", "t=wcdD t/f=wcd o=wcD o/f=wc" },
	{ "m:t m:t/s c:t/s/f N:t:o r:o/s/f", "t=wcdD t/s=wcdD t/s/f=wcd o=wcD o/s=wcD o/s/f=wco" },
	{ "c:t/f d:t/f N:t:o", "t/f=wcd t=lwdD o=wcD" },
	{ "a:t/f N:t:o", "t/f=a t=lwdD o=wcD" },
	{ "r:ta N:t:o", "ta=r t=lwdD o=wcD" },
	/* ... also what was never touched before: a read by the new name is one of the old */
	{ "N:d:e r:e/f", "d=lwdD e=wcD d/f=r" },
	{ "N:d:e N:e:g x:g/f", "d=lwdD e=wcdD g=wcD d/f=rx" },
	{ "N:d:e w:e/f", "d=lwdD e=wcD e/f=wc" },
	{ "N:d:e d:e/f", "d=lwdD e=wcD e/f=wcd" },
	{ "N:d:e c:e/f r:e/f", "d=lwdD e=wcD e/f=wco" },
	/* exchange of two directories with known contents */
	{ "m:a c:a/x m:b c:b/y E:a:b", "a=wcD a/x=wcd b=wcD b/y=wcd b/x=wc a/y=wc" },
};

START_TEST(events)
{
	qk_autobuf struct qk_buf got = QK_BUF_INIT;
	struct qk_trace t;

	qk_trace_init(&t);
	t.lookups = true;
	feed(&t, rows[_i].script);
	show(&t, &got);
	ck_assert_msg(!strcmp(got.s, rows[_i].expect), "%s: expected '%s', got '%s'",
		rows[_i].script, rows[_i].expect, got.s);
	qk_trace_release(&t);
}
END_TEST

START_TEST(only_what_is_asked_for_is_kept)
{
	qk_autobuf struct qk_buf got = QK_BUF_INIT;
	struct qk_trace t;

	qk_trace_init(&t);
	qk_strv_push(&t.roots, "/w");
	qk_strv_push(&t.roots, "/v/sub");
	feed(&t, "r:a c:o p:o r:/wx/a r:/v/b r:/v/sub/c p:p a:q r:/w c:t n:t:/tmp/o n:/tmp/i:i "
		 "N:/tmp/d:d "
		 "r:d/f");
	show(&t, &got);
	ck_assert_str_eq(got.s, "a=r o=wc /v/sub/c=r /w=r t=wcd i=wc d=wcD");
	ck_assert_ptr_null(qk_trace_find(&t, "/w/p"));
	ck_assert_str_eq(qk_trace_find(&t, "/w/a")->path, "/w/a");
	qk_trace_release(&t);
}
END_TEST

/* Two commands one after the other give what one command doing both gives. */
static const struct {
	const char *first, *second, *expect;
} pairs[] = {
	{ "c:a", "r:a d:a", "a=wcdo" },
	{ "r:a", "r:a w:a", "a=rw" },
	{ "w:a", "x:a", "a=wo" },
	{ "d:a", "c:a", "a=w" },
	{ "d:a", "a:a", "a=wd" },
	{ "r:a", "a:a", "a=r" },
	{ "a:a", "c:a", "a=awc" },
	{ "m:d", "l:d a:d/x", "d=wcDo" },
	{ "m:d", "d:d c:d", "d=wc" },
	{ "m:t c:t/f", "N:t:o", "t=wcdDo t/f=wcd o=wcD o/f=wc" },
	{ "N:d:e", "r:e/f", "d=lwdD e=wcD d/f=r" },
	{ "N:d:e", "w:e/f", "d=lwdD e=wcD e/f=wc" },
	{ "c:k", "f:k p:k", "k=wco" },
	{ "", "r:a c:b", "a=r b=wc" },
	{ "r:a c:b", "", "a=r b=wc" },
};

/* Compares as sets: the order of entries that only one of both has is free. */
static bool same_entries(const struct qk_trace *t, const char *expect, struct qk_buf *got)
{
	char word[200];
	size_t words = 0;
	int n;

	show(t, got);
	for (; sscanf(expect, " %199s%n", word, &n) == 1; expect += n, words++) {
		qk_autofree char *padded = qk_asprintf(" %s ", got->s);
		qk_autofree char *needle = qk_asprintf(" %s ", word);

		if (!strstr(padded, needle))
			return false;
	}
	return words == t->entries.n;
}

START_TEST(append)
{
	qk_autobuf struct qk_buf got = QK_BUF_INIT, stored = QK_BUF_INIT;
	struct qk_trace a, b, back;

	qk_trace_init(&a);
	qk_trace_init(&b);
	qk_trace_init(&back);
	a.lookups = b.lookups = back.lookups = true;
	feed(&a, pairs[_i].first);
	feed(&b, pairs[_i].second);
	/* by way of the stored form: commands run in processes of their own */
	qk_trace_write(&b, &stored);
	ck_assert_int_eq(qk_trace_read(&back, stored.s, stored.len, NULL), 0);
	qk_trace_append(&a, &back);
	ck_assert_msg(same_entries(&a, pairs[_i].expect, &got), "%s + %s: expected '%s', got '%s'",
		pairs[_i].first, pairs[_i].second, pairs[_i].expect, got.s);
	qk_trace_release(&a);
	qk_trace_release(&b);
	qk_trace_release(&back);
}
END_TEST

START_TEST(first_reason_stays)
{
	struct qk_trace a, b;

	qk_trace_init(&a);
	qk_trace_init(&b);
	ck_assert_ptr_null(a.incomplete);
	qk_trace_lost(&b, "lost %d", 1);
	qk_trace_lost(&b, "lost %d", 2);
	ck_assert_str_eq(b.incomplete, "lost 1");
	qk_trace_append(&a, &b);
	ck_assert_str_eq(a.incomplete, "lost 1");
	qk_trace_release(&a);
	qk_trace_release(&b);
}
END_TEST

static void write_sample(struct qk_buf *out)
{
	struct qk_trace t;

	qk_trace_init(&t);
	t.lookups = true;
	feed(&t, "r:a c:b\n d:\xff\x01 a:q N:d:e");
	qk_trace_lost(&t, "for a reason");
	qk_trace_write(&t, out);
	qk_trace_release(&t);
}

START_TEST(stored_and_read_back)
{
	qk_autobuf struct qk_buf stored = QK_BUF_INIT, again = QK_BUF_INIT, got = QK_BUF_INIT;
	struct qk_trace t;

	write_sample(&stored);
	qk_trace_init(&t);
	ck_assert_int_eq(qk_trace_read(&t, stored.s, stored.len, NULL), 0);
	show(&t, &got);
	ck_assert_str_eq(got.s, "a=r b=wc \xff\x01=wd q=a d=lwdD e=wcD");
	ck_assert_str_eq(t.incomplete, "for a reason");
	qk_trace_write(&t, &again);
	ck_assert_uint_eq(again.len, stored.len);
	ck_assert_mem_eq(again.s, stored.s, stored.len);
	qk_trace_release(&t);
}
END_TEST

START_TEST(damage_is_refused)
{
	qk_autobuf struct qk_buf stored = QK_BUF_INIT;
	struct qk_trace t;
	size_t refused = 0;

	write_sample(&stored);
	for (size_t n = 0; n < stored.len; n++) { /* cut anywhere: refused, or fewer whole fields */
		struct qk_err err = QK_ERR_INIT;
		int r;

		qk_trace_init(&t);
		r = qk_trace_read(&t, stored.s, n, &err);
		ck_assert(r == 0 || (r == -EBADMSG && *err.msg));
		refused += r != 0;
		qk_trace_release(&t);
	}
	ck_assert_uint_gt(refused, stored.len / 2);
	for (size_t i = 0; i < stored.len; i++) { /* any byte changed: no crash, nothing unclean */
		qk_autofree char *copy = qk_alloc(stored.len);

		memcpy(copy, stored.s, stored.len);
		copy[i] = (char)~copy[i];
		qk_trace_init(&t);
		if (!qk_trace_read(&t, copy, stored.len, NULL))
			for (size_t j = 0; j < t.entries.n; j++)
				ck_assert_int_eq(t.entries.v[j].path[0], '/');
		qk_trace_release(&t);
	}
}
END_TEST

START_TEST(unclean_entries_are_refused)
{
	static const char *const bad[] = { "a", "", "/a/", "//a", "/a/../b", "/a/.", "/a\0b" };
	static const unsigned char lens[] = { 1, 0, 3, 3, 7, 4, 4 };
	char field[40] = "\1\0\10\0\0\0\1\0\0\0\0\0\0\0\3\0"; /* VERSION 1, tag ENTRY */
	struct qk_trace t;

	field[16] = (char)(4 + lens[_i]);
	field[20] = 1; /* flags */
	memcpy(field + 24, bad[_i], lens[_i]);
	qk_trace_init(&t);
	ck_assert_int_eq(qk_trace_read(&t, field, (size_t)24 + lens[_i], NULL), -EBADMSG);
	qk_trace_release(&t);

	/* the same frame around a good path is taken, so it is the path that was refused */
	field[16] = 4 + 2;
	memcpy(field + 24, "/a", 2);
	qk_trace_init(&t);
	ck_assert_int_eq(qk_trace_read(&t, field, 26, NULL), 0);
	ck_assert_uint_eq(t.entries.n, 1);
	qk_trace_release(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trace");
	TCase *tc = tcase_create("trace");
	SRunner *sr = srunner_create(s);
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, events, 0, (int)(sizeof(rows) / sizeof(*rows)));
	tcase_add_test(tc, only_what_is_asked_for_is_kept);
	tcase_add_loop_test(tc, append, 0, (int)(sizeof(pairs) / sizeof(*pairs)));
	tcase_add_test(tc, first_reason_stays);
	tcase_add_test(tc, stored_and_read_back);
	tcase_add_test(tc, damage_is_refused);
	tcase_add_loop_test(tc, unclean_entries_are_refused, 0, 7);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
