/* upstream_address.c - see upstream_address.h. */
#include "gatling/upstream/upstream_address.h"

#include <stdio.h>

#include "gatling/base/text.h"

enum { PORT_HTTP = 80, PORT_MAX = 65535, NET_TEXT_MAX = 64 };

/* Splits what may be in brackets from ":PORT" behind it. *port: 0 if there is none. Returns false if something else is
 * there. */
static bool split(struct slice text, struct slice *host, unsigned *port) {
	bool brackets = slice_starts(text, SLICE("["));
	size_t length = slice_until(text, brackets ? ']' : ':');
	*host = brackets ? slice_rest(slice_first(text, length), 1) : slice_first(text, length);
	if (brackets && length == text.length) return false;
	text = slice_rest(text, length + brackets);
	*port = 0;
	if (!text.length) return true;
	if (text.at[0] != ':' || text.length < 2 || text.length > 6) return false;
	for (slice_drop(&text, 1); text.length; slice_drop(&text, 1)) {
		if (!text_is_digit(text.at[0])) return false;
		*port = *port * 10 + (unsigned)(text.at[0] - '0');
	}
	return *port && *port <= PORT_MAX;
}

const char *upstream_target_parse(struct slice authority, struct upstream_target *t) {
	struct slice one, host;
	unsigned port;
	t->count = 0;
	while (slice_next_element(&authority, &one)) {
		if (t->count == UPSTREAM_ADDRESSES_MAX) return "has too many addresses";
		struct upstream_address *a = &t->at[t->count++];
		if (!split(one, &host, &port)) return "has an address that is not HOST:PORT";
		if (slice_equal_nocase(host, SLICE("localhost"))) host = SLICE("127.0.0.1");
		if (!peer_parse(host, &a->address)) return "has a host that is neither an IP address nor localhost";
		a->port = (uint16_t)(port ? port : PORT_HTTP);
	}
	return t->count ? NULL : "has no host";
}

bool upstreams_allow(struct upstreams_allowed *allowed, const char *text) {
	char net[NET_TEXT_MAX];
	struct slice host;
	unsigned port;
	if (allowed->count == UPSTREAM_ALLOWED_MAX || !split(slice_of(text), &host, &port)) return false;
	if (slice_equal_nocase(host, SLICE("localhost"))) host = SLICE("127.0.0.1");
	if (host.length >= sizeof net) return false;
	*text_copy(net, host) = '\0';
	if (!peer_net_parse(net, &allowed->at[allowed->count].net)) return false;
	allowed->at[allowed->count++].port = (uint16_t)port;
	return true;
}

static bool is_allowed(const struct upstreams_allowed *allowed, const struct upstream_address *a) {
	for (unsigned i = 0; i < allowed->count; i++) {
		struct peer_nets one = {.net[0] = allowed->at[i].net, .count = 1};
		if (peer_is_in(&a->address, &one) && (!allowed->at[i].port || allowed->at[i].port == a->port)) return true;
	}
	return false;
}

const struct upstream_address *upstreams_refused(const struct upstreams_allowed *allowed,
												 const struct upstream_target *t) {
	for (unsigned i = 0; i < t->count; i++)
		if (!is_allowed(allowed, &t->at[i])) return &t->at[i];
	return NULL;
}

void upstream_format(char *out, const struct upstream_address *a) {
	char text[PEER_MAX];
	bool brackets = !peer_is_ipv4(&a->address);
	size_t n = peer_format(text, &a->address);
	snprintf(out, UPSTREAM_TEXT_MAX, "%s%.*s%s:%u", brackets ? "[" : "", (int)n, text, brackets ? "]" : "", a->port);
}
