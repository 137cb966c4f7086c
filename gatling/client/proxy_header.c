/* proxy_header.c - see proxy_header.h. */
#include "gatling/client/proxy_header.h"

#include <stdint.h>
#include <string.h>

#include "gatling/base/owfat.h"
#include "gatling/base/slice.h"

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
enum { SIGNATURE = sizeof signature - 1, PREAMBLE = SIGNATURE + 4 };

/* Values of the bytes behind the signature, as the specification names them. */
enum { VERSION_LOCAL = 0x20, VERSION_PROXY = 0x21 };
enum { FAMILY_UNSPEC = 0x00, FAMILY_TCP4 = 0x11, FAMILY_TCP6 = 0x21, FAMILY_UNIX = 0x31 };
enum { TYPE_SSL = 0x20, CLIENT_SSL = 0x01 };

static struct peer peer4(const void *address) {
	struct sockaddr_in in = {.sin_family = AF_INET};
	memcpy(&in.sin_addr, address, sizeof in.sin_addr);
	return peer_of((const struct sockaddr *)&in);
}

static struct peer peer6(const void *address) {
	struct sockaddr_in6 in = {.sin6_family = AF_INET6};
	memcpy(&in.sin6_addr, address, sizeof in.sin6_addr);
	return peer_of((const struct sockaddr *)&in);
}

/* --- version 1: a line --- */

static bool is_port(struct slice s) {
	unsigned long port;
	return s.length && s.length <= 5 && scan_ulong(s.at, &port) == s.length && port <= UINT16_MAX;
}

/* Takes the bytes before the next space, or all, off the front, and the space, too. */
static struct slice take_word(struct slice *rest) {
	const char *blank = rest->length ? memchr(rest->at, ' ', rest->length) : NULL;
	struct slice word = {.at = rest->at, .length = blank ? (size_t)(blank - rest->at) : rest->length};
	*rest = slice_rest(*rest, word.length + (blank != NULL));
	return word;
}

/* Parses an IPv4 address, or if ipv4 is false, an IPv6 address. Returns false if it is not one. */
static bool parse_address(bool ipv4, struct slice s, struct peer *peer) {
	return ipv4 == !memchr(s.at, ':', s.length) && peer_parse(s, peer);
}

/* Parses "TCP4 SOURCE DESTINATION PORT PORT" or "TCP6 ...". */
static bool parse_addresses(struct proxy_header *h, struct slice rest) {
	struct peer destination;
	struct slice family = take_word(&rest);
	bool ipv4 = slice_equal(family, SLICE("TCP4"));
	if (!ipv4 && !slice_equal(family, SLICE("TCP6"))) return false;
	if (!parse_address(ipv4, take_word(&rest), &h->client) || !parse_address(ipv4, take_word(&rest), &destination))
		return false;
	if (peer_is_unix(&h->client)) return false; /* it would stand for a unix socket */
	return is_port(take_word(&rest)) && is_port(rest);
}

static int parse_line(struct proxy_header *h, const char *data, size_t length) {
	const char *end = memchr(data, '\n', length < PROXY_LINE_MAX ? length : PROXY_LINE_MAX);
	if (!end) return length < PROXY_LINE_MAX ? 0 : -1;
	size_t n = (size_t)(end - data);
	if (data[n - 1] != '\r') return -1;
	struct slice rest = {.at = data + strlen("PROXY "), .length = n - 1 - strlen("PROXY ")}, all = rest;
	h->own = slice_equal(take_word(&rest), SLICE("UNKNOWN"));
	return h->own || parse_addresses(h, all) ? (int)n + 1 : -1;
}

/* --- version 2 --- */

static size_t number(const char *at) { return (size_t)(unsigned char)at[0] << 8 | (unsigned char)at[1]; }

/* Parses the list behind the addresses: types, lengths and values. Returns false if it is malformed. */
static bool parse_values(struct proxy_header *h, const char *at, size_t length) {
	while (length >= 3) {
		size_t n = number(at + 1);
		if (n > length - 3) return false;
		if (*at == TYPE_SSL && n >= 1) h->tls = at[3] & CLIENT_SSL;
		at += 3 + n;
		length -= 3 + n;
	}
	return length == 0;
}

static int parse_binary(struct proxy_header *h, const char *data, size_t length) {
	if (length < PREAMBLE) return 0;
	unsigned char version = (unsigned char)data[SIGNATURE], family = (unsigned char)data[SIGNATURE + 1];
	size_t n = number(data + SIGNATURE + 2), addresses = 0;
	const char *at = data + PREAMBLE;
	if (PREAMBLE + n > PROXY_HEADER_MAX || (version != VERSION_LOCAL && version != VERSION_PROXY)) return -1;
	if (length < PREAMBLE + n) return 0;
	h->own = version == VERSION_LOCAL || family == FAMILY_UNSPEC;
	if (version == VERSION_LOCAL) return PREAMBLE + (int)n;
	switch (family) {
	case FAMILY_UNSPEC: break;
	case FAMILY_TCP4: addresses = 2 * (sizeof(struct in_addr) + sizeof(in_port_t)); break;
	case FAMILY_TCP6: addresses = 2 * (sizeof(struct in6_addr) + sizeof(in_port_t)); break;
	case FAMILY_UNIX: addresses = 2 * 108; break;
	default: return -1;
	}
	if (n < addresses) return -1;
	if (family == FAMILY_TCP4) h->client = peer4(at);
	if (family == FAMILY_TCP6) h->client = peer6(at);
	if (family == FAMILY_TCP6 && peer_is_unix(&h->client)) return -1;
	/* without addresses the rest is to be skipped, whatever it is */
	return parse_values(h, at + addresses, n - addresses) || h->own ? PREAMBLE + (int)n : -1;
}

size_t proxy_header_lacks(const char *data, size_t length) {
	const size_t line_least = sizeof "PROXY UNKNOWN\r\n" - 1;
	if (!length || *data == 'P') return length < line_least ? line_least - length : 1;
	return length < PREAMBLE ? PREAMBLE - length : PREAMBLE + number(data + SIGNATURE + 2) - length;
}

/* Returns whether data begins with text, or with the beginning of text if it is shorter. */
static bool begins(const char *data, size_t length, const char *text, size_t n) {
	return memcmp(data, text, length < n ? length : n) == 0;
}

int proxy_header_parse(struct proxy_header *h, const char *data, size_t length) {
	static const char line[] = "PROXY ";
	*h = (struct proxy_header){.own = false};
	if (begins(data, length, signature, SIGNATURE)) return parse_binary(h, data, length);
	if (!begins(data, length, line, sizeof line - 1)) return -1;
	return length < sizeof line ? 0 : parse_line(h, data, length);
}
