/* The filter against the table of calls: every number of every entry, by a small interpreter. */
#include "sandbox/calls.h"
#include "sandbox/fastlane-ring.h"
#include "sandbox/filter.h"

#include <check.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

enum { N_NUMBERS = 700 };

static uint32_t load(const struct seccomp_data *d, uint32_t at)
{
	uint32_t word;

	ck_assert_uint_le(at + sizeof(word), sizeof(*d));
	memcpy(&word, (const char *)d + at, sizeof(word));
	return word;
}

/* The instructions that the filter is made of, as the kernel defines them. */
static uint32_t run(const struct qk_filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (unsigned int pc = 0; pc < f->n; pc++) {
		const struct sock_filter *i = &f->v[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS: a = load(d, i->k); break;
		case BPF_ALU | BPF_AND | BPF_K: a &= i->k; break;
		case BPF_JMP | BPF_JA: pc += i->k; break;
		case BPF_JMP | BPF_JEQ | BPF_K: pc += a == i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JGE | BPF_K: pc += a >= i->k ? i->jt : i->jf; break;
		case BPF_JMP | BPF_JSET | BPF_K: pc += a & i->k ? i->jt : i->jf; break;
		case BPF_RET | BPF_K: return i->k;
		default: ck_abort_msg("instruction %u has code %u", pc, i->code);
		}
	}
	ck_abort_msg("ran off its end");
}

static uint32_t expected(const struct qk_call *c, const struct seccomp_data *d, bool lookups, bool lane)
{
	bool by_lane = d->instruction_pointer >> 16 == QK_LANE_AT >> 16;
	uint32_t arg = (uint32_t)d->args[0];

	if (!c || (c->op == QK_CALL_FORBID && !lane) || (c->when == QK_CALL_LOOKUPS && !lookups))
		return SECCOMP_RET_ALLOW;
	if ((c->when == QK_CALL_IF_BITS && !(arg & c->bits)) ||
		(c->when == QK_CALL_IF_EQUAL && arg != c->bits))
		return SECCOMP_RET_ALLOW;
	if (c->op == QK_CALL_REFUSED)
		return SECCOMP_RET_ERRNO | ENOSYS;
	if (lane && by_lane &&
		(c->op == QK_CALL_OPEN || c->op == QK_CALL_LOOK || c->op == QK_CALL_LOOK_LINK ||
			c->op == QK_CALL_READLINK))
		return SECCOMP_RET_ALLOW;
	return SECCOMP_RET_USER_NOTIF;
}

static void check_all(const struct qk_filter *f, uint32_t arch, uint32_t bit, bool lookups, bool lane)
{
	static const uint64_t places[] = { 0x555555554000, QK_LANE_AT + 0x1234,
		QK_LANE_AT + 0x10000, QK_LANE_AT + 0x100000000 };

	for (uint32_t nr = 0; nr < N_NUMBERS; nr++) {
		const struct qk_call *c = qk_call_find(arch, nr | bit);
		/* a number that only one of x86-64 and x32 has means nothing to the other */
		if (!c && arch == AUDIT_ARCH_X86_64)
			c = qk_call_find(arch, (nr | bit) ^ QK_X32_BIT);
		uint64_t words[] = { 0, 1, ~UINT64_C(0), c ? c->bits : 2, UINT64_C(1) << 32 };

		for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
			for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++) {
				struct seccomp_data d = { .nr = (int)(nr | bit),
					.arch = arch,
					.instruction_pointer = places[p],
					.args = { words[w] } };

				ck_assert_msg(run(f, &d) == expected(c, &d, lookups, lane),
					"arch %x, number %u%s, argument %llx, from %llx", arch, nr,
					bit ? " (x32)" : "", (unsigned long long)words[w],
					(unsigned long long)places[p]);
			}
		}
	}
}

START_TEST(every_number_is_treated_as_the_table_says)
{
	bool lookups = _i & 1, lane = _i & 2;
	struct seccomp_data strange = { .arch = AUDIT_ARCH_S390X, .nr = 1 };
	struct qk_filter f;

	qk_filter_compile(&f, lookups, lane);
#if defined(__x86_64__)
	check_all(&f, AUDIT_ARCH_X86_64, 0, lookups, lane);
	check_all(&f, AUDIT_ARCH_X86_64, QK_X32_BIT, lookups, lane);
	check_all(&f, AUDIT_ARCH_I386, 0, lookups, lane);
#else
	check_all(&f, AUDIT_ARCH_AARCH64, 0, lookups, lane);
#endif
	ck_assert_uint_eq(run(&f, &strange), SECCOMP_RET_USER_NOTIF);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("filter");
	TCase *t = tcase_create("numbers");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, every_number_is_treated_as_the_table_says, 0, 4);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
