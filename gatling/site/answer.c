/* answer.c - see answer.h. From top to bottom: method, site, path, passwords, forced redirects, the file, or what takes
 * its place. */
#include "gatling/site/answer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/http/path.h"
#include "gatling/site/script.h"

enum { PATH_ROOM = SITE_PREFIX_MAX + TARGET_MAX + 16 };

static const struct slice index_name = SLICE("index.html"), page_suffix = SLICE(".html");

/* One request on its way. */
struct exchange {
	const struct content *content;
	const struct request *request;
	const struct connection_info *arrival;
	struct response *response;
	const struct site *site;
	struct lookup lookup; /* of what is sent; headers: the owner's for this path, and */
	struct slice filled;  /* those with values that are filled in, as lines */
	struct slice host;
	bool admitted; /* to the site: its pages may be shown */
	bool passed;   /* a rule passes it on: it does not matter whether files are served with its method */
	/* In PATH_ROOM bytes behind a slash: the path of the site's directory, below it (from local on) that of the
	 * request, decoded, of that length, and then perhaps the name of an index; NUL-terminated. */
	char *path, *local;
	size_t length;
};

/* --- what the answer is --- */

/* The server's own lines, of AUTH_LINES_MAX bytes at most, and behind them those of the owner. */
static struct slice lines_with(const struct exchange *x, struct slice own, const struct header_set *headers) {
	char *const text = WORKSPACE(AUTH_LINES_MAX + HEADER_OCTETS_MAX);
	char *end = text_copy(text, own);
	if (headers) end += header_set_lines(headers, x->lookup.stands_in || x->response->status >= 400, end);
	end = text_copy(end, x->filled);
	return (struct slice){.at = text, .length = (size_t)(end - text)};
}

/* The owner's fields for a response without a file; a file's own fields contain most of them. */
static struct slice header_lines(const struct exchange *x) {
	return lines_with(x, (struct slice){0}, x->lookup.headers);
}

/* Makes the request wait for a job. */
static void wait_for(struct exchange *x, struct job *job) {
	response_status(x->response, 0);
	x->response->job = job;
}

/* Makes the request wait until a file can be read without waiting for a disk. Returns false if that cannot be. */
static bool wait_for_disk(struct exchange *x, struct slice path) {
	struct job *job = x->arrival->patient ? fetch(x->content->fetcher, path) : NULL;
	if (job) wait_for(x, job);
	return job;
}

/* Does as cache_find(). */
static int find(const struct exchange *x, struct lookup *l, struct resource **resource) {
	l->again = x->arrival->fetched;
	l->fetched = fetch_waited(x->arrival->fetched, l->path);
	return cache_find(x->content->cache, l, x->content->now_ms, resource);
}

static struct slice local_path(const struct exchange *x) { return (struct slice){.at = x->local, .length = x->length}; }

/* The same with its leading slash. */
static struct slice slashed_path(const struct exchange *x) {
	return (struct slice){.at = x->local - 1, .length = x->length + 1};
}

static bool names_directory(const struct exchange *x) { return x->length == 0 || x->local[x->length - 1] == '/'; }

/* --- redirects --- */

/* Room for the location of a redirect. */
static char *location(void) { return WORKSPACE(LOCATION_MAX); }

/* Redirects to the location, which ends there. */
static void redirect(struct exchange *x, int status, const char *end) {
	x->response->status = status;
	x->response->location = (struct slice){.at = location(), .length = (size_t)(end - location())};
}

/* Appends the path and query of the request to the location. */
static char *add_target(const struct exchange *x, char *at) {
	at += path_encode_target(x->request->path, at);
	return at + path_encode_target(x->request->query, at);
}

/* Redirects to the same path with a slash behind it. The location starts with exactly one slash whatever the path, so
 * it stays on this host, and is encoded, so it holds no line break. */
static void redirect_to_directory(struct exchange *x) {
	char *at = text_copy(location(), SLICE("/"));
	at += path_encode(local_path(x), at);
	*at++ = '/';
	redirect(x, 301, at + path_encode_target(x->request->query, at));
}

