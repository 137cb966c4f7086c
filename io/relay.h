/* relay.h - the pipe of io_relay(). Internal to io/. */
#ifndef GATLING_IO_RELAY_H
#define GATLING_IO_RELAY_H

#include "io/internal.h"

/* Begins without a pipe: the first io_relay() opens it. */
void io_relay_init(io_loop *loop);
void io_relay_close(io_loop *loop);

#endif
