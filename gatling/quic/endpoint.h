/* endpoint.h - the inside of quic/. endpoint.c has the sockets, and finds the connection of each datagram; channel.c
 * passes on those of other workers and processes; probe.c finds out whether any come; stray.c answers those that nobody
 * has, and lets new connections in; admit.c says when; queue.c has datagrams that wait; connection_id.c has the IDs and
 * their table; connection.c the life of a connection, and what ngtcp2 asks of it; places.c what load/ asks; half_open.c
 * how many handshakes are under way, handshake.c their TLS; turns.c whose turn it is; write.c makes and sends packets.
 */
#ifndef GATLING_QUIC_ENDPOINT_H
#define GATLING_QUIC_ENDPOINT_H

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>

#include "gatling/quic/quic.h"

enum {
	QUIC_ID_LENGTH = 12,     /* bytes of the server's connection IDs */
	QUIC_LONG_HEADER = 0x80, /* a bit of the first byte (RFC 9000, section 17.2) */
	QUIC_INITIAL_MIN = 1200, /* bytes of a datagram with an Initial packet (RFC 9000, section 14.1) */
	QUIC_HOPS = 4,           /* channels that a datagram goes through at most */
	QUIC_IDS = 4,            /* connection IDs that a connection may have in use, of either side */
	QUIC_HANDSHAKE_S = 10,   /* after which a handshake is given up, if not after --limit head-timeout */
	QUIC_IDLE_S = 30,        /* the server's max_idle_timeout (RFC 9000, section 10.1) */
	QUIC_TICKETS = 1,        /* of a handshake: a client of HTTP/3 has one connection (RFC 8446, appendix C.4) */
	QUIC_LAST_S = 2,         /* between the announcement of the end and the end, without requests */
	/* To which windows grow that are used up in a round trip, if requests are passed on: 200 Mbit/s at 40 ms. */
	QUIC_WINDOW_MAX = 1024 * 1024,
	QUIC_WINDOW = 256 * 1024,    /* bytes that the client may send ahead on all streams */
	QUIC_HALF_OPEN = 64,         /* handshakes under way, from which on addresses are validated by a Retry */
	QUIC_HALF_OPEN_ADDRESS = 64, /* and of which an address may have so many; */
	QUIC_HALF_OPEN_MAX = 1024,   /* at most: another one then takes the place of the oldest */
	QUIC_RETRY_S = 10,           /* for which a token of a Retry is valid */
	QUIC_STRAYS = 64,            /* answers in a second to those who have no connection: stray.c */
	QUIC_PROBE_AGAIN_MS = 60000, /* between two datagrams to the own port; */
	QUIC_PROBE_MS = 1000,        /* if the last one has not arrived; */
	QUIC_PROBES = 5,             /* after so many of those, HTTP/3 is not announced */
	QUIC_CHECK_MS = 1000,        /* between two looks at how long connections have waited */
	QUIC_DATAGRAMS = 64,         /* that a connection sends in a turn */
	QUIC_BATCHES = 16,           /* read from a socket in a turn, while some of each have to wait; else 1 */
	QUIC_QUEUE = 1024 * 1024,    /* bytes of datagrams that wait in a queue; more are lost */
	QUIC_BEGIN_NS = 3000000,     /* of a turn, for handshakes that begin; at least one does */
	QUIC_BURST_MS = 250,         /* for which clients may wait that begin one, */
	QUIC_WAIT_MS = 20,           /* or under overload, which ends so long after the last one has waited longer: */
	QUIC_OVERLOAD_MS = 5000,
	QUIC_TABLE = 1024,                    /* lists of IDs at first; doubled as they fill */
	QUIC_PLACES = 64,                     /* for connections at first; likewise */
	QUIC_RECEIVE_BUFFER = 4 * 1024 * 1024 /* bytes of a socket's queue: datagrams that find it full are lost */
};

struct quic_connection;

/* An ID that datagrams name a connection by. */
struct quic_id {
	struct quic_id *next;    /* in its list of the table */
	struct quic_id *sibling; /* of the same connection */
	struct quic_connection *connection;
	ngtcp2_cid cid;
};

/* A datagram on its way to its connection. */
struct quic_datagram {
	struct quic_cookie *socket; /* on which it has come */
	ngtcp2_path path;
	const uint8_t *bytes;
	size_t length;
	uint8_t ecn, hops; /* hops: channels that it has gone through */
	bool returned;     /* the process before this one does not know its connection */
};

