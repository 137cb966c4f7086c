/* wake.h - the pipe that ends a wait from another thread (io_wake()). Internal to io/. */
#ifndef GATLING_IO_WAKE_H
#define GATLING_IO_WAKE_H

#include "io/internal.h"

/* Opens the pipe of the loop. Returns 0, or -1 with errno; io_wake_close() closes it in either case. */
int io_wake_open(io_loop *loop);
void io_wake_close(io_loop *loop);

/* Empties the pipe. */
void io_wake_drain(io_loop *loop);

#endif
