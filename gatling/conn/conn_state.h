/* conn_state.h - the inside of a connection, for conn.c (its life, and TLS), http1.c and http2.c (what is
 * spoken on it). */
#ifndef GATLING_CONN_CONN_STATE_H
#define GATLING_CONN_CONN_STATE_H

#include "gatling/conn/context.h"
#include "gatling/http/body.h"
#include "gatling/site/response_batch.h"

enum {
	PIPELINE_MAX = 64,           /* responses sent together */
	PIPELINE_BYTES = 128 * 1024, /* and bytes */
	PIPELINE_FILES = 4,          /* and open files */
	LINGER_MS =
		2000, /* a closed connection is read on for so long, or so long since the client has acknowledged something, */
	LINGER_BYTES = 4 * 1024 * 1024 /* and so far: the client can read the last answer (RFC 9112, section 9.6) */
};
#define NEVER_MS INT64_C(3153600000000) /* a hundred years: what no timeout is */

enum conn_state {
	STATE_HANDSHAKE, /* of TLS */
	STATE_READ,      /* waits for a request, or for the rest of one */
	STATE_WAIT,      /* waits for a job, before the request that it has read can be answered */
	STATE_WRITE,     /* waits until the socket takes more of the answers; reads nothing, but with HTTP/2 */
	STATE_LINGER     /* has sent its last answer and reads on, to drop it */
};

/* What a deadline is for in STATE_READ: it is set when this changes, and bytes trickling in do not move it. */
enum awaited { AWAIT_NOTHING, AWAIT_HANDSHAKE, AWAIT_REQUEST, AWAIT_HEAD, AWAIT_BODY };

struct conn {
	enum cookie_kind kind;
	int fd;
	struct conn_context *context;
	struct peer peer;
	uint16_t port;
	uint8_t state, awaited;
	bool begun : 1;         /* something has been understood as a request: it stays HTTP/1.1 */
	bool closing : 1;       /* no further request is read */
	bool linger : 1;        /* the client may still be sending: do not close in its face */
	bool owes_continue : 1; /* the client waits for a 100 */
	bool head : 1;          /* the request whose body is read is a HEAD */
	bool ended : 1;         /* HTTP/2: the client sends nothing more */
	struct body body;
	int32_t unread;        /* bytes that the client had not acknowledged when its deadline was set */
	uint32_t lingered;     /* STATE_LINGER: bytes dropped, */
	uint32_t stalled_ms;   /* and how long nothing has been acknowledged */
	uint32_t memory;       /* that is kept for it, as the worker has it in its sum */
	int64_t since_ms;      /* when its deadline was set */
	struct parked *parked; /* of a request that has waited for a job, until it is answered; else NULL */
	struct tls *tls;       /* NULL: none */
	struct http2 *http2;   /* NULL: this is HTTP/1.1 */
	struct response_batch *responses;
	char *input; /* read but not used up: part of a request, or requests while answers wait */
	uint32_t input_length;
};

/* --- conn.c --- */

/* As io_tryread() and iob_send(), through TLS if need be. rest: IO_MORE for the last bytes of the connection, whose end
 * (close_notify, FIN) leaves with them; so never for an interim response. */
ssize_t conn_receive(struct conn_context *context, struct conn *conn, char *buffer, size_t length);
enum iob_result conn_transmit(struct conn_context *context, struct conn *conn, iob *batch, uint64_t most,
							  enum io_rest rest, uint64_t *sent);

/* IO_MORE if the connection ends with the answers under way: a segment less each way. */
static inline enum io_rest conn_rest(const struct conn *conn) { return conn->closing ? IO_MORE : IO_LAST; }

/* Whether TLS has something to send without a batch. */
static inline bool conn_blocked(const struct conn *conn) { return conn->tls && tls_blocked(conn->tls); }

/* The bytes that it may send in this turn. */
uint64_t conn_share(const struct conn_context *context, const struct conn *conn);

/* Sets the deadline for what it waits for: state and awaited say what. */
void conn_set_timeout(struct conn_context *context, struct conn *conn);

/* Ends a turn of it, which now waits: brings what is kept for it to account. Closes it if that is too much. */
void conn_settle(struct conn_context *context, struct conn *conn);

/* Keeps bytes for later. They may lie in the scratch buffer, which others use meanwhile. false: ENOMEM. */
bool conn_keep_input(struct conn *conn, const char *data, size_t length);

/* Puts what was kept to the front of the scratch buffer; its length. */
size_t conn_fetch_input(struct conn_context *context, struct conn *conn);

/* The last answer is out: closes, or lingers. */
void conn_end(struct conn_context *context, struct conn *conn);

/* --- http1.c --- */

/* Does all that can be done with the bytes at hand, which lie in the scratch buffer. */
void conn_http1_run(struct conn_context *context, struct conn *conn, const char *data, size_t length);

/* Bytes have come behind those kept; or none, after all (error: EAGAIN). */
void conn_http1_receive(struct conn_context *context, struct conn *conn, size_t kept, size_t length);

void conn_http1_writable(struct conn_context *context, struct conn *conn);
void conn_http1_timed_out(struct conn_context *context, struct conn *conn);

/* Nobody is to be woken any more. */
void conn_http1_unpark(struct conn *conn);

/* To a client that speaks HTTP without TLS to the port for TLS. */
void conn_http1_refuse_clear(struct conn_context *context, struct conn *conn);

/* --- http2.c --- */

/* How http2/ reaches its connection. */
extern const struct http2_connection http2_connection;

/* Takes in the frames at hand, which lie in the scratch buffer, and answers. */
void conn_http2_run(struct conn_context *context, struct conn *conn, const char *data, size_t length);

/* Sends what there is, after room for more has come, and waits for what comes next. */
void conn_http2_writable(struct conn_context *context, struct conn *conn);

/* No further streams are taken, and the client is told so. */
void conn_http2_drain(struct conn_context *context, struct conn *conn);

/* It has been told that the end comes, and has had time: now it does. */
void conn_http2_finish(struct conn_context *context, struct conn *conn);

/* The client sends nothing more. */
void conn_http2_input_ended(struct conn_context *context, struct conn *conn);

/* Tells the client that the connection ends, calm: because it takes too much; if that goes out at once. */
void conn_http2_say_goodbye(struct conn_context *context, struct conn *conn, bool calm);

#endif
