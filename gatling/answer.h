/* answer.h - decides what answers a request. Knows nothing of how requests and responses travel. */
#ifndef GATLING_ANSWER_H
#define GATLING_ANSWER_H

#include "gatling/cache.h"
#include "gatling/range.h"
#include "gatling/site.h"

enum { LOCATION_MAX = 4 * TARGET_MAX, BOUNDARY_LENGTH = 24 };

/* What a worker answers from. */
struct content {
	struct cache *cache;
	struct sites *sites;
	bool listings;
	unsigned https_port; /* to which clients of the plain ports are sent; 0: they are not */
	int64_t now_ms;      /* of the monotonic clock; the worker keeps it up to date */
};

struct response {
	int status;
	/* 200, 206, 304, 416: the representation, with one reference that goes to whoever takes the response; else NULL */
	struct file *file;
	/* 206: the parts of it, in order */
	int ranges;
	struct range range[RANGES_MAX];
	char boundary[BOUNDARY_LENGTH]; /* between several of them, see message_fields() */
	/* a page made for this response, malloc'd, that goes to whoever takes the response; else NULL */
	char *page;
	size_t page_length;
	/* 301: where to; in the answerer's buffer until the next answer */
	struct slice location;
	/* who has asked, for the log; absent: nobody has said so. Good as long as the request is */
	struct slice user;
};

/* The path under which a place is known that a connection came in on, for requests without Host. */
struct endpoint {
	struct slice host; /* the local address as an authority, absent for none */
	unsigned port;
	bool secure; /* over TLS */
};

/* Decides the answer to a request that request_parse() has accepted. OPTIONS and the methods that are
 * refused are answered here, too. */
void answer(const struct content *content, const struct request *request, const struct endpoint *local,
			struct response *response);

/* An answer that is nothing but a status. */
void answer_status(struct response *response, int status);

/* The methods that are allowed, for 204 and 405. */
extern const struct slice answer_allow;

#endif
