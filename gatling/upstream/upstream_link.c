/* upstream_link.c - see upstreams.h: how a connection to an upstream begins, and its bytes, through TLS or not. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "gatling/upstream/upstreams.h"

/* --- connecting --- */

int upstream_connect(struct broker *connector, const struct upstream_address *a) {
	if (a->path[0]) return broker_connect(connector, a->path);

	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_addr = a->address.address};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	bool is_four = peer_is_ipv4(&a->address);
	memcpy(&four.sin_addr, (const char *)&a->address.address + PEER_IPV4_AT, sizeof four.sin_addr);
	/* the server executes nothing: FD_CLOEXEC is not needed */
#ifdef SOCK_NONBLOCK
	int fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
#else
	int fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM, 0);
	if (fd != -1) (void)fcntl(fd, F_SETFL, O_NONBLOCK);
#endif
	if (fd == -1) return -1;
	int done =
		is_four ? connect(fd, (struct sockaddr *)&four, sizeof four) : connect(fd, (struct sockaddr *)&six, sizeof six);
	if (done == 0 || errno == EINPROGRESS) return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Returns why a unix socket could not be connected to, and what to do. */
static const char *socket_reason(int error) {
	switch (error) {
	case EAGAIN: return "its queue is full, it takes no more connections";
	case EACCES:
		return "the user who serves (-u) may not: change the owner, group or mode of the socket (for php-fpm: "
			   "listen.owner, listen.group, listen.mode) or of a directory above it";
	case EDEADLK: return "it is a socket of this server itself: correct the rule";
	default: return strerror(error);
	}
}

const char *upstream_connect_reason(const struct upstream_address *a, int error) {
	return a->path[0] ? socket_reason(error) : strerror(error);
}

/* --- bytes --- */

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
