/* answer_error.c - see decision.h: answers with errors. */
#include <errno.h>

#include "gatling/base/slice.h"
#include "gatling/site/answer/decision.h"

/* Returns how caches may store the response. Some errors depend on fields of the request that Vary does not name, such
 * as Range: a cache would send them to everybody who requests the path. */
static enum header_caching caching_of(const struct decision *d) {
	const int status = d->response->status;
	if (status == 401 || status == 412 || status == 416 || status == 429) return HEADER_UNCACHED;
	if (status >= 400 && d->guarded) return HEADER_UNCACHED;
	return d->lookup.is_substitute || status >= 400 ? HEADER_CACHED_BRIEFLY : HEADER_CACHED;
}

struct slice decision_lines(const struct decision *d, struct slice own, const struct header_set *headers) {
	char *const text = d->context->room->lines;
	char *end = TEXT_JOIN(text, own, d->vary);
	if (headers) end += header_set_lines(headers, caching_of(d), end);
	end = text_copy(end, d->filled);
	return (struct slice){.at = text, .length = (size_t)(end - text)};
}

struct slice decision_owner_lines(const struct decision *d) {
	return decision_lines(d, (struct slice){0}, d->lookup.headers);
}

void decision_wait(struct decision *d, struct job *job) {
	response_status(d->response, 0);
	d->response->job = job;
}

bool decision_wait_for_disk(struct decision *d, struct slice path) {
	const bool can = d->arrival->may_wait && !tree_awaits(&d->context->tree);
	struct job *job = can ? prefetch(d->context->prefetcher, path) : NULL;
	if (job) decision_wait(d, job);
	return job;
}

int decision_find(const struct decision *d, struct lookup *l, struct resource **resource) {
	l->again = d->arrival->prefetched;
	l->prefetched = prefetch_waited(d->arrival->prefetched, l->path);
	return cache_find(d->context->cache, l, d->context->now_ms, resource);
}

/* --- errors --- */

/* Returns the path of the page that a site may have for a status, or an absent slice. */
static struct slice page_path(int status) {
	if (status == 404) return SLICE("/404.html");
	if (status == 403) return SLICE("/403.html");
	return status >= 500 && status != 501 ? SLICE("/50x.html") : (struct slice){0};
}

void answer_error(struct decision *d, int status) {
	struct response *r = d->response;
	struct slice page = page_path(status), user = r->user;
	char path[SITE_PREFIX_MAX + 16];
	struct resource *resource;
	d->lookup.is_substitute = d->lookup.error = true;
	response_status(r, status);
	r->user = user;
	struct slice retry = r->lines;
	r->lines = decision_lines(d, retry, d->lookup.headers);
	if (!page.length || !d->admitted || tree_awaits(&d->context->tree)) return;
	if (!sites_may_send(d->context->sites, d->site, page, d->context->now_ms)) return;
	const char *end = TEXT_JOIN(path, d->site->prefix, slice_rest(page, 1));
	struct lookup lookup = d->lookup;
	lookup.path = (struct slice){.at = path, .length = (size_t)(end - path)};
	int error = decision_find(d, &lookup, &resource);
	if (error == EINPROGRESS) (void)decision_wait_for_disk(d, lookup.path);
	if (error) return;
	if (resource->guard.permission != PERMISSION_OPEN) return;
	const int coding = decision_coding_at_once(d->request, d->context->cache, resource, d->context->now_ms);
	r->varies = coding == -1;
	if (r->varies) return;
	r->representation = resource->representation[coding];
	r->lines = decision_lines(d, retry, NULL); /* the fields of the file contain the others */
	representation_retain(r->representation);
}

bool answer_unknown(struct decision *d, int error) {
	if (!docroot_error_is_temporary(error)) return false;
	answer_error(d, 503);
	return true;
}
