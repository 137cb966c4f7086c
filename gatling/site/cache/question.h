/* question.h - remembers which resource a Host and a path have led to, so that the same request needs no decision again
 * while that is valid. Answers that depend on anything else, such as passwords or rules that come before files, are not
 * kept (see remember() in answer_file.c), and requests that are redirected to HTTPS are not looked up. */
#ifndef GATLING_SITE_CACHE_QUESTION_H
#define GATLING_SITE_CACHE_QUESTION_H

#include "gatling/base/hash.h"
#include "gatling/site/cache/cache.h"

enum {
	QUESTIONS = 512,      /* of a worker; a new one replaces the one in its place */
	QUESTION_OCTETS = 200 /* bytes of Host and path together; longer ones are not kept */
};

struct question {
	struct resource *resource; /* set to NULL when the cache forgets it */
	int64_t until_ms;          /* when it ceases to be valid */
	uint16_t port, host_length, path_length;
	char octets[QUESTION_OCTETS];
};

static inline struct question *question_place(struct question *table, struct slice host, unsigned port,
											  struct slice path) {
	return &table[hash_octets(hash_octets(port, host), path) % QUESTIONS];
}

/* Returns the resource kept for this host (absent: none), port and path, as the client sent them, or NULL. */
static inline struct resource *question_find(struct question *table, struct slice host, unsigned port,
											 struct slice path, int64_t now_ms) {
	const struct question *q = question_place(table, host, port, path);
	if (!q->resource || now_ms >= q->until_ms || q->port != port) return NULL;
	struct slice of_host = {.at = q->octets, .length = q->host_length};
	struct slice of_path = {.at = q->octets + q->host_length, .length = q->path_length};
	return slice_equal(path, of_path) && slice_equal(host, of_host) ? q->resource : NULL;
}

/* Keeps a resource for a host, port and path. A resource is kept for one of these at a time. */
static inline void question_keep(struct question *table, struct slice host, unsigned port, struct slice path,
								 struct resource *resource, int64_t until_ms) {
	struct question *q = question_place(table, host, port, path);
	if (host.length + path.length > QUESTION_OCTETS) return;
	if (q->resource) q->resource->asked_at = NULL;
	if (resource->asked_at) *resource->asked_at = NULL;
	resource->asked_at = &q->resource;
	*q = (struct question){.resource = resource,
						   .until_ms = until_ms,
						   .port = (uint16_t)port,
						   .host_length = (uint16_t)host.length,
						   .path_length = (uint16_t)path.length};
	if (host.length) memcpy(q->octets, host.at, host.length);
	memcpy(q->octets + host.length, path.at, path.length);
}

#endif
