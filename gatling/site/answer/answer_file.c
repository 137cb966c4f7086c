/* answer_file.c - see decision.h: answers with files. */
#include <errno.h>

#include "gatling/base/slice.h"
#include "gatling/http/accept.h"
#include "gatling/http/precondition.h"
#include "gatling/site/answer/decision.h"
#include "gatling/site/answer/script.h"

static const struct slice index_name = SLICE("index.html"), page_suffix = SLICE(".html");

enum { PAGE_SUFFIX = 5 };

/* Returns whether Range applies. All codings of a file have the same date, and a client may have begun with another
 * one, since that was not generated yet, or is new, or, if it varies, with an alternate: then the date is not strong
 * (RFC 9110, section 8.8.1). */
static bool range_applies(const struct request *q, const struct resource *resource, const struct representation *f,
						  bool varies) {
	if (!request_has(q, FIELD_IF_RANGE)) return true;
	struct validators v = f->validators;
	const bool alone = (resource->available | resource->producible) == 1U << f->coding;
	const bool unambiguous =
		decision_best_of(q, resource, resource->available | resource->producible) == CODING_IDENTITY;
	if (varies || (!alone && !unambiguous)) v.date = (struct slice){0};
	return precondition_range(q, &v);
}

static void answer_file(struct decision *d, const struct resource *resource, bool varies) {
	const struct request *q = d->request;
	struct response *r = d->response;
	const struct validators *v = &r->representation->validators;
	int status = q->known & PRECONDITIONS ? precondition_status(q, v) : 0;
	if (status == 412) {
		/* until the file is hashed, it may not be known whether If-Match holds */
		bool unknown = request_has(q, FIELD_IF_MATCH) && !v->etag.at && precondition_etag_use(q, v) == ETAG_AWAITED;
		representation_release(r->representation);
		answer_error(d, unknown ? 503 : 412);
		return;
	}
	if (status) {
		r->status = status;
		return;
	}
	struct slice field = request_field(q, FIELD_RANGE);
	if (!field.at || q->method != METHOD_GET || r->representation->gzipped) return;
	if (!range_applies(q, resource, r->representation, varies)) return;
	int ranges = range_parse(field, r->representation->size, r->range);
	if (ranges == 0) return;
	r->status = ranges > 0 ? 206 : 416;
	r->ranges = ranges > 0 ? ranges : 0;
	if (r->status == 416) r->lines = decision_owner_lines(d);
}

/* Makes the request wait for the entity-tag of a file that is not hashed yet, if that is done soon, or if the answer
 * depends on it. least: the request is taken to use it so much. Returns whether it waits. */
static bool wait_for_etag(struct decision *d, struct resource *resource, enum coding coding, enum etag_use least) {
	const enum etag_use use = precondition_etag_use(d->request, &resource->representation[coding]->validators);
	struct job *job = cache_hash(d->context->cache, resource, coding, use > least ? use : least);
	if (!job || !d->arrival->may_wait) return false;
	decision_wait(d, job);
	return true;
}

/* Returns whether a file has changed while the request waited, and may do so again before it is hashed and converted.
 */
static bool keeps_changing(const struct decision *d, const struct representation *f) {
	const int left_ms = file_version_unsettled_ms(&f->version);
	const int64_t since_ms = d->arrival->since_ms;
	return since_ms && left_ms && FILE_VERSION_SETTLES_MS - left_ms < d->context->now_ms - since_ms;
}

/* Returns the best representation, or NULL if the request waits, or was answered with an error. */
static struct representation *choose_coding(struct decision *d, struct resource *resource) {
	int coding = decision_best_coding(d->request, d->context->cache, resource, d->context->now_ms);
	if (coding == -1) {
		answer_error(d, 406);
		d->response->varies = true;
		return NULL;
	}
	if (resource->available >> coding & 1) return resource->representation[coding];
	const enum coding from = coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP;
	const bool changes = keeps_changing(d, resource->representation[from]);
	/* all of it is read anyway, and is converted again when its entity-tag becomes known */
	if (!changes && wait_for_etag(d, resource, from, ETAG_USEFUL)) return NULL;
	struct job *job =
		!changes && d->arrival->may_wait ? cache_convert(d->context->cache, resource, (enum coding)coding) : NULL;
	coding = decision_best_of(d->request, resource, resource->available);
	if (job) decision_wait(d, job);
	else if (coding == -1) answer_error(d, 503);
	return job || coding == -1 ? NULL : resource->representation[coding];
}

