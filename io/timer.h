/* timer.h - the deadlines of descriptors, as the loop sees them; io_timeout() and io_timedout() are in io.h. Internal
 * to io/. */
#ifndef GATLING_IO_TIMER_H
#define GATLING_IO_TIMER_H

#include "io/internal.h"

void io_timer_init(io_loop *loop);
void io_timer_cancel(io_loop *loop, int fd);

/* Moves the descriptors whose deadlines have passed to the list of io_timedout(). */
void io_timer_advance(io_loop *loop);

/* Returns the nanoseconds until the next slot in use comes up, or -1 if none is. */
int64_t io_timer_limit(io_loop *loop);

#endif
