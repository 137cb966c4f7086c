/* stream.h - shared by stream.c and forward.c: streams of bytes or datagrams from this process to another. */
#ifndef KBENCH_STREAM_H
#define KBENCH_STREAM_H

#include "bench/kbench/net.h"

/* Measures streams of the chosen kind over that path. Returns 0, or -1 after run_stop() or run_skip(). */
int stream_measure(struct run *run, enum net_path path);

#endif