/* Redirects a request over plain HTTP to HTTPS. */
static void redirect_to_https(struct exchange *x) {
	response_status(x->response, 400);
	if (!x->host.length) return; /* HTTP/1.0, and no address to name instead */
	char *at = text_copy(location(), SLICE("https://"));
	at += host_name(x->host, at);
	if (x->content->https_port != 443) at += sprintf(at, ":%u", x->content->https_port);
	redirect(x, 301, add_target(x, at));
}

/* Redirects a request for a missing file to the fallback. */
static void redirect_to_fallback(struct exchange *x) {
	char *at = text_copy_string(location(), x->content->options->fallback);
	redirect(x, 302, add_target(x, at[-1] == '/' ? at - 1 : at));
}

/* --- errors --- */

/* The page that the site has for a status; absent: none. */
static struct slice page_name(int status) {
	if (status == 404) return SLICE("404.html");
	if (status == 403) return SLICE("403.html");
	return status >= 500 && status != 501 ? SLICE("50x.html") : (struct slice){0};
}

/* Answers with the status, and with a page of the site if it has one. */
static void answer_error(struct exchange *x, int status) {
	struct response *r = x->response;
	struct slice name = page_name(status), user = r->user;
	char path[SITE_PREFIX_MAX + 16];
	struct resource *resource;
	x->lookup.stands_in = x->lookup.error = true;
	response_status(r, status);
	r->user = user;
	struct slice retry = r->lines;
	r->lines = lines_with(x, retry, x->lookup.headers);
	if (!name.length || !x->admitted) return;
	char slashed[32];
	const char *name_end = text_copy(text_copy(slashed, SLICE("/")), name);
	if (x->site->redirects &&
		redirect_rules_protect(x->site->redirects,
							   (struct slice){.at = slashed, .length = (size_t)(name_end - slashed)}))
		return;
	const char *end = text_copy(text_copy(path, x->site->prefix), name);
	struct lookup lookup = x->lookup;
	lookup.path = (struct slice){.at = path, .length = (size_t)(end - path)};
	int error = find(x, &lookup, &resource);
	if (error == EINPROGRESS) (void)wait_for_disk(x, lookup.path);
	if (error) return;
	if (resource->realm[0] || resource->realm[1]) return;
	struct coding_weights weights = coding_weights(x->request);
	int coding = coding_choose(&weights, resource->available); /* no request waits for another */
	if (coding == -1) return;
	r->representation = resource->representation[coding];
	r->lines = lines_with(x, retry, NULL); /* the file has the others */
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
		wait_for(x, admission.job);
	} else if (admission.lines.at) {
		response_status(r, (int)result);
		r->lines = lines_with(x, admission.lines, x->lookup.headers);
	} else {
		answer_error(x, (int)result);
	}
	return result == AUTH_ADMITTED;
}

static bool admitted_by(struct exchange *x, struct realm *const *realm) {
	return (!realm[0] || admitted(x, realm[0])) && (!realm[1] || admitted(x, realm[1]));
}

/* --- files --- */

static void answer_file(const struct exchange *x) {
	const struct request *q = x->request;
	struct response *r = x->response;
	const struct validators *v = &r->representation->validators;
	int status = precondition_status(q, v);
	if (status) r->status = status;
	if (status == 412) {
		representation_release(r->representation);
		r->representation = NULL;
		r->lines = header_lines(x);
	}
	if (status) return;
	struct slice field = request_field(q, FIELD_RANGE);
	if (!field.at || q->method != METHOD_GET || r->representation->gzipped || !precondition_range(q, v)) return;
	int ranges = range_parse(field, r->representation->size, r->range);
	if (ranges == 0) return;
	r->status = ranges > 0 ? 206 : 416;
	r->ranges = ranges > 0 ? ranges : 0;
	if (r->status == 416) r->lines = header_lines(x);
}

/* A large file has no entity-tag until it has been hashed, which begins with the first request for it. A request waits
 * for that if it is done soon, or if the request depends on the entity-tag. */
