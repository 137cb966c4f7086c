/* heads.h - heads of requests that came lately, with what request_parse() has made of them: many clients ask for a busy
 * page in the same words, and one client asks again. Such a head is compared, not parsed. */
#ifndef GATLING_EXCHANGE_HEADS_H
#define GATLING_EXCHANGE_HEADS_H

#include "gatling/base/hash.h"
#include "gatling/http/request.h"

enum {
	HEADS = 64,         /* that a worker remembers */
	HEADS_OCTETS = 768, /* bytes of a head; longer ones are not remembered */
	HEADS_HASHED = 64,  /* bytes of its start that tell its place */
	HEADS_SKIPS = 63    /* heads that are not kept at a place, at most, before one is tried there */
};

/* All zero at first. */
struct heads {
	uint64_t hash; /* of what heads_find() has looked for last, for heads_keep() */
	struct known_head {
		uint64_t hash;
		uint64_t lacked; /* the hash of the last one that was looked for here and not found */
		bool found;      /* it was found since it was kept, */
		uint8_t hits;    /* and so often, less what others have asked for here */
		uint8_t skips, skipped;
		size_t length; /* 0: none is known */
		char octets[HEADS_OCTETS];
		struct request request; /* refers to these */
	} head[HEADS];
};

/* Returns the request whose head the input begins with, and that in *length. It stays as it is until the next
 * heads_keep(). NULL: it is not known. */
static inline const struct request *heads_find(struct heads *h, struct slice input, size_t *length) {
	/* the length tells apart what differs only behind the start, unless other requests follow */
	h->hash = hash_octets(input.length, slice_first(input, input.length < HEADS_HASHED ? input.length : HEADS_HASHED));
	struct known_head *k = &h->head[h->hash % HEADS];
	if (k->hash != h->hash || !k->length || input.length < k->length || memcmp(input.at, k->octets, k->length) != 0)
		return NULL;
	k->found = true;
	k->hits += k->hits < UINT8_MAX;
	*length = k->length;
	return &k->request;
}

/* Remembers a request of that head, which heads_find() has just looked for in vain, if its place has lacked the same
 * the last time: so what is asked for once pushes nothing out. To keep a head costs half of what it takes to parse it.
 * Therefore one that is found often stays, and where the last one was of no use, ever fewer are tried. Heads with
 * content, Authorization or Cookie are not remembered. */
void heads_keep(struct heads *heads, const struct request *request, struct slice head);

#endif