/* A datagram that waits. */
struct quic_waiting {
	struct quic_waiting *next;
	struct quic_datagram datagram;
	ngtcp2_path_storage path;
	int64_t since_ms;
	uint8_t bytes[];
};

/* All zero at first. */
struct quic_queue {
	struct quic_waiting *first, *last;
	size_t bytes; /* with those of the structures */
};

/* IDs by their values. */
struct quic_table {
	struct quic_id **list;
	size_t lists, count; /* lists: a power of two */
	uint64_t seed[2];
};

struct quic {
	struct conn_context *context;
	struct http3_context http3;
	struct tls_handshaking handshaking;
	unsigned worker, workers;
	struct quic_table table;
	struct io_received *received;
	const struct datagram_sockets *shared;
	struct quic_cookie
		*cookie; /* `sockets` sockets, then `channels` channels, the first of which is the worker's own */
	unsigned sockets, channels;
	EVP_CIPHER_CTX *mask;                               /* of connection IDs */
	bool handed_over;                                   /* a successor receives */
	ngtcp2_cid probe;                                   /* the source of the datagrams to its own port, */
	int64_t probed_ms;                                  /* when it sent the last one, */
	unsigned missing;                                   /* and how many of the last ones have not arrived; */
	bool reachable;                                     /* it may announce HTTP/3 */
	int64_t begun_ns;                                   /* when it began to receive */
	char *message;                                      /* room for one of a channel */
	struct quic_connection **place;                     /* all, by their numbers; NULL: the place is free */
	int places, free_place;                             /* free_place: none before it is free */
	struct quic_connection *first_unsent, *last_unsent; /* those that may have something to send, in their order */
	struct quic_queue aside;                            /* datagrams whose clients wait for others */
	struct quic_queue beginning;                        /* those that begin connections, */
	int64_t overload_until_ms;                          /* and until when they may only wait for QUIC_WAIT_MS */
	int64_t last_turn_ms;                               /* when clients last began */
	bool reads_on;                                      /* one of the last batch has to wait, or is lost */
	struct quic_connection *oldest, *newest;            /* those with a handshake under way, in their order */
	unsigned connections, half_open;
	struct io_alarm alarm; /* of quic_check() */
	bool draining;
	bool bbr;           /* the kernel sends with BBR by default, so do these connections */
	int64_t checked_ms; /* see quic_check() */
	int64_t second;     /* in which strays were counted */
	unsigned strays;
	ngtcp2_callbacks callbacks;
	char common[RESPONSE_COMMON_BLOCK]; /* http3.common_block */
	char packets[IO_DATAGRAM_BYTES];
};

struct quic_connection {
	struct io_alarm alarm; /* the first member, see quic_connection_of() */
	struct quic *quic;
	struct quic_cookie *socket;
	struct quic_cookie reader; /* see struct http3_transport; its fd is -1 if there is none */
	ngtcp2_conn *conn;
	ngtcp2_mem allocator;  /* of conn, which counts */
	size_t library_memory; /* what it has taken */
	ngtcp2_crypto_conn_ref ref;
	ngtcp2_crypto_ossl_ctx *tls;
	SSL *ssl; /* NULL after the handshake */
	ngtcp2_ccerr error;
	struct http3 *http3;    /* NULL until the server may send */
	struct peer peer;       /* the client, at the last address that is validated; peer_unknown: none is yet */
	struct quic_id *ids;    /* in the table */
	bool validated;         /* the client has sent the token of a Retry */
	bool moving;            /* it sends from an address that is not validated yet */
	bool half_open;         /* the handshake is under way */
	bool open;              /* it is complete */
	bool pending;           /* it is in quic->unsent */
	bool ended;             /* it is to be freed, and no longer counted */
	bool draining;          /* it ends when all requests are answered */
	uint8_t waits;          /* enum wait_for, as it was at the last look, */
	int64_t since_ms;       /* and since when without progress */
	unsigned streams_ended; /* which the client may not open again yet */
	int place;
	struct conn_memory memory; /* as counted in the context's sums */
	struct quic_connection *next_unsent;
	struct quic_connection *older, *younger; /* with a handshake under way */
};

static inline struct quic_connection *quic_connection_of(struct io_alarm *alarm) {
	return (struct quic_connection *)alarm;
}

static inline uint64_t quic_now(const struct quic *e) { return (uint64_t)io_now_ns(e->context->loop); }