static bool wait_for_etag(struct exchange *x, struct resource *resource, enum coding coding) {
	struct job *job = cache_hash(x->content->cache, resource, coding, precondition_wants_etag(x->request));
	if (!job || !x->arrival->patient) return false;
	wait_for(x, job);
	return true;
}

/* Returns the best coding of those that exist or can be generated; -1: none. */
static int best_coding(const struct request *q, const struct resource *r) {
	const unsigned all = r->available | r->producible;
	if (all == 1U << CODING_IDENTITY) return CODING_IDENTITY;
	struct coding_weights weights = coding_weights(q);
	return coding_choose(&weights, all);
}

/* Returns the best representation. NULL: there is none, and that is the answer, or the request waits. */
static struct representation *choose_coding(struct exchange *x, struct resource *resource) {
	int coding = best_coding(x->request, resource);
	if (coding == -1) {
		answer_error(x, 406);
		if (!x->response->lines.length) x->response->lines = SLICE("Vary: Accept-Encoding\r\n");
		return NULL;
	}
	if (resource->available >> coding & 1) return resource->representation[coding];
	if (wait_for_etag(x, resource, coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP)) return NULL;
	struct job *job = x->arrival->patient ? cache_convert(x->content->cache, resource, (enum coding)coding) : NULL;
	struct coding_weights weights = coding_weights(x->request);
	coding = coding_choose(&weights, resource->available);
	if (job) wait_for(x, job);
	else if (coding == -1) answer_error(x, 503);
	return job || coding == -1 ? NULL : resource->representation[coding];
}

static struct representation *choose(struct exchange *x, struct resource *r) {
	struct representation *f = choose_coding(x, r);
	return f && !f->validators.etag.at && wait_for_etag(x, r, f->coding) ? NULL : f;
}

/* Fields that say more than which resource is asked for, in which coding, and whether the client has it. */
enum {
	QUALIFIERS = 1U << FIELD_AUTHORIZATION | 1U << FIELD_RANGE | 1U << FIELD_IF_MATCH | 1U << FIELD_IF_RANGE |
				 1U << FIELD_IF_UNMODIFIED_SINCE
};

/* Remembers what was asked for, if only Host and path have led to it. */
static void remember(const struct exchange *x, struct resource *r) {
	bool rules = x->site->redirects || x->filled.length || x->lookup.stands_in;
	bool restricted = x->lookup.restricted || r->realm[0] || r->realm[1];
	/* not a page for a name without suffix: a new file of that name is found at once */
	bool exact = names_directory(x) || x->lookup.path.length == x->site->prefix.length + x->length;
	if (rules || restricted || !exact || x->request->known & QUALIFIERS) return;
	int64_t until_ms = r->until_ms < x->site->until_ms ? r->until_ms : x->site->until_ms;
	question_keep(x->content->questions, x->host, x->arrival->port, x->request->path, r, until_ms);
}

/* Answers with 200 or 304 if the same was asked for a moment ago. Returns whether it does. */
static bool answer_known(const struct content *c, const struct request *q, struct slice host, unsigned port,
						 struct response *r) {
	struct resource *resource =
		q->known & QUALIFIERS ? NULL : question_find(c->questions, host, port, q->path, c->now_ms);
	if (!resource) return false;
	int coding = best_coding(q, resource);
	struct representation *f = coding == -1 ? NULL : resource->representation[coding];
	if (!f || !f->validators.etag.at || representation_changed(f)) return false;
	cache_found(resource, c->now_ms);
	representation_retain(f);
	r->representation = f;
	if (precondition_status(q, &f->validators)) r->status = 304; /* without QUALIFIERS it is no other */
	return true;
}

/* Returns EACCES if a file is never sent: a script of the site, or with --upstream, what everybody takes for one;
 * EAGAIN if that is not known for now; or 0. */