static struct representation *choose(struct decision *d, struct resource *r) {
	struct representation *f = choose_coding(d, r);
	return f && !f->validators.etag.at && wait_for_etag(d, r, f->coding, ETAG_UNUSED) ? NULL : f;
}

/* Replaces the representation by a copy in memory, for a whole file on a connection where its bytes are copied
 * anyway. */
static void send_copy(const struct site_context *c, const struct request *q, const struct arrival *arrival,
					  struct resource *resource, struct response *r) {
	if (!arrival->copied || r->status != 200 || q->method != METHOD_GET || r->representation->fd == -1) return;
	struct representation *file = r->representation;
	r->representation = cache_copied(c->cache, resource, file);
	representation_retain(r->representation);
	representation_release(file);
}

/* Fields on which an answer may depend, other than those for the host, the coding, and what the client has. */
enum {
	QUALIFIERS = 1U << FIELD_AUTHORIZATION | 1U << FIELD_RANGE | 1U << FIELD_IF_MATCH | 1U << FIELD_IF_RANGE |
				 1U << FIELD_IF_UNMODIFIED_SINCE | 1U << FIELD_WANT_REPR_DIGEST | 1U << FIELD_AVAILABLE_DICTIONARY
};

/* Keeps the resource for the next such request (answer_cache.h), if only Host and path have led to it. */
static void remember(const struct decision *d, struct resource *r) {
	const struct redirect_rules *redirects = d->site->redirects;
	/* a rule that comes before files may look at the query */
	bool rules = (redirects && redirect_rules_forced(redirects)) || d->filled.length || d->lookup.is_substitute;
	bool restricted = d->lookup.restricted || d->guarded || r->guard.permission != PERMISSION_OPEN;
	/* not NAME.html for NAME: a new file NAME must be found at once */
	bool exact = decision_names_directory(d) || d->lookup.path.length == d->site->prefix.length + d->length;
	if (d->response->limits || rules || restricted || !exact || d->request->known & QUALIFIERS ||
		tree_awaits(&d->context->tree))
		return;
	const int64_t fresh_ms = freshness_lasts_until(&r->freshness), site_ms = d->site->until_ms;
	const struct known_answer known = {
		.site = d->site->prefix, .until_ms = fresh_ms < site_ms ? fresh_ms : site_ms, .resource = r};
	answer_cache_keep(d->context->answers, d->host, d->arrival->port, d->request->path, &known);
}

/* Answers with 304, for what the client has, in place of the representation; held: NULL, or a reference that is taken
 * over. */
static void answer_held(struct response *r, struct representation *held) {
	if (!held) return;
	representation_release(r->representation);
	r->representation = held;
	r->status = 304;
}

bool answer_known_file(const struct site_context *c, const struct request *q, const struct arrival *arrival,
					   const struct known_answer *known, struct response *r) {
	struct resource *const resource = known->resource;
	if (q->known & QUALIFIERS) return false;
	const int coding = decision_best_coding(q, c->cache, resource, c->now_ms);
	struct representation *f = coding == -1 ? NULL : resource->representation[coding];
	if (!f || !f->validators.etag.at || (f->fd != -1 && representation_changed(f))) return false;
	cache_found(resource, c->now_ms);
	representation_retain(f);
	r->representation = f;
	r->offered = decision_offers(q, resource);
	if (resource->versioned || r->offered) cache_register(c->cache, resource);
	/* without QUALIFIERS it can be no other status */
	if (q->known & PRECONDITIONS && precondition_status(q, &f->validators)) r->status = 304;
	else if (q->known & PRECONDITIONS) answer_held(r, decision_held(q, resource, r->offered, f));
	send_copy(c, q, arrival, resource, r);
	return true;
}

/* Returns whether a file may be sent: it is neither a script of the site nor, with --upstream, a file with the name of
 * a script, nor a precompressed copy of these. Returns false with errno: EACCES, or EAGAIN if that cannot be known for
 * now. */
