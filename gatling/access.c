/* access.c - see access.h. */
#include "gatling/access.h"

#include <arpa/inet.h>

#include "gatling/owfat.h"

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

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
	static const unsigned char none[16];
	if (memcmp(a, none, sizeof none) == 0) return fmt_str(out, "unix:");
	if (memcmp(a, mapped, sizeof mapped) == 0) return fmt_ip4(out, (const char *)a + sizeof mapped);
	inet_ntop(AF_INET6, a, out, PEER_MAX);
	return strlen(out);
}

/* The start of text that is logged. */
static size_t format_escaped(char *out, struct slice text) {
	size_t n = 0;
	for (size_t i = 0; i < text.length && i < ACCESS_REQUEST_MAX; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c >= ' ' && c < 127 && c != '"' && c != '\\') {
			out[n++] = (char)c;
		} else {
			out[n++] = '\\';
			out[n++] = 'x';
			out[n++] = fmt_tohex((char)(c >> 4));
			out[n++] = fmt_tohex((char)(c & 15));
		}
	}
	return n;
}

size_t access_format(char *out, const struct peer *peer, const char *date, struct slice line, int status,
					 uint64_t bytes) {
	size_t n = peer_format(out, peer);
	n += fmt_str(out + n, " - - [");
	n += fmt_str(out + n, date);
	n += fmt_str(out + n, "] \"");
	n += format_escaped(out + n, line);
	n += fmt_str(out + n, "\" ");
	n += fmt_ulong(out + n, (unsigned long)status);
	out[n++] = ' ';
	if (!bytes) out[n++] = '-';
	else n += fmt_ulonglong(out + n, bytes);
	return n;
}
