/* forward.c - what gets through a router: a third network namespace between the two of stream.c. */
#include "bench/kbench/stream.h"

static int measure(struct run *run) { return stream_measure(run, NET_ROUTED); }

const struct benchmark benchmark_forward = {
	.name = "forward",
	.summary = "what gets through a network namespace that forwards",
	.how = "As stream, but between the sender and the receiver is a third namespace, whose kernel forwards.",
	.n = "steps of 100 ms",
	.columns = NET_COLUMNS,
	.kinds = {"tcp", "udp"},
	.count = 30,
	.warm_up = NET_WARM_UP,
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_STREAMS | KBENCH_OPTION_SIZE,
	.streams_max = NET_STREAMS_MAX,
	.network = true,
	.measure = measure,
};
