/* connection.h - the connections of a client: which requests are under way on each, and how requests and connections
 * end. How requests are sent and responses received is in http1.h, http2.h, http3.h and websocket.h. */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/httpbench/load/backlog.h"
#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/load/schedule.h"
#include "bench/httpbench/transport/quic.h"
#include "bench/client/response.h"
#include "io/alarm.h"
#include "io/io.h"

/* A request under way. The requests of a connection form a list, in the order in which they were assigned. */
struct connection_request {
	int64_t due_ns, placed_ns, sent_ns, first_ns; /* first_ns: of the response; 0: not yet (the last two) */
	unsigned target, fields;                      /* indices in the plan */
	uint32_t partly;                              /* bytes handed to the kernel; with HTTP/2, of the content only */
	bool sent;                                    /* all bytes were handed over */
	bool ended;                                   /* HTTP/2: the response has ended */
	bool again;                                   /* it was on another connection before */
	bool last;                                    /* the last one of its connection */
	uint16_t previous, next;
	int32_t stream; /* HTTP/2: its number; 0: not yet */
	struct response response;
};

enum { CONNECTION_NONE = UINT16_MAX }; /* there is no request */

/* States, in this order. There is a handshake only with TLS, and an upgrade only for a WebSocket. */
enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_CONNECTING,
	CONNECTION_HANDSHAKE,
	CONNECTION_UPGRADE, /* the protocol's own request is under way; the assigned ones wait for it */
	CONNECTION_OPEN
};

/* Lists of connections, each first in, first out: closed connections and, in open loop, open ones without requests, and
 * those with requests that can take another one. */
enum connection_list {
	CONNECTION_LIST_NONE,
	CONNECTION_LIST_CLOSED,
	CONNECTION_LIST_IDLE,
	CONNECTION_LIST_ROOM,
	CONNECTION_LISTS
};

struct connection {
	struct io_alarm alarm; /* of QUIC; the first member, as connection_expire() is called with what it is of */
	int fd;
	uint8_t state, list;
	uint16_t head, tail,
		unsent;            /* requests: the first, the last, and the first that was not sent; CONNECTION_NONE: none */
	uint16_t free;         /* the first unused place, linked by next */
	uint16_t assigned;     /* requests under way, */
	uint16_t room;         /* and the limit of these */
	bool broken;           /* it can send no more, but there may be responses */
	bool retired;          /* it takes no more requests */
	uint32_t requests;     /* assigned so far */
	uint32_t input_length; /* bytes of an incomplete head in input */
	int32_t previous, next;
	int64_t since_ns; /* the time it entered its state; when it is open, of the last input */
	char *input;
	tls_stream *tls; /* NULL: without TLS, or QUIC has it */
	void *session;   /* of the protocol, if it has one and the connection is established */
};

struct connections;

/* How requests are sent and responses received: http1.h, http2.h, http3.h, websocket.h. */
struct connection_protocol {
	bool upgrades; /* a connection is open only after connection_upgraded() */
	/* Over UDP: makes what the connections of a thread share, before the first. Returns NULL without memory. NULL: over
	 * TCP. */
	struct quic_thread *(*thread_new)(struct connections *connections);
	/* Makes the session of an established connection or, over UDP, of one that begins, whose handshake is its own; both
	 * arguments must remain where they are. Returns NULL without memory. The end of the session is that of the
	 * connection, too: over UDP it tells the server. Both members may be NULL. */
	void *(*session_new)(struct connections *connections, struct connection *conn);
	void (*session_free)(void *session);
	/* Writes all assigned requests, and what the protocol itself sends. Returns 0, or -1 with errno. EAGAIN: some is
	 * left; EBADMSG: the server broke the protocol. */
	int (*send)(struct connections *connections, struct connection *conn);
	bool (*wants_to_send)(const struct connection *conn); /* NULL: never without requests */
	/* Over UDP: receive and handle input, and handle that the time of an alarm has come. Return the bytes received, or
	 * 0; or -1 with errno as of quic.h. why() says more about it. */
	ssize_t (*receive)(struct connections *connections, struct connection *conn);
	int (*expire)(struct connection *conn);
	const char *(*why)(const struct connection *conn);
	/* Over TCP: takes input. Returns false if it has closed the connection. */
	bool (*take)(struct connections *connections, struct connection *conn, const char *data, size_t length);
	/* Over TCP: closes a connection whose server has closed its end. */
	void (*end_of_input)(struct connections *connections, struct connection *conn);
	/* Gives up a request that was sent, without ending the connection; the caller then ends the request. Returns false
	 * if it cannot. NULL: it never can. */
	bool (*cancel)(struct connection *conn, const struct connection_request *request);
	/* Tells the server that a sound connection is about to be closed. NULL: it is not told. */
	void (*leave)(struct connections *connections, struct connection *conn);
};

