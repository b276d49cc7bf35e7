#include "base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * (int64_t)1000 + ts.tv_nsec / 1000000;
}

int64_t qk_clock_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

uint64_t qk_clock_since_1970(void)
{
	return (uint64_t)read_ms(CLOCK_REALTIME);
}
