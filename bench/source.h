/* source.h - the addresses that connections come from. Linux gives out the ports of one in two halves: behind the
 * first, 14,116 as it comes, each connect(2) searches the whole of it in vain, for a millisecond. */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include <stdint.h>
#include <sys/socket.h>

enum { SOURCE_CONNECTIONS_MAX = 14116 }; /* of one address before the search gets slow */

/* Addresses of a network, one after the other; all zero: the kernel's choice. */
struct sources {
	struct sockaddr_storage first;
	socklen_t length;
	uint32_t count;
};

/* "ADDRESS" or "ADDRESS/BITS", IPv4 or IPv6. The first and the last of an IPv4 network are left out where it has more
 * than two. 0, or -1: it is neither. */
int sources_parse(struct sources *sources, const char *text);

/* Leaves the part of one of so many ranks, from 0 on: apart from those of the others where there are enough. */
void sources_share(struct sources *sources, unsigned rank, unsigned ranks);

/* Binds a socket to the address of that number, modulo their count, without taking a port before connect(2).
 * 0, or -1 with errno. */
int sources_bind(const struct sources *sources, uint32_t number, int fd);

#endif
