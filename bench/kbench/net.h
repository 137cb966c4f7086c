/* net.h - the path of data in stream.c, forward.c and relay.c: from this process to another one in its own network
 * namespace, over a pair of virtual Ethernet interfaces (veth(4)), made by ip(8); or through a third namespace, with a
 * router or a relay; or over the loopback, where namespaces are not allowed. */
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
	NET_DIRECT,  /* sender - receiver; over the loopback if necessary */
	NET_ROUTED,  /* sender - router - receiver: the kernel forwards */
	NET_RELAYED, /* sender - relay - receiver, with two connections; all over the loopback if necessary */
};

union net_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Memory shared by the processes. */
struct net_counters {
	_Alignas(128) atomic_uint_fast64_t received; /* bytes */
	_Alignas(128) atomic_bool stop;
	_Alignas(128) atomic_uint_fast64_t datagrams; /* that were received */
	atomic_uint ready;                            /* processes that are ready to receive */
	_Atomic pid_t sender, receiver, relay;        /* whose processor time counts */
};

struct net {
	const struct run_settings *settings;
	bool loopback, relayed;
	bool datagrams; /* count datagrams as packets, not those of the interfaces */
	struct net_counters *counters;
	/* addresses of the receiver and of the relay */
	union net_address receiver, relay;
	socklen_t length;
};

/* The work of the receiver, or of the relay, each in its process, which is killed at the end. */
typedef void net_part(struct net *net);

/* The work of each of the sender's threads, numbered from 0, until it is told to stop. */
typedef void net_stream(struct net *net, unsigned number);

/* Sets up the path, starts the other processes and the streams, and keeps a point every NET_INTERVAL_MS until there are
 * run->count. A point has what was received, in Mbit/s; packets a second, which are datagrams that were received or,
 * without datagrams, packets that left the sender's interfaces; the processor time of the relay or, without one, of all
 * processors, in percent of one, and for a megabyte; and that of the sender's and the receiver's processes. middle: for
 * NET_RELAYED. Returns 0, or -1 after run_stop() or run_skip(). */
int net_run(struct run *run, enum net_path path, bool datagrams, net_part *receiver, net_part *middle,
			net_stream *sender);

/* Starts a thread of this process for each stream; the threads are not waited for. Returns 0 or -1. */
int net_threads(struct net *net, net_stream *stream);

/* Return a stream socket that is connected to an address, or that listens there, or -1 with errno. */
int net_connect(const union net_address *to, socklen_t length);
int net_listen(const union net_address *at, socklen_t length);

/* Sends to a connection until it is told to stop. fd may be -1. */
void net_send(struct net *net, int fd);

/* Receives on as many connections as there are streams: reads each until it ends, and counts the bytes. */
net_part net_receiver;

/* Returns the same address, with the port of that stream. */
union net_address net_port_of(const union net_address *address, unsigned number);

/* The members that the network benchmarks have in common. */
#define NET_BENCHMARK                                                                                                  \
	.n = "steps of 100 ms", .columns = {"received_mbit_s", "packets_s",      "cpu_percent",                            \
										"megabyte_cpu_ns", "sender_percent", "receiver_percent"},                      \
	.count = 30, .warm_up = NET_WARM_UP, .streams_max = NET_STREAMS_MAX, .network = true

#endif