/* Fills in the path between two addresses, which it copies. */
static inline void quic_set_path(ngtcp2_path_storage *path, const union io_address *local,
								 const union io_address *peer) {
	ngtcp2_path_storage_init(path, &local->any, io_address_length(local), &peer->any, io_address_length(peer), NULL);
}

/* --- connection_id.c --- */

bool quic_table_open(struct quic_table *table);
void quic_table_close(struct quic_table *table);
struct quic_connection *quic_table_find(const struct quic_table *table, const uint8_t *id, size_t length);

/* Returns false without memory. */
bool quic_table_add(struct quic_table *table, const ngtcp2_cid *cid, struct quic_connection *connection);
/* Remove an ID of the connection, or all of them. */
void quic_table_remove(struct quic_table *table, const ngtcp2_cid *cid, struct quic_connection *connection);
void quic_table_remove_all(struct quic_table *table, struct quic_connection *connection);

/* Of the secret that workers and processes share, QUIC_SECRET bytes are for tokens and stateless resets, and then
 * QUIC_ID_KEY bytes for connection IDs. */
enum { QUIC_SECRET = 32, QUIC_ID_KEY = DATAGRAM_SECRET - QUIC_SECRET };
static inline const uint8_t *quic_secret(const struct quic *e) { return e->shared->secret; }

/* Prepares for IDs. Returns false without memory. */
bool quic_id_open(struct quic *e);

/* Makes an ID of this worker and process. Returns false without random bytes. */
bool quic_id_make(const struct quic *e, ngtcp2_cid *cid);

/* Reads the generation of the process that has made an ID. Returns false if none of these processes has made it. */
bool quic_id_read(const struct quic *e, const uint8_t *id, size_t length, uint8_t *generation);

/* Returns which of `workers` workers an ID is of, that of a process or one that a client has chosen. */
static inline unsigned quic_id_worker(const uint8_t *id, size_t length, unsigned workers) {
	return length ? id[0] % workers : 0;
}

/* --- endpoint.c --- */

/* Finds the connection of a datagram, or whose it is. It is copied, if it has to wait. */
void quic_take_datagram(struct quic *e, const struct quic_datagram *datagram);

/* Returns the connection of a datagram that has a destination, or NULL. */
struct quic_connection *quic_connection_for(const struct quic *e, const struct quic_datagram *datagram);

/* --- channel.c --- */

/* Prepares the channels of this worker. cookie: for the worker's own, and then for those of the processes before.
 * Returns how many there are, or -1 if they cannot be watched, or without memory. */
int quic_channels_open(struct quic *e, struct quic_cookie *cookie);
void quic_channels_watch(struct quic *e, bool watch);

/* Receives from a channel. */
void quic_channel_readable(struct quic_cookie *channel);

/* Passes on a datagram that is not of this worker and process. Returns whether it was not; then it may be lost. id: to
 * which it was sent; initial: it may begin a connection. */
bool quic_pass_on(struct quic *e, const struct quic_datagram *datagram, const ngtcp2_version_cid *id, bool initial);

/* --- probe.c --- */

/* Sends a datagram to the server's own port, if it is time. Must be called in each turn. */
void quic_probe(struct quic *e);

/* Returns whether a datagram of an unknown version is one of those, which needs no answer. */
bool quic_probe_arrived(struct quic *e, const struct quic_datagram *datagram, const ngtcp2_version_cid *id);

/* --- stray.c --- */

void quic_negotiate_version(struct quic *e, const struct quic_datagram *datagram, const ngtcp2_version_cid *id);

/* Tells the client of a connection that is lost here (RFC 9000, section 10.3). */
void quic_reset(struct quic *e, const struct quic_datagram *datagram, const ngtcp2_version_cid *id);

/* Returns the connection that an Initial packet begins, or NULL if the client is refused or asked for a token. */
struct quic_connection *quic_begin(struct quic *e, const struct quic_datagram *datagram);

/* --- queue.c --- */

/* Adds a copy of a datagram. Returns false without room or memory. */
bool quic_queue_add(struct quic_queue *queue, const struct quic_datagram *datagram, int64_t now_ms);

/* Drops the first one. Returns false if there is none. */
bool quic_queue_drop(struct quic_queue *queue);
void quic_queue_clear(struct quic_queue *queue);

/* --- admit.c --- */

/* Has a datagram wait that begins a connection. Others are dropped. */
void quic_begin_later(struct quic *e, const struct quic_datagram *datagram);

/* Returns whether clients that begin may hardly wait. */
bool quic_is_overloaded(const struct quic *e);

