/* answer_cache.h - remembers what a Host and a path have led to: a file, or the upstream of a rule. The same request
 * needs no decision again while that is valid. Answers that depend on anything else, such as passwords, limits, or
 * conditions of rules, are not kept (see remember() in answer_file.c and answer_rule.c), and only GET and HEAD that are
 * not redirected to HTTPS are looked up. */
#ifndef GATLING_SITE_CACHE_ANSWER_CACHE_H
#define GATLING_SITE_CACHE_ANSWER_CACHE_H

#include "gatling/site/cache/cache.h"

enum {
	CACHED_ANSWERS = 512,      /* of a worker; a new one replaces the one in its place */
	CACHED_ANSWER_OCTETS = 200 /* bytes of Host, path and target together; longer ones are not kept */
};

struct known_answer {
	struct slice site;                      /* as in struct response */
	int64_t until_ms;                       /* when it ceases to be valid */
	struct resource *resource;              /* of the file; set to NULL when the cache forgets it. NULL: */
	const struct upstream_target *upstream; /* where the request is passed on, with */
	struct slice target;                    /* its target, which gets the query of the request */
	bool has_query;                         /* unless the target has its own */
};

struct answer_cache {
	struct cached_answer {
		struct known_answer known; /* with a reference to the upstream */
		uint16_t port, host_length, path_length;
		char octets[CACHED_ANSWER_OCTETS];
	} answer[CACHED_ANSWERS];
};

/* Returns the answer kept for this host (absent: none), port and path, as the client sent them, or NULL. It is valid
 * until the next answer_cache_keep(). */
const struct known_answer *answer_cache_find(const struct answer_cache *cache, struct slice host, unsigned port,
											 struct slice path, int64_t now_ms);

/* Keeps an answer for a host, port and path. A resource is kept for one of these at a time. */
void answer_cache_keep(struct answer_cache *cache, struct slice host, unsigned port, struct slice path,
					   const struct known_answer *known);

/* Frees the cache, after cache_free(), which writes to it; NULL is allowed. */
void answer_cache_free(struct answer_cache *cache);

#endif
