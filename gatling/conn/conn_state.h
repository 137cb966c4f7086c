/* conn_state.h - the inside of a connection, for the files that it consists of: conn.c (its life, TLS, deadlines),
 * http1.c and http2.c (the two protocols). */
#ifndef GATLING_CONN_CONN_STATE_H
#define GATLING_CONN_CONN_STATE_H

#include "gatling/conn/context.h"
#include "gatling/http/body.h"
#include "gatling/site/response_batch.h"

enum {
	CONN_PIPELINE_MAX = 64,           /* responses sent together */
	CONN_PIPELINE_BYTES = 128 * 1024, /* and bytes */
	CONN_PIPELINE_FILES = 4,          /* and open files */
	/* A lingering connection (RFC 9112, section 9.6) is looked at so often. It is closed when the client has
	 * acknowledged everything, has acknowledged nothing for timeout_s, or has sent CONN_LINGER_BYTES. */
	CONN_LINGER_MS = 2000,
	CONN_LINGER_BYTES = 4 * 1024 * 1024
};
#define CONN_NEVER_MS INT64_C(3153600000000) /* a hundred years, for a timeout that is switched off */

/* The deadline of each state (see conn_timed_out()):
 *   CONN_HANDSHAKE                head_timeout_s, from the start
 *   CONN_READ, head or block      head_timeout_s, from its first byte; then 408 (HTTP/1.1)
 *   CONN_READ, body               timeout_s, from its start; then 408
 *   CONN_READ, idle               keepalive_timeout_s
 *   CONN_READ, open streams       timeout_s since the last request or output; renewed while the client acknowledges
 *   CONN_WAIT                     none
 *   CONN_WRITE                    timeout_s; renewed if the client has acknowledged anything: so a client that stops is
 *                                 closed between one and two timeouts later
 *   CONN_LINGER                   see CONN_LINGER_MS */
enum conn_state {
	CONN_HANDSHAKE, /* a TLS handshake */
	CONN_READ,      /* waits for a request, or for the rest of one */
	CONN_WAIT,      /* HTTP/1.1: the request waits for a job; streams wait by themselves, see http2/stream.c */
	CONN_WRITE,     /* waits until the socket takes more of the responses; HTTP/1.1 reads nothing meanwhile */
	CONN_LINGER     /* has sent its last response, and reads and drops what still comes */
};

/* What CONN_READ and CONN_HANDSHAKE wait for. The deadline is set when this changes: bytes that trickle in do not move
 * it. */
enum awaited { CONN_AWAIT_NOTHING, CONN_AWAIT_HANDSHAKE, CONN_AWAIT_REQUEST, CONN_AWAIT_HEAD, CONN_AWAIT_BODY };

struct conn {
	enum cookie_kind kind;
	int fd;
	struct conn_context *context;
	struct peer peer;
	uint16_t port;
	uint8_t state, awaited;
	bool begun : 1;         /* a request has been read: the connection stays HTTP/1.1 */
	bool closing : 1;       /* no further request is read */
	bool linger : 1;        /* the client may still be sending: linger before closing */
	bool owes_continue : 1; /* the client waits for a 100 */
	bool head : 1;          /* the request whose body is read is a HEAD */
	bool ended : 1;         /* HTTP/2: the client sends nothing more */
	struct body body;
	int32_t
		unread; /* send queue when it was last looked at; INT32_MAX: it was not, and the next look counts as progress */
	uint32_t lingered;               /* CONN_LINGER: bytes dropped, */
	uint32_t stalled_ms;             /* and how long nothing has been acknowledged */
	uint32_t memory;                 /* that is kept for it, as the worker has it in its sum */
	int64_t since_ms;                /* when its deadline was set */
	struct waiting_request *waiting; /* the request that waits for a job; NULL: none */
	struct tls *tls;                 /* NULL: none */
	struct http2 *http2;             /* NULL: this is HTTP/1.1 */
	struct response_batch *responses;
	char *input; /* read but not used up: part of a request, or requests while answers wait */
	uint32_t input_length;
};

/* --- conn.c --- */

/* io_tryread() and iob_send(), through TLS if the connection uses it. rest is IO_MORE for the last bytes of the
 * connection: its end (close_notify, FIN) leaves with them. So it is never IO_MORE for an interim response. */
ssize_t conn_receive(struct conn_context *context, struct conn *conn, char *buffer, size_t length);
enum iob_result conn_transmit(struct conn_context *context, struct conn *conn, iob *batch, uint64_t most,
							  enum io_rest rest, uint64_t *sent);

/* Returns IO_MORE if the connection ends with the responses under way, which saves a segment each way. */
static inline enum io_rest conn_rest(const struct conn *conn) { return conn->closing ? IO_MORE : IO_LAST; }

/* Whether TLS has something to send without a batch. */
static inline bool conn_blocked(const struct conn *conn) { return conn->tls && tls_blocked(conn->tls); }

/* Returns how many bytes the connection may send in this turn. */
uint64_t conn_share(const struct conn_context *context, const struct conn *conn);

/* Sets the deadline for what state and awaited say that the connection waits for. */
void conn_set_timeout(struct conn_context *context, struct conn *conn);

/* Called when the connection begins to wait: updates the account of the memory that is kept for it, and closes it if
 * that is over BUDGET_CONNECTION. */
void conn_update_memory(struct conn_context *context, struct conn *conn);

/* Copies bytes that are needed later out of the scratch buffer, which other connections use meanwhile. false: ENOMEM.
 */
bool conn_keep_input(struct conn *conn, const char *data, size_t length);

/* Moves the bytes that were kept to the front of the scratch buffer. Returns their length. */
size_t conn_fetch_input(struct conn_context *context, struct conn *conn);

/* Called when the last response has been sent: closes the connection, or lets it linger. */
void conn_end(struct conn_context *context, struct conn *conn);

/* --- http1.c --- */

/* Answers as many requests as it can from the bytes at hand, which lie in the scratch buffer. */
void conn_http1_run(struct conn_context *context, struct conn *conn, const char *data, size_t length);

/* Takes bytes that were read behind those kept. There may be none (EAGAIN). */
void conn_http1_receive(struct conn_context *context, struct conn *conn, size_t kept, size_t length);

void conn_http1_writable(struct conn_context *context, struct conn *conn);
void conn_http1_timed_out(struct conn_context *context, struct conn *conn);

/* Ends the wait for a job. */
void conn_http1_stop_waiting(struct conn *conn);

/* Answers a client that speaks plain HTTP to the HTTPS port (400). */
void conn_http1_refuse_clear(struct conn_context *context, struct conn *conn);

/* --- http2.c --- */

/* How http2/ reaches its connection. */
extern const struct http2_connection http2_connection;

/* Handles the frames at hand, which lie in the scratch buffer. */
void conn_http2_run(struct conn_context *context, struct conn *conn, const char *data, size_t length);

/* Sends what streams have to send, and waits for what comes next. */
void conn_http2_writable(struct conn_context *context, struct conn *conn);

/* Announces the end of the connection to the client (first GOAWAY). */
void conn_http2_drain(struct conn_context *context, struct conn *conn);

/* Ends the connection after the announcement: no further streams are accepted (second GOAWAY). */
void conn_http2_finish(struct conn_context *context, struct conn *conn);

/* The client has closed its side. */
void conn_http2_input_ended(struct conn_context *context, struct conn *conn);

/* Sends a GOAWAY, if the socket takes it at once. calm: with ENHANCE_YOUR_CALM, because too much memory is kept. */
void conn_http2_send_goaway(struct conn_context *context, struct conn *conn, bool calm);

#endif
