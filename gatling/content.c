/* content.c - see content.h. */
#include "gatling/content.h"

int content_open(struct content *c, io_loop *loop, int root, const struct options *o, unsigned kept, unsigned open) {
	*c = (struct content){.options = o, .tree = {.root = root, .symlinks_inside = o->symlinks_inside}};
	if (!(c->compressing = jobs_new(loop)) || !(c->reading = jobs_new(loop))) return -1;
	if (!(c->checking = jobs_new(loop)) || !(c->hashing = jobs_new(loop))) return -1;
	if (!(c->hashing_large = jobs_new(loop))) return -1;
	if (!(c->guards = guards_new(&c->tree, c->checking))) return -1;
	if (!(c->listings = listings_new(&c->tree, c->reading, &c->now_ms))) return -1;
	if (!(c->sites = sites_new(&c->tree, c->guards, o->vhosts))) return -1;
	struct cache_options options = {.tree = &c->tree,
									.guards = c->guards,
									.compressing = c->compressing,
									.unpacking = c->reading,
									.hashing = c->hashing,
									.hashing_large = c->hashing_large,
									.descriptors = kept,
									.open = open,
									.gzip_bytes = o->gzip_cache / (unsigned)o->workers,
									.cache_control = o->cache_control};
	return (c->cache = cache_new(&options)) ? 0 : -1;
}

void content_close(struct content *c) {
	jobs_free(c->compressing);
	jobs_free(c->reading);
	jobs_free(c->checking);
	jobs_free(c->hashing);
	jobs_free(c->hashing_large);
	listings_free(c->listings);
	sites_free(c->sites);
	cache_free(c->cache);
	guards_free(c->guards);
}
