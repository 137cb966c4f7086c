/* proxy_header.h - the PROXY protocol, versions 1 and 2 (haproxy.org/download/2.9/doc/proxy-protocol.txt): a header
 * that a balancer sends before the first byte of its client, with the client's address. */
#ifndef GATLING_CLIENT_PROXY_HEADER_H
#define GATLING_CLIENT_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/peer.h"

enum {
	PROXY_LINE_MAX = 107,   /* bytes of a header of version 1 */
	PROXY_HEADER_MAX = 2048 /* and of one of version 2 with its list of values; longer ones are refused */
};

struct proxy_header {
	bool own;           /* the connection is the balancer's own, such as a health check */
	struct peer client; /* valid unless own */
	bool tls;           /* the client uses TLS to the balancer */
};

/* Parses the header at the start of data. Returns its length in bytes, 0 if it is not complete, or -1 if it is
 * malformed. */
int proxy_header_parse(struct proxy_header *header, const char *data, size_t length);

/* Returns how many bytes a header that is not complete lacks at least. */
size_t proxy_header_lacks(const char *data, size_t length);

#endif
