/* take.c - see take.h. */
#include "gatling/options/take.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "gatling/acme/subjects.h"
#include "gatling/base/notice.h"
#include "gatling/http/path.h"
#include "gatling/options/options.h"
#include "gatling/options/values.h"

void take_listen(struct options *o, const struct option_row *row, char *text) {
	(void)row;
	if (o->addresses == ADDRESSES_MAX) option_refuse("more than %d addresses to listen on", ADDRESSES_MAX);
	o->address[o->addresses++] = text;
}

/* Takes a URL with which a Location may begin. */
void take_fallback(struct options *o, const struct option_row *row, char *text) {
	size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
	if (!scheme || strncmp(text + scheme, "://", 3) != 0 || !text[scheme + 3])
		option_takes(row, text, "a URL, such as https://mirror.example.org");
	if (strlen(text) > FALLBACK_MAX) option_refuse("--fallback takes a URL of at most %d bytes", FALLBACK_MAX);
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at >= 127) option_takes(row, text, "a URL of visible ASCII");
	o->site.fallback = text;
}

/* Takes a path as path_decode() would leave it. */
void take_health(struct options *o, const struct option_row *row, char *text) {
	char decoded[PATH_MAX];
	size_t length;
	const struct slice path = slice_of(text);
	if (path.length < 2 || path.length > sizeof decoded || strpbrk(text, "?#") || path_decode(path, decoded, &length) ||
		!slice_equal((struct slice){.at = decoded, .length = length}, slice_rest(path, 1)))
		option_takes(row, text, "a path such as /health");
	o->site.health = text;
}

/* Adds a net. Returns whether all addresses are in it. */
static bool add_net(const struct option_row *row, struct peer_nets *nets, const char *text) {
	if (nets->count == PEER_NETS_MAX) option_refuse("--%s can be given %d times", row->name, PEER_NETS_MAX);
	struct peer_net *net = &nets->net[nets->count++];
	if (!peer_net_parse(text, net))
		option_takes(row, text, "an address, one with a number of bits, as 10.0.0.0/8, or unix:");
	return net->bits == 0 || (net->bits == 96 && peer_is_ipv4(&net->first));
}

void take_proxy_protocol(struct options *o, const struct option_row *row, char *text) {
	if (add_net(row, &o->conn.proxies, text))
		notice_line(LEVEL_WARNING,
					"--proxy-protocol %s lets every client say that it is another: make sure that only balancers can "
					"connect",
					text);
}

void take_trust(struct options *o, const struct option_row *row, char *text) {
	char *comma = strchr(text, ',');
	const struct slice field = comma ? slice_of(comma + 1) : SLICE("x-forwarded-for");
	const bool is_forwarded = slice_equal_nocase(field, SLICE("forwarded"));
	if (!is_forwarded && !slice_equal_nocase(field, SLICE("x-forwarded-for")))
		option_refuse("--trust NET,FIELD knows 'forwarded' and 'x-forwarded-for', not '%s'; each NET takes a --trust",
					  field.at);
	if (comma) *comma = '\0';
	if (add_net(row, is_forwarded ? &o->conn.trust.forwarded : &o->conn.trust.x_forwarded_for, text))
		option_refuse("--trust %s would believe everybody: NET has to be that of proxies", text);
}

void take_upstream(struct options *o, const struct option_row *row, char *text) {
	struct upstreams_allowed *allowed = &o->site.upstreams;
	if (allowed->count == UPSTREAM_ALLOWED_MAX) option_refuse("--upstream can be given %d times", UPSTREAM_ALLOWED_MAX);
	if (!upstreams_allow(allowed, text))
		option_takes(row, text,
					 "[https://]HOST[:PORT], where HOST is a name, ADDRESS[/BITS] or [IPV6ADDRESS[/BITS]], a directory "
					 "or unix:PATH");
}

void take_cert(struct options *o, const struct option_row *row, char *text) {
	(void)row;
	if (o->tls.certs == CERTS_MAX) option_refuse("more than %d certificates", CERTS_MAX);
	o->tls.cert[o->tls.certs++] = text;
}

void take_key(struct options *o, const struct option_row *row, char *text) {
	(void)row;
	if (!o->tls.certs || o->tls.key[o->tls.certs - 1]) option_refuse("--key %s has no --cert before it", text);
	o->tls.key[o->tls.certs - 1] = text;
}

void take_acme(struct options *o, const struct option_row *row, char *text) {
	const char *at = text ? strchr(text, '@') : NULL;
	if (text && (!at || at == text || !at[1] || strpbrk(text, " \t,:/"))) option_takes(row, text, "an email address");
	o->acme.on = true;
	o->acme.email = text;
}

void take_acme_directory(struct options *o, const struct option_row *row, char *text) {
	if (strncmp(text, "https://", 8) != 0 || !text[8] || strpbrk(text, " \t\r\n"))
		option_takes(row, text, "the https:// URL of an authority's directory");
	o->acme.url = text;
}

void take_acme_name(struct options *o, const struct option_row *row, char *text) {
	if (!subject_possible(text) && !subject_is_address(text))
		option_takes(row, text, "a name of the public DNS, in lower case, as www.example.org, or a public address");
	if (o->acme.names == ACME_NAMES_MAX) option_refuse("more than %d names", ACME_NAMES_MAX);
	o->acme.name[o->acme.names++] = text;
}

void take_acme_profile(struct options *o, const struct option_row *row, char *text) {
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	if (!*text || text[strspn(text, letters)]) option_takes(row, text, "the name of a profile, of letters and digits");
	o->acme.profile = text;
}
