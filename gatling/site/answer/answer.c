/* answer.c - see answer.h. answer() decides in this order: method, what was answered a moment ago, site, path, HTTPS,
 * the owner's limits and fields, passwords of the site, whether the rules are known, forced rules, the file (with the
 * passwords of its directory), or what takes its place. */
#include "gatling/site/answer/answer.h"

#include <errno.h>
#include <stdio.h>

#include "gatling/base/slice.h"
#include "gatling/client/limits.h"
#include "gatling/http/path.h"
#include "gatling/site/answer/decision.h"

/* Finds the owner's fields for this path. Returns false, and answers with 500, if they are too long. */
static bool find_headers(struct decision *d) {
	struct header_filled *const filled = &d->context->room->filled;
	const struct header_set *set = header_rules_match(d->site->headers, d->host, decision_slashed_path(d), filled);
	if (set && set->octets + filled->lines.length > HEADER_OCTETS_MAX) {
		char text[RULES_ERROR_MAX];
		snprintf(text, sizeof text,
				 "with this rule a response gets more than %d bytes of fields, or takes too long: answered with 500",
				 HEADER_OCTETS_MAX);
		site_complain(d->site, SITE_HEADERS, set->line, text);
		answer_error(d, 500);
		return false;
	}
	d->lookup.headers = set;
	d->filled = filled->lines;
	return true;
}

/* Finds the limits of the owner for this path, and counts the request for its rate. Returns false, and refuses it, if
 * the client has made too many. */
static bool find_limits(struct decision *d) {
	struct path_limits *const l = &d->context->room->limits;
	*l = (struct path_limits){.upstream = d->context->options->upstream_limits};
	if (!limit_rules_match(d->site->limits, d->site->prefix, d->host, decision_slashed_path(d), l)) {
		site_complain(d->site, SITE_LIMITS, l->line,
					  "comparing a path with the lines down to this one takes too long: answered with 500");
		answer_error(d, 500);
		return false;
	}
	if (l->line) d->response->limits = l;
	if (!l->rate.burst || d->arrival->rated) return true;
	if (limits_take_of_rate(d->arrival->client, l->rate_of, l->rate, d->context->now_ns, d->site->prefix)) return true;
	response_status(d->response, 429);
	return false;
}

/* Answers by a rule in the place of a directory that has no index, whose path ends with a slash here, but not for the
 * rule. Returns whether there is an answer. */
static bool answer_before_directory(struct decision *d) {
	const int error = answer_index_redirect(d);
	if (!error || answer_unknown(d, error)) return true;
	if (response_status_of(error) != 404 || decision_has_index_script(d)) return false; /* it may have one */
	if (!decision_admitted_without_file(d)) return true;
	d->local[--d->length] = '\0';
	const bool answered = answer_by_rule(d, false);
	if (!answered) d->local[d->length++] = '/';
	return answered;
}

/* Answers a request for a directory without a slash at its end. */
static void answer_directory(struct decision *d) {
	d->local[d->length++] = '/';
	if (d->site->redirects && answer_before_directory(d)) return;
	answer_redirect(d, decision_path(d));
}

static void answer_path(struct decision *d) {
	int error = answer_file_or_page(d, 200);
	if (!error) return;
	if (response_status_of(error) == 404) answer_report_link(d);
	if (!decision_admitted_without_file(d)) return;
	if (error == EISDIR && !decision_names_directory(d)) answer_directory(d);
	else if (response_status_of(error) == 404) answer_missing(d);
	else answer_error(d, response_status_of(error));
}

/* Answers an ACME challenge over plain HTTP, where everything else is redirected to HTTPS: with a file below
 * path_acme_challenge, or with 404 but no page of the site. Returns false if the request has to be redirected, too. */
static bool answer_challenge(struct decision *d) {
	struct response *r = d->response;
	if (!slice_starts(decision_path(d), path_acme_challenge) || decision_names_directory(d) || !d->admitted)
		return false;
	if (d->site->headers && !find_headers(d)) r->status = 500;
	else if (answer_exact(d, 200) != 0) r->status = 404;
	else if (r->status < 400 || r->status == 416) return true;
	if (r->representation)
		representation_release(r->representation); /* an error page: the answer is 404 without a page, or a redirect */
	if (r->status == 404) response_status(r, 404);
	return r->status == 404;
}

/* Returns the status for a method with which files are not served: 204 for OPTIONS, otherwise 405 or 501. */
static int refusal_of(enum method method) {
	return method == METHOD_OPTIONS ? 204 : method == METHOD_NOT_ALLOWED ? 405 : 501;
}

/* Answers a method with which files are not served. If is_path, OPTIONS gets the owner's fields for the path:
 * preflights request those of CORS, without passwords. */
static void answer_method(struct decision *d, bool is_path) {
	const struct request *q = d->request;
	response_status(d->response, refusal_of(q->method));
	if (q->method != METHOD_OPTIONS || !is_path || !d->site->headers || !find_headers(d)) return;
	d->response->lines = decision_owner_lines(d);
}

