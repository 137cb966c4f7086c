/* upstream_address.c - see upstream_address.h. */
#include "gatling/upstream/upstream_address.h"

#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/broker/broker_rule.h"

enum { PORT_HTTP = 80, PORT_FCGI = 9000, PORT_MAX = 65535, NET_TEXT_MAX = 64 };

const char upstream_no_memory[] = "there is no memory";

/* Splits HOST[:PORT], where the host may be in brackets. *port is 0 if there is none. Returns false if text has another
 * form. */
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

/* Returns whether the path is absolute and has no empty, "." or ".." segments, so that a socket has only one path. */
static bool is_plain(const char *path) {
	return path[0] == '/' && !strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../");
}

static const struct slice unix_scheme = SLICE("unix:");

/* Removes the path of a socket from the front of *rest. Returns NULL, or what is wrong. */
static const char *parse_path(struct slice *rest, struct upstream_address *a) {
	slice_drop(rest, unix_scheme.length);
	struct slice path = slice_first(*rest, slice_until(*rest, ':'));
	path = slice_first(path, slice_until(path, ','));
	if (path.length >= UPSTREAM_PATH_MAX) return "has the path of a socket that is too long: 107 bytes are allowed";
	*text_copy(a->path, path) = '\0';
	if (!is_plain(a->path)) return "has no absolute path of a socket behind unix:";
	const char *name = strrchr(a->path, '/') + 1;
	if (!*name) return "has the path of a socket that ends with '/': write a ':' in front of what follows the path";
	if (*name == '.') return "has the path of a socket whose name begins with '.'";
	slice_drop(rest, path.length);
	return NULL;
}

static const char *parse_host(struct slice *rest, enum upstream_protocol protocol, struct upstream_address *a) {
	struct slice host, one = slice_first(*rest, slice_until(*rest, '/'));
	unsigned port;
	one = slice_first(one, slice_until(one, '?'));
	one = slice_first(one, slice_until(one, ','));
	slice_drop(rest, one.length);
	if (one.length > 1 && slice_ends(one, SLICE(":")))
		return "has a ':' behind its address, which only unix:PATH needs: remove it";
	if (!split(one, &host, &port)) return "has an address that is not HOST:PORT";
	if (!host.length) return "has no host";
	if (slice_equal_nocase(host, SLICE("localhost"))) host = SLICE("127.0.0.1");
	if (!peer_parse(host, &a->address)) return "has a host that is neither an IP address nor localhost";
	if (!port && protocol == UPSTREAM_SCGI) return "has no port: scgi has none of its own";
	if (!port) port = protocol == UPSTREAM_FCGI ? PORT_FCGI : PORT_HTTP;
	a->port = (uint16_t)port;
	return NULL;
}

static const char *parse_addresses(struct slice *rest, struct upstream_target *t) {
	const char *wrong = NULL;
	bool more = true;
	while (!wrong && more) {
		if (t->count == UPSTREAM_ADDRESSES_MAX) return "has too many addresses";
		struct upstream_address *a = &t->at[t->count++];
		bool is_path = slice_starts(*rest, unix_scheme);
		wrong = is_path ? parse_path(rest, a) : parse_host(rest, t->protocol, a);
		more = slice_starts(*rest, SLICE(","));
		if (more || (is_path && rest->length)) slice_drop(rest, 1);
	}
	return wrong;
}

const char *upstream_target_parse(struct slice scheme, struct slice *rest, struct upstream_target **target) {
	static const struct slice schemes[] = {
		[UPSTREAM_HTTP] = SLICE("http://"), [UPSTREAM_FCGI] = SLICE("fcgi://"), [UPSTREAM_SCGI] = SLICE("scgi://")};
	enum upstream_protocol protocol = UPSTREAM_HTTP;
	while (protocol <= UPSTREAM_SCGI && !slice_equal_nocase(scheme, schemes[protocol])) protocol++;
	if (protocol > UPSTREAM_SCGI) return "has none of the schemes http, fcgi and scgi";
	struct upstream_target *t = calloc(1, sizeof *t + UPSTREAM_ADDRESSES_MAX * sizeof *t->at);
	if (!t) return upstream_no_memory;
	t->protocol = protocol;
	t->references = 1;
	const char *wrong = parse_addresses(rest, t);
	struct upstream_target *fitting = wrong ? NULL : realloc(t, sizeof *t + t->count * sizeof *t->at);
	if (fitting) t = fitting;
	if (wrong) upstream_target_release(t);
	else *target = t;
	return wrong;
}

struct upstream_target *upstream_target_retain(const struct upstream_target *target) {
	struct upstream_target *t = (struct upstream_target *)(uintptr_t)target;
	t->references++;
	return t;
}

void upstream_target_release(struct upstream_target *t) {
	if (t && --t->references == 0) free(t);
}

bool upstreams_allow(struct upstreams_allowed *allowed, const char *text) {
	char net[NET_TEXT_MAX];
	struct slice host, whole = slice_of(text);
	struct upstream_address one;
	unsigned port;
	if (allowed->count == UPSTREAM_ALLOWED_MAX) return false;
	if (slice_starts(whole, unix_scheme)) {
		if (parse_path(&whole, &one) || whole.length) return false;
		allowed->at[allowed->count++].path = text + unix_scheme.length;
		return true;
	}
	if (*text == '/') {
		allowed->at[allowed->count++].directory = text;
		return true;
	}
	if (!split(slice_of(text), &host, &port)) return false;
	if (slice_equal_nocase(host, SLICE("localhost"))) host = SLICE("127.0.0.1");
	if (host.length >= sizeof net) return false;
	*text_copy(net, host) = '\0';
	if (!peer_net_parse(net, &allowed->at[allowed->count].net)) return false;
	allowed->at[allowed->count++].port = (uint16_t)port;
	return true;
}

bool upstreams_allow_tcp(const struct upstreams_allowed *allowed) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (!allowed->at[i].directory && !allowed->at[i].path) return true;
	return false;
}

/* Returns whether the option with that number allows an address. */
static bool allows(const struct upstreams_allowed *allowed, unsigned i, const struct upstream_address *a) {
	const struct peer_nets one = {.net[0] = allowed->at[i].net, .count = 1};
	const char *directory = allowed->at[i].directory, *path = allowed->at[i].path;
	if (directory) return a->path[0] && broker_name_in(directory, a->path);
	if (path) return strcmp(a->path, path) == 0;
	return !a->path[0] && peer_is_in(&a->address, &one) && (!allowed->at[i].port || allowed->at[i].port == a->port);
}

static bool is_allowed(const struct upstreams_allowed *allowed, const struct upstream_address *a) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (allows(allowed, i, a)) return true;
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
	if (a->path[0]) {
		memcpy(out, a->path, sizeof a->path);
		return;
	}
	bool brackets = !peer_is_ipv4(&a->address);
	size_t n = peer_format(text, &a->address);
	snprintf(out, UPSTREAM_TEXT_MAX, "%s%.*s%s:%u", brackets ? "[" : "", (int)n, text, brackets ? "]" : "", a->port);
}

void upstream_format_allowed(char *out, const struct upstream_address *a) {
	if (a->path[0]) snprintf(out, UPSTREAM_TEXT_MAX, "unix:%s", a->path);
	else upstream_format(out, a);
}
