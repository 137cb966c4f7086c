/* answer.c - see answer.h. From top to bottom: method, site, path, passwords, forced redirects, the file, or what takes
 * its place. */
#include "gatling/site/answer/answer.h"

#include <errno.h>

#include "gatling/base/text.h"
#include "gatling/http/path.h"
#include "gatling/site/answer/exchange.h"

/* Finds the owner's fields for this path. Returns false if they are too long, and that is the answer. */
static bool find_headers(struct exchange *x) {
	const struct header_set *set = header_rules_match(x->site->headers, x->host, exchange_slashed_path(x));
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
	else if (!exchange_admitted_without_file(x)) return;
	else if (error == EISDIR && !exchange_names_directory(x)) answer_directory_redirect(x);
	else if (response_status_of(error) == 404) answer_missing(x);
	else answer_error(x, response_status_of(error));
}

/* Answers an ACME challenge over plain HTTP, when all else is redirected to HTTPS: a file below path_acme_challenge, or
 * 404 without a page of the site. false: the request is to be redirected. */
static bool answer_challenge(struct exchange *x) {
	struct response *r = x->response;
	if (!slice_starts(exchange_path(x), path_acme_challenge) || exchange_names_directory(x) || !x->admitted)
		return false;
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
	x->response->lines = exchange_owner_lines(x);
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
		if (arrival->patient) exchange_wait(&x, job);
		else response_status(r, 503);
		return;
	}
	int status = x.site ? 0 : response_status_of(errno);
	if (x.site) {
		x.local = text_copy(x.path, x.site->prefix);
		x.lookup.restricted = x.site->realm[0] || x.site->realm[1];
		x.admitted = !x.lookup.restricted;
		status = path_decode(q->path, x.local, &x.length);
		if (!status && site_hides(x.site, exchange_path(&x))) status = 404;
	}
	const bool unknown = x.site ? x.site->unknown : status != 404; /* there may be an upstream */
	if (!serves && (!passes || (!unknown && (status || !x.site->redirects)))) {
		answer_method(&x, x.site && !status);
		return;
	}
	/* decided on the decoded path */
	if (to_https) {
		if (!x.site || status || !answer_challenge(&x)) answer_https_redirect(&x);
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
		if (!exchange_admitted(&x, x.site->realm)) return;
		x.admitted = true;
	}
	if (x.site->unknown) {
		answer_error(&x, 503);
		return;
	}
	if (!x.site->redirects || !answer_by_rule(&x, true)) answer_path(&x);
	if (serves || x.passed || !r->status || r->status == 401 || r->status >= 429) return;
	response_drop(r);
	answer_method(&x, true);
}
