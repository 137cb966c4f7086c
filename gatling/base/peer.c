/* peer.c - see peer.h. */
#include "gatling/base/peer.h"

#include <arpa/inet.h>

#include "gatling/base/owfat.h"

static const unsigned char mapped[PEER_IPV4_AT] = {[10] = 0xff, [11] = 0xff};

bool peer_is_ipv4(const struct peer *peer) { return memcmp(peer->address.s6_addr, mapped, sizeof mapped) == 0; }

bool peer_is_local(const struct peer *peer) {
	static const struct peer local;
	return memcmp(peer, &local, sizeof local) == 0;
}

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

size_t peer_format(char *out, const struct peer *peer) {
	const unsigned char *a = peer->address.s6_addr;
	if (peer_is_local(peer)) return fmt_str(out, "unix:");
	if (peer_is_ipv4(peer)) return fmt_ip4(out, (const char *)a + PEER_IPV4_AT);
	inet_ntop(AF_INET6, a, out, PEER_MAX);
	return strlen(out);
}
