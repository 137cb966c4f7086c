/* stream.h - what stream.c and forward.c share: streams of bytes or datagrams from this process to another. */
#ifndef KBENCH_STREAM_H
#define KBENCH_STREAM_H

#include "bench/kbench/net.h"

/* As the kind says, over that path. 0, or -1 after run_stop() or run_skip(). */
int stream_measure(struct run *run, enum net_path path);

#endif
