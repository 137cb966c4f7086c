/* iperf3.h - uses iperf3(1) instead of this program's own sender and receiver, to check them. */
#ifndef KBENCH_IPERF3_H
#define KBENCH_IPERF3_H

#include "bench/kbench/net.h"

/* Returns whether the program is installed. */
bool iperf3_found(void);

/* For net_run(). The receiver counts the bytes that iperf3 reports ten times a second. */
net_part iperf3_receiver;
net_stream iperf3_send;

#endif
