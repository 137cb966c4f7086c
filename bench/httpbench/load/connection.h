/* connection.h - the connections of a client: which requests are under way on each, and how they and it end. http1.h,
 * http2.h and websocket.h have how requests leave and responses come in. */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/httpbench/load/backlog.h"
#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/load/schedule.h"
#include "bench/httpbench/load/tls.h"
#include "bench/response.h"
#include "io/io.h"

/* A request under way. Those of a connection form a list, in the order in which they were assigned. */
struct connection_request {
	int64_t due_ns, placed_ns, sent_ns, first_ns; /* first_ns: of its answer; sent_ns, first_ns: 0, not yet */
	unsigned target;
	uint32_t partly; /* bytes that were handed to the kernel, of its content over HTTP/2 */
	bool sent;       /* all were */
	bool ended;      /* HTTP/2: its response has */
	bool again;      /* it was on another connection before */
	bool last;       /* on its connection */
	uint16_t previous, next;
	struct response response;
};

enum { CONNECTION_NONE = UINT16_MAX }; /* no request */

/* In this order; without TLS there is no handshake, and an upgrade only for a WebSocket. */
enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_CONNECTING,
	CONNECTION_HANDSHAKE,
	CONNECTION_UPGRADE, /* the protocol's own request is under way, for which those that are assigned wait */
	CONNECTION_OPEN
};

/* Lists of connections, each first in, first out: those closed; in open loop, those without a request, and those with
 * some that can take another. */
enum connection_list {
	CONNECTION_LIST_NONE,
	CONNECTION_LIST_CLOSED,
	CONNECTION_LIST_IDLE,
	CONNECTION_LIST_ROOM,
	CONNECTION_LISTS
};

struct connection {
	int fd;
	uint8_t state, list;
	uint16_t head, tail,
		unsent;            /* requests: the first, the last, and the first that has not left; CONNECTION_NONE: none */
	uint16_t free;         /* the first of the places that are not in use, by next */
	uint16_t assigned;     /* requests under way, */
	uint16_t room;         /* of so many that may be */
	bool broken;           /* it takes no more bytes, but answers may be there */
	bool retired;          /* it takes no more requests */
	uint32_t requests;     /* ever assigned */
	uint32_t input_length; /* bytes of a head that is not complete */
	int32_t previous, next;
	int64_t since_ns; /* when it began to be what its state says, before it is open */
	char *input;
	tls_stream *tls; /* NULL: in the clear */
	void *session;   /* of the protocol, if it has one and the connection is open */
};

struct connections;

/* How requests leave and responses come in: http1.h, http2.h, websocket.h. */
struct connection_protocol {
	bool upgrades; /* a connection is open only after connection_upgraded() */
	/* For a connection that stands; both must stay where they are. NULL: no memory. The members may be NULL. */
	void *(*session_new)(struct connections *connections, struct connection *conn);
	void (*session_free)(void *session);
	/* Writes all requests that are assigned, and what the protocol wants. Returns 0, or -1 with errno; EAGAIN: some is
	 * left; EBADMSG: the server broke the protocol. */
	int (*send)(struct connections *connections, struct connection *conn);
	bool (*wants_to_send)(const struct connection *conn); /* NULL: never without a request */
	/* Takes input. Returns false if the connection is closed then. */
	bool (*take)(struct connections *connections, struct connection *conn, const char *data, size_t length);
	/* The server has closed: closes the connection. */
	void (*end_of_input)(struct connections *connections, struct connection *conn);
	/* Says goodbye on a sound connection that is about to be closed. NULL: nothing is said. */
	void (*leave)(struct connections *connections, struct connection *conn);
};

