/* datagram.h - UDP, many datagrams a call where the system can (recvmmsg(2), UDP_GRO and UDP_SEGMENT of udp(7)). */
#ifndef GATLING_IO_DATAGRAM_H
#define GATLING_IO_DATAGRAM_H

#include <netinet/in.h>

#include "io/io.h"

enum {
	IO_DATAGRAM_SEGMENTS = 64, /* UDP_MAX_SEGMENTS of Linux before 6.9 */
	IO_DATAGRAM_BYTES = 65507, /* the most that one call sends: a datagram of IPv4 */
	IO_DATAGRAM_ROOM = 64 * 1024,
	IO_DATAGRAM_BATCH = 16 /* messages that one call receives, of IO_DATAGRAM_ROOM bytes each */
};

union io_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* Datagrams between the same addresses, with the same marks, that follow each other. */
struct io_datagrams {
	union io_address peer;
	union io_address local; /* the address of this machine, without a port; of the family of the peer, or AF_UNSPEC */
	uint8_t ecn;            /* the bits of RFC 3168 */
	const char *bytes;
	size_t length;
	size_t segment; /* bytes of each datagram, but the last may have fewer */
};

static inline socklen_t io_address_length(const union io_address *a) {
	return a->any.sa_family == AF_INET ? sizeof a->ipv4 : sizeof a->ipv6;
}

/* Sets the options of a UDP socket, IPv4 or IPv6, that the other functions need, as far as the system has them. Its
 * datagrams are never fragmented. */
void io_datagram_socket(int fd);

/* A buffer for io_receive(), of a megabyte, of which only what was used takes memory. */
struct io_received;
struct io_received *io_received_new(void); /* NULL without memory */
void io_received_free(struct io_received *received);

/* Receives what has come on an adopted socket. *got becomes an array, which is valid until the next call. Returns its
 * length, or -1 with errno; EAGAIN marks the descriptor as not ready. Errors of datagrams that were sent before are
 * skipped, and so are datagrams that do not fit. */
int io_receive(io_loop *loop, int fd, struct io_received *received, const struct io_datagrams **got);

/* Sends datagrams, at most IO_DATAGRAM_SEGMENTS of them with IO_DATAGRAM_BYTES bytes in all. Returns the bytes sent,
 * all of them or those of the first datagrams, or -1 with errno; EAGAIN marks the descriptor as not ready, EMSGSIZE: a
 * datagram is longer than the path to the peer allows. */
ssize_t io_send(io_loop *loop, int fd, const struct io_datagrams *datagrams);

#endif
