/* upstream_address.c - see upstream_address.h. */
#include "gatling/upstream/upstream_address.h"

#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/broker/broker_rule.h"
#include "gatling/http/chars.h"

enum { PORT_HTTP = 80, PORT_HTTPS = 443, PORT_FCGI = 9000, PORT_MAX = 65535, NET_TEXT_MAX = 64 };

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

static const struct slice unix_scheme = SLICE("unix:"), https_scheme = SLICE("https://"),
						  http_scheme = SLICE("http://");

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

/* Returns whether text is the name of a host. Its last label has a letter: otherwise it is an address for the C
 * library, though perhaps a short form of one. */
static bool is_name(struct slice text) {
	bool letter = false, starts = true;
	if (!text.length || chars_span(text, CHAR_HOST) != text.length) return false;
	for (; text.length; slice_drop(&text, 1)) {
		const char c = text.at[0];
		if (starts && (c == '.' || c == '-')) return false;
		starts = c == '.';
		letter = !starts && (letter || (text_lower(c) >= 'a' && text_lower(c) <= 'z'));
	}
	return letter;
}

/* Fills in the address, or the name, of a host. Returns NULL, or what is wrong. */
static const char *take_host(struct slice host, bool tls, struct upstream_address *a) {
	const bool local = slice_equal_nocase(host, SLICE("localhost"));
	if (!host.length) return "has no host";
	if (peer_parse(local ? SLICE("127.0.0.1") : host, &a->address) && !(local && tls)) return NULL;
	if (!is_name(host)) return "has a host that is neither a name nor an IP address (IPv6 goes in brackets)";
	if (host.length >= UPSTREAM_HOST_MAX) return "has a host whose name is too long: 127 bytes are allowed";
	for (size_t i = 0; i < host.length; i++) a->host[i] = text_lower(host.at[i]);
	return NULL;
}

static uint16_t default_port(enum upstream_protocol protocol, bool tls) {
	if (protocol == UPSTREAM_SCGI) return 0;
	return protocol == UPSTREAM_FCGI ? PORT_FCGI : tls ? PORT_HTTPS : PORT_HTTP;
}

static const char *parse_host(struct slice *rest, const struct upstream_target *t, struct upstream_address *a) {
	struct slice host, one = slice_first(*rest, slice_until(*rest, '/'));
	unsigned port;
	one = slice_first(one, slice_until(one, '?'));
	one = slice_first(one, slice_until(one, ','));
	slice_drop(rest, one.length);
	if (one.length > 1 && slice_ends(one, SLICE(":")))
		return "has a ':' behind its address, which only unix:PATH needs: remove it";
	if (!split(one, &host, &port)) return "has an address that is not HOST:PORT";
	const char *wrong = take_host(host, t->tls, a);
	if (wrong) return wrong;
	a->port = port ? (uint16_t)port : default_port(t->protocol, t->tls);
	return a->port ? NULL : "has no port: scgi has none of its own";
}

static const char *parse_addresses(struct slice *rest, struct upstream_target *t) {
	const char *wrong = NULL;
	bool more = true;
	while (!wrong && more) {
		if (t->count == UPSTREAM_ADDRESSES_MAX) return "has too many addresses";
		struct upstream_address *a = &t->at[t->count++];
		bool is_path = slice_starts(*rest, unix_scheme);
		if (is_path && t->tls) return "has a unix socket, to which there is no https: write http";
		wrong = is_path ? parse_path(rest, a) : parse_host(rest, t, a);
		more = slice_starts(*rest, SLICE(","));
		if (more && t->tls) return "has several hosts: a name may have several addresses, but https is to one host";
		if (more || (is_path && rest->length)) slice_drop(rest, 1);
	}
	return wrong;
}