/* All connections of a client, with their requests and the backlog. */
struct connections {
	const struct plan *plan;
	const struct connection_protocol *protocol;
	unsigned number; /* the client's */
	io_loop *loop;
	struct tls *tls;          /* NULL: without TLS */
	struct quic_thread *quic; /* NULL: over TCP */
	struct schedule schedule;
	int64_t now_ns;
	int64_t end_ns;         /* no request begins from then on */
	int64_t open_again_ns;  /* no connection is opened before this time */
	uint64_t requests_left; /* requests that may still begin */
	struct connection *connection;
	unsigned count, open;                                   /* open: how many are open */
	uint32_t sources_taken;                                 /* connections opened so far */
	struct connection_request *pending;                     /* plan->depth for each connection */
	int32_t head[CONNECTION_LISTS], tail[CONNECTION_LISTS]; /* -1: the list is empty */
	unsigned under_way;                                     /* requests */
	uint64_t given_back;                                    /* requests given back since one was answered */
	struct backlog backlog;
	struct measures *filling;
	char *input;  /* for reading: CONNECTION_READ_MAX bytes, so that a head fits */
	char *output; /* HTTP/2: for frames, of the same size */
};

enum { CONNECTION_READ_MAX = 256 * 1024 };

/* Makes the connections, all closed; the caller sets the loop. Returns 0, or -1 with errno, and then connections_free()
 * must still be called. */
int connections_init(struct connections *connections, const struct plan *plan,
					 const struct connection_protocol *protocol, unsigned number);

/* Frees the connections, which must be closed. */
void connections_free(struct connections *connections);

/* Adds a request to the backlog; if that is full, counts it as unsent. */
void connections_wait(struct connections *connections, int64_t due_ns, bool again);

/* Takes the first connection of a list, or returns NULL if the list is empty. */
struct connection *connections_take(struct connections *connections, enum connection_list list);

/* Returns whether the connection can take another request. */
bool connection_has_room(const struct connection *conn);

/* Assigns a request, from now_ns on, to a connection that has room. connection_open() or connection_write() sends it.
 */
void connection_assign(struct connections *connections, struct connection *conn, int64_t due_ns, bool again);

/* Opens a connection that is closed and in no list, for its assigned requests. If this fails, they are counted as
 * failed. */
void connection_open(struct connections *connections, struct connection *conn);

/* Continues with connecting, the handshake, and sending. */
void connection_write(struct connections *connections, struct connection *conn);

/* Reads and handles input. Returns false if the connection has been closed. */
bool connection_read(struct connections *connections, struct connection *conn);

/* Handles that the time of the connection's alarm has come. */
void connection_expire(struct connections *connections, struct connection *conn);

/* Closes the connection; its requests fail. No connection is opened for a while if this process reached a limit or, in
 * closed loop, if the server could not be connected to. */
void connection_fail(struct connections *connections, struct connection *conn, enum failure failure);

/* Closes the connection; its requests count as dropped. */
void connection_drop(struct connections *connections, struct connection *conn);

/* Closes the connection, on which no requests are under way. Adds one that is closed already to its list. */
void connection_close(struct connections *connections, struct connection *conn);

/* --- for http1.c, http2.c, http3.c and websocket.c --- */

/* Opens a connection, unless it has an upgrade before it: its handshake is complete. */
void connection_secured(struct connections *connections, struct connection *conn, const tls_stream *tls);

/* Opens a connection whose upgrade is complete. */
void connection_upgraded(struct connections *connections, struct connection *conn);

/* Keeps incomplete input, which take() gets again with the bytes that follow. Ends the program without memory. */
void connection_keep(struct connection *conn, const char *data, size_t length);

/* Returns the request in a place, or NULL for CONNECTION_NONE. */
struct connection_request *connection_at(const struct connections *connections, const struct connection *conn,
										 uint16_t place);

/* Returns the target of the first request of a connection, or the first of all, if it is opened without a request. All
 * are on one server. */
const struct target *connection_target(const struct connections *connections, const struct connection *conn);

/* Note that the first bytes of a request are handed to the kernel, and that the last ones were. */
void connection_sending(struct connections *connections, struct connection_request *request);
void connection_sent(struct connections *connections, struct connection *conn, struct connection_request *request);

/* End a request and free its place. Its response is complete; or it has failed, but the connection has not; or the
 * server has not processed it, and it gets another connection. */
void connection_answered(struct connections *connections, struct connection *conn, struct connection_request *request);
void connection_failed(struct connections *connections, struct connection *conn, struct connection_request *request,
					   enum failure failure);
void connection_give_back(struct connections *connections, struct connection *conn, struct connection_request *request);

/* Does what io_trywritev() with IO_LAST does. */
ssize_t connection_trywritev(struct connections *connections, struct connection *conn, const struct iovec *part,
							 int parts);

#endif
