/* relay.c - measures the throughput and the processor time of a process that forwards bytes from one connection to
 * another, either by copying them (read(2), write(2)) or by splice(2), so that they stay in the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kbench/net.h"

enum { PIPE = 1024 * 1024 };

static int listener; /* used by the relay's process */

/* Forwards the bytes that have come. Returns false if an end has been closed. */
static bool copy(int from, int to, char *block) {
	ssize_t n = read(from, block, NET_BLOCK);
	for (ssize_t at = 0, m; at < n; at += m)
		if ((m = write(to, block + at, (size_t)(n - at))) <= 0) return false;
	return n > 0;
}

static bool splice_on(int from, int to, const int *channel) {
	ssize_t n = splice(from, NULL, channel[1], NULL, PIPE, SPLICE_F_MOVE);
	for (ssize_t m, rest = n; rest > 0; rest -= m)
		if ((m = splice(channel[0], NULL, to, NULL, (size_t)rest, SPLICE_F_MOVE | SPLICE_F_MORE)) <= 0) return false;
	return n > 0;
}

static void hand_on(struct net *net, unsigned number) {
	int channel[2], from = accept(listener, NULL, NULL), to = net_connect(&net->receiver, net->length);
	bool splices = strcmp(net->settings->kind, "splice") == 0;
	char *block = malloc(NET_BLOCK);
	(void)number;
	if (block && from != -1 && to != -1 && pipe2(channel, O_CLOEXEC) == 0) {
		(void)fcntl(channel[0], F_SETPIPE_SZ, PIPE);
		while (splices ? splice_on(from, to, channel) : copy(from, to, block)) {}
	}
	free(block);
}

static void relay(struct net *net) {
	listener = net_listen(&net->relay, net->length);
	if (listener != -1 && net_threads(net, hand_on) == 0) atomic_fetch_add(&net->counters->ready, 1);
}

/* --- the sender --- */

static void send_on(struct net *net, unsigned number) {
	(void)number;
	net_send(net, net_connect(&net->relay, net->length));
}

static int measure(struct run *run) { return net_run(run, NET_RELAYED, false, net_receiver, relay, send_on); }

const struct benchmark benchmark_relay = {
	.name = "relay",
	.summary = "what gets through a process between two connections",
	.how = "As stream, but a process in a third namespace reads from one connection and writes to the other; cpu is "
		   "its own.",
	NET_BENCHMARK,
	.kinds = {"copy", "splice"},
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_STREAMS | KBENCH_OPTION_LINK,
	.measure = measure,
};
