/* site_context.c - see site_context.h. */
#include "gatling/site/site_context.h"

#include <stdlib.h>

#include "gatling/codec/zstd.h"
#include "gatling/site/answer_room.h"

enum { NICE_LAST = 19 /* of setpriority(2) */, DICTIONARIES_PART = 4 /* of what is compressed */ };

int site_context_open(struct site_context *c, io_loop *loop, int root, struct mounts *mounts,
					  const struct site_options *o, unsigned workers, unsigned kept, unsigned open) {
	*c = (struct site_context){.options = o, .tree.docroot = {.root = root, .symlinks_inside = o->symlinks_inside}};
	c->now_ns = io_now_ns(loop);
	c->now_ms = c->now_ns / 1000000;
	for (int i = 0; i < SITE_THREADS; i++)
		if (!(c->jobs[i] = jobs_new(loop, i == IMPROVING ? NICE_LAST : 0, i == PREFETCHING ? PREFETCH_THREADS : 1)))
			return -1;
	if (!(c->remote = remote_new(loop, &c->tree.docroot, mounts, &c->now_ms))) return -1;
	site_context_look(c);
	if (!(c->room = malloc(sizeof *c->room))) return -1;
	if (!(c->names = names_new(&c->tree, &c->now_ns, workers))) return -1;
	if (!(c->prefetcher = prefetcher_new(&c->tree, c->jobs[PREFETCHING]))) return -1;
	if (!(c->auth = basic_auth_new(&c->tree, c->names, c->jobs[CHECKING_PASSWORDS]))) return -1;
	if (!(c->listings = listing_cache_new(&c->tree, c->jobs[LISTING], &c->now_ms, workers))) return -1;
	c->sites = sites_new(&c->tree, c->names, c->auth, o->vhosts, &o->upstreams, o->starter);
	if (!c->sites) return -1;
	if (!(c->answers = calloc(1, sizeof *c->answers))) return -1;
	struct cache_options options = {.tree = &c->tree,
									.names = c->names,
									.auth = c->auth,
									.compressing = c->jobs[COMPRESSING],
									.improving = c->jobs[IMPROVING],
									.subtracting = c->jobs[SUBTRACTING],
									.unpacking = c->jobs[LISTING],
									.hashing = c->jobs[HASHING],
									.hashing_large = c->jobs[HASHING_LARGE],
									.bytes = o->cache / workers,
									.descriptors = kept,
									.open = open,
									.gzip_bytes = o->gzip_cache / workers,
									.older = o->older,
									.dictionary_bytes = zstd_is_built ? o->gzip_cache / DICTIONARIES_PART : 0,
									.cache_control = o->cache_control};
	return (c->cache = cache_new(&options)) ? 0 : -1;
}

bool site_context_close(struct site_context *c) {
	bool all = true;
	for (int i = 0; i < SITE_THREADS; i++) all &= !c->jobs[i] || jobs_stop(c->jobs[i], SITE_STOP_MS);
	if (c->remote) all &= remote_stop(c->remote);
	if (!all) return false;
	prefetcher_free(c->prefetcher);
	listing_cache_free(c->listings);
	sites_free(c->sites);
	cache_free(c->cache);
	answer_cache_free(c->answers);
	basic_auth_free(c->auth);
	names_free(c->names);
	remote_free(c->remote);
	free(c->room);
	return true;
}

int site_context_due(const struct site_context *c, int64_t now_ms) {
	const int cache = cache_due(c->cache, now_ms), remote = remote_due(c->remote, now_ms);
	return cache == -1 || (remote != -1 && remote < cache) ? remote : cache;
}

void site_context_tidy(struct site_context *c, int64_t now_ms) {
	if (remote_due(c->remote, now_ms) == 0) remote_tick(c->remote);
	if (cache_due(c->cache, now_ms) != 0) return;
	const unsigned changes = sites_changes(c->sites);
	cache_tidy(c->cache, now_ms, changes != c->changes);
	c->changes = changes;
}
