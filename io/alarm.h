/* alarm.h - deadlines without a descriptor, in nanoseconds: for what has no socket of its own, such as a connection of
 * QUIC. */
#ifndef GATLING_IO_ALARM_H
#define GATLING_IO_ALARM_H

#include "io/io.h"

/* Embedded in what it is for, which must stay in its place while it is set. All zero: not set. */
struct io_alarm {
	int64_t deadline_ns; /* on the clock of io_now_ns(); 0: not set. To be read only. */
	unsigned place;      /* alarm.c's own */
};

/* Sets, moves or (0) cancels an alarm. io_wait() and io_waituntil() end when the first one is due, as precisely as the
 * latter does. One for a time that has passed is due after the next wait, which then takes no time. Returns 0, or -1
 * with ENOMEM, but moving one does not fail. O(log n); to move it later is O(1), and done when it would have been due.
 */
int io_alarm_set(io_loop *loop, struct io_alarm *alarm, int64_t deadline_ns);
void io_alarm_cancel(io_loop *loop, struct io_alarm *alarm);

/* Returns the first alarm whose time had come by io_now_ns(), which is then no longer set; or NULL if there is none
 * until the next wait. */
struct io_alarm *io_alarm_due(io_loop *loop);

#endif
