/* answer_rule.c - see decision.h: answers by a rule of _redirects, with a redirect, another file, or an upstream. */
#include <errno.h>

#include "gatling/base/slice.h"
#include "gatling/http/path.h"
#include "gatling/site/answer/decision.h"
#include "gatling/site/answer/script.h"

/* Returns whether the realms admit the request to its path as a directory, with or without a trailing slash. If not,
 * fills in the response. */
static bool admitted_as_directory(struct decision *d) {
	char *end = d->local + d->length;
	if (decision_names_directory(d)) return decision_admitted_without_file(d);
	*end = '/';
	bool is = decision_admitted_to(d, (struct slice){.at = d->path, .length = (size_t)(end + 1 - d->path)});
	*end = '\0';
	return is;
}

/* Returns whether the realms admit the request to a script that a rule leads to. If not, fills in the response. */
static bool admitted_to_script(struct decision *d, struct slice name) {
	char path[SITE_PREFIX_MAX + TARGET_MAX + 1];
	char *end = TEXT_JOIN(path, d->site->prefix, slice_rest(name, 1));
	*end = '\0';
	return decision_admitted_to(d, (struct slice){.at = path, .length = (size_t)(end - path)});
}

/* Replaces the requested path by that of a target in _redirects. Returns false if that cannot be served. */
static bool rewrite(struct decision *d, struct slice target) {
	target.length = slice_until(target, '?');
	if (target.length > TARGET_MAX || path_decode(target, d->local, &d->length) != 0) return false;
	return site_shows(d->site, decision_path(d));
}

/* Returns the owner's fields for the response of an upstream. */
static struct slice added_by_owner(const struct decision *d) {
	char *const text = d->context->room->lines;
	if (!d->context->options->upstream_headers || !d->lookup.headers) return (struct slice){0};
	return (struct slice){.at = text, .length = header_set_added(d->lookup.headers, d->filled, text)};
}

/* Returns the owner's hints for a page that comes from an upstream. */
static struct slice hints_of_owner(const struct decision *d) {
	char *const text = d->context->room->hints;
	if (d->request->method != METHOD_GET || d->request->websocket) return (struct slice){0};
	return (struct slice){.at = text, .length = early_hints(d->lookup.headers, text)};
}

/* Has the response pass the request on to an upstream, whatever its method. forced: the realms have not been checked
 * yet. */
static void answer_upstream(struct decision *d, const struct redirect *rule, bool forced) {
	struct slice method = d->request->method_name;
	bool never = slice_equal(method, SLICE("TRACE")) || slice_equal(method, SLICE("CONNECT"));
	if (forced && !admitted_as_directory(d)) return;
	d->passed = true;
	int status = never ? 405 : d->arrival->failed;
	if (!status && rule->refused) status = 503;
	struct upstream_script script = {0};
	if (!status && rule->upstream->protocol != UPSTREAM_HTTP) {
		if (d->request->websocket) status = 501;
		else if (d->request->framing == BODY_CHUNKED && rule->upstream->protocol == UPSTREAM_SCGI) status = 411;
		else status = script_find(d->context, d->site, rule, decision_slashed_path(d), &script);
		if (!status && script.is_file && !admitted_to_script(d, script.name)) return;
	}
	if (status) {
		answer_error(d, status);
		return;
	}
	const struct slice user = d->response->user;
	response_status(d->response, 0);
	d->response->user = user;
	d->response->upstream = rule->upstream;
	d->response->location = rule->target;
	d->response->script = script;
	d->response->lines = added_by_owner(d);
	d->response->hints = hints_of_owner(d);
}

/* Answers with the file, page or index at the rewritten path. status: of the rule. Returns 0, or an errno if there is
 * no answer yet. */
static int answer_rewritten(struct decision *d, int status) {
	const int error = answer_file_or_page(d, status);
	if (decision_names_directory(d)) return response_status_of(error) == 404 ? answer_page(d, status) : error;
	if (error != EISDIR) return error;
	if (!decision_admitted_without_file(d)) return 0;
	d->local[d->length++] = '/';
	return answer_exact(d, status);
}

static void answer_rule(struct decision *d, const struct redirect *rule, bool has_file) {
	if (rule->upstream || rule->refused) {
		answer_upstream(d, rule, has_file);
		return;
	}
	if (rule->status >= 300 && rule->status < 400) {
		d->response->status = rule->status;
		d->response->lines = d->vary;
		d->response->location = rule->target;
		return;
	}
	d->lookup.error = rule->status >= 400;
	d->lookup.is_substitute = !has_file || d->lookup.error;
	const int error = rewrite(d, rule->target) ? answer_rewritten(d, rule->status) : ENOENT;
	d->ruled = !error && d->response->representation && d->response->status == rule->status;
	if (!error || !decision_admitted_without_file(d)) return;
	if (response_status_of(error) == 404 && answer_link(d)) return;
	answer_error(d, rule->status == 200 ? response_status_of(error) : rule->status);
	d->ruled = rule->status != 200;
}

/* For struct redirect_request: find_file() and reach(). */
static int find_file(const void *decision, struct slice path) {
	const struct decision *d = decision;
	return script_look(d->context, d->site, path);
}

static struct slice reach(const void *decision, struct slice path) {
	const struct decision *d = decision;
	return script_reach(d->context, d->site, path);
}

