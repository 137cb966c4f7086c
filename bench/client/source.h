/* source.h - the addresses that connections come from. Linux assigns the ports of an address in two halves. When the
 * first half is used up (14,116 ports by default), each connect(2) takes a millisecond longer, since it first searches
 * that half. */
#ifndef BENCH_SOURCE_H
#define BENCH_SOURCE_H

#include <stdint.h>
#include <sys/socket.h>

enum { SOURCE_CONNECTIONS_MAX = 14116 }; /* of an address, before the search gets slow */

/* Consecutive addresses of a network; all zero: the kernel chooses the address. */
struct sources {
	struct sockaddr_storage first;
	socklen_t length;
	uint32_t count;
};

/* Parses "ADDRESS" or "ADDRESS/BITS", IPv4 or IPv6. Leaves out the first and the last address of an IPv4 network with
 * more than two. Returns 0, or -1 if the text is neither. */
int sources_parse(struct sources *sources, const char *text);

/* Keeps the addresses of one rank, counted from 0. Those of two ranks overlap only if there are too few. */
void sources_share(struct sources *sources, unsigned rank, unsigned ranks);

/* Binds a socket to the address with that number, modulo their count; connect(2) chooses the port. Returns 0, or -1
 * with errno. */
int sources_bind(const struct sources *sources, uint32_t number, int fd);

/* Refuses --source unless the first address can be used for connections to the URL, whose address is of that family. */
void sources_require(const struct sources *sources, int family, const char *url);

/* Writes the address with that number to text. */
enum { SOURCE_TEXT = 64 };
void sources_name(const struct sources *sources, uint32_t number, char text[SOURCE_TEXT]);

#endif
