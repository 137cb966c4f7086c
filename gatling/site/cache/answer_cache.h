/* answer_cache.h - remembers which resource a Host and a path have led to, so that the same request needs no decision
 * again while that is valid. Answers that depend on anything else, such as passwords or rules that come before files,
 * are not kept (see remember() in answer_file.c), and requests that are redirected to HTTPS are not looked up. */
#ifndef GATLING_SITE_CACHE_ANSWER_CACHE_H
#define GATLING_SITE_CACHE_ANSWER_CACHE_H

#include "gatling/base/hash.h"
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

static inline struct cached_answer *answer_cache_place(struct answer_cache *cache, struct slice host, unsigned port,
													   struct slice path) {
	return &cache->answer[hash_octets(hash_octets(port, host), path) % CACHED_ANSWERS];
}

/* Returns the answer kept for this host (absent: none), port and path, as the client sent them, or NULL. */
static inline const struct cached_answer *answer_cache_find(struct answer_cache *cache, struct slice host,
															unsigned port, struct slice path, int64_t now_ms) {
	const struct cached_answer *a = answer_cache_place(cache, host, port, path);
	if (!a->resource || now_ms >= a->until_ms || a->port != port) return NULL;
	struct slice of_host = {.at = a->octets, .length = a->host_length};
	struct slice of_path = {.at = a->octets + a->host_length, .length = a->path_length};
	return slice_equal(path, of_path) && slice_equal(host, of_host) ? a : NULL;
}

/* Keeps a resource of a site for a host, port and path. A resource is kept for one of these at a time. */
static inline void answer_cache_keep(struct answer_cache *cache, struct slice host, unsigned port, struct slice path,
									 struct slice site, struct resource *resource, int64_t until_ms) {
	struct cached_answer *a = answer_cache_place(cache, host, port, path);
	if (host.length + path.length > CACHED_ANSWER_OCTETS) return;
	if (a->resource) a->resource->kept_at = NULL;
	if (resource->kept_at) *resource->kept_at = NULL;
	resource->kept_at = &a->resource;
	*a = (struct cached_answer){.resource = resource,
								.site = site,
								.until_ms = until_ms,
								.port = (uint16_t)port,
								.host_length = (uint16_t)host.length,
								.path_length = (uint16_t)path.length};
	if (host.length) memcpy(a->octets, host.at, host.length);
	memcpy(a->octets + host.length, path.at, path.length);
}

#endif
