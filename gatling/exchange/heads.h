/* heads.h - remembers heads of recent requests with the result of request_parse(). Many clients send the same head for
 * a busy page, and one client sends it again. Such a head is compared instead of parsed. */
#ifndef GATLING_EXCHANGE_HEADS_H
#define GATLING_EXCHANGE_HEADS_H

#include "gatling/base/hash.h"
#include "gatling/http/request.h"

enum {
	HEADS = 64,         /* heads that a worker remembers */
	HEADS_OCTETS = 768, /* bytes of a head; longer ones are not remembered */
	HEADS_HASHED = 64,  /* bytes of its start, which select its place */
	HEADS_SKIPS = 63    /* at most so many heads are not kept at a place before one is tried there */
};

/* All zero at first. */
struct heads {
	uint64_t hash; /* of what heads_find() last looked for, for heads_keep() */
	struct known_head {
		uint64_t hash;
		uint64_t lacked; /* hash of the last head that was not found here */
		bool found;      /* the head has been found since it was kept, */
		uint8_t hits;    /* and how often; halved for each other one that might take its place */
		/* How many heads are not kept before the next one is, and how many of them there were. */
		uint8_t skips, skipped;
		size_t length; /* 0: the place is empty */
		char octets[HEADS_OCTETS];
		struct request request; /* refers to octets */
	} head[HEADS];
};

/* Returns the request whose head the input begins with, and sets *length to the length of that head; NULL: none is
 * remembered. The request stays as it is until the next heads_keep(). */
static inline const struct request *heads_find(struct heads *h, struct slice input, size_t *length) {
	/* with the length, heads that differ only behind the start have different places, unless other requests follow */
	h->hash = hash_octets(input.length, slice_first(input, input.length < HEADS_HASHED ? input.length : HEADS_HASHED));
	struct known_head *k = &h->head[h->hash % HEADS];
	if (k->hash != h->hash || !k->length || input.length < k->length || memcmp(input.at, k->octets, k->length) != 0)
		return NULL;
	k->found = true;
	k->hits += k->hits < UINT8_MAX;
	*length = k->length;
	return &k->request;
}

/* Remembers a request and its head, which heads_find() has just not found, if the last head that was not found at its
 * place was the same. So a head that comes only once replaces none. To keep a head takes half as long as to parse it.
 * Therefore a head that is found often stays, and if the last one was of no use, fewer and fewer are tried. Heads with
 * content, Authorization or Cookie are not remembered. */
void heads_keep(struct heads *heads, const struct request *request, struct slice head);

#endif