/* Begins connections with those that wait, as far as there is time: at least one. Drops those that have waited too
 * long. */
void quic_begin_waiting(struct quic *e);

/* --- connection.c --- */

/* Accepts a connection. original: the ID that the client chose, if its address was validated by a Retry; or NULL.
 * Returns NULL if it is refused. */
struct quic_connection *quic_accept(struct quic *e, struct quic_cookie *socket, const ngtcp2_pkt_hd *head,
									const ngtcp2_path *path, const ngtcp2_cid *original);

/* Handles a datagram of the connection. */
void quic_take(struct quic_connection *c, const struct quic_datagram *datagram);

/* Ends the connection with the error of ngtcp2, if there is one to be sent. It is freed at the end of the turn. */
void quic_end(struct quic_connection *c, int error);

void quic_free_connection(struct quic_connection *c);

/* Has the connection end when the requests that have come are answered; and ends it if they are. A handshake goes on,
 * unless idle connections are to end. */
void quic_drain_connection(struct quic_connection *c);
void quic_end_drained(struct quic_connection *c);

/* The functions that ngtcp2 calls. */
void quic_set_callbacks(ngtcp2_callbacks *callbacks);

/* Ends the connection with an error of HTTP/3. */
void quic_close(struct quic_connection *c, enum http3_error error);

/* --- places.c --- */

extern const struct conn_kind quic_kind;

/* Gives a connection a number, or returns false without memory; and takes it back. */
bool quic_place_add(struct quic_connection *c);
void quic_place_remove(const struct quic_connection *c);

/* Returns the client to which a connection counts, as in struct conn_kind. */
const struct peer *quic_client(const struct quic_connection *c);

/* --- deadline.c --- */

/* Ends connections that have waited too long. quic_check_later() sets an alarm for the next time. */
void quic_check_later(struct quic *e);
void quic_check(struct quic *e);

/* --- memory.c --- */

/* Returns functions for ngtcp2 that count in *sum what they take. */
ngtcp2_mem quic_memory(size_t *sum);

/* Counts the memory that a connection takes now. */
void quic_update_memory(struct quic_connection *c);

/* --- half_open.c --- */

/* Add a connection to those with a handshake under way, and remove it, if it is one of them. */
void quic_half_open_add(struct quic_connection *c);
void quic_half_open_remove(struct quic_connection *c);

/* Returns whether a client may begin another handshake. If there are QUIC_HALF_OPEN_MAX, ends one to make room: the
 * oldest of those whose addresses are not validated, or else the oldest. */
bool quic_half_open_room(struct quic *e, const struct peer *peer);

/* --- handshake.c --- */

/* Finds the address that the client of a handshake has connected to. Returns true. */
bool quic_local_address(const SSL *ssl, struct peer *address);

/* Prepares TLS for a connection. Returns false without memory. */
bool quic_handshake_begin(struct quic_connection *c);

/* Frees the memory of the handshake, when it is confirmed. */
void quic_handshake_end(struct quic_connection *c);

/* --- turns.c --- */

/* Gives a datagram to its connection, and counts the time that this takes. */
void quic_take_counted(struct quic_connection *c, const struct quic_datagram *datagram);

/* Likewise, or lets it wait. c: NULL if it begins one. */
void quic_take_in_turn(struct quic *e, struct quic_connection *c, const struct quic_datagram *datagram);

/* Gives those that wait for others to their connections, as far as there is time: at least one. */
void quic_take_aside(struct quic *e);

/* Has each connection send, as long as all together have not sent more than their share of the turn; the others come
 * first in the next one. Frees those that have ended. */
void quic_write_all(struct quic *e);

/* --- write.c --- */

/* Notes that a connection may have something to send: quic_write() is called at the end of the turn. */
void quic_wants_write(struct quic_connection *c);

/* Sends what the connection has to send, and sets its alarm. Returns false if it has to go on in the next turn. */
bool quic_write(struct quic_connection *c);

/* Takes the next connection that may have something to send from the queue, or returns NULL. */
struct quic_connection *quic_next_unsent(struct quic *e);

/* Sends the datagrams that the socket did not take, or drops them. */
void quic_send_held(struct quic_cookie *socket);
void quic_drop_held(struct quic_cookie *socket);

/* Sends a packet from a socket to the other end of a path. */
void quic_send(const struct quic_cookie *socket, const ngtcp2_path *path, const void *packet, size_t length);

#endif
