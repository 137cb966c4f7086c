/* timer.h - the deadlines of descriptors, for the loop (io_timeout() and io_timedout() are in io.h). Internal to io/.
 */
#ifndef GATLING_IO_TIMER_H
#define GATLING_IO_TIMER_H

#include "io/internal.h"

void io_timer_init(io_loop *loop);
void io_timer_cancel(io_loop *loop, int fd);

/* Moves what is due to the list that io_timedout() empties. */
void io_timer_advance(io_loop *loop);

/* Nanoseconds until the next slot in use comes up; -1: none is in use. */
int64_t io_timer_limit(io_loop *loop);

#endif
