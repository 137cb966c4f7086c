/* answer_redirect.c - see decision.h: redirects that no rule makes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gatling/base/slice.h"
#include "gatling/files/report.h"
#include "gatling/http/path.h"
#include "gatling/site/answer/decision.h"

void decision_redirect(struct decision *d, int status, const char *end) {
	d->response->status = status;
	const char *location = d->context->room->location;
	d->response->location = (struct slice){.at = location, .length = (size_t)(end - location)};
}

/* Appends the path and query of the request to the location. */
static char *add_target(const struct decision *d, char *at) {
	at += path_encode_target(d->request->path, at);
	return at + path_encode_target(d->request->query, at);
}

/* Writes a location that starts with exactly one slash, so that it stays on this host, and is encoded, so that it
 * contains no line break. It is not kept by a browser: when a page has become the index of a directory, the redirects
 * from before and after would lead to each other. */
void answer_redirect(struct decision *d, struct slice path) {
	char *at = text_copy(d->context->room->location, SLICE("/"));
	at += path_encode(path, at);
	decision_redirect(d, 301, at + path_encode_target(d->request->query, at));
	if (d->context->options->cache_control) d->response->lines = SLICE("Cache-Control: no-cache\r\n");
}

void answer_https_redirect(struct decision *d) {
	response_status(d->response, 400);
	if (!d->host.length) return; /* HTTP/1.0, and no address to name instead */
	char *at = text_copy(d->context->room->location, SLICE("https://"));
	at += host_name(d->host, at);
	if (d->context->https_port != 443) at += sprintf(at, ":%u", d->context->https_port);
	decision_redirect(d, 301, add_target(d, at));
}

void answer_fallback_redirect(struct decision *d) {
	char *at = text_copy_string(d->context->room->location, d->context->options->fallback);
	decision_redirect(d, 302, add_target(d, at[-1] == '/' ? at - 1 : at));
}

bool answer_link(struct decision *d) {
	char target[TARGET_MAX], *at = d->context->room->location;
	if (names_lack(d->context->names, slice_of(d->path))) return false;
	if (!tree_readlink(&d->context->tree, d->path, target, sizeof target)) return answer_unknown(d, errno);
	if (!strstr(target, "://")) {
		if (!d->context->tree.remote) (void)report_link(&d->context->tree.docroot, d->path);
		return false;
	}
	for (const char *c = target; *c; c++) { /* visible ASCII stays as it is, the rest is encoded */
		if (*c > ' ' && *c < 127) *at++ = *c;
		else at += path_encode((struct slice){.at = c, .length = 1}, at);
	}
	decision_redirect(d, 301, at);
	d->response->lines = d->vary;
	return true;
}
