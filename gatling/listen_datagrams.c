/* listen_datagrams.c - see listen.h: the sockets for datagrams. */
#include <errno.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/listen.h"
#include "gatling/quic/quic.h"

/* Finds the open sockets of an address, or opens one for each worker, as far as that is possible: the workers share
 * those that are there. */
static void open_address(const struct options *o, struct sockets *udp, struct socket_address address) {
	const unsigned group = ++udp->groups, count = (unsigned)o->workers;
	unsigned have = sockets_take(udp, &address, true, group);
	for (; have < count && !(have && udp->activated); have++) {
		const int fd = quic_open_socket(&address.to.any, address.length, address.dual_stack);
		if (fd == -1 || sockets_add(udp, fd, true, group) == -1) break;
	}
	if (!have && errno != ENOSYS && !udp->activated)
		notice(0, "UDP port %u cannot be used: %s: no HTTP/3 there", socket_port_number(&address), strerror(errno));
	for (unsigned i = 0, k = 0; i < udp->count; i++) {
		if (udp->at[i].group != group) continue;
		if (udp->activated) (void)quic_set_up_socket(udp->at[i].fd);
		udp->at[i].place = k++;
		udp->at[i].places = have;
	}
}

/* Returns the first socket of a group, or NULL if all of them are closed. */
static const struct listening_socket *first_of(const struct sockets *sockets, unsigned group) {
	for (unsigned i = 0; i < sockets->count; i++)
		if (sockets->at[i].group == group) return &sockets->at[i];
	return NULL;
}

int listen_datagrams(const struct options *o, const struct sockets *sockets, struct datagram_sockets *datagrams) {
	for (unsigned group = 1; group <= sockets->groups; group++) {
		const struct listening_socket *s = first_of(sockets, group);
		if (s && s->secure && s->address.to.any.sa_family != AF_UNIX) open_address(o, &datagrams->udp, s->address);
	}
	sockets_close_unused(&datagrams->udp);
	if (!datagrams->udp.count || datagram_sockets_open(datagrams, (unsigned)o->workers) == 0) return 0;
	return notice_cannot("open", "the channels between workers", strerror(errno));
}

void listen_route(const struct options *o, const struct datagram_sockets *datagrams) {
	const unsigned workers = (unsigned)o->workers;
	for (unsigned i = 0; i < datagrams->udp.count; i++) {
		const struct listening_socket *s = &datagrams->udp.at[i];
		if (!s->place) (void)quic_route(s->fd, s->places < workers ? s->places : workers);
	}
}