static int protection(const struct exchange *x, const char *end) {
	struct slice path = {.at = x->local - 1, .length = (size_t)(end - x->local) + 1};
	if (x->content->options->upstreams.count && script_is_named(path)) return EACCES;
	return sites_protect(x->content->sites, x->site, path, x->content->now_ms);
}

/* Answers with the file at x->path up to a NUL at end, with the status 200 or that of a rule. 0; or an errno, and there
 * is no answer yet. */
static int answer_found(struct exchange *x, const char *end, int status) {
	struct response *r = x->response;
	struct resource *resource;
	struct representation *file;
	x->lookup.path = (struct slice){.at = x->path, .length = (size_t)(end - x->path)};
	for (bool again = false;; again = true) {
		int error = find(x, &x->lookup, &resource);
		if (error == EINPROGRESS && wait_for_disk(x, x->lookup.path)) return 0;
		if (error) return error;
		if (!admitted_by(x, resource->realm)) return 0;
		if ((error = protection(x, end))) return error;
		if (!(file = choose(x, resource))) return 0;
		if (again || file->fd == -1 || !representation_changed(file)) break;
		cache_drop(x->content->cache, resource);
	}
	representation_retain(file);
	r->representation = file;
	r->status = status;
	r->lines = x->filled;
	if (status == 200) answer_file(x);
	remember(x, resource);
	return 0;
}

/* Answers with the requested file, or the index of a directory, as answer_found(). */
static int answer_exact(struct exchange *x, int status) {
	char *end = x->local + x->length;
	if (names_directory(x)) end = text_copy(end, index_name);
	*end = '\0';
	return answer_found(x, end, status);
}

/* Answers as well a request for /about with about.html, as other servers of static sites do. */
static int answer_file_or_page(struct exchange *x, int status) {
	int error = answer_exact(x, status);
	char *end = x->local + x->length, *at = end;
	if (error != ENOENT || names_directory(x)) return error;
	while (at > x->path && at[-1] != '/')
		if (*--at == '.') return error;
	memcpy(end, page_suffix.at, page_suffix.length + 1);
	int page_error = answer_found(x, end + page_suffix.length, status);
	if (page_error == 0 || docroot_error_is_temporary(page_error)) return page_error;
	*end = '\0';
	return error;
}

/* --- what takes the place of a file --- */

/* Returns whether the realms of a path where there is no file admit the request: a refusal hides what is there. */
static bool admitted_to(struct exchange *x, struct slice path) {
	struct realm *realm[REALMS_OF_PATH];
	basic_auth_realms(x->content->auth, path, false, realm);
	bool is = admitted_by(x, realm);
	for (int i = 0; i < REALMS_OF_PATH; i++) realm_release(realm[i]);
	return is;
}

static bool admitted_nevertheless(struct exchange *x) {
	return admitted_to(x, (struct slice){.at = x->path, .length = x->site->prefix.length + x->length});
}

/* The same for a path that a rule takes for a directory, with a slash behind it or without. */
static bool admitted_as_directory(struct exchange *x) {
	char *end = x->local + x->length;
	if (names_directory(x)) return admitted_nevertheless(x);
	*end = '/';
	bool is = admitted_to(x, (struct slice){.at = x->path, .length = (size_t)(end + 1 - x->path)});
	*end = '\0';
	return is;
}

/* The same for a script that a rule leads to. */
static bool admitted_to_script(struct exchange *x, struct slice name) {
	char path[SITE_PREFIX_MAX + TARGET_MAX + 1];
	char *end = text_copy(text_copy(path, x->site->prefix), slice_rest(name, 1));
	*end = '\0';
	return admitted_to(x, (struct slice){.at = path, .length = (size_t)(end - path)});
}

/* Replaces the requested path by that of a target in _redirects. Returns false if that cannot be served. */
static bool rewrite(struct exchange *x, struct slice target) {
	target.length = slice_until(target, '?');
	if (target.length > TARGET_MAX || path_decode(target, x->local, &x->length) != 0) return false;
	return !site_hides(x->site, local_path(x));
}

/* Has the request passed on to an upstream, whatever its method is. forced: it has not been asked yet whether it is
 * admitted. */
