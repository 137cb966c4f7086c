/* explain_url.c - see explain_url.h. answer() decides as in a worker, from the root that the server would have and as
 * its user, and is asked what it has found (struct site_context). */
#include "gatling/explain_url.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/check.h"
#include "gatling/exchange/exchange.h"
#include "gatling/site/answer/decision.h"

enum { FILES = 64, OPEN = 256, WAIT_MS = 1000, LINE_SHOWN = 1024, PORT_HTTP = 80, PORT_HTTPS = 443 };

/* What the last answer() has found. */
static struct {
	char site[SITE_PREFIX_MAX + 1], file[PATH_ROOM + 1];
	bool found, guarded, ruled;
	unsigned rule, fields, limits; /* lines of _redirects, _headers and _limits; 0: none */
} told;

static void note(const struct decision *d) {
	memset(&told, 0, sizeof told);
	told.found = d->site;
	told.guarded = d->guarded || (d->site && d->site->guard.permission != PERMISSION_OPEN);
	told.ruled = d->ruled;
	told.rule = d->rule;
	if (d->lookup.headers && (!d->passed || d->context->options->upstream_headers))
		told.fields = d->lookup.headers->line;
	told.limits = d->response->limits ? d->response->limits->line : 0;
	if (d->site) *text_copy(told.site, d->site->prefix) = '\0';
	if (d->lookup.path.length && d->lookup.path.length < sizeof told.file) *text_copy(told.file, d->lookup.path) = '\0';
}

/* Prints a line of a file of the site. */
static void print_line(const char *what, const char *file, unsigned number) {
	char path[SITE_PREFIX_MAX + 32], line[LINE_SHOWN] = "";
	snprintf(path, sizeof path, "%s%s", told.site, file);
	FILE *in = fopen(path, "re");
	for (unsigned i = 0; in && i < number && fgets(line, sizeof line, in); i++) {}
	if (in) fclose(in);
	line[strcspn(line, "\r\n")] = '\0';
	printf("%-9s %s:%u: %s\n", what, path, number, line + strspn(line, " \t"));
}

static void print_upstream(const struct response *r) {
	char text[UPSTREAM_TEXT_MAX];
	for (unsigned i = 0; i < r->upstream->count; i++) {
		upstream_format_allowed(text, r->upstream, &r->upstream->at[i]);
		printf("%-9s %s, with the target %.*s\n", i ? "" : "upstream", text, (int)r->location.length, r->location.at);
	}
}

/* Prints the head of the response, without fields that all have. */
static void print_head(struct response *r) {
	char *const fields = WORKSPACE(RESPONSE_FIELDS_MAX);
	const struct slice status = response_status_line(r->status);
	uint64_t length;
	const size_t n = response_fields(r, fields, &length);
	printf("\n%.*s%.*s", (int)status.length, status.at, (int)n, fields);
	response_drop(r);
}

static void print(struct response *r) {
	if (!told.found) printf("%-9s none\n", "site");
	else printf("%-9s %s\n", "site", *told.site ? told.site : "the served directory itself");
	if (told.guarded)
		printf("%-9s asks for a password or an address%s\n", ".htaccess",
			   r->status == 401 ? ", which the request has not" : "");
	if (told.limits) print_line("limits", "_limits", told.limits);
	if (told.rule) print_line("rule", "_redirects", told.rule);
	if (told.fields) print_line("fields", "_headers", told.fields);
	if (r->upstream && !r->status) {
		print_upstream(r);
		return;
	}
	if (r->representation && (r->status < 400 || told.ruled)) printf("%-9s %s\n", "file", told.file);
	else if (r->representation) printf("%-9s none; the site has a page for this status\n", "file");
	else if (r->source.owner) printf("%-9s none; a listing\n", "file");
	else if (r->status == 404) printf("%-9s none\n", "file");
	print_head(r);
}

static void go_on(struct waiter *waiter) { (void)waiter; }

/* Answers a request, and waits for what it takes. */
static void answer_whole(struct site_context *c, io_loop *loop, const struct request *q, struct arrival *arrival,
						 struct response *r) {
	uint64_t prefetched[WAITS_MAX] = {0};
	for (unsigned waits = 0;; waits++) {
		arrival->may_wait = waits < WAITS_MAX;
		answer(c, q, arrival, r);
		if (r->status || r->upstream || !r->job) return;
		struct waiter waiter = {.resume = go_on};
		prefetched[waits] = r->job->prefetches;
		arrival->prefetched = prefetched;
		arrival->since_ms = c->now_ms;
		job_wait(r->job, &waiter);
		while (waiter.link) {
			(void)io_wait(loop, WAIT_MS);
			c->now_ns = io_now_ns(loop);
			c->now_ms = c->now_ns / 1000000;
			(void)io_woken(loop);
			site_context_collect(c);
			site_context_tidy(c, c->now_ms);
		}
	}
}

/* Splits a URL, and makes a request from it: *text is to be freed with free(). Returns false if it is none. */
static bool make_request(const char *url, char **text, struct request *q, struct arrival *arrival) {
	const struct slice whole = slice_of(url), rest = slice_rest(whole, host_scheme_length(whole));
	const struct slice host = slice_first(rest, slice_until(rest, '/')), path = slice_rest(rest, host.length);
	const char *colon = memchr(host.at, ':', host.length);
	arrival->secure = slice_starts_nocase(whole, SLICE("https:"));
	arrival->port = arrival->secure ? PORT_HTTPS : PORT_HTTP;
	if (colon && host.at[0] != '[') arrival->port = (unsigned)strtoul(colon + 1, NULL, 10);
	if (rest.length == whole.length || !host.length) return false;
	const int length = asprintf(text, "GET %.*s HTTP/1.1\r\nHost: %.*s\r\n\r\n", path.length ? (int)path.length : 1,
								path.length ? path.at : "/", (int)host.length, host.at);
	if (length == -1) *text = NULL;
	return length != -1 && request_parse(q, *text, (size_t)length) > 0;
}

int explain_url(const struct options *o) {
	static struct counters counts;
	static struct site_context context;
	char directory[PATH_MAX], *text = NULL;
	struct request q;
	struct response r = {0};
	struct arrival arrival = {.client = &peer_unknown, .client_is_known = false};
	struct docroot docroot = {.root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	if (!make_request(o->explain, &text, &q, &arrival)) {
		free(text);
		(void)notice_cannot("explain", o->explain, "it is no URL, such as https://www.example.org/path");
		return 2;
	}
	if (docroot.root == -1 || fchdir(docroot.root) == -1) {
		(void)notice_cannot("serve", o->root, strerror(errno));
		return 1;
	}
	struct mounts *mounts = mounts_open(".");
	if (check_enter(o, &docroot, directory) == -1) return 1;
	counters = &counts;
	io_loop *loop = io_loop_new();
	if (!loop || workspace_open() == -1 ||
		site_context_open(&context, loop, docroot.root, mounts, &o->site, 1, FILES, OPEN) == -1) {
		(void)notice_cannot("explain", o->explain, strerror(errno));
		return 1;
	}
	context.explain = note;
	context.https = arrival.secure;
	context.https_port = o->https_redirect ? (unsigned)o->tls_port : 0;
	context.directory = directory;
	context.tree.docroot.outside = docroot.outside;
	basic_auth_set_root(context.auth, *directory ? directory : o->root, o->root);
	answer_whole(&context, loop, &q, &arrival, &r);
	print(&r);
	free(text);
	return 0;
}
