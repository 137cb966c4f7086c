/* host.c - see host.h. */
#include "gatling/http/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"

enum { PORT_DIGITS = 5, PORT_MAX = 65535 };

size_t host_scheme_length(struct slice url) {
	static const struct slice scheme[] = {SLICE("http://"), SLICE("https://")};
	for (int i = 0; i < 2; i++)
		if (slice_starts_nocase(url, scheme[i])) return scheme[i].length;
	return 0;
}

/* Returns the length of the "[address]" at the start of authority, or 0 if it is not an IPv6 address. */
static size_t literal_length(struct slice authority) {
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t end = slice_until(authority, ']'), length = end - 1;
	if (end == authority.length || length >= sizeof text || memchr(authority.at + 1, '\0', length)) return 0;
	memcpy(text, authority.at + 1, length);
	text[length] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1 ? length + 2 : 0;
}

/* Returns the length of the uri-host at the start of authority, or 0 if there is none. */
static size_t uri_host_length(struct slice authority) {
	if (authority.length && authority.at[0] == '[') return literal_length(authority);
	size_t n = chars_span(authority, CHAR_HOST);
	if (n < authority.length && authority.at[n] != ':') return 0;
	const char *end = authority.at + n, *dot = authority.at;
	for (; n && (dot = memchr(dot, '.', (size_t)(end - dot))); dot++)
		if (dot == authority.at || dot[-1] == '.') return 0;
	return n;
}

bool host_valid(struct slice authority) {
	size_t n = uri_host_length(authority);
	if (n == 0 || n > HOST_MAX) return false;
	if (n == authority.length) return true;
	if (authority.at[n++] != ':' || authority.length - n > PORT_DIGITS) return false;
	unsigned port = 0;
	for (; n < authority.length; n++) {
		if (!text_is_digit(authority.at[n])) return false;
		port = port * 10 + (unsigned)(authority.at[n] - '0');
	}
	return port <= PORT_MAX;
}

size_t host_name(struct slice authority, char *name) {
	size_t n = uri_host_length(authority);
	for (size_t i = 0; i < n; i++) name[i] = text_lower(authority.at[i]);
	return n && name[n - 1] == '.' ? n - 1 : n;
}

bool host_normal(struct slice authority) {
	char name[HOST_MAX];
	if (!host_valid(authority)) return false;
	const size_t length = host_name(authority, name), port = length + 1;
	if (!slice_starts(authority, (struct slice){.at = name, .length = length})) return false;
	if (length == authority.length) return true;
	if (authority.at[length] != ':' || port == authority.length) return false;
	return authority.at[port] != '0' || port + 1 == authority.length;
}