static void pass_on(struct exchange *x, const struct redirect *rule, bool forced) {
	struct slice method = x->request->method_name;
	bool never = slice_equal(method, SLICE("TRACE")) || slice_equal(method, SLICE("CONNECT"));
	if (forced && !admitted_as_directory(x)) return;
	x->passed = true;
	int status = never ? 405 : x->arrival->failed;
	if (!status && rule->refused) status = 503;
	struct upstream_script script = {0};
	if (!status && rule->upstream->protocol != UPSTREAM_HTTP) {
		if (x->request->websocket) status = 501;
		else if (x->request->framing == BODY_CHUNKED && rule->upstream->protocol == UPSTREAM_SCGI) status = 411;
		else if (!script_find(x->content, x->site, rule, slashed_path(x), &script)) status = 404;
		else if (script.is_file && !rule->script && !admitted_to_script(x, script.name)) return;
	}
	if (status) {
		answer_error(x, status);
		return;
	}
	const struct slice user = x->response->user;
	response_status(x->response, 0);
	x->response->user = user;
	x->response->upstream = rule->upstream;
	x->response->location = rule->target;
	x->response->script = script;
}

static void answer_rule(struct exchange *x, const struct redirect *rule, bool forced) {
	if (rule->upstream || rule->refused) {
		pass_on(x, rule, forced);
		return;
	}
	if (rule->status >= 300 && rule->status < 400) {
		x->response->status = rule->status;
		x->response->location = rule->target;
		return;
	}
	x->lookup.error = rule->status >= 400;
	x->lookup.stands_in = !forced || x->lookup.error;
	int error = rewrite(x, rule->target) ? answer_file_or_page(x, rule->status) : ENOENT;
	if (error == EISDIR && !names_directory(x)) {
		if (!admitted_nevertheless(x)) return;
		x->local[x->length++] = '/';
		error = answer_exact(x, rule->status);
	}
	if (error && admitted_nevertheless(x))
		answer_error(x, rule->status == 200 ? response_status_of(error) : rule->status);
}

/* See struct redirect_request. */
static bool is_file(const void *exchange, struct slice path) {
	const struct exchange *x = exchange;
	return script_is_file(x->content, x->site, path);
}

static struct slice reach(const void *exchange, struct slice path) {
	const struct exchange *x = exchange;
	return script_reach(x->content, x->site, path);
}

/* Returns whether a rule of _redirects has answered the request. */
static bool follow_rules(struct exchange *x, bool forced) {
	struct redirect rule;
	struct redirect_request request = {.host = x->host,
									   .path = slashed_path(x),
									   .query = x->request->query,
									   .is_file = is_file,
									   .reach = reach,
									   .context = x};
	if (!redirect_rules_match(x->site->redirects, &request, forced, location(), &rule)) return false;
	answer_rule(x, &rule, forced);
	return true;
}

/* Returns the Cache-Control of a listing, as that of a page: there is nothing with which it could be revalidated, but
 * caches choose a time of their own without it. Absent if the owner has one, or wants none. */
static struct slice listing_cache_control(const struct exchange *x) {
	const struct header_set *set = x->lookup.headers;
	if (!x->content->options->cache_control) return (struct slice){0};
	for (unsigned i = 0; set && i < set->count; i++)
		if (header_named(&set->item[i], "Cache-Control") && !header_lasts(&set->item[i])) return (struct slice){0};
	const bool restricted = x->lookup.restricted || x->response->user.length;
	return restricted ? SLICE("Cache-Control: private, no-cache\r\n") : SLICE("Cache-Control: no-cache\r\n");
}

