/* quic.h - the QUIC connections of a worker (RFC 9000), which carry HTTP/3: datagrams in and out, connection IDs,
 * timers. The only user of ngtcp2. */
#ifndef GATLING_QUIC_QUIC_H
#define GATLING_QUIC_QUIC_H

#include "gatling/conn/conn_context.h"
#include "gatling/http3/http3.h"
#include "gatling/keeper/datagram_sockets.h"
#include "io/alarm.h"
#include "io/datagram.h"

struct quic;

/* A descriptor of the loop that belongs to QUIC. */
struct quic_cookie {
	uint8_t kind; /* COOKIE_QUIC */
	enum quic_descriptor { QUIC_SOCKET, QUIC_CHANNEL, QUIC_READER } is;
	int fd;
	struct quic *quic;
	unsigned port;                          /* of a socket, */
	bool receives;                          /* and whether this worker does so on it */
	const struct datagram_channel *channel; /* of one */
	bool gone;                              /* the process at the other end of the channel */
	struct io_datagrams held; /* of a socket: what it did not take; its bytes are NULL if there are none */
};

/* Returns the QUIC side of a worker; or NULL without memory, if it has no sockets, if they cannot be watched, or if
 * this build has no HTTP/3. Connection IDs say which of the workers has the connection, and which process. The sockets
 * must outlive it. */
struct quic *quic_new(struct conn_context *context, const struct datagram_sockets *sockets, unsigned worker,
					  unsigned workers);
void quic_free(struct quic *quic); /* closes all connections; NULL is allowed */

/* Sets the options of a socket for datagrams. Returns 0, or -1 with errno; ENOSYS: this build has no HTTP/3. */
int quic_set_up_socket(int fd);

/* Opens one. Others may be bound to its address, too, by the same user. Returns it, or -1 with errno. */
int quic_open_socket(const struct sockaddr *address, socklen_t length, bool dual_stack);

/* Has the system distribute datagrams over the first `count` sockets that were bound to the address of this one, by
 * their connection IDs. Returns 0, or -1 if it does so in another way. */
int quic_route(int fd, unsigned count);

/* Returns the port to be announced; 0: the server has not been able to reach it itself. */
unsigned quic_port(const struct quic *quic);

/* Begins to receive. */
void quic_serve(struct quic *quic);

/* Notes that a successor receives on the sockets from now on. It sends what is of this process through the channel, and
 * gets what is not. */
void quic_hand_over(struct quic *quic);

/* Uses these certificates for new connections. They must stay valid until the next call. */
void quic_use_certificates(struct quic *quic, const struct certificates *certificates, bool strict_sni);

/* Uses these field lines in all responses from now on. */
void quic_use_fields(struct quic *quic, struct slice lines);

/* Called when a descriptor is ready. */
void quic_readable(struct quic_cookie *cookie);
void quic_writable(struct quic_cookie *cookie);

/* Called at the end of each turn: sends what the connections have to send, and ends those whose time is over. */
void quic_turn(struct quic *quic);

/* Has each connection end after the requests that have come. closes: no new ones are accepted. */
void quic_drain(struct quic *quic, bool closes);

#endif
