/* answer_missing.c - see exchange.h: what answers where there is no file, or comes before it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gatling/base/text.h"
#include "gatling/base/workspace.h"
#include "gatling/http/path.h"
#include "gatling/site/answer/exchange.h"
#include "gatling/site/answer/script.h"

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

/* The location starts with exactly one slash whatever the path, so it stays on this host, and is encoded, so it holds
 * no line break. */
void answer_directory_redirect(struct exchange *x) {
	char *at = text_copy(location(), SLICE("/"));
	at += path_encode(exchange_path(x), at);
	*at++ = '/';
	redirect(x, 301, at + path_encode_target(x->request->query, at));
}

void answer_https_redirect(struct exchange *x) {
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

/* --- what takes the place of a file --- */

static bool admitted_to(struct exchange *x, struct slice path) {
	struct realm *realm[REALMS_OF_PATH];
	basic_auth_realms(x->content->auth, path, false, realm);
	bool is = exchange_admitted(x, realm);
	for (int i = 0; i < REALMS_OF_PATH; i++) realm_release(realm[i]);
	return is;
}

bool exchange_admitted_without_file(struct exchange *x) {
	return admitted_to(x, (struct slice){.at = x->path, .length = x->site->prefix.length + x->length});
}

/* The same for a path that a rule takes for a directory, with a slash behind it or without. */
static bool admitted_as_directory(struct exchange *x) {
	char *end = x->local + x->length;
	if (exchange_names_directory(x)) return exchange_admitted_without_file(x);
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
	return !site_hides(x->site, exchange_path(x));
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
		else if (!script_find(x->content, x->site, rule, exchange_slashed_path(x), &script)) status = 404;
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
	if (error == EISDIR && !exchange_names_directory(x)) {
		if (!exchange_admitted_without_file(x)) return;
		x->local[x->length++] = '/';
		error = answer_exact(x, rule->status);
	}
	if (error && exchange_admitted_without_file(x))
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

bool answer_by_rule(struct exchange *x, bool forced) {
	struct redirect rule;
	struct redirect_request request = {.host = x->host,
									   .path = exchange_slashed_path(x),
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
									  .title = exchange_path(x),
									  .of_site = site_begins_at(x->site, exchange_path(x)),
									  .format = format,
									  .coding = (enum coding)coding};
	int error = listing_cache_find(x->content->listings, &request, x->arrival->patient, &found);
	if (error) {
		answer_error(x, response_status_of(error));
		return;
	}
	if (found.job) {
		exchange_wait(x, found.job);
		return;
	}
	r->status = 200;
	x->lookup.stands_in = true;
	r->lines = exchange_lines(x, listing_cache_control(x), x->lookup.headers);
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

void answer_missing(struct exchange *x) {
	struct stat st;
	if (follow_link(x)) return;
	if (x->site->redirects && answer_by_rule(x, false)) return;
	x->local[x->length] = '\0'; /* without the index */
	bool exists = exchange_names_directory(x) &&
				  names_stat(x->content->names, &x->content->docroot, *x->path ? x->path : ".", &st) == 0;
	if (exchange_names_directory(x) && !exists && answer_unknown(x, errno)) return;
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