static void answer_listing(struct exchange *x) {
	struct response *r = x->response;
	struct listing_result found;
	struct coding_weights weights = coding_weights(x->request);
	enum listing_format format = listing_format_of(x->request->query);
	bool gzip = x->content->options->gzip_cache;
	int coding = coding_choose(&weights, 1U << CODING_IDENTITY | (gzip ? 1U << CODING_GZIP : 0)); /* never -1 */
	struct listing_request request = {.path = *x->path ? x->path : ".",
									  .title = local_path(x),
									  .of_site = site_begins_at(x->site, local_path(x)),
									  .format = format,
									  .coding = (enum coding)coding};
	int error = listing_cache_find(x->content->listings, &request, x->arrival->patient, &found);
	if (error) {
		answer_error(x, response_status_of(error));
		return;
	}
	if (found.job) {
		wait_for(x, found.job);
		return;
	}
	r->status = 200;
	x->lookup.stands_in = true;
	r->lines = lines_with(x, listing_cache_control(x), x->lookup.headers);
	r->source =
		(struct generated_content){.fill = listing_fill,
								   .release = listing_reader_free,
								   .owner = found.reader,
								   .length = found.length,
								   .memory = LISTING_READER,
								   .coding = found.coding,
								   .type = format == LISTING_JSON ? "application/json" : "text/html; charset=utf-8"};
}

/* Answers with 503 if an error leaves open what is there. Returns whether it does. */
static bool answer_unknown(struct exchange *x, int error) {
	if (docroot_error_is_temporary(error)) answer_error(x, 503);
	return docroot_error_is_temporary(error);
}

/* Redirects to the target of a symlink if that is a URL, as the original gatling does. Returns whether there is an
 * answer. */
static bool follow_link(struct exchange *x) {
	char target[TARGET_MAX], *at = location();
	if (names_lack(x->content->names, slice_of(x->path))) return false;
	if (!docroot_readlink(&x->content->docroot, x->path, target, sizeof target)) return answer_unknown(x, errno);
	if (!strstr(target, "://")) return false;
	for (const char *c = target; *c; c++) { /* visible ASCII is the owner's, the rest is encoded */
		if (*c > ' ' && *c < 127) *at++ = *c;
		else at += path_encode((struct slice){.at = c, .length = 1}, at);
	}
	redirect(x, 301, at);
	return true;
}

static void answer_missing(struct exchange *x) {
	struct stat st;
	if (follow_link(x)) return;
	if (x->site->redirects && follow_rules(x, false)) return;
	x->local[x->length] = '\0'; /* without the index */
	bool exists =
		names_directory(x) && names_stat(x->content->names, &x->content->docroot, *x->path ? x->path : ".", &st) == 0;
	if (names_directory(x) && !exists && answer_unknown(x, errno)) return;
	if (exists) {
		if (!S_ISDIR(st.st_mode)) answer_error(x, 404);
		else if (x->content->options->listings) answer_listing(x);
		else answer_error(x, 403);
	} else if (x->content->options->fallback) {
		redirect_to_fallback(x);
	} else {
		answer_error(x, 404);
	}
}

/* --- all kinds --- */

/* Finds the owner's fields for this path. Returns false if they are too long, and that is the answer. */
static bool find_headers(struct exchange *x) {
	const struct header_set *set = header_rules_match(x->site->headers, x->host, slashed_path(x));
	struct slice filled = header_rules_filled(x->site->headers);
	if (set && set->octets + filled.length > HEADER_OCTETS_MAX) {
		site_complain(x->site, set->line);
		answer_error(x, 500);
		return false;
	}
	x->lookup.headers = set;
	x->filled = filled;
	return true;
}

static void answer_path(struct exchange *x) {
	int error = answer_file_or_page(x, 200);
	if (!error) return;
	if (error == ENAMETOOLONG) answer_error(x, 404); /* the name of its .htaccess would be too long, too */
	else if (!admitted_nevertheless(x)) return;
	else if (error == EISDIR && !names_directory(x)) redirect_to_directory(x);
	else if (response_status_of(error) == 404) answer_missing(x);
	else answer_error(x, response_status_of(error));
}

/* Answers an ACME challenge over plain HTTP, when all else is redirected to HTTPS: a file below path_acme_challenge, or
 * 404 without a page of the site. false: the request is to be redirected. */