/* All connections of a client, the requests on them and those that wait for one. */
struct connections {
	const struct plan *plan;
	const struct connection_protocol *protocol;
	unsigned number; /* of the client */
	io_loop *loop;
	struct tls *tls; /* NULL: in the clear */
	struct schedule schedule;
	int64_t now_ns;
	int64_t open_again_ns;  /* no connection is opened before */
	uint64_t requests_left; /* that may still begin */
	struct connection *connection;
	unsigned count, open;                                   /* open: of them */
	uint32_t sources_taken;                                 /* connections ever opened */
	struct connection_request *pending;                     /* plan->depth for each connection */
	int32_t head[CONNECTION_LISTS], tail[CONNECTION_LISTS]; /* -1: empty */
	unsigned under_way;                                     /* requests */
	uint64_t given_back;                                    /* of them, since one was answered */
	struct backlog backlog;
	struct measures *filling;
	char *input;  /* for what is read: CONNECTION_READ_MAX bytes, so that a head fits */
	char *output; /* HTTP/2: for frames, as many */
};

enum { CONNECTION_READ_MAX = 256 * 1024 };

/* All closed, without a loop. 0; -1 with errno: connections_free() is still to be called. */
int connections_init(struct connections *connections, const struct plan *plan,
					 const struct connection_protocol *protocol, unsigned number);

/* They are closed. */
void connections_free(struct connections *connections);

/* Has a request wait for a connection; at BACKLOG_MAX it counts as unsent. */
void connections_wait(struct connections *connections, int64_t due_ns, bool again);

/* Takes the first connection of a list. NULL: the list is empty. */
struct connection *connections_take(struct connections *connections, enum connection_list list);

/* Whether it can take another request. */
bool connection_has_room(const struct connection *conn);

/* Makes a request of it, from now_ns on, to leave with connection_open() or connection_write(). It has room. */
void connection_assign(struct connections *connections, struct connection *conn, int64_t due_ns, bool again);

/* Opens one that is closed and not listed, for the requests that are assigned. Their failures are counted, if so. */
void connection_open(struct connections *connections, struct connection *conn);

/* Goes on with what is to leave, from connection to handshake to requests. */
void connection_write(struct connections *connections, struct connection *conn);

/* Takes what has come in. false: it is closed now. */
bool connection_read(struct connections *connections, struct connection *conn);

/* Closes it; what is under way on it fails. In closed loop, and at a limit of this process, none is opened for a while
 * if it could not be. */
void connection_fail(struct connections *connections, struct connection *conn, enum failure failure);

/* Closes it; what is under way on it counts as dropped. */
void connection_drop(struct connections *connections, struct connection *conn);

/* Closes it; nothing is under way. A closed one becomes one that is listed as such. */
void connection_close(struct connections *connections, struct connection *conn);

/* --- for http1.c, http2.c and websocket.c --- */

/* Opens a connection whose upgrade is complete. */
void connection_upgraded(struct connections *connections, struct connection *conn);

/* Keeps input that is not complete: take() gets it again, with what comes next. Ends the program without memory. */
void connection_keep(struct connection *conn, const char *data, size_t length);

/* Returns the request in a place; NULL for CONNECTION_NONE. */
struct connection_request *connection_at(const struct connections *connections, const struct connection *conn,
										 uint16_t place);

/* Notes that a request is being handed to the kernel, and that all of it was. */
void connection_sending(struct connections *connections, struct connection_request *request);
void connection_sent(struct connections *connections, struct connection *conn, struct connection_request *request);

/* Ends a request: its response is complete; it has failed, and the connection has not; or the server has not looked at
 * it, and it waits for another connection. The place is free then. */
void connection_answered(struct connections *connections, struct connection *conn, struct connection_request *request);
void connection_failed(struct connections *connections, struct connection *conn, struct connection_request *request,
					   enum failure failure);
void connection_give_back(struct connections *connections, struct connection *conn, struct connection_request *request);

/* As io_trywritev() with IO_LAST. */
ssize_t connection_trywritev(struct connections *connections, struct connection *conn, const struct iovec *part,
							 int parts);

#endif
