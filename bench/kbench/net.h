/* net.h - the way that data takes in stream.c, forward.c and relay.c: from this process to another, in a network
 * namespace of its own, over a pair of virtual Ethernet interfaces (veth(4)), by ip(8); or through a third namespace,
 * as router or with a relay; or, where that may not be, over the loopback. */
#ifndef KBENCH_NET_H
#define KBENCH_NET_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "bench/kbench/kbench.h"

enum {
	NET_PORT = 7777,
	NET_STREAMS_MAX = 64,
	NET_BLOCK = 128 * 1024,
	NET_INTERVAL_MS = 100,
	NET_WARM_UP = 5 /* intervals */
};

enum net_path {
	NET_DIRECT,  /* sender - receiver; the loopback if need be */
	NET_ROUTED,  /* sender - router - receiver, forwarded by the kernel */
	NET_RELAYED, /* sender - relay - receiver, each with its own connection; all on the loopback if need be */
};

union net_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* What the processes share. */
struct net_counters {
	_Alignas(128) atomic_uint_fast64_t received; /* bytes */
	_Alignas(128) atomic_bool stop;
	_Alignas(128) atomic_uint_fast64_t datagrams; /* received */
	atomic_uint ready;                            /* processes that can be sent to */
	_Atomic int64_t middle_cpu_ns;                /* that the relay has used */
};

struct net {
	const struct run_settings *settings;
	bool loopback, relayed;
	bool datagrams; /* they are what is counted as packets; else those of the interfaces */
	struct net_counters *counters;
	/* where the receiver is, and the relay */
	union net_address receiver, relay;
	socklen_t length;
};

/* What the receiver does, and the relay, each in its process, which is killed in the end. */
typedef void net_part(struct net *net);

/* What each of the sender's threads does, numbered from 0 on, until it is told to stop. */
typedef void net_stream(struct net *net, unsigned number);

/* Makes the way, starts the others, has each stream sent, and keeps a point each NET_INTERVAL_MS until there are
 * run->count: what was received, in Mbit/s; packets, a second: datagrams that were received or else, not datagrams,
 * what left the sender's interfaces; and the processor time of the relay or, without one, of all processors, in percent
 * of one. middle: for NET_RELAYED. 0, or -1 after run_stop() or run_skip(). */
int net_run(struct run *run, enum net_path path, bool datagrams, net_part *receiver, net_part *middle,
			net_stream *sender);

/* Threads of this process that each do that for a stream; they are not waited for. 0, or -1. */
int net_threads(struct net *net, net_stream *stream);

/* A stream socket that is connected, or one that listens there. -1 with errno. */
int net_connect(const union net_address *to, socklen_t length);
int net_listen(const union net_address *at, socklen_t length);

/* Sends to a connection until it is told to stop. fd may be -1. */
void net_send(struct net *net, int fd);

/* A receiver of as many connections as there are streams: reads each until it ends, and counts. */
net_part net_receiver;

/* The same address with the port of that stream. */
union net_address net_port_of(const union net_address *address, unsigned number);

/* The fields that the benchmarks of the network have in common. */
#define NET_BENCHMARK                                                                                                  \
	.n = "steps of 100 ms", .columns = {"received_mbit_s", "packets_s", "cpu_percent", "megabyte_cpu_ns"},             \
	.count = 30, .warm_up = NET_WARM_UP, .streams_max = NET_STREAMS_MAX, .network = true

#endif