static bool answer_challenge(struct exchange *x) {
	struct response *r = x->response;
	if (!slice_starts(local_path(x), path_acme_challenge) || names_directory(x) || !x->admitted) return false;
	if (x->site->headers && !find_headers(x)) r->status = 500;
	else if (answer_exact(x, 200) != 0) r->status = 404;
	else if (r->status < 400 || r->status == 416) return true;
	if (r->representation)
		representation_release(r->representation); /* a page for an error, of whoever may not have the file */
	if (r->status == 404) response_status(r, 404);
	return r->status == 404;
}

/* The status for a method with which files are not served; of OPTIONS, that of success. */
static int refusal_of(enum method method) {
	return method == METHOD_OPTIONS ? 204 : method == METHOD_NOT_ALLOWED ? 405 : 501;
}

/* Answers a method with which files are not served. OPTIONS with the owner's fields for the path, if it is one:
 * preflights ask for those of CORS, and send no passwords. */
static void answer_method(struct exchange *x, bool is_path) {
	const struct request *q = x->request;
	response_status(x->response, refusal_of(q->method));
	if (q->method != METHOD_OPTIONS || !is_path || !x->site->headers || !find_headers(x)) return;
	x->response->lines = header_lines(x);
}

/* Returns whether clients of a host can be sent to HTTPS. */
static bool has_certificate(const struct content *c, struct slice host) {
	char name[HOST_MAX + 1];
	if (!c->covered) return true;
	if (!host.length) return false;
	name[host_name(host, name)] = '\0';
	return certificates_cover(c->covered, name);
}

void answer(const struct content *c, const struct request *q, const struct connection_info *arrival,
			struct response *r) {
	/* other methods, and WebSocket, are for upstreams */
	const bool serves = q->method <= METHOD_HEAD && !q->websocket, passes = c->options->upstreams.count && !serves;
	response_status(r, serves || passes ? 200 : refusal_of(q->method));
	if (r->status >= 400) return;

	struct slice host = q->host.at ? q->host : arrival->host;
	bool to_https = c->https_port && !arrival->secure && arrival->port && has_certificate(c, host);
	if (serves && !to_https && answer_known(c, q, host, arrival->port, r)) return;

	char room[1 + PATH_ROOM];
	struct exchange x = {.content = c, .request = q, .arrival = arrival, .response = r, .host = host, .path = room + 1};
	room[0] = '/';
	struct job *job = NULL;
	x.site = sites_find(c->sites, host, arrival->port, c->now_ms, arrival->fetched, &job);
	if (job) {
		if (arrival->patient) wait_for(&x, job);
		else response_status(r, 503);
		return;
	}
	int status = x.site ? 0 : response_status_of(errno);
	if (x.site) {
		x.local = text_copy(x.path, x.site->prefix);
		x.lookup.restricted = x.site->realm[0] || x.site->realm[1];
		x.admitted = !x.lookup.restricted;
		status = path_decode(q->path, x.local, &x.length);
		if (!status && site_hides(x.site, local_path(&x))) status = 404;
	}
	const bool unknown = x.site ? x.site->unknown : status != 404; /* there may be an upstream */
	if (!serves && (!passes || (!unknown && (status || !x.site->redirects)))) {
		answer_method(&x, x.site && !status);
		return;
	}
	/* decided on the decoded path */
	if (to_https) {
		if (!x.site || status || !answer_challenge(&x)) redirect_to_https(&x);
		return;
	}
	if (!x.site) {
		r->status = status;
		return;
	}
	if (status) {
		answer_error(&x, status);
		return;
	}
	if (x.site->headers && !find_headers(&x)) return;
	if (!x.admitted) {
		if (!admitted_by(&x, x.site->realm)) return;
		x.admitted = true;
	}
	if (x.site->unknown) {
		answer_error(&x, 503);
		return;
	}
	if (!x.site->redirects || !follow_rules(&x, true)) answer_path(&x);
	if (serves || x.passed || !r->status || r->status == 401 || r->status >= 429) return;
	response_drop(r);
	answer_method(&x, true);
}
