/* access.h - a request as a line of the Common Log Format. */
#ifndef GATLING_ACCESS_H
#define GATLING_ACCESS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <stdint.h>

#include "gatling/slice.h"

enum {
	ACCESS_REQUEST_MAX = 9 * 1024,                 /* bytes of a request line that are logged */
	ACCESS_LINE_MAX = 4 * ACCESS_REQUEST_MAX + 256 /* bytes: every one of those may take four */
};

/* A client's address, small enough for every connection. IPv4 is kept as IPv4-mapped IPv6; all zero: a unix socket. */
struct peer {
	struct in6_addr address;
};

struct peer peer_of(const struct sockaddr *address);

/* Writes the address as text, "unix:" for none, to out (PEER_MAX bytes). The bytes written. */
enum { PEER_MAX = 64 };
size_t peer_format(char *out, const struct peer *peer);

/* Writes `host - - [date] "request line" status bytes` to out (ACCESS_LINE_MAX bytes), quotes, backslashes and all
 * that is not printable ASCII as \xHH so that nobody can forge a line. Of a request line of any length the first
 * ACCESS_REQUEST_MAX bytes. The bytes written. */
size_t access_format(char *out, const struct peer *peer, const char *date, struct slice request_line, int status,
					 uint64_t bytes);

#endif
