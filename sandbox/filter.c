#include "sandbox/filter.h"

#include "sandbox/fastlane-ring.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Numbers fall into runs that are treated alike, found by a decision tree. A filter is made anew
 * for each command, and the kernel translates it each time, so its length is paid for; and it tries
 * a filter on every number of the machine's own, to know those that are always allowed, so its
 * depth is.
 */
enum { NUMBERS = 640, RUNS = 160 };

/* What is done with a number: one of these, or SPECIAL + the row that says more. */
enum { ALLOW, NOTIFY, REFUSE, LANE, SPECIAL };

struct run {
	uint16_t from;
	uint8_t what;
};

static void emit(struct qk_filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	assert(f->n < QK_FILTER_MAX);
	f->v[f->n++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void emit_load(struct qk_filter *f, size_t offset)
{
	emit(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct qk_filter *f, uint32_t what)
{
	emit(f, BPF_RET | BPF_K, what, 0, 0);
}

/* The low word of the first argument: what is tested in it fits. */
static size_t first_arg(void)
{
	bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	return offsetof(struct seccomp_data, args) + (big ? 4 : 0);
}

bool qk_filter_by_lane(const struct qk_call *c)
{
	return c->op == QK_CALL_OPEN || c->op == QK_CALL_LOOK || c->op == QK_CALL_LOOK_LINK ||
	       c->op == QK_CALL_READLINK;
}

static uint8_t treatment(size_t row, bool lookups, bool lane)
{
	const struct qk_call *c = &qk_calls[row];

	if ((c->op == QK_CALL_FORBID && !lane) || (c->when == QK_CALL_LOOKUPS && !lookups))
		return ALLOW;
	if (c->when == QK_CALL_IF_BITS || c->when == QK_CALL_IF_EQUAL)
		return (uint8_t)(SPECIAL + row);
	if (lane && qk_filter_by_lane(c))
		return LANE;
	return c->op == QK_CALL_REFUSED ? REFUSE : NOTIFY;
}

static void emit_leaf(struct qk_filter *f, uint8_t what)
{
	const struct qk_call *c;

	switch (what) {
	case ALLOW: emit_return(f, SECCOMP_RET_ALLOW); return;
	case NOTIFY: emit_return(f, SECCOMP_RET_USER_NOTIF); return;
	case REFUSE: emit_return(f, SECCOMP_RET_ERRNO | ENOSYS); return;
	case LANE: emit(f, BPF_JMP | BPF_JA, 0, 0, 0); return; /* see emit_lane() */
	default: break;
	}
	c = &qk_calls[what - SPECIAL];
	emit_load(f, first_arg());
	emit(f, BPF_JMP | (c->when == QK_CALL_IF_BITS ? BPF_JSET : BPF_JEQ) | BPF_K, c->bits, 0, 1);
	emit_return(f, SECCOMP_RET_USER_NOTIF);
	emit_return(f, SECCOMP_RET_ALLOW);
}

static void emit_tree(struct qk_filter *f, const struct run *runs, size_t n)
{
	size_t half = n / 2;
	unsigned short at = f->n;

	if (n == 1) {
		emit_leaf(f, runs->what);
		return;
	}
	emit(f, BPF_JMP | BPF_JGE | BPF_K, runs[half].from, 0, 0);
	emit_tree(f, runs, half);
	assert(f->n - at - 1 <= UINT8_MAX);
	f->v[at].jt = (uint8_t)(f->n - at - 1);
	emit_tree(f, runs + half, n - half);
}

/* Where the jumps for LANE since `from` lead: from the library allowed, from elsewhere told. */
static void emit_lane(struct qk_filter *f, unsigned short from)
{
	size_t ip = offsetof(struct seccomp_data, instruction_pointer);

	for (unsigned short i = from; i < f->n; i++)
		if (f->v[i].code == (BPF_JMP | BPF_JA))
			f->v[i].k = f->n - i - 1u;
	emit_load(f, ip + 4);
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4);
	emit_load(f, ip);
	emit(f, BPF_ALU | BPF_AND | BPF_K, QK_LANE_WINDOW, 0, 0);
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, QK_LANE_AT, 0, 1);
	emit_return(f, SECCOMP_RET_ALLOW);
	emit_return(f, SECCOMP_RET_USER_NOTIF);
}

/* The numbers in up to two columns of the table; where both have one they agree. */
static void emit_numbers(struct qk_filter *f, size_t column, size_t column2, bool lookups, bool lane)
{
	uint8_t what[NUMBERS] = { 0 };
	struct run runs[RUNS] = { { 0, ALLOW } };
	unsigned short from = f->n;
	size_t n = 1;

	for (size_t i = 0; i < qk_calls_n; i++) {
		const char *row = (const char *)&qk_calls[i];
		int16_t nr = *(const int16_t *)(const void *)(row + column);
		int16_t nr2 = *(const int16_t *)(const void *)(row + column2);

		assert(nr < NUMBERS && nr2 < NUMBERS);
		if (nr != QK_NO_NR)
			what[nr] = treatment(i, lookups, lane);
		if (nr2 != QK_NO_NR)
			what[nr2] = treatment(i, lookups, lane);
	}
	runs[0].what = what[0];
	for (uint16_t nr = 1; nr < NUMBERS; nr++) {
		if (what[nr] == runs[n - 1].what)
			continue;
		assert(n < RUNS);
		runs[n++] = (struct run){ nr, what[nr] };
	}
	emit_tree(f, runs, n);
	if (lane)
		emit_lane(f, from);
}

/* An entry whose architecture we have no numbers for tells everything, and is marked lost. */
void qk_filter_compile(struct qk_filter *f, bool lookups, bool lane)
{
	size_t native = offsetof(struct qk_call, native), nr = offsetof(struct seccomp_data, nr);

	f->n = 0;
	emit_load(f, offsetof(struct seccomp_data, arch));
#if defined(__x86_64__)
	unsigned short at;

	emit(f, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 3, 0);
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 1, 0);
	emit_return(f, SECCOMP_RET_USER_NOTIF);
	at = f->n;
	emit(f, BPF_JMP | BPF_JA, 0, 0, 0); /* too far for a conditional jump */
	emit_load(f, nr);
	emit(f, BPF_ALU | BPF_AND | BPF_K, ~(uint32_t)QK_X32_BIT, 0, 0);
	emit_numbers(f, native, offsetof(struct qk_call, x32), lookups, lane);
	f->v[at].k = f->n - at - 1u;
	/* behind a look at an argument the kernel does not try all numbers of 32-bit programs */
	emit_load(f, first_arg());
	emit_load(f, nr);
	emit_numbers(f, offsetof(struct qk_call, compat), offsetof(struct qk_call, compat), lookups,
		lane);
#else
	emit(f, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0);
	emit_return(f, SECCOMP_RET_USER_NOTIF);
	emit_load(f, nr);
	emit_numbers(f, native, native, lookups, lane);
#endif
}
