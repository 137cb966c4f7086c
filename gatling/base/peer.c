/* peer.c - see peer.h. */
#include "gatling/base/peer.h"

#include <arpa/inet.h>

#include "gatling/base/slice.h"

static const unsigned char mapped[PEER_IPV4_AT] = {[10] = 0xff, [11] = 0xff};

bool peer_is_ipv4(const struct peer *peer) { return memcmp(peer->address.s6_addr, mapped, sizeof mapped) == 0; }

const struct peer peer_unknown = {0};

bool peer_is_unix(const struct peer *peer) { return memcmp(peer, &peer_unknown, sizeof *peer) == 0; }

struct peer peer_of(const struct sockaddr *address) {
	struct peer peer = {0};
	if (address->sa_family == AF_INET6) {
		memcpy(&peer.address, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, sizeof peer.address);
	} else if (address->sa_family == AF_INET) {
		memcpy(peer.address.s6_addr, mapped, sizeof mapped);
		memcpy(peer.address.s6_addr + sizeof mapped, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
	}
	return peer;
}

bool peer_local(int fd, struct peer *peer) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &length) == -1) return false;
	*peer = peer_of((struct sockaddr *)&address);
	return !peer_is_unix(peer);
}

bool peer_parse(struct slice text, struct peer *peer) {
	char address[INET6_ADDRSTRLEN];
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	if (text.length >= sizeof address || memchr(text.at, '\0', text.length)) return false;
	memcpy(address, text.at, text.length);
	address[text.length] = '\0';
	if (inet_pton(AF_INET, address, &in.sin_addr) == 1) *peer = peer_of((const struct sockaddr *)&in);
	else if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) *peer = peer_of((const struct sockaddr *)&in6);
	else return false;
	return true;
}

bool peer_net_parse(const char *text, struct peer_net *net) {
	const struct slice address = {.at = text, .length = strcspn(text, "/")};
	const char *number = text + address.length;
	*net = (struct peer_net){.bits = 128};
	if (strcmp(text, "unix:") == 0) return true;
	if (!peer_parse(address, &net->first)) return false;
	const unsigned long most = memchr(address.at, ':', address.length) ? 128 : 32;
	unsigned long bits = most;
	if (*number++) {
		size_t digits = scan_ulong(number, &bits);
		if (!digits || number[digits] || bits > most) return false;
	}
	net->bits = (unsigned)(128 - most + bits);
	return true;
}

/* Returns whether the address begins as the network does. */
static bool begins_as(const struct peer *peer, const struct peer_net *net) {
	const unsigned char *a = peer->address.s6_addr, *b = net->first.address.s6_addr;
	const unsigned whole = net->bits / 8, rest = net->bits % 8;
	if (peer_is_unix(peer) && net->bits < 128) return false; /* "::/0" is not "unix:" */
	return memcmp(a, b, whole) == 0 && (!rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

bool peer_is_in_net(const struct peer *peer, const struct peer_net *net) {
	const bool is_four = peer_is_ipv4(&net->first) && net->bits >= 8 * PEER_IPV4_AT;
	return peer_is_ipv4(peer) == is_four && begins_as(peer, net);
}

bool peer_is_public(const struct peer *peer) {
	static const char *const reserved[] = {"0.0.0.0/8",      "10.0.0.0/8",    "100.64.0.0/10",  "127.0.0.0/8",
										   "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3"};
	struct peer_net net;
	if (!peer_is_ipv4(peer)) return peer_net_parse("2000::/3", &net) && peer_is_in_net(peer, &net);
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (peer_net_parse(reserved[i], &net) && peer_is_in_net(peer, &net)) return false;
	return true;
}

bool peer_is_in_any(const struct peer *peer, const struct peer_nets *nets) {
	for (unsigned i = 0; i < nets->count; i++)
		if (begins_as(peer, &nets->net[i])) return true;
	return false;
}

/* Writes a byte in decimal. Returns the end. */
static char *put_decimal(char *at, unsigned char byte) {
	if (byte >= 100) *at++ = (char)('0' + byte / 100);
	if (byte >= 10) *at++ = (char)('0' + byte / 10 % 10);
	*at++ = (char)('0' + byte % 10);
	return at;
}

size_t peer_format(char *out, const struct peer *peer) {
	const unsigned char *a = peer->address.s6_addr;
	if (peer_is_unix(peer)) return fmt_str(out, "unix:");
	if (peer_is_ipv4(peer)) {
		char *at = put_decimal(out, a[PEER_IPV4_AT]);
		for (int i = 1; i < 4; i++) {
			*at++ = '.';
			at = put_decimal(at, a[PEER_IPV4_AT + i]);
		}
		return (size_t)(at - out);
	}
	inet_ntop(AF_INET6, a, out, PEER_MAX);
	return strlen(out);
}

size_t peer_format_host(char *out, const struct peer *peer) {
	if (peer_is_ipv4(peer) || peer_is_unix(peer)) return peer_format(out, peer);
	const size_t length = peer_format(out + 1, peer);
	out[0] = '[';
	out[length + 1] = ']';
	return length + 2;
}
