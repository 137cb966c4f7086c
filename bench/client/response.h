/* response.h - parses an HTTP/1.1 response as it comes, and keeps no bytes of it. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RESPONSE_HEAD_MAX = 64 * 1024 }; /* bytes of a head; a longer one is malformed */

/* The status and the content that a response should have. status 0: 2xx or 304; at NULL: any content. */
struct response_expected {
	unsigned status;
	const char *at;
	size_t length;
};

/* The state of the parser. All zero before the head. */
struct response {
	uint64_t left;   /* bytes of the content, or of the chunk, that are still to come; not known with until_close */
	uint64_t seen;   /* bytes of content that have come */
	uint16_t status; /* 0 before the head is complete */
	uint8_t state;
	bool has_size; /* a digit of the chunk's size has come */
	bool until_close;
	bool close;   /* the server will end the connection */
	bool differs; /* the content, so far, is not that which was expected */
};

/* Parses the head at the start of data. Returns its length, 0 if it is incomplete, or -1 if it is not HTTP. An interim
 * response (1xx) counts as a head of its own, and leaves status 0. bodiless: the response to a HEAD. */
int response_head(struct response *r, const char *data, size_t length, bool bodiless);

/* Parses content. Returns how many bytes it used, or -1 if the chunks are malformed. */
int response_content(struct response *r, const char *data, size_t length, const struct response_expected *expected);

/* Compares the next part of the content with the expected one. */
void response_compare(struct response *r, const char *data, size_t length, const struct response_expected *expected);

/* Returns whether the response is complete. */
bool response_complete(const struct response *r);

/* Returns whether the end of the connection completes the response. */
static inline bool response_ends_by_close(const struct response *r) { return r->status && r->until_close; }

#endif
