/* forward.c - measures the throughput of a router: a third network namespace between the two of stream.c. */
#include "bench/kbench/stream.h"

static int measure(struct run *run) { return stream_measure(run, NET_ROUTED); }

const struct benchmark benchmark_forward = {
	.name = "forward",
	.summary = "what gets through a network namespace that forwards",
	.how = "As stream, but between the sender and the receiver is a third namespace, whose kernel forwards.",
	NET_BENCHMARK,
	.kinds = {"tcp", "udp"},
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_STREAMS | KBENCH_OPTION_LINK | KBENCH_OPTION_SIZE,
	.measure = measure,
};
