/* answer_cache.h - remembers which resource a Host and a path have led to, so that the same request needs no decision
 * again while that is valid. Answers that depend on anything else, such as passwords or rules that come before files,
 * are not kept (see remember() in answer_file.c), and requests that are redirected to HTTPS are not looked up. */
#ifndef GATLING_SITE_CACHE_ANSWER_CACHE_H
#define GATLING_SITE_CACHE_ANSWER_CACHE_H

#include "gatling/site/cache/cache.h"

enum {
	CACHED_ANSWERS = 512,      /* of a worker; a new one replaces the one in its place */
	CACHED_ANSWER_OCTETS = 200 /* bytes of Host and path together; longer ones are not kept */
};

struct answer_cache {
	struct cached_answer {
		struct resource *resource; /* set to NULL when the cache forgets it */
		struct slice site;         /* as in struct response */
		int64_t until_ms;          /* when it ceases to be valid */
		uint16_t port, host_length, path_length;
		char octets[CACHED_ANSWER_OCTETS];
	} answer[CACHED_ANSWERS];
};

/* Returns the answer kept for this host (absent: none), port and path, as the client sent them, or NULL. */
const struct cached_answer *answer_cache_find(struct answer_cache *cache, struct slice host, unsigned port,
											  struct slice path, int64_t now_ms);

/* Keeps a resource of a site for a host, port and path. A resource is kept for one of these at a time. */
void answer_cache_keep(struct answer_cache *cache, struct slice host, unsigned port, struct slice path,
					   struct slice site, struct resource *resource, int64_t until_ms);

#endif
