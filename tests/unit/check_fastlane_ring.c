/* The fast lane's ring by itself: a writer is played here. */
#include "tests/unit/laned.h"

static struct qk_fastlane lane;
static struct qk_witness witness;
static struct qk_trace trace;

static void open_ring(void)
{
	struct qk_err err = QK_ERR_INIT;

	set_up();
	ck_assert_msg(!qk_fastlane_open(&lane, library, true, &err), "%s", err.msg);
	qk_trace_init(&trace);
	trace.lookups = true;
	qk_witness_init(&witness, &trace);
}

static void close_ring(void)
{
	qk_fastlane_release(&lane);
	qk_witness_release(&witness);
	qk_trace_release(&trace);
	tear_down();
}

/* As a library does it, without the last step. */
static struct qk_lane_slot *half_write(const char *name)
{
	struct qk_lane_slot *s = &lane.ring->slots[lane.ring->head++ % QK_LANE_SLOTS];

	ck_assert_uint_eq(s->state, QK_LANE_FREE);
	s->call = QK_LANE_OPEN;
	s->flags = 0;
	s->err = 0;
	s->pid = getpid();
	s->len = (uint32_t)snprintf(s->path, sizeof(s->path), "%s/%s", root, name);
	return s;
}

static void write_whole(const char *name)
{
	half_write(name)->state = QK_LANE_READY;
}

static const struct qk_trace_entry *entry_of(const char *name)
{
	qk_autofree char *path = qk_path_join(root, name);

	return qk_trace_find(&trace, path);
}

static bool was_read(const char *name)
{
	const struct qk_trace_entry *e = entry_of(name);

	return e && e->flags & QK_T_READ;
}

/* A writer that was killed between its two steps holds up nothing that comes behind it. */
START_TEST(half_written)
{
	struct qk_lane_slot *s = half_write("a");

	write_whole("b");
	qk_fastlane_drain(&lane, &witness);
	ck_assert(!was_read("a") && was_read("b") && !trace.incomplete);
	ck_assert_uint_eq(lane.ring->tail, 0);
	write_whole("d/f");
	qk_fastlane_drain(&lane, &witness);
	ck_assert(was_read("d/f"));
	ck_assert_uint_eq(lane.events, 2);
	/* one that was only slow: taken once it is there, and the ring is free again */
	s->state = QK_LANE_READY;
	qk_fastlane_drain(&lane, &witness);
	ck_assert(was_read("a"));
	ck_assert_uint_eq(lane.ring->tail, 3);
	ck_assert_uint_eq(lane.events, 3);
}
END_TEST

START_TEST(comes_round)
{
	lane.ring->head = lane.ring->tail = lane.tail = UINT32_MAX - 100;
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < QK_LANE_SLOTS; k++)
			write_whole(i == 19 && k == QK_LANE_SLOTS - 1 ? "a" : "b");
		qk_fastlane_drain(&lane, &witness);
		ck_assert_uint_eq(lane.ring->tail, lane.ring->head);
	}
	ck_assert(was_read("a") && !trace.incomplete);
	ck_assert_uint_eq(lane.events, 20 * QK_LANE_SLOTS);
}
END_TEST

/* Ways to write over the ring. */

static void head_runs_away(void)
{
	lane.ring->head += 100000;
}

static void head_runs_back(void)
{
	lane.ring->head -= 1;
}

static void long_path(void)
{
	struct qk_lane_slot *s = half_write("a");

	s->len = 1 << 20;
	s->state = QK_LANE_READY;
}

static void endless_path(void)
{
	struct qk_lane_slot *s = half_write("a");

	memset(s->path, 'x', sizeof(s->path));
	s->path[0] = '/';
	s->state = QK_LANE_READY;
}

static void relative_path(void)
{
	struct qk_lane_slot *s = half_write("a");

	s->path[0] = 'x';
	s->state = QK_LANE_READY;
}

static void unknown_call(void)
{
	struct qk_lane_slot *s = half_write("a");

	s->call = 99;
	s->state = QK_LANE_READY;
}

static void odd_realpath(void)
{
	struct qk_lane_slot *s = half_write("a");

	s->call = QK_LANE_REALPATH;
	s->flags = 10000;
	s->state = QK_LANE_READY;
}

static void (*const damages[])(void) = { head_runs_away, head_runs_back, long_path, endless_path,
	relative_path, unknown_call, odd_realpath };
enum { N_DAMAGES = sizeof(damages) / sizeof(*damages) };

START_TEST(written_over)
{
	write_whole("b");
	qk_fastlane_drain(&lane, &witness);
	damages[_i]();
	qk_fastlane_drain(&lane, &witness);
	ck_assert_ptr_nonnull(trace.incomplete);
	ck_assert(lane.ring->flags & QK_LANE_CLOSED);
}
END_TEST

/* What is in the ring has only read: a flag that says otherwise is not believed. */
START_TEST(no_writes_by_it)
{
	struct qk_lane_slot *s = half_write("a");

	s->flags = O_WRONLY | O_CREAT | O_TRUNC;
	s->state = QK_LANE_READY;
	qk_fastlane_drain(&lane, &witness);
	ck_assert(was_read("a"));
	ck_assert(!(entry_of("a")->flags & QK_T_WRITTEN));
}
END_TEST

/* Nobody can make the memory end early under the runner's hands. */
START_TEST(cannot_shrink)
{
	ck_assert(ftruncate(lane.fd, 0) && errno == EPERM);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("fastlane ring");
	SRunner *sr = srunner_create(s);
	TCase *ring = tcase_create("ring");
	int failed;

	(void)argc;
	if (!find_library(argv[0]))
		return 0;
	tcase_add_checked_fixture(ring, open_ring, close_ring);
	tcase_add_test(ring, half_written);
	tcase_add_test(ring, comes_round);
	tcase_add_loop_test(ring, written_over, 0, N_DAMAGES);
	tcase_add_test(ring, no_writes_by_it);
	tcase_add_test(ring, cannot_shrink);
	suite_add_tcase(s, ring);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	free(library);
	return failed != 0;
}