/* Returns whether requests for a host can be redirected to HTTPS. */
static bool has_certificate(const struct site_context *c, struct slice host) {
	char name[HOST_MAX + 1];
	if (!c->covered) return true;
	if (!host.length) return false;
	name[host_name(host, name)] = '\0';
	return certificates_cover(c->covered, name);
}

/* While the site is not known: most likely it is the root, and the path is that of a file. */
static void expect_file(const struct site_context *c, const struct request *q) {
	char path[TARGET_MAX + 1];
	size_t length;
	if (q->method > METHOD_HEAD || path_decode(q->path, path, &length) || !length || path[length - 1] == '/') return;
	path[length] = '\0';
	tree_expect_file(&c->tree, path, REMOTE_OPENED);
}

/* Decides by the site. serves: the method is one with which files are served; passes: another, which an upstream may
 * take. */
static void decide_by_site(struct decision *d, bool serves, bool passes, bool to_https) {
	const struct site_context *c = d->context;
	const struct request *q = d->request;
	struct response *r = d->response;
	d->site = sites_find(c->sites, d->host, d->arrival->port, c->now_ms);
	if (!d->site && errno == EINPROGRESS) expect_file(c, q);
	int status = d->site ? 0 : response_status_of(errno);
	if (d->site) {
		r->site = d->site->prefix;
		d->local = text_copy(d->path, d->site->prefix);
		d->admitted = d->site->guard.permission == PERMISSION_OPEN;
		d->lookup.restricted = !d->admitted;
		status = path_decode(q->path, d->local, &d->length);
		if (!status && !site_shows(d->site, decision_path(d))) status = 404;
	}
	const bool unknown = d->site ? !d->site->known : status != 404; /* there may be an upstream */
	if (!serves && (!passes || (!unknown && (status || !d->site->redirects)))) {
		answer_method(d, d->site && !status);
		return;
	}
	/* only now: challenges need the decoded path */
	if (to_https) {
		if (!d->site || status || !answer_challenge(d)) answer_https_redirect(d);
		return;
	}
	if (!d->site) {
		response_status(r, status);
		return;
	}
	if (status) {
		answer_error(d, status);
		return;
	}
	if (d->site->limits && !find_limits(d)) return;
	if (d->site->headers && !find_headers(d)) return;
	if (!d->admitted) {
		if (!decision_admitted(d, &d->site->guard)) return;
		d->admitted = true;
	}
	if (!d->site->known) {
		answer_error(d, 503);
		return;
	}
	/* no return from here on: what is answered to another method may have to become 405 below */
	if (!d->site->redirects || !answer_by_rule(d, true)) answer_path(d);
	if (d->guarded && r->status >= 300 && r->status < 400 && r->location.length)
		r->lines = SLICE("Cache-Control: private, no-cache\r\n"); /* caches would store it for all */
	/* a method that only rules and refusals answer: of a file it is 405 */
	const bool refused = !d->ruled && (r->status == 401 || r->status >= 429);
	if (serves || d->passed || !r->status || refused) return;
	response_drop(r);
	answer_method(d, true);
}

/* Answers as the same request was answered a moment ago (answer_cache.h). Returns whether it was. */
static bool answer_known(const struct site_context *c, const struct request *q, struct slice host,
						 const struct arrival *arrival, struct response *r) {
	const struct known_answer *known = answer_cache_find(c->answers, host, arrival->port, q->path, c->now_ms);
	if (!known) return false;
	if (!(known->resource ? answer_known_file : answer_known_upstream)(c, q, arrival, known, r)) return false;
	r->site = known->site;
	return true;
}

static void decide(const struct site_context *c, const struct request *q, const struct arrival *arrival,
				   struct response *r) {
	/* other methods, and WebSocket, are for upstreams; "OPTIONS *" is about this server (RFC 9110, section 9.3.7) */
	const bool serves = q->method <= METHOD_HEAD && !q->websocket,
			   passes = c->options->upstreams.count && !serves && !slice_equal(q->path, SLICE("*"));
	response_status(r, c->closed ? 503 : serves || passes ? 200 : refusal_of(q->method));
	if (r->status >= 400) return;

	struct slice host = q->host.at ? q->host : arrival->host;
	bool to_https = c->https_port && !arrival->secure && arrival->port && has_certificate(c, host);
	if (serves && !to_https && answer_known(c, q, host, arrival, r)) return;

	char room[1 + PATH_ROOM];
	struct decision d = {.context = c, .request = q, .arrival = arrival, .response = r, .host = host, .path = room + 1};
	room[0] = '/';
	decide_by_site(&d, serves, passes, to_https);
	if (c->explain) c->explain(&d);
}

void answer(const struct site_context *c, const struct request *q, const struct arrival *arrival, struct response *r) {
	r->limits = NULL;
	r->site = (struct slice){0};
	if (c->tree.remote) remote_decide(c->tree.remote, arrival->since_ms);
	decide(c, q, arrival, r);
	if (!c->tree.remote || !remote_is_awaited(c->tree.remote)) return;
	/* threads have to look at files first: what was decided without them does not count */
	response_drop(r);
	if (r->status == 429) r->limits = NULL; /* it is not counted */
	struct job *job = remote_fetch(c->remote);
	response_status(r, job && arrival->may_wait ? 0 : 503);
	if (!r->status) r->job = job;
}