const char *upstream_target_parse(struct slice scheme, struct slice *rest, struct upstream_target **target) {
	static const struct slice schemes[] = {
		[UPSTREAM_HTTP] = SLICE("http://"), [UPSTREAM_FCGI] = SLICE("fcgi://"), [UPSTREAM_SCGI] = SLICE("scgi://")};
	const bool tls = slice_equal_nocase(scheme, https_scheme);
	enum upstream_protocol protocol = UPSTREAM_HTTP;
	while (!tls && protocol <= UPSTREAM_SCGI && !slice_equal_nocase(scheme, schemes[protocol])) protocol++;
	if (protocol > UPSTREAM_SCGI) return "has none of the schemes http, https, fcgi and scgi";
	struct upstream_target *t = calloc(1, sizeof *t + UPSTREAM_ADDRESSES_MAX * sizeof *t->at);
	if (!t) return upstream_no_memory;
	t->protocol = protocol;
	t->tls = tls;
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

/* Addresses that nobody means who names a host: those of this machine, its links or all, and of the services that tell
 * machines their secrets (Amazon, Google, Azure, Alibaba, Oracle, Scaleway). */
static struct peer_nets inside;

static void fill_inside(void) {
	static const char *const nets[] = {"0.0.0.0/8",       "127.0.0.0/8",       "169.254.0.0/16", "224.0.0.0/3",
									   "100.100.100.200", "168.63.129.16",     "192.0.0.192",    "::/127",
									   "fe80::/10",       "ff00::/8",          "fd00:ec2::254",  "fd20:ce::254",
									   "fd00:42::42",     "fd00:c1::a9fe:a9fe"};
	for (inside.count = 0; inside.count < sizeof nets / sizeof *nets; inside.count++)
		(void)peer_net_parse(nets[inside.count], &inside.net[inside.count]);
}

/* Allows ADDRESS[/BITS][:PORT] or NAME[:PORT]. */
static bool allow_host(struct upstreams_allowed *allowed, struct slice text, bool tls, uint16_t otherwise) {
	char net[NET_TEXT_MAX];
	struct slice host;
	unsigned port;
	if (!split(text, &host, &port)) return false;
	port = port ? port : otherwise;
	const struct slice address = slice_equal_nocase(host, SLICE("localhost")) ? SLICE("127.0.0.1") : host;
	*text_copy(net, address.length < NET_TEXT_MAX ? address : SLICE("")) = '\0';
	struct upstream_allowed *one = &allowed->at[allowed->count];
	*one = (struct upstream_allowed){.port = (uint16_t)port, .tls = tls};
	const bool is_net = peer_net_parse(net, &one->net);
	if (!is_net && (!is_name(host) || host.length >= UPSTREAM_HOST_MAX)) return false;
	if (!is_net) one->host = host;
	if (!inside.count) fill_inside();
	allowed->count++;
	return true;
}

bool upstreams_allow(struct upstreams_allowed *allowed, const char *text) {
	struct slice whole = slice_of(text);
	struct upstream_address one = {0};
	if (allowed->count == UPSTREAM_ALLOWED_MAX) return false;
	if (slice_starts(whole, unix_scheme)) {
		if (parse_path(&whole, &one) || whole.length) return false;
		allowed->at[allowed->count++] = (struct upstream_allowed){.path = text + unix_scheme.length};
		return true;
	}
	if (*text == '/') {
		allowed->at[allowed->count++] = (struct upstream_allowed){.directory = text};
		return true;
	}
	const bool tls = slice_starts_nocase(whole, https_scheme), clear = slice_starts_nocase(whole, http_scheme);
	slice_drop(&whole, tls ? https_scheme.length : clear ? http_scheme.length : 0);
	return allow_host(allowed, whole, tls, tls ? PORT_HTTPS : clear ? PORT_HTTP : 0);
}

static bool is_of_socket(const struct upstream_allowed *one) { return one->directory || one->path; }

bool upstreams_allow_tcp(const struct upstreams_allowed *allowed) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (!is_of_socket(&allowed->at[i])) return true;
	return false;
}

bool upstreams_allow_names(const struct upstreams_allowed *allowed) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (allowed->at[i].host.length) return true;
	return false;
}

bool upstreams_allow_tls(const struct upstreams_allowed *allowed) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (allowed->at[i].tls) return true;
	return false;
}

static bool net_has(const struct upstream_allowed *one, const struct peer *address) {
	const struct peer_nets nets = {.net[0] = one->net, .count = 1};
	return !is_of_socket(one) && !one->host.length && !peer_is_unix(address) && peer_is_in(address, &nets);
}

/* Returns whether one option allows an address of a target. */
static bool allows(const struct upstream_allowed *one, const struct upstream_target *t,
				   const struct upstream_address *a) {
	if (one->directory) return a->path[0] && broker_name_in(one->directory, a->path);
	if (one->path) return strcmp(a->path, one->path) == 0;
	const bool named = one->host.length && slice_equal_nocase(one->host, slice_of(a->host));
	return !a->path[0] && one->tls == t->tls && (named || net_has(one, &a->address)) &&
		   (!one->port || one->port == a->port);
}

static bool is_allowed(const struct upstreams_allowed *allowed, const struct upstream_target *t,
					   const struct upstream_address *a) {
	for (unsigned i = 0; i < allowed->count; i++)
		if (allows(&allowed->at[i], t, a)) return true;
	return false;
}

bool upstreams_allow_found(const struct upstreams_allowed *allowed, const struct upstream_target *t,
						   const struct upstream_address *host, const struct peer *found) {
	const struct upstream_address address = {.address = *found, .port = host->port};
	return !peer_is_unix(found) && (!peer_is_in(found, &inside) || is_allowed(allowed, t, &address));
}

const struct upstream_address *upstreams_refused(const struct upstreams_allowed *allowed,
												 const struct upstream_target *t) {
	for (unsigned i = 0; i < t->count; i++)
		if (!is_allowed(allowed, t, &t->at[i])) return &t->at[i];
	return NULL;
}

/* --- as text --- */

/* Writes the host to out, and returns its end. */
static char *put_host(char *out, const struct upstream_address *a) {
	return a->host[0] ? text_copy(out, slice_of(a->host)) : out + peer_format_host(out, &a->address);
}

void upstream_format(char *out, const struct upstream_address *a) {
	if (a->path[0]) {
		memcpy(out, a->path, sizeof a->path);
		return;
	}
	const struct upstream_address found = {.address = a->address};
	sprintf(put_host(out, peer_is_unix(&a->address) ? a : &found), ":%u", a->port);
}

void upstream_format_allowed(char *out, const struct upstream_target *t, const struct upstream_address *a) {
	if (a->path[0]) out = text_copy(out, unix_scheme);
	else if (t->tls) out = text_copy(out, https_scheme);
	if (a->path[0]) *text_copy(out, slice_of(a->path)) = '\0';
	else if (t->tls) out[upstream_format_authority(out, t, a)] = '\0';
	else sprintf(put_host(out, a), ":%u", a->port);
}

size_t upstream_format_authority(char *out, const struct upstream_target *t, const struct upstream_address *a) {
	if (a->path[0]) return (size_t)(text_copy(out, SLICE("localhost")) - out);
	char *at = put_host(out, a);
	if (a->port != default_port(t->protocol, t->tls)) at += sprintf(at, ":%u", a->port);
	return (size_t)(at - out);
}
