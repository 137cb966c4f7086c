/* listen_datagrams.c - see listen.h: the sockets for datagrams. */
#include <errno.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/listen.h"
#include "gatling/quic/quic.h"

static bool is_unused(const struct listening_socket *s) { return !s->group; }

/* Finds the open sockets of an address, or opens one for each worker, as far as that is possible: the workers share
 * those that are there. */
static void open_address(const struct options *o, struct sockets *udp, struct socket_address address) {
	const unsigned group = ++udp->groups, count = (unsigned)o->workers;
	unsigned have = sockets_take(udp, &address, true, group);
	for (; have < count && !(have && udp->activated); have++) {
		const int fd = quic_open_socket(&address.to.any, address.length, address.dual_stack);
		if (fd == -1 || sockets_add(udp, fd, true, group) == -1) break;
	}
	for (unsigned i = 0, k = 0; i < udp->count; i++) {
		if (udp->at[i].group != group) continue;
		if (udp->activated) (void)quic_set_up_socket(udp->at[i].fd);
		udp->at[i].place = k++;
		udp->at[i].places = have;
	}
}

int listen_datagrams(const struct options *o, const struct sockets *sockets, struct datagram_sockets *datagrams) {
	for (unsigned i = 0; i < sockets->count; i++) {
		const struct listening_socket *s = &sockets->at[i];
		bool again = s->address.to.any.sa_family == AF_UNIX;
		for (unsigned k = 0; k < i; k++) again |= sockets->at[k].group == s->group;
		if (s->secure && !again) open_address(o, &datagrams->udp, s->address);
	}
	sockets_close(&datagrams->udp, is_unused);
	if (!datagrams->udp.count || datagram_sockets_open(datagrams, (unsigned)o->workers) == 0) return 0;
	return notice_cannot("open", "the channels between workers", strerror(errno));
}

void listen_route(const struct options *o, const struct datagram_sockets *datagrams) {
	const struct sockets *udp = &datagrams->udp;
	for (unsigned group = 1; group <= udp->groups; group++) {
		unsigned count = 0;
		int fd = -1;
		for (unsigned i = 0; i < udp->count; i++) {
			if (udp->at[i].group != group) continue;
			fd = udp->at[i].fd;
			count++;
		}
		if (fd != -1) (void)quic_route(fd, count < (unsigned)o->workers ? count : (unsigned)o->workers);
	}
}
