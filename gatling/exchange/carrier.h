/* carrier.h - what carries requests and responses: HTTP/1.1 or HTTP/2. An exchange calls these functions for a request
 * that is passed on, to give the client its response piece by piece. */
#ifndef GATLING_EXCHANGE_CARRIER_H
#define GATLING_EXCHANGE_CARRIER_H

#include "gatling/status/counters.h"
#include "gatling/upstream/upstream_head.h"

struct carrier {
	enum value protocol; /* as which the answers are counted: COUNT_HTTP1 to COUNT_HTTP3 */
	bool checks_length;  /* only the end of a request's content shows whether its Content-Length is right */
	size_t enough;       /* bytes that are given to it at a time, unless a head or a piece has more */

	/* Each gets `carried` of the exchange. The slices are valid during the call. */

	/* Returns how many bytes of content the client takes now. NULL: it has one request at a time. */
	size_t (*room)(const void *carried);

	/* Adds a head: of the response, of an interim one (1xx, not to HTTP/1.0), or 101, after which the exchange is a
	 * tunnel. Returns the status that the client gets, or 0 without memory, or if the client cannot use the response.
	 */
	int (*head)(void *carried, const struct upstream_response *head, struct slice lines);

	/* Adds a piece of content. If it is not copied but kept, sets *kept: then the piece stays valid until
	 * exchange_taken(), and no other comes before. Returns false without memory. */
	bool (*content)(void *carried, struct slice piece, bool *kept);

	/* Adds the end of the content, with trailer fields in the form of hpack_fields(), or none. Sets *added if there is
	 * anything to send. Returns false without memory. */
	bool (*end)(void *carried, struct slice trailers, bool *added);
};

#endif
