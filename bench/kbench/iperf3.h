/* iperf3.h - iperf3(1) in place of this program's own sender and receiver: a check of both. */
#ifndef KBENCH_IPERF3_H
#define KBENCH_IPERF3_H

#include "bench/kbench/net.h"

/* Whether there is such a program. */
bool iperf3_found(void);

/* What net_run() takes: the receiver counts what iperf3 says that it has received, ten times a second. */
net_part iperf3_receiver;
net_stream iperf3_send;

#endif
