/*
 * Two clocks in milliseconds: one for how long something takes, one for when it was.
 */
#ifndef QK_BASE_CLOCK_H
#define QK_BASE_CLOCK_H

#include <stdint.h>

int64_t qk_clock_ms(void); /* from some point in the past on, never back */
uint64_t qk_clock_since_1970(void);

#endif