static bool has_cookie(const void *decision, struct slice wanted) {
	struct slice lines = ((const struct decision *)decision)->request->lines, rest;
	while (request_next_value(&lines, SLICE("cookie"), &rest)) {
		while (rest.length) {
			const size_t length = slice_until(rest, ';');
			const struct slice pair = slice_trim(slice_first(rest, length));
			slice_drop(&rest, length < rest.length ? length + 1 : length);
			if (slice_equal(slice_trim(slice_first(pair, slice_until(pair, '='))), wanted)) return true;
		}
	}
	return false;
}

/* Returns the language that the client prefers, which browsers list first. */
static struct slice language_of(const void *decision) {
	struct slice lines = ((const struct decision *)decision)->request->lines, list, first;
	if (!request_next_value(&lines, SLICE("accept-language"), &list) || !slice_next_element(&list, &first))
		return SLICE("");
	return slice_trim(slice_first(first, slice_until(first, ';')));
}

static bool is_secure(const struct decision *d) {
	return d->arrival->secure || forwarded_over_https(d->arrival->forwarding, d->request);
}

/* Finds the first rule that applies to the path, and writes its target to the room, as a location. */
static bool find_rule(struct decision *d, bool has_file, struct redirect *rule) {
	static const struct slice vary[] = {[0] = SLICE(""),
										[REDIRECT_VARY_LANGUAGE] = SLICE("Vary: Accept-Language\r\n"),
										[REDIRECT_VARY_COOKIE] = SLICE("Vary: Cookie\r\n"),
										[REDIRECT_VARY_LANGUAGE | REDIRECT_VARY_COOKIE] =
											SLICE("Vary: Accept-Language, Cookie\r\n")};
	const struct redirect_request request = {.host = d->host,
											 .path = decision_slashed_path(d),
											 .query = d->request->query,
											 .secure = is_secure(d),
											 .any_scheme = !d->context->https && !d->arrival->forwarding,
											 .language = language_of,
											 .has_cookie = has_cookie,
											 .find_file = find_file,
											 .reach = reach,
											 .context = d};
	const bool applies = redirect_rules_match(d->site->redirects, &request, has_file, d->context->room->location, rule);
	d->vary = vary[rule->vary];
	if (applies) d->rule = rule->line;
	return applies;
}

/* Keeps an answer by a rule for the next such request (answer_cache.h), if it passes the request on, wherever there are
 * files, and only Host and path have led to that. */
static void remember(const struct decision *d, const struct redirect *rule) {
	const struct response *r = d->response;
	const bool restricted = d->lookup.restricted || d->guarded;
	if (r->status || !r->upstream || r->upstream->protocol != UPSTREAM_HTTP) return;
	if (d->request->method != METHOD_GET || d->request->websocket) return; /* they have no hints */
	if (!rule->by_path || restricted || r->limits || r->lines.length || r->hints.length ||
		tree_awaits(&d->context->tree))
		return;
	struct known_answer known = {.site = d->site->prefix,
								 .until_ms = d->site->until_ms,
								 .upstream = r->upstream,
								 .target = rule->target,
								 .has_query = rule->has_query};
	if (!known.has_query) known.target.length = slice_until(known.target, '?'); /* that of this request */
	answer_cache_keep(d->context->answers, d->host, d->arrival->port, d->request->path, &known);
}

bool answer_known_upstream(const struct site_context *c, const struct request *q, const struct arrival *arrival,
						   const struct known_answer *known, struct response *r) {
	if (arrival->failed) return false;
	if (known->has_query || !q->query.at) r->location = known->target;
	else if (!redirect_target_join(known->target, q->query, c->room->location, &r->location)) return false;
	r->status = 0;
	r->upstream = known->upstream;
	r->script = (struct upstream_script){0};
	return true;
}

bool answer_by_rule(struct decision *d, bool has_file) {
	struct redirect rule;
	const bool applies = find_rule(d, has_file, &rule);
	if (applies) answer_rule(d, &rule, has_file);
	if (applies && has_file) remember(d, &rule);
	return applies;
}

/* Finds the rule that runs the index.php of the directory at the path, to which it adds that name if there is one.
 * Returns 0, ENOENT if there is none, or an errno if that is unknown for now. */
static int find_index_script(struct decision *d, struct redirect *rule) {
	static const struct slice index = SLICE("index.php");
	const size_t length = d->length;
	if (!decision_names_directory(d) || !redirect_rules_programs(d->site->redirects)) return ENOENT;
	*text_copy(d->local + length, index) = '\0';
	d->length += index.length;
	int error = script_look(d->context, d->site, decision_slashed_path(d));
	if (!error && !(find_rule(d, true, rule) && (rule->script || rule->refused))) error = ENOENT;
	if (!error) return 0;
	d->length = length;
	d->local[length] = '\0';
	return error;
}

bool answer_index_script(struct decision *d) {
	struct redirect rule;
	const int error = find_index_script(d, &rule);
	if (error == ENOENT) return false;
	if (error) answer_error(d, 503);
	else answer_upstream(d, &rule, true);
	return true;
}

bool decision_has_index_script(struct decision *d) {
	struct redirect rule;
	const size_t length = d->length;
	const bool has = find_index_script(d, &rule) != ENOENT;
	d->length = length;
	d->local[length] = '\0';
	return has;
}