static bool may_send(const struct decision *d, const char *end) {
	const struct slice path = {.at = d->local - 1, .length = (size_t)(end - d->local) + 1};
	const struct slice original = coding_original(path);
	errno = EACCES;
	if (d->context->options->upstreams.count && script_is_named(original)) return false;
	return sites_may_send(d->context->sites, d->site, path, d->context->now_ms) &&
		   (original.length == path.length || sites_may_send(d->context->sites, d->site, original, d->context->now_ms));
}

/* Returns whether the directory admits the request, if the file that ends at `end` is its index. If not, fills in the
 * response. */
static bool admitted_to_directory(struct decision *d, const char *end) {
	const bool is_index = decision_names_directory(d) && end == d->local + d->length + index_name.length;
	return !is_index || decision_admitted_without_file(d);
}

/* Finds the file at d->path, which a NUL at `end` terminates, if it may be sent. Returns 0 with *found, NULL if there
 * is an answer already: the request waits or is refused. Otherwise returns an errno. */
static int find_file(struct decision *d, const char *end, struct resource **found) {
	struct resource *resource;
	*found = NULL;
	d->lookup.path = (struct slice){.at = d->path, .length = (size_t)(end - d->path)};
	d->lookup.site = (size_t)(d->local - d->path);
	int error = decision_find(d, &d->lookup, &resource);
	if (error == EINPROGRESS && decision_wait_for_disk(d, d->lookup.path)) return 0;
	if (error) return error;
	if (resource->guard.by_name && !admitted_to_directory(d, end)) return 0;
	if (!decision_admitted(d, &resource->guard)) return 0;
	if (!may_send(d, end)) return errno;
	*found = resource;
	return 0;
}

/* --- alternates --- */

/* Returns the alternate of a resource that the client likes best, or -1 if it is the resource itself: a client has to
 * name the type, and not to like the resource's better. Of pictures that it likes as much, it is the smallest. */
static int best_alternate(const struct request *q, const struct resource *r) {
	const struct representation *original = r->representation[CODING_IDENTITY];
	int best = -1;
	if (!original) return -1;
	struct accept accept = accept_of(q, slice_first(original->type, slice_until(original->type, ';')));
	uint64_t size = original->size;
	for (int i = 0; i < ALTERNATES; i++) {
		if (!r->alternate[i]) continue;
		const struct accept other = accept_of(q, alternate_type[i]);
		if (!other.named || !other.weight || other.weight < accept.weight) continue;
		if (i != ALTERNATE_MARKDOWN && other.weight == accept.weight && r->alternate[i] >= size) continue;
		best = i;
		accept = other;
		size = r->alternate[i];
	}
	return best;
}

/* Returns whether a resource has alternates. It has none if the owner says what type it has, since the owner's fields
 * are also those of its alternates. */
static bool has_alternates(const struct decision *d, const struct resource *r) {
	bool any = false;
	for (int i = 0; i < ALTERNATES; i++) any |= r->alternate[i] > 0;
	return any && !header_find(d->lookup.headers, "Content-Type");
}

/* Finds what is sent for the file at d->path: an alternate, or the file itself. Returns what find_file() does, and
 * whether the answer depends on Accept. */
static int find_best(struct decision *d, char *end, struct resource **found, bool *varies) {
	int error = find_file(d, end, found);
	*varies = !error && *found && has_alternates(d, *found);
	const int alternate = *varies ? best_alternate(d->request, *found) : -1;
	if (alternate == -1) return error;
	char after[ALTERNATE_SUFFIX_MAX + 1];
	struct slice stem;
	(void)alternates_of(d->lookup.path, &stem);
	char *const at = d->path + stem.length;
	const size_t length = (size_t)(end - at) + 1;
	memcpy(after, at, length);
	char *const alternate_end = text_copy(at, alternate_suffix[alternate]);
	*alternate_end = '\0';
	d->lookup.is_alternate = true;
	error = find_file(d, alternate_end, found);
	memcpy(at, after, length);
	d->lookup.is_alternate = false;
	const bool refused = !error && !*found && !d->response->job;
	if (!error && !refused) return 0;
	/* it has just been removed, or is not for this client */
	response_status(d->response, 200);
	return find_file(d, end, found);
}

