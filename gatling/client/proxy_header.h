/* proxy_header.h - what a balancer says of a client before the client's first byte: the PROXY protocol, versions 1 and
 * 2 (haproxy.org/download/2.9/doc/proxy-protocol.txt). */
#ifndef GATLING_CLIENT_PROXY_HEADER_H
#define GATLING_CLIENT_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/peer.h"

enum {
	PROXY_LINE_MAX = 107,   /* bytes of a header of version 1 */
	PROXY_HEADER_MAX = 2048 /* and of version 2, with all that it may say besides; longer ones are refused */
};

struct proxy_header {
	bool own;           /* the connection is the balancer's own, such as a health check */
	struct peer client; /* unless own */
	bool tls;           /* the client has spoken TLS with the balancer */
};

/* Parses the header at the start of data. Returns its bytes, 0 if it is not complete, or -1 if it is none. */
int proxy_header_parse(struct proxy_header *header, const char *data, size_t length);

/* Returns how many bytes are missing at least from a header that is not complete. */
size_t proxy_header_lacks(const char *data, size_t length);

#endif
