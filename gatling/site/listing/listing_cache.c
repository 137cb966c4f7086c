/* listing_cache.c - see listing_cache.h. */
#include "gatling/site/listing/listing_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/slice.h"

/* A listing that was made, or is being made. It may leave the table only when it was made. */
struct cached_listing {
	struct job job;
	struct listing_cache *listings;
	bool made;
	int64_t made_ms;
	int error;
	struct listing *listing;
	struct listing_request request;
	char path[]; /* the path of the request, and behind it the title */
};

struct listing_cache {
	const struct tree *tree;
	struct jobs *jobs;
	size_t bytes; /* memory of all listings, including those being sent */
	size_t most;  /* limit of bytes, beyond which new ones are cut */
	const int64_t *now_ms;
	struct cached_listing *cached[LISTING_CACHE_KEPT];
};

struct listing_cache *listing_cache_new(const struct tree *tree, struct jobs *jobs, const int64_t *now_ms,
										unsigned workers) {
	struct listing_cache *ls = malloc(sizeof *ls);
	size_t most = LISTING_CACHE_BYTES_MAX / workers;
	if (most < LISTING_CACHE_BYTES_OWN) most = LISTING_CACHE_BYTES_OWN;
	if (ls) *ls = (struct listing_cache){.tree = tree, .jobs = jobs, .most = most, .now_ms = now_ms};
	return ls;
}

/* Empties a place of the table. */
static void forget(struct cached_listing **place) {
	struct cached_listing *c = *place;
	*place = NULL;
	if (c && c->listing) listing_release(c->listing);
	free(c);
}

void listing_cache_free(struct listing_cache *ls) {
	if (!ls) return;
	for (int i = 0; i < LISTING_CACHE_KEPT; i++) forget(&ls->cached[i]);
	free(ls);
}

/* --- making --- */

static void make(struct job *job, const atomic_bool *stop) {
	struct cached_listing *c = (struct cached_listing *)job;
	c->error = listing_make(&c->listings->tree->docroot, &c->request, stop, &c->listing);
}

static void made(struct job *job) {
	struct cached_listing *c = (struct cached_listing *)job, **place = c->listings->cached;
	c->made = true;
	c->made_ms = *c->listings->now_ms;
	if (c->listing) listing_account(c->listing, &c->listings->bytes);
	if (job->ran) return;
	while (*place != c) place++;
	forget(place); /* the next request starts another job */
}

/* Starts a job that makes a listing. Returns NULL without memory or a thread. */
static struct cached_listing *start(struct listing_cache *ls, const struct listing_request *request) {
	size_t length = strlen(request->path) + 1;
	struct cached_listing *c = malloc(sizeof *c + length + request->title.length);
	if (!c) return NULL;
	*c = (struct cached_listing){.job = {.run = make, .finish = made}, .listings = ls, .request = *request};
	c->request.path = memcpy(c->path, request->path, length);
	c->request.title.at = c->path + length;
	(void)text_copy(c->path + length, request->title);
	c->request.bytes = ls->bytes > ls->most ? LISTING_CACHE_BYTES_LEAST : LISTING_BYTES_MAX;
	const struct slice place = slice_of(c->path);
	/* in any directory something may be mounted */
	struct jobs *jobs = ls->tree->remote ? remote_jobs(ls->tree->remote, place) : ls->jobs;
	if (jobs && jobs_add(jobs, &c->job)) return c;
	free(c);
	return NULL;
}

/* --- finding --- */

static bool same(const struct listing_request *a, const struct listing_request *b) {
	return a->format == b->format && a->coding == b->coding && a->of_site == b->of_site &&
		   strcmp(a->path, b->path) == 0 && slice_equal(a->title, b->title);
}

/* Returns the place of the listing for a request, or an empty place for it, or NULL if all are being made. */
static struct cached_listing **find_listing(struct listing_cache *ls, const struct listing_request *request) {
	struct cached_listing **oldest = NULL;
	for (int i = 0; i < LISTING_CACHE_KEPT; i++) {
		struct cached_listing **c = &ls->cached[i];
		if (*c && (*c)->made &&
			(*ls->now_ms - (*c)->made_ms >= LISTING_CACHE_KEPT_MS || docroot_error_is_temporary((*c)->error)))
			forget(c);
		if (*c && same(&(*c)->request, request)) return c;
		bool older = !*c || ((*c)->made && (!oldest || (*oldest && (*c)->made_ms < (*oldest)->made_ms)));
		if (older) oldest = c;
	}
	if (oldest) forget(oldest);
	return oldest;
}

int listing_cache_find(struct listing_cache *ls, const struct listing_request *request, bool may_wait,
					   struct listing_result *found) {
	struct cached_listing **place = find_listing(ls, request), *c = place ? *place : NULL;
	*found = (struct listing_result){0};
	if (c && c->made) {
		if (c->error) return c->error;
		found->length = listing_length(c->listing);
		found->coding = listing_coding(c->listing);
		return (found->reader = listing_read(c->listing)) ? 0 : ENOMEM;
	}
	if (!place || !may_wait || (!c && ls->bytes > 2 * ls->most)) return EBUSY;
	if (!c && !(c = *place = start(ls, request))) return ENOMEM;
	found->job = &c->job;
	return 0;
}
