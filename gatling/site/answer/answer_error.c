/* answer_error.c - see exchange.h: answers without what was asked for. */
#include <errno.h>

#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/site/answer/exchange.h"

struct slice exchange_lines(const struct exchange *x, struct slice own, const struct header_set *headers) {
	char *const text = WORKSPACE(AUTH_LINES_MAX + HEADER_OCTETS_MAX);
	char *end = text_copy(text, own);
	if (headers) end += header_set_lines(headers, x->lookup.stands_in || x->response->status >= 400, end);
	end = text_copy(end, x->filled);
	return (struct slice){.at = text, .length = (size_t)(end - text)};
}

struct slice exchange_owner_lines(const struct exchange *x) {
	return exchange_lines(x, (struct slice){0}, x->lookup.headers);
}

void exchange_wait(struct exchange *x, struct job *job) {
	response_status(x->response, 0);
	x->response->job = job;
}

bool exchange_wait_for_disk(struct exchange *x, struct slice path) {
	struct job *job = x->arrival->patient ? fetch(x->content->fetcher, path) : NULL;
	if (job) exchange_wait(x, job);
	return job;
}

int exchange_find(const struct exchange *x, struct lookup *l, struct resource **resource) {
	l->again = x->arrival->fetched;
	l->fetched = fetch_waited(x->arrival->fetched, l->path);
	return cache_find(x->content->cache, l, x->content->now_ms, resource);
}

/* --- errors --- */

/* Returns the path of the page that the site may have for a status; absent: none. */
static struct slice page_path(int status) {
	if (status == 404) return SLICE("/404.html");
	if (status == 403) return SLICE("/403.html");
	return status >= 500 && status != 501 ? SLICE("/50x.html") : (struct slice){0};
}

void answer_error(struct exchange *x, int status) {
	struct response *r = x->response;
	struct slice page = page_path(status), user = r->user;
	char path[SITE_PREFIX_MAX + 16];
	struct resource *resource;
	x->lookup.stands_in = x->lookup.error = true;
	response_status(r, status);
	r->user = user;
	struct slice retry = r->lines;
	r->lines = exchange_lines(x, retry, x->lookup.headers);
	if (!page.length || !x->admitted) return;
	if (x->site->redirects && redirect_rules_protect(x->site->redirects, page)) return;
	const char *end = text_copy(text_copy(path, x->site->prefix), slice_rest(page, 1));
	struct lookup lookup = x->lookup;
	lookup.path = (struct slice){.at = path, .length = (size_t)(end - path)};
	int error = exchange_find(x, &lookup, &resource);
	if (error == EINPROGRESS) (void)exchange_wait_for_disk(x, lookup.path);
	if (error) return;
	if (resource->realm[0] || resource->realm[1]) return;
	struct coding_weights weights = coding_weights(x->request);
	int coding = coding_choose(&weights, resource->available); /* no request waits for another */
	if (coding == -1) return;
	r->representation = resource->representation[coding];
	r->lines = exchange_lines(x, retry, NULL); /* the file has the others */
	representation_retain(r->representation);
}

/* Returns whether the realm admits the request; if not, that is the answer. */
static bool admitted(struct exchange *x, struct realm *realm) {
	struct response *r = x->response;
	struct auth_answer admission;
	enum auth_result result = basic_auth_check(x->content->auth, realm, x->request, x->arrival->peer,
											   x->arrival->patient, x->content->now_ms, &admission);
	if (result == AUTH_ADMITTED) {
		r->user = admission.user;
	} else if (result == AUTH_PENDING) {
		exchange_wait(x, admission.job);
	} else if (admission.lines.at) {
		response_status(r, (int)result);
		r->lines = exchange_lines(x, admission.lines, x->lookup.headers);
	} else {
		answer_error(x, (int)result);
	}
	return result == AUTH_ADMITTED;
}

bool exchange_admitted(struct exchange *x, struct realm *const *realm) {
	return (!realm[0] || admitted(x, realm[0])) && (!realm[1] || admitted(x, realm[1]));
}
