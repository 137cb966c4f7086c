/* conn_context.h - what the connections of a worker share: its loop, the site, buffers, budgets and clocks. */
#ifndef GATLING_CONN_CONN_CONTEXT_H
#define GATLING_CONN_CONN_CONTEXT_H

#include "gatling/base/cookie.h"
#include "gatling/client/limits.h"
#include "gatling/conn/budget.h"
#include "gatling/conn/conn_kind.h"
#include "gatling/conn/conn_options.h"
#include "gatling/conn/kernel_window.h"
#include "gatling/conn/rate_window.h"
#include "gatling/exchange/exchange.h"
#include "gatling/http2/http2.h"
#include "gatling/site/site_context.h"
#include "gatling/tls/tls.h"
#include "gatling/upstream/upstreams.h"
#include "io/io.h"

enum {
	/* Bytes of the read buffer: TLS_ROOM after part of a head (HEAD_MAX) or of a frame. */
	CONN_SCRATCH = 56 * 1024,
	CONN_PIECE = 4 * 1024, /* bytes that a connection which had to wait for others reads at a time, without TLS */
	/* Bytes that all writers together may send in a turn before new requests are handled again: */
	CONN_SHARE_LEAST = 64 * 1024, /* if a request was answered at once in the last CONN_AT_ONCE_MS, */
	CONN_SHARE_MOST = 512 * 1024, /* otherwise; with the smaller share 10 MB cost a third more, with 256 KiB a tenth */
	CONN_AT_ONCE_MS = 10,
	/* Bytes that a connection may leave unsent in the kernel: at most the default maximum (tcp_wmem), and at least
	 * CONN_UNSENT_MIN. */
	CONN_UNSENT_MAX = 4 * 1024 * 1024,
	CONN_UNSENT_MIN = 16 * 1024,
	CONN_UNSENT_UNKNOWN = 31 /* in place of the number of times that CONN_UNSENT_MAX was halved */
};

/* How connections end with the worker, or when it has a successor. */
enum conn_drain {
	DRAIN_NOT,
	DRAIN_ANSWERED, /* each ends after its next response, or at its timeout, so that no request is lost */
	DRAIN_IDLE      /* idle ones end at once, too */
};

struct shed; /* shed.h */
struct fair; /* fair.h */
struct quic; /* quic.h */

/* What load/fair.c decides for connections of QUIC. */
struct conn_turns {
	/* Returns whether a client has to wait for others; and how many nanoseconds those that do are served in a turn, in
	 * each direction. */
	bool (*waits)(const struct conn_context *context, const struct peer *client);
	int64_t (*turn_ns)(const struct conn_context *context);
	/* Returns the time if what begins now is to be timed, or 0. Then ended() has to be called. */
	int64_t (*begun)(const struct conn_context *context);
	void (*ended)(const struct conn_context *context, const struct peer *client, int64_t begun_ns);
};

struct conn_context {
	io_loop *loop;
	const struct conn_options *options;
	struct site_context site;
	struct batch_pool batches;
	struct exchange_context exchanges;
	struct http2_context http2;
	struct tls_worker *tls; /* NULL: no TLS */
	enum conn_drain draining;
	unsigned connections, connections_max;     /* the main thread, too, reads connections */
	unsigned connections_short;                /* at which some are closed to make room for others (SHED_FROM) */
	const struct conn_kind *kinds[CONN_KINDS]; /* NULL: there are none of that kind */
	bool limited;        /* connections_max is what the owner has set, not what the descriptors allow */
	size_t memory;       /* bytes that are kept for the connections, see budget.h */
	size_t tls_memory;   /* bytes that TLS takes for them, see tls_worker_new() */
	size_t quic_memory;  /* bytes of the connections of QUIC beside those, most of them of its library */
	size_t memory_peak;  /* the most that conn_context_memory() was since memory was given back to the system */
	size_t memory_max;   /* the most that conn_context_memory() may be: the worker's part of --limit memory */
	size_t memory_small; /* with no more than that, shed_over_budget() has nothing to do */
	struct shed *shed;
	struct fair *fair;
	struct quic *quic; /* NULL: none */
	const struct conn_turns *turns;
	/* Indexed by descriptor: the address of each connection that comes from a trusted proxy through a balancer with the
	 * PROXY protocol; peer_unknown for the others. Allocated with the first. */
	struct peer *proxy;
	unsigned proxies;
	uint64_t served; /* peer_network() of the client whose connection runs */
	/* Returns the status with which a new connection of a client is refused, or 0; then the connection has been
	 * counted, see limits_take_connection(). */
	int (*refusal)(struct conn_context *context, const struct peer *peer);
	/* Closes some connections if there are too many. Returns whether there may be another one of QUIC. */
	bool (*make_room)(struct conn_context *context);
	size_t read_most; /* bytes that a connection reads at a time: CONN_SCRATCH or CONN_PIECE */
	struct rate_windows rate;
	struct kernel_windows kernel;
	uint64_t share;         /* bytes that writers may send in this turn: CONN_SHARE_LEAST or CONN_SHARE_MOST */
	uint64_t sent;          /* bytes sent in all */
	int64_t at_once_ms;     /* when a request was last answered at once */
	unsigned handshakes;    /* begun in this turn */
	unsigned unsent_halved; /* how often CONN_UNSENT_MAX is halved for conn_unsent() */
	bool unsent_varies;     /* unsent_halved was not always 0: new connections have the limit that their listener had */
	/* The lines of the fields that all responses have: Server, Date and, over TLS (the second slice) with --hsts,
	 * Strict-Transport-Security. worker.c writes them once a second. */
	struct slice common_fields[2];
	char frames[HTTP2_FRAMES];
	char scratch[CONN_SCRATCH];
};

/* Returns the client to which a connection from that address counts, or peer_unknown if it is a trusted proxy. */
static inline const struct peer *conn_owner(const struct conn_context *w, const struct peer *peer) {
	return forwarding_of(&w->options->trust, peer) ? &peer_unknown : peer;
}

/* Returns how many bytes a connection may leave unsent in the kernel, for TCP_NOTSENT_LOWAT; UINT32_MAX: no limit. */
static inline uint32_t conn_unsent(const struct conn_context *w) {
	return w->unsent_halved ? (uint32_t)CONN_UNSENT_MAX >> w->unsent_halved : UINT32_MAX;
}

/* Returns how many bytes are kept for clients, with those that TLS takes. It is in conn.c. */
size_t conn_context_memory(const struct conn_context *context);

#endif
