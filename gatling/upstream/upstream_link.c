/* upstream_link.c - see upstreams.h: the bytes of a connection to an upstream, through TLS or not. */
#include <netinet/tcp.h>

#include "gatling/upstream/upstreams.h"

int upstream_link_handshake(const struct upstream_link *link) {
	return link->tls ? tls_client_handshake(link->tls) : 0;
}

ssize_t upstream_link_read(const struct upstream_link *link, void *buffer, size_t length) {
	return link->tls ? tls_client_read(link->tls, buffer, length) : io_tryread(link->loop, link->fd, buffer, length);
}

ssize_t upstream_link_write(const struct upstream_link *link, struct slice bytes) {
	return link->tls ? tls_client_write(link->tls, bytes) : io_trywrite(link->loop, link->fd, bytes.at, bytes.length);
}

bool upstream_link_needs_input(const struct upstream_link *link) {
	return link->tls && tls_client_needs_input(link->tls);
}

bool upstream_link_splices(const struct upstream_link *link) { return !link->tls && io_splices(link->loop); }

void upstream_link_shut(const struct upstream_link *link) {
	if (link->tls) tls_client_shut(link->tls);
	else (void)shutdown(link->fd, SHUT_WR);
}

void upstream_link_send_at_once(struct upstream_link *link) {
	const int on = 1;
	if (!link->sends_at_once) (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	link->sends_at_once = true;
}
