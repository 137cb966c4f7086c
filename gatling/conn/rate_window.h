/* rate_window.h - the measurements of min_rate.c. */
#ifndef GATLING_CONN_RATE_WINDOW_H
#define GATLING_CONN_RATE_WINDOW_H

#include <stdint.h>

#include "gatling/conn/conn_kind.h"

/* All zero at first. */
struct rate_windows {
	struct rate_list {
		struct rate_window {
			int64_t since_ms; /* when it began; 0: nothing is measured */
			int64_t bytes;    /* transferred before it */
		} * window;           /* by the numbers of conn_kind.h; allocated when a rate is measured for the first time */
		int count;
	} of[CONN_KINDS];
	int64_t next_walk_ms;
	int64_t enough_ms;    /* since when there has been no shortage; 0: there is one */
	unsigned long closed; /* connections that were too slow, since the last line in the log */
};

/* Ends the window of a connection that is being closed. */
static inline void rate_windows_forget(const struct rate_windows *w, int kind, int number) {
	if (number < w->of[kind].count) w->of[kind].window[number].since_ms = 0;
}

#endif
