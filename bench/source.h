/* source.h - the addresses that connections come from. Linux gives out the ports of an address in two halves. When the
 * first half is used up (14,116 ports by default) each connect(2) first searches it in vain for a millisecond. */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include <stdint.h>
#include <sys/socket.h>

enum { SOURCE_CONNECTIONS_MAX = 14116 }; /* of one address before the search gets slow */

/* Consecutive addresses of a network; all zero: the kernel chooses the address. */
struct sources {
	struct sockaddr_storage first;
	socklen_t length;
	uint32_t count;
};

/* Parses "ADDRESS" or "ADDRESS/BITS", IPv4 or IPv6. Leaves out the first and the last address of an IPv4 network that
 * has more than two. Returns 0, or -1 if it is neither. */
int sources_parse(struct sources *sources, const char *text);

/* Keeps the part of one rank, counted from 0; the parts of two ranks overlap only if there are too few addresses. */
void sources_share(struct sources *sources, unsigned rank, unsigned ranks);

/* Binds a socket to the address of that number, modulo their count; connect(2) takes the port. Returns 0, or -1 with
 * errno. */
int sources_bind(const struct sources *sources, uint32_t number, int fd);

/* Refuses --source unless connections to the URL, whose address is of that family, can come from the first of them. */
void sources_require(const struct sources *sources, int family, const char *url);

/* Writes that address to text. */
enum { SOURCE_TEXT = 64 };
void sources_name(const struct sources *sources, uint32_t number, char text[SOURCE_TEXT]);

#endif
