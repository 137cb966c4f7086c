/* content.c - see content.h. */
#include "gatling/site/content.h"

int content_open(struct content *c, io_loop *loop, int root, const struct content_options *o, unsigned workers,
				 unsigned kept, unsigned open) {
	*c = (struct content){.options = o, .docroot = {.root = root, .symlinks_inside = o->symlinks_inside}};
	if (!(c->compressing = jobs_new(loop)) || !(c->reading = jobs_new(loop))) return -1;
	if (!(c->checking = jobs_new(loop)) || !(c->hashing = jobs_new(loop))) return -1;
	if (!(c->hashing_large = jobs_new(loop))) return -1;
	if (!(c->auth = basic_auth_new(&c->docroot, c->checking))) return -1;
	if (!(c->listings = listing_cache_new(&c->docroot, c->reading, &c->now_ms))) return -1;
	if (!(c->sites = sites_new(&c->docroot, c->auth, o->vhosts))) return -1;
	struct cache_options options = {.docroot = &c->docroot,
									.auth = c->auth,
									.compressing = c->compressing,
									.unpacking = c->reading,
									.hashing = c->hashing,
									.hashing_large = c->hashing_large,
									.descriptors = kept,
									.open = open,
									.gzip_bytes = o->gzip_cache / workers,
									.cache_control = o->cache_control};
	return (c->cache = cache_new(&options)) ? 0 : -1;
}

void content_close(struct content *c) {
	jobs_free(c->compressing);
	jobs_free(c->reading);
	jobs_free(c->checking);
	jobs_free(c->hashing);
	jobs_free(c->hashing_large);
	listing_cache_free(c->listings);
	sites_free(c->sites);
	cache_free(c->cache);
	basic_auth_free(c->auth);
}
