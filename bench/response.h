/* response.h - parses an HTTP/1.1 response as it comes in, without keeping its bytes. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RESPONSE_HEAD_MAX = 64 * 1024 }; /* bytes of a head; a longer one is not HTTP */

/* The status and the content that an answer should have; 0: 2xx or 304; at NULL: any content. */
struct response_expected {
	unsigned status;
	const char *at;
	size_t length;
};

/* All zero: before the head. */
struct response {
	uint64_t left;   /* bytes to come of the content, or of the chunk; with until_close they are not known */
	uint64_t seen;   /* bytes of the content */
	uint16_t status; /* 0 before the head is there */
	uint8_t state;
	bool has_size; /* a digit of the chunk's size has come */
	bool until_close;
	bool close;   /* the server will end the connection */
	bool differs; /* from what was expected, so far */
};

/* Parses the head at the start of data. Returns its length, 0 if it is not complete, or -1 if it is not HTTP. An
 * interim response (1xx) is a head of its own, after which status is still 0. bodiless: it answers a HEAD. */
int response_head(struct response *r, const char *data, size_t length, bool bodiless);

/* Consumes content. Returns how many bytes, or -1 if the chunks are malformed. */
int response_content(struct response *r, const char *data, size_t length, const struct response_expected *expected);

/* Compares the next content with what is expected. */
void response_compare(struct response *r, const char *data, size_t length, const struct response_expected *expected);

/* Whether it is complete. */
bool response_complete(const struct response *r);

/* Whether the end of the connection completes it. */
static inline bool response_ends_by_close(const struct response *r) { return r->status && r->until_close; }

#endif
