/* site_context.c - see site_context.h. */
#include "gatling/site/site_context.h"

#include <stdlib.h>

#include "gatling/site/answer_room.h"

int site_context_open(struct site_context *c, io_loop *loop, int root, const struct site_options *o, unsigned workers,
					  unsigned kept, unsigned open) {
	*c = (struct site_context){.options = o, .docroot = {.root = root, .symlinks_inside = o->symlinks_inside}};
	for (int i = 0; i < SITE_THREADS; i++)
		if (!(c->jobs[i] = jobs_new(loop))) return -1;
	if (!(c->room = malloc(sizeof *c->room))) return -1;
	if (!(c->names = names_new(&c->docroot, &c->now_ns, workers))) return -1;
	if (!(c->prefetcher = prefetcher_new(&c->docroot, &c->jobs[PREFETCHING]))) return -1;
	if (!(c->auth = basic_auth_new(&c->docroot, c->names, c->jobs[CHECKING_PASSWORDS]))) return -1;
	if (!(c->listings = listing_cache_new(&c->docroot, c->jobs[LISTING], &c->now_ms, workers))) return -1;
	c->sites = sites_new(&c->docroot, c->names, c->auth, c->prefetcher, o->vhosts, &o->upstreams, o->starter);
	if (!c->sites) return -1;
	if (!(c->answers = calloc(1, sizeof *c->answers))) return -1;
	struct cache_options options = {.docroot = &c->docroot,
									.names = c->names,
									.auth = c->auth,
									.compressing = c->jobs[COMPRESSING],
									.unpacking = c->jobs[LISTING],
									.hashing = c->jobs[HASHING],
									.hashing_large = c->jobs[HASHING_LARGE],
									.bytes = o->cache / workers,
									.descriptors = kept,
									.open = open,
									.gzip_bytes = o->gzip_cache / workers,
									.cache_control = o->cache_control};
	return (c->cache = cache_new(&options)) ? 0 : -1;
}

void site_context_close(struct site_context *c) {
	for (int i = 0; i < SITE_THREADS; i++) jobs_free(c->jobs[i]);
	prefetcher_free(c->prefetcher);
	listing_cache_free(c->listings);
	sites_free(c->sites);
	cache_free(c->cache);
	free(c->answers); /* after cache_free(), which writes to it */
	basic_auth_free(c->auth);
	names_free(c->names);
	free(c->room);
}
