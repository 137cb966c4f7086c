/* answer.h - decides what answers a request. Knows nothing of how requests and responses travel. */
#ifndef GATLING_ANSWER_H
#define GATLING_ANSWER_H

#include "gatling/content.h"
#include "gatling/range.h"
#include "io/iob.h"

enum { LOCATION_MAX = 4 * TARGET_MAX, BOUNDARY_LENGTH = 24 };

/* Content that is made while it is sent. */
struct source {
	iob_fill *fill;
	iob_release *release;
	void *owner; /* goes to whoever takes the response; NULL: there is none */
	uint64_t length;
	size_t memory;    /* bytes that the owner takes */
	const char *type; /* the value of Content-Type */
	enum coding coding;
};

struct response {
	int status; /* 0: the answer is not known yet */
	/* Status 0: what has to be waited for. Then the request is to be answered anew. */
	struct job *job;
	/* 200, 206, 304, 416 and the pages of the site for errors: the representation, with one reference that goes to
	 * whoever takes the response; else NULL */
	struct file *file;
	/* 206: the parts of it, in order */
	int ranges;
	struct range range[RANGES_MAX];
	char boundary[BOUNDARY_LENGTH]; /* between several of them, see message_fields() */
	struct source source;
	struct slice page; /* HTML that is always there; absent: the status itself, if there is nothing else */
	/* These are in the answerer's buffers until the next answer. */
	struct slice location; /* 3xx: where to */
	struct slice lines;    /* further fields, each a line with its CRLF */
	struct slice user;     /* who has given a password, absent: nobody */
};

/* How a request came. */
struct arrival {
	const struct peer *peer;
	struct slice host; /* the local address as an authority, for requests without Host; absent for none */
	unsigned port;
	bool secure;  /* over TLS */
	bool patient; /* it can wait; else what takes long is answered with something else, or 503 */
};

/* Decides the answer to a request that request_parse() has accepted. OPTIONS and the methods that are
 * refused are answered here, too. */
void answer(const struct content *content, const struct request *request, const struct arrival *arrival,
			struct response *response);

/* An answer that is nothing but a status. */
void answer_status(struct response *response, int status);

/* The methods that are allowed, for 204 and 405. */
extern const struct slice answer_allow;

#endif
