/* datagram_sockets.h - the UDP sockets of the process. A successor receives on them from then on, while each process
 * goes on to send on them, for its own connections. What has come for another process, or for another worker of the
 * same one, passes through channels: pairs of sockets, one for each worker. */
#ifndef GATLING_KEEPER_DATAGRAM_SOCKETS_H
#define GATLING_KEEPER_DATAGRAM_SOCKETS_H

#include <stdint.h>

#include "gatling/keeper/sockets.h"

enum {
	DATAGRAM_SECRET = 48,            /* bytes of the secret that all these processes know */
	DATAGRAM_BEFORE = 4,             /* processes before this one, the last ones, whose connections go on */
	DATAGRAM_CHANNEL_BYTES = 1 << 20 /* of what waits in a channel, as far as it is allowed */
};

/* A worker's channel. Each message is a datagram with what quic/ says of it (SOCK_SEQPACKET). */
struct datagram_channel {
	int inner; /* the worker's own end, which it closes; -1: it is of another process */
	int outer; /* where the other workers send, and the successor receives what the worker sends back */
	uint8_t generation;
	uint16_t worker, workers; /* whose it is, and how many workers that process has */
};

struct datagram_sockets {
	/* The sockets of an address (a group) in the order in which they were bound: so the system counts them. */
	struct sockets udp;
	uint8_t generation; /* of this process: one more than that of the process before */
	unsigned char secret[DATAGRAM_SECRET];
	struct datagram_channel *channel; /* first those of the processes before this one, then one for each worker */
	unsigned before, channels;
};

#define DATAGRAM_SOCKETS_NONE                                                                                          \
	{ .udp.datagrams = true }

/* What a process says of a channel to its successor, which gets the outer end. */
struct datagram_note {
	uint8_t generation, unused;
	uint16_t worker, workers;
	unsigned char secret[DATAGRAM_SECRET];
};

struct datagram_note datagram_sockets_note(const struct datagram_sockets *sockets,
										   const struct datagram_channel *channel);

/* Adds the channel of a process before this one, and owns fd from then on; closes it on failure. Returns 0, or -1 with
 * errno. */
int datagram_sockets_inherit(struct datagram_sockets *sockets, int fd, const struct datagram_note *note);

/* Makes the channels of this process, and a secret, unless there is one. Call it once, when all others are there.
 * Returns 0, or -1 with errno. */
int datagram_sockets_open(struct datagram_sockets *sockets, unsigned workers);

/* Returns the channel of a worker of this process. */
static inline const struct datagram_channel *datagram_channel_of(const struct datagram_sockets *s, unsigned worker) {
	return &s->channel[s->before + worker];
}

/* Return whether a worker receives on a socket, or uses it: with fewer sockets than workers, several send on one. */
static inline bool datagram_socket_receives(const struct listening_socket *s, unsigned worker, unsigned workers) {
	return s->place % workers == worker;
}

static inline bool datagram_socket_is_used(const struct listening_socket *s, unsigned worker, unsigned workers) {
	return datagram_socket_receives(s, worker, workers) || worker % s->places == s->place;
}

/* Writes the descriptors that a worker uses to `to`, which has room for datagram_sockets_most(), and returns how many
 * there are. Beside its sockets these are its channel, those channels of the processes before whose worker has its
 * number, modulo `workers`, and those of all workers, to send. */
unsigned datagram_sockets_used(const struct datagram_sockets *sockets, unsigned worker, unsigned workers, int *to);

static inline unsigned datagram_sockets_most(const struct datagram_sockets *s) {
	return s->udp.count + s->channels + 1;
}

/* Closes everything but the inner ends. Without private descriptors, workers use the same ones. */
void datagram_sockets_close(struct datagram_sockets *sockets);

#endif
