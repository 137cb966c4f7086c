/* clock.h - the monotonic clock, for code that does not run on a loop (which has io_now()). */
#ifndef GATLING_BASE_CLOCK_H
#define GATLING_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
