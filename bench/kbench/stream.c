/* stream.c - measures throughput: TCP, in one stream or several; datagrams of one size; multicast to a group of
 * receivers. As in OpenBSD's network performance tests, only what arrives counts: a sender only knows what it has
 * passed to the kernel. */
#include "bench/kbench/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kbench/iperf3.h"

enum { BUFFER = 4 * 1024 * 1024, HOPS = 4 };

#define GROUP "239.77.0.1" /* organization-local scope, RFC 2365 */
#define GROUP6 "ff18::77"  /* the same scope, RFC 7346 */

static void tcp_send(struct net *net, unsigned number) {
	(void)number;
	net_send(net, net_connect(&net->receiver, net->length));
}

/* --- datagrams --- */

static bool multicast(const struct net *net) { return strcmp(net->settings->kind, "multicast") == 0; }

static union net_address group_of(const struct net *net) {
	union net_address group = net->receiver;
	if (group.any.sa_family == AF_INET) inet_pton(AF_INET, GROUP, &group.v4.sin_addr);
	else inet_pton(AF_INET6, GROUP6, &group.v6.sin6_addr);
	return group;
}

/* Sets the interface of a multicast socket, for joining a group or for sending. Returns 0 or -1. */
static int use_interface(const struct net *net, int fd, bool join) {
	union net_address group = group_of(net);
	unsigned index = if_nametoindex(net->loopback ? "lo" : "link0");
	int hops = HOPS;
	if (group.any.sa_family == AF_INET6) {
		struct ipv6_mreq request = {.ipv6mr_multiaddr = group.v6.sin6_addr, .ipv6mr_interface = index};
		if (join) return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
		return setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
	}
	struct ip_mreqn request = {.imr_multiaddr = group.v4.sin_addr, .imr_ifindex = (int)index};
	if (join) return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
	(void)setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
	return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
}

/* Makes a receiving socket. Each stream has its own port; a multicast group has one, at which all receive the same.
 * Returns -1 if it fails. */
static int udp_listen(const struct net *net, unsigned number) {
	int on = 1, buffer = BUFFER, fd = socket(net->receiver.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union net_address at = multicast(net) ? group_of(net) : net_port_of(&net->receiver, number);
	if (fd == -1) return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	if (bind(fd, &at.any, net->length) == 0 && !(multicast(net) && use_interface(net, fd, true) == -1)) return fd;
	close(fd);
	return -1;
}

static void udp_receive(struct net *net, unsigned number) {
	int fd = udp_listen(net, number);
	char *block = malloc(NET_BLOCK);
	if (fd != -1) atomic_fetch_add(&net->counters->ready, 1);
	for (ssize_t n; block && fd != -1 && (n = recv(fd, block, NET_BLOCK, 0)) >= 0;) { /* a datagram may be empty */
		atomic_fetch_add_explicit(&net->counters->received, (uint64_t)n, memory_order_relaxed);
		atomic_fetch_add_explicit(&net->counters->datagrams, 1, memory_order_relaxed);
	}
	free(block);
}

static void udp_receiver(struct net *net) { (void)net_threads(net, udp_receive); }

static void udp_send(struct net *net, unsigned number) {
	static char block[NET_BLOCK];
	int fd = socket(net->receiver.any.sa_family, SOCK_DGRAM, 0);
	union net_address to = multicast(net) ? group_of(net) : net_port_of(&net->receiver, number);
	if (fd == -1 || (multicast(net) && (number > 0 || use_interface(net, fd, false) == -1))) return;
	if (connect(fd, &to.any, net->length) == -1) return;
	while (!atomic_load_explicit(&net->counters->stop, memory_order_relaxed))
		(void)send(fd, block, net->settings->size, MSG_NOSIGNAL); /* refused ones do not arrive */
}

/* --- the benchmark --- */

int stream_measure(struct run *run, enum net_path path) {
	if (run_kind(run, "tcp")) return net_run(run, path, false, net_receiver, NULL, tcp_send);
	return net_run(run, path, true, udp_receiver, NULL, udp_send);
}

static int measure(struct run *run) {
	if (!run_kind(run, "iperf3")) return stream_measure(run, NET_DIRECT);
	if (!iperf3_found()) return run_skip(run, "there is no iperf3(1)");
	return net_run(run, NET_DIRECT, false, iperf3_receiver, NULL, iperf3_send);
}

const struct benchmark benchmark_stream = {
	.name = "stream",
	.summary = "what gets through from one network namespace to another",
	.how = "The sender sends as fast as it can; only what the receiver has read counts. Packets are datagrams "
		   "received; with "
		   "TCP those that left the sender's interfaces, of up to 64 KB. cpu: of all processors, 100 is one; "
		   "megabyte cpu: their time for a megabyte, or a million empty datagrams; sender, receiver: of their "
		   "processes.",
	NET_BENCHMARK,
	.kinds = {"tcp", "udp", "multicast", "iperf3"},
	.options = KBENCH_OPTION_FAMILY | KBENCH_OPTION_STREAMS | KBENCH_OPTION_LINK | KBENCH_OPTION_SIZE,
	.measure = measure,
};
