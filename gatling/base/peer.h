/* peer.h - addresses of clients. */
#ifndef GATLING_BASE_PEER_H
#define GATLING_BASE_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "gatling/base/slice.h"

/* An address, small enough for every connection. IPv4 is stored as IPv4-mapped IPv6; all zero: a unix socket. */
struct peer {
	struct in6_addr address;
};

/* Returns the network that counts as one client, as a number: the upper half of an IPv6 address, since a client usually
 * has a whole /64 (RFC 6177), or the lower half of an address in ::/64, such as an IPv4-mapped one; 0: a unix
 * socket. */
static inline uint64_t peer_network(const struct peer *peer) {
	uint64_t half[2];
	memcpy(half, &peer->address, sizeof half);
	return half[0] ? half[0] : half[1];
}

struct peer peer_of(const struct sockaddr *address);

/* Finds the address of this machine that a connected socket has. Returns false if it has none, as a unix socket. */
bool peer_local(int fd, struct peer *peer);

/* Returns whether peer is an IPv4 address, whose four bytes are at PEER_IPV4_AT. */
enum { PEER_IPV4_AT = 12 };
bool peer_is_ipv4(const struct peer *peer);

/* The address of unix sockets. It also stands for proxies, whose connections are for many clients. */
extern const struct peer peer_unknown;

/* Returns whether peer is a unix socket. */
bool peer_is_unix(const struct peer *peer);

/* A network: the addresses that have their first bits in common. */
struct peer_net {
	struct peer first;
	unsigned bits; /* of 128 */
};

/* A list of networks. */
enum { PEER_NETS_MAX = 64 };
struct peer_nets {
	struct peer_net net[PEER_NETS_MAX];
	unsigned count;
};

/* Parses an IPv4 or IPv6 address. Returns false if text is neither. */
bool peer_parse(struct slice text, struct peer *peer);

/* Parses ADDRESS, ADDRESS/BITS or "unix:", which stands for unix sockets. Returns false if text is none of these. */
bool peer_net_parse(const char *text, struct peer_net *net);

/* Returns whether clients in the internet can reach the address: it is a unicast address, and not reserved for private
 * use, a link or the machine itself (RFC 6890, RFC 4291). */
bool peer_is_public(const struct peer *peer);

/* Returns whether the address is in the network. An IPv4 address is in none of IPv6, such as ::/0. */
bool peer_is_in_net(const struct peer *peer, const struct peer_net *net);

/* Returns whether the network is that of unix sockets alone. */
static inline bool peer_net_is_unix(const struct peer_net *net) {
	return net->bits == 128 && peer_is_unix(&net->first);
}

/* Return whether the address is in any of the networks; here ::/0 has all addresses. */
bool peer_is_in_any(const struct peer *peer, const struct peer_nets *nets);
static inline bool peer_is_in(const struct peer *peer, const struct peer_nets *nets) {
	return nets->count && peer_is_in_any(peer, nets); /* usually there are none */
}

/* Writes the address as text, "unix:" for a unix socket, to out (PEER_MAX bytes). Returns the bytes written. */
enum { PEER_MAX = 64 };
size_t peer_format(char *out, const struct peer *peer);

/* Writes the address as the host of a URL (RFC 3986, section 3.2.2): IPv6 in brackets. */
enum { PEER_HOST_MAX = PEER_MAX + 2 };
size_t peer_format_host(char *out, const struct peer *peer);

#endif
