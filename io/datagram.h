/* datagram.h - UDP, many datagrams in a call where the system can: recvmmsg(2), and UDP_GRO and UDP_SEGMENT of Linux.
 */
#ifndef GATLING_IO_DATAGRAM_H
#define GATLING_IO_DATAGRAM_H

#include <netinet/in.h>

#include "io/io.h"

enum {
	IO_DATAGRAM_SEGMENTS = 64,    /* that io_send() sends at most; Linux joins no more */
	IO_DATAGRAM_BYTES = 65507,    /* likewise; the content of the largest datagram of IPv4 */
	IO_DATAGRAM_ROOM = 64 * 1024, /* bytes for datagrams that the system has joined: none are longer */
	IO_DATAGRAM_BATCH = 16        /* how often there is this room: io_receive() returns up to so many structures */
};

union io_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* Datagrams that follow each other, between the same two addresses and with the same mark. */
struct io_datagrams {
	union io_address peer;
	union io_address local; /* of this machine, without a port, in the family of peer; AF_UNSPEC: unknown, or any */
	uint8_t ecn;            /* the two bits of RFC 3168 */
	const char *bytes;
	size_t length;
	size_t segment; /* the bytes of each datagram, more than 0; the last one may be shorter */
};

static inline socklen_t io_address_length(const union io_address *a) {
	return a->any.sa_family == AF_INET ? sizeof a->ipv4 : sizeof a->ipv6;
}

/* Sets the options of a UDP socket of IPv4, IPv6 or both that these functions need, as far as the system has them. What
 * is sent is never fragmented. */
void io_datagram_socket(int fd);

/* The buffers of io_receive(), for all sockets of a loop: a megabyte, but only pages that were used take memory.
 * io_received_new() returns NULL without memory; io_received_free() allows NULL. */
struct io_received;
struct io_received *io_received_new(void);
void io_received_free(struct io_received *received);

/* Receives datagrams from an adopted socket. Returns how many structures *got has, which are valid until the next call,
 * or -1 with errno. EAGAIN marks the descriptor as not ready, and so do fewer than IO_DATAGRAM_BATCH, of which those
 * are counted that are left out: empty datagrams, and any that do not fit. Errors of datagrams that were sent before
 * are skipped; io_skipped_error() returns the first one of the last call, as ECONNREFUSED, or 0. */
int io_receive(io_loop *loop, int fd, struct io_received *received, const struct io_datagrams **got);
int io_skipped_error(const struct io_received *received);

/* Sends datagrams from an adopted socket, at most IO_DATAGRAM_SEGMENTS and IO_DATAGRAM_BYTES. Returns the bytes of
 * those that were sent, from the first one on, or -1 with errno. EAGAIN marks the descriptor as not ready, and so does
 * a number that is smaller for this reason. EMSGSIZE: they are longer than the path allows. After other errors, such as
 * ENOBUFS, the socket is as ready as before; the datagrams are best counted as lost. Where the system has no
 * UDP_SEGMENT, or a route does not allow it (IPsec), each one is a call. */
ssize_t io_send(io_loop *loop, int fd, const struct io_datagrams *datagrams);

#endif
