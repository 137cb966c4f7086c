/* loop.h - what transfer.c needs of the loop. Internal to io/. */
#ifndef GATLING_IO_LOOP_H
#define GATLING_IO_LOOP_H

#include "io/internal.h"

/* Notes that fd is not ready and, if it is wanted, has it watched. Returns 0, or -1 as io_wantread(). */
int io_not_ready(io_loop *loop, int fd, enum io_direction direction);

#endif