/* Returns the lines of a response that depends on Accept, or has a digest. */
static struct slice own_lines(const struct decision *d, bool varies, struct slice digest) {
	char text[REPRESENTATION_DIGEST_MAX + sizeof "Vary: Accept\r\n"];
	const char *end = TEXT_JOIN(text, varies ? SLICE("Vary: Accept\r\n") : (struct slice){0}, digest);
	return decision_lines(d, (struct slice){.at = text, .length = (size_t)(end - text)}, NULL);
}

/* Answers with the file at d->path, which a NUL at `end` terminates. status: 200, or that of a rule. Returns 0, or an
 * errno if there is no answer yet. */
static int answer_found(struct decision *d, char *end, int status) {
	struct response *r = d->response;
	struct resource *resource;
	struct representation *file;
	bool varies;
	for (bool again = false;; again = true) {
		int error = find_best(d, end, &resource, &varies);
		if (error || !resource) return error;
		if (!(file = choose(d, resource))) return 0;
		if (again || file->fd == -1 || !representation_changed(file)) break;
		cache_drop(d->context->cache, resource);
	}
	bool waits = false;
	struct slice digest = {0};
	/* not for a path that a rule has changed */
	r->offered = status == 200 && !d->guarded && !d->rule && !d->lookup.error && decision_offers(d->request, resource);
	struct representation *const held = status == 200 ? decision_held(d->request, resource, r->offered, file) : NULL;
	if (!held) file = decision_difference(d, resource, file, &waits);
	if (!waits && (!held || held == file)) digest = decision_digest(d, resource, file, &waits);
	if (waits && held) representation_release(held);
	if (waits) return 0;
	if (!held) representation_retain(file);
	r->representation = held ? held : file;
	r->status = status;
	r->lines = d->vary.length || varies || digest.length ? own_lines(d, varies, digest) : d->filled;
	if (status == 200) answer_file(d, resource, varies);
	if (d->lookup.error) return 0; /* the error page may have replaced it in the cache */
	send_copy(d->context, d->request, d->arrival, resource, r);
	if (!varies) remember(d, resource);
	return 0;
}

int answer_exact(struct decision *d, int status) {
	char *end = d->local + d->length;
	if (decision_names_directory(d)) end = text_copy(end, index_name);
	*end = '\0';
	return answer_found(d, end, status);
}

int answer_index_redirect(struct decision *d) {
	struct resource *resource;
	char *const end = d->local + d->length;
	*text_copy(end, index_name) = '\0';
	const int error = find_file(d, end + index_name.length, &resource);
	*end = '\0';
	if (!error && resource) answer_redirect(d, decision_path(d));
	return error;
}

/* Redirects to the page at d->path without its suffix, if answer_found() would send it. Returns what that returns. */
static int redirect_to_page(struct decision *d, const char *end) {
	struct resource *resource;
	const int error = find_file(d, end, &resource);
	if (!error && resource)
		answer_redirect(d, (struct slice){.at = d->local, .length = (size_t)(end - d->local) - PAGE_SUFFIX});
	return error;
}

/* Returns where the suffix of the page of a path belongs: behind its last name. NULL: it has no page. A name that
 * begins with a dot has none, since the page would be hidden. */
static char *page_end(const struct decision *d) {
	if (!d->length) return NULL;
	char *const end = d->local + d->length - decision_names_directory(d), *at = end;
	while (at > d->local && at[-1] != '/') at--;
	return *at == '.' ? NULL : end;
}

int answer_page(struct decision *d, int status) {
	char *const end = page_end(d), after[PAGE_SUFFIX + 1];
	if (!end) return ENOENT;
	memcpy(after, end, sizeof after);
	memcpy(end, page_suffix.at, sizeof after);
	const int error =
		status == 301 ? redirect_to_page(d, end + PAGE_SUFFIX) : answer_found(d, end + PAGE_SUFFIX, status);
	memcpy(end, after, sizeof after);
	return !error || docroot_error_is_temporary(error) ? error : ENOENT;
}

int answer_file_or_page(struct decision *d, int status) {
	const int error = answer_exact(d, status);
	if (decision_names_directory(d) || (error != ENOENT && error != EISDIR)) return error;
	const int page_error = answer_page(d, status);
	return page_error == ENOENT ? error : page_error;
}
