/* quic.h - the QUIC connections of a worker (RFC 9000), which carry HTTP/3: datagrams in and out, connection IDs,
 * timers. The only user of ngtcp2. */
#ifndef GATLING_QUIC_QUIC_H
#define GATLING_QUIC_QUIC_H

#include "gatling/conn/conn_context.h"
#include "gatling/http3/http3.h"
#include "io/alarm.h"
#include "io/datagram.h"

struct quic;

/* A descriptor of the loop that belongs to QUIC: a socket for datagrams, or one on which a connection waits for a
 * file. */
struct quic_cookie {
	uint8_t kind; /* COOKIE_QUIC */
	bool reads;   /* a connection waits on it */
	int fd;
	unsigned port;
	struct quic *quic;
	struct io_datagrams held; /* of a socket: what it did not take; its bytes are NULL if there are none */
};

/* Returns the QUIC side of a worker without sockets; or NULL without memory, or if this build has no HTTP/3. Connection
 * IDs say which of the workers has the connection. */
struct quic *quic_new(struct conn_context *context, unsigned worker, unsigned workers);
void quic_free(struct quic *quic); /* closes all connections; NULL is allowed */

/* Opens a socket of an address for datagrams, which other workers share: each gets those of its connections. Returns
 * it, or -1 with errno; ENOSYS: this build has no HTTP/3. */
int quic_open_socket(const struct sockaddr *address, socklen_t length, bool dual_stack, unsigned workers);

/* Receives on a socket, which it owns from then on. Returns false if it cannot be watched, or without memory. */
bool quic_listen(struct quic *quic, int fd, unsigned port);

/* Uses these certificates for new connections. They must stay valid until the next call. */
void quic_use_certificates(struct quic *quic, const struct certificates *certificates, bool strict_sni);

/* Called when a descriptor is ready. */
void quic_readable(struct quic_cookie *cookie);
void quic_writable(struct quic_cookie *cookie);

/* Called at the end of each turn: sends what the connections have to send, and ends those whose time is over. */
void quic_turn(struct quic *quic);

/* Has each connection end after the requests that have come. closes: no new ones are accepted. */
void quic_drain(struct quic *quic, bool closes);

#endif
