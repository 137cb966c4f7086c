/* queue.h - the descriptors that are ready and wanted, first in, first out, one queue for each direction. A descriptor
 * is in a queue at most once. io_canread(), io_postpone_read() and the like (io.h) hand them out. Internal to io/. */
#ifndef GATLING_IO_QUEUE_H
#define GATLING_IO_QUEUE_H

#include "io/internal.h"

bool io_adopted(const io_loop *loop, int fd);

/* Returns whether the descriptor is to be handed out: it is wanted and ready. */
bool io_queue_due(const struct io_entry *entry, enum io_direction direction);

void io_queue_add(io_loop *loop, int fd, enum io_direction direction);

/* Ends a turn, in both directions: queues the descriptor that was handed out last again if it is still due, and removes
 * those at the front that are no longer due. Returns whether there is anything to hand out. */
bool io_queue_end_turn(io_loop *loop);

/* Begins a turn with all descriptors that are queued now. */
void io_queue_begin_turn(io_loop *loop);

/* For the mechanisms: reports that fd is ready. A false report does no harm, also of a number that is not adopted, or
 * that has another owner by now. An error is reported as IO_HANGUP | IO_CAN_WRITE, since both directions meet it. */
void io_ready(io_loop *loop, int fd, unsigned can);

/* Notes that fd is not ready in this direction. Returns whether it is wanted, and so has to be watched. */
bool io_unready(io_loop *loop, int fd, enum io_direction direction);

#endif
