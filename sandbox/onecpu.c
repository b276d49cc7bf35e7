#include "sandbox/onecpu.h"

#include <sys/syscall.h>
#include <unistd.h>

void qk_onecpu_begin(struct qk_onecpu *c)
{
	unsigned long one[sizeof(c->mask) / sizeof(c->mask[0])] = { 0 };
	unsigned int cpu, bits = 8 * sizeof(one[0]);
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(c->mask), c->mask);

	c->bytes = 0;
	if (n <= 0 || syscall(SYS_getcpu, &cpu, NULL, NULL) || cpu >= 8 * (unsigned long)n)
		return;
	one[cpu / bits] = 1UL << cpu % bits;
	if (!syscall(SYS_sched_setaffinity, 0, (size_t)n, one))
		c->bytes = (size_t)n;
}

void qk_onecpu_end(const struct qk_onecpu *c)
{
	if (c->bytes)
		syscall(SYS_sched_setaffinity, 0, c->bytes, c->mask);
}
