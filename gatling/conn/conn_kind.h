/* conn_kind.h - what load/ asks of connections when some have to go, whatever carries them: TCP (conn_tcp.c) or QUIC
 * (quic/places.c). */
#ifndef GATLING_CONN_CONN_KIND_H
#define GATLING_CONN_CONN_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gatling/base/peer.h"

struct conn_context;

enum { CONN_TCP, CONN_QUIC, CONN_KINDS };

/* Bytes of memory of a connection. */
struct conn_memory {
	size_t kept; /* as counted in the context's memory, see budget.h */
	size_t all;  /* with those of libraries */
};

enum conn_closing {
	CONN_CLOSE_IDLE,       /* if a request has come meanwhile, it is answered instead */
	CONN_CLOSE_UNFINISHED, /* its handshake or request head takes too long */
	CONN_CLOSE_DEAR,       /* it takes too much memory: the client is told so, if the protocol can say it */
	CONN_CLOSE_SLOW        /* what the client has not taken is dropped */
};

struct conn_kind {
	bool has_descriptor; /* each connection has one */

	/* A connection keeps its number, which is less than the bound, as long as it lives. at() returns the connection
	 * with a number, or NULL. */
	int (*bound)(const struct conn_context *context);
	void *(*at)(const struct conn_context *context, int number);

	/* Returns the client to which the connection counts: see conn_owner(); peer_unknown also while anybody could have
	 * sent what has come in the name of that address. */
	const struct peer *(*peer)(const void *connection);

	/* Returns since when it has waited, on the clock of io_now(), or 0 if nothing has come yet. */
	int64_t (*since)(const void *connection);

	/* Return whether it waits for a request of which nothing has come, and can be closed without loss; and for the rest
	 * of a handshake or, but for QUIC, of a head: with a part of one alone, a connection of QUIC is idle. */
	bool (*is_idle)(const void *connection);
	bool (*is_unfinished)(const void *connection);

	/* Returns how many bytes client and server have exchanged, by what each has acknowledged; or -1 if it does not wait
	 * for the client to take or to send content. */
	int64_t (*transferred)(const void *connection);

	/* Of TCP: return the bytes that they have exchanged, whatever it waits for (0 if the system does not tell), and
	 * those of the kernel's memory, as platform_socket_memory(). */
	int64_t (*carried)(const void *connection);
	uint64_t (*in_kernel)(const void *connection, uint64_t *unsent);

	struct conn_memory (*memory)(const void *connection);

	/* Returns whether it has been closed, and is no longer counted. */
	bool (*close)(struct conn_context *context, void *connection, enum conn_closing why);
};

extern const struct conn_kind conn_tcp;

#endif
