/* conn_state.h - the inside of a connection, for the files that it consists of: conn.c (its life: the only switch over
 * the states), conn_http1.c and conn_http2.c (what the states do), deadline.c, conn_pass.c and transport.c (what they
 * use). None calls one that is named before it, but conn_pass.c sets the timer. */
#ifndef GATLING_CONN_CONN_STATE_H
#define GATLING_CONN_CONN_STATE_H

#include "gatling/client/proxy_header.h"
#include "gatling/conn/conn_context.h"
#include "gatling/exchange/kept_request.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/http/body.h"

enum {
	CONN_PIPELINE_MAX = 64,           /* responses sent together */
	CONN_PIPELINE_BYTES = 128 * 1024, /* and bytes */
	CONN_PIPELINE_FILES = 4,          /* and open files */
	/* A lingering connection (RFC 9112, section 9.6) is looked at so often. It is closed when the client has
	 * acknowledged everything, has acknowledged nothing for timeout_s, or has sent CONN_LINGER_BYTES. */
	CONN_LINGER_MS = 2000,
	CONN_TUNNEL_LAST_MS = 10000, /* at the end of the worker, a WebSocket may be silent so long */
	CONN_LINGER_LAST_MS = 100,   /* with DRAIN_IDLE: a successor may wait for the end of the process */
	CONN_LINGER_BYTES = 4 * 1024 * 1024
};

/* What a connection is doing, and in brackets for how long it may (conn_options.h); deadline.c has the other times. The
 * deadline is set when the state changes, and when output goes on. */
enum conn_state {
	CONN_PROXY,     /* before the PROXY header of a balancer (head_timeout_s) */
	CONN_HANDSHAKE, /* the TLS handshake (head_timeout_s) */
	CONN_IDLE,      /* HTTP/1.1: before a request (keepalive_timeout_s); with responses under way CONN_WRITE is next */
	CONN_HEAD,      /* HTTP/1.1: part of a request head has been read (head_timeout_s) */
	CONN_CONTINUE,  /* HTTP/1.1: a 100 has to be sent before the body of the request comes (timeout_s) */
	CONN_BODY,      /* HTTP/1.1: the response is ready, and is sent at the end of the request's body (timeout_s) */
	CONN_JOB,       /* HTTP/1.1: the request waits for a job; nothing is read (timeout_s) */
	CONN_PASS,      /* HTTP/1.1: the request is passed on to an upstream: content comes and goes */
	CONN_WRITE,     /* HTTP/1.1: responses are sent; nothing is read (timeout_s without an acknowledgement) */
	CONN_HTTP2,     /* HTTP/2: frames come and go */
	CONN_LINGER,    /* the last response has been sent; what still comes is read and dropped */
	CONN_CLOSED     /* the connection is to be freed */
};

/* What follows the responses under way. */
enum conn_ending {
	CONN_ENDING_NONE,
	CONN_ENDING_CLOSE, /* the end; if the client has sent more, CONN_LINGER first */
	CONN_ENDING_LINGER /* CONN_LINGER: the client may still be sending */
};

/* Two cache lines while idle: the order of the members leaves no gaps. */
struct conn {
	uint8_t kind;               /* COOKIE_CONNECTION */
	uint8_t state;              /* enum conn_state */
	uint8_t ending : 2;         /* enum conn_ending */
	bool has_pass : 1;          /* `pass` is there */
	bool begun : 1;             /* a request has been read: the connection stays HTTP/1.1 */
	bool head : 1;              /* CONN_BODY: the request is a HEAD */
	bool frames_wait : 1;       /* CONN_HTTP2: frames wait for the socket, or for a file to be read */
	bool admitted : 1;          /* HTTP/1.1: the request at the front of the input is within the limits */
	bool input_ended : 1;       /* CONN_HTTP2: the client sends nothing more */
	unsigned forwarding : 2;    /* enum forwarding: how it says whose requests these are */
	bool secure : 1;            /* the client speaks TLS, with us or with a balancer; CONN_PROXY: a handshake follows */
	unsigned unsent_halved : 5; /* of the context when the limit was set; CONN_UNSENT_UNKNOWN: it is the listener's */
	int fd;
	struct conn_context *context;
	struct peer peer; /* the client; forwarding: that of the request at hand */
	uint16_t port;
	uint8_t requests; /* HTTP/1.1: under way, as limits_take_request() has counted them */
	uint8_t counted;  /* the state that it has in the counters */
	union {
		struct body body; /* of HTTP/1.1 */
		struct {
			uint32_t bytes;      /* CONN_LINGER: dropped, */
			uint32_t stalled_ms; /* and how long nothing has been acknowledged */
		} linger;
	};
	int32_t unacknowledged; /* bytes in the send queue when the deadline passed last; INT32_MAX: unknown */
	uint32_t memory;        /* that is kept for it, as the worker has it in its sum */
	int64_t since_ms;       /* when its deadline was set; 0: there is none yet */
	union {
		struct kept_request *waiting; /* CONN_JOB; otherwise NULL */
		struct conn_pass *pass;       /* CONN_PASS */
	};
	struct tls *tls;                 /* NULL: none */
	struct http2 *http2;             /* NULL: this is HTTP/1.1 */
	struct response_batch *outgoing; /* HTTP/1.1: under way; HTTP/2: frames that are being sent; NULL: none */
	struct conn_input {
		size_t length;
		char bytes[];
	} * input; /* read but not used up: part of a request, or requests while answers wait; NULL: none */
};

/* What the functions of the states pass on to each other while a connection runs. */
struct conn_run {
	struct slice input; /* bytes at hand, in the scratch buffer; what is used is taken off the front */
	size_t known;       /* CONN_HEAD: of them, those that conn_http1_head() has looked at before */
	bool progress;      /* the deadline is set anew */
	bool resumed;       /* output was waiting at first: the connection gets only its share of the worker's turn */
	bool drained;       /* HTTP/2: the time between the two GOAWAYs is over */
};

/* --- transport.c: the bytes --- */

/* io_tryread() and iob_send(), through TLS if the connection uses it. The last bytes of a connection go with IO_MORE:
 * its end (close_notify, FIN) leaves with them, which saves a segment each way. */
ssize_t conn_receive(struct conn *conn, char *buffer, size_t length);
enum iob_result conn_transmit(struct conn *conn, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Before much is sent: the connection may leave less in the kernel if there are more now; more if there are much fewer.
 */
void conn_limit_unsent(struct conn *conn);

/* Returns whether TLS has something to send without a batch. */
static inline bool conn_blocked(const struct conn *conn) { return conn->tls && tls_blocked(conn->tls); }

/* Reads what the client has sent into the scratch buffer, behind what was kept of it. *input: both. EAGAIN is no error.
 * false: the connection has ended or failed. */
bool conn_read(struct conn *conn, struct slice *input);

static inline size_t conn_kept(const struct conn *conn) { return conn->input ? conn->input->length : 0; }

/* Copies bytes that are needed later out of the scratch buffer, which other connections use meanwhile. Nothing may be
 * kept yet. false: ENOMEM. */
bool conn_keep_input(struct conn *conn, struct slice input);

/* Moves the bytes that were kept to the front of the scratch buffer. */
struct slice conn_fetch_input(struct conn *conn);

/* Reads the PROXY header, and if TLS follows, nothing behind it: that is not for the scratch buffer. *input: what was
 * read; *used: the bytes of the header, 0 if it is not complete, -1 if there is none. false: the connection has ended
 * or failed. */
bool conn_read_proxy_header(struct conn *conn, struct proxy_header *header, struct slice *input, int *used);

/* Returns the address that the connection comes from, as a PROXY header says if there is one; that of unix sockets if
 * it has gone. */
struct peer conn_other_end(const struct conn *conn);

/* Remembers what a PROXY header says of a connection whose requests will be of others. false: ENOMEM. */
bool conn_remember_end(struct conn *conn);
void conn_forget_end(const struct conn *conn);

/* Makes sure that conn->outgoing is there. false: ENOMEM. */
bool conn_take_batch(struct conn *conn);
void conn_return_batch(struct conn *conn);

/* Ends the sending side. Returns the state that follows. */
enum conn_state conn_end(struct conn *conn, bool linger);

/* --- deadline.c --- */

/* Sets the deadline of the connection's state. */
void conn_set_deadline(struct conn *conn);
void conn_set_timer(struct conn *conn); /* to the deadline that there is */

/* Called when the deadline has passed. Ends the waiting of requests that have waited for a job for timeout_s. Returns
 * whether there are any: they can be answered without. */
bool conn_give_up_waiting(struct conn *conn);

/* Called when the deadline has passed. Sets another and returns true if output waits and this is the first look, or the
 * client has acknowledged some since the last one, or if the server itself makes it wait. */
bool conn_extend_deadline(struct conn *conn);

/* --- conn_pass.c: what others have to know of CONN_PASS --- */

size_t conn_pass_memory(const struct conn *conn);
void conn_pass_on_ready(struct conn *conn, void (*ready)(void *conn));
bool conn_pass_wants_input(const struct conn *conn);
bool conn_pass_waits_for_client(const struct conn *conn);
bool conn_pass_lacks_content(const struct conn *conn); /* of the request, and has room for it */
bool conn_pass_has_answered(const struct conn *conn);
bool conn_pass_is_tunnel(const struct conn *conn);

/* Whether more than a byte of content is awaited at a time; after CONN_PASS_AWAITED_MS (and IO_TICK_MS) any number is,
 * which sets the timer again. */
enum { CONN_PASS_AWAITED_MS = 50 };
bool conn_pass_awaits(const struct conn *conn);
void conn_pass_await_any(struct conn *conn);

/* --- conn_http1.c: the functions of the states, which return the next one; the same: it has to wait --- */

enum conn_state conn_http1_head(struct conn *conn, struct conn_run *run); /* CONN_IDLE, CONN_HEAD */
enum conn_state conn_http1_continue(struct conn *conn);
enum conn_state conn_http1_body(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_job(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_pass(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_write(struct conn *conn, struct conn_run *run);

/* Answers a request that has not come in time (408). */
enum conn_state conn_http1_refuse_late(struct conn *conn, struct conn_run *run);

/* Answers a client that speaks plain HTTP to the HTTPS port (400). */
enum conn_state conn_http1_refuse_clear(struct conn *conn, struct conn_run *run);

/* --- conn_http2.c --- */

/* CONN_HTTP2: handles the frames at hand, and sends what streams have to send. */
enum conn_state conn_http2_run(struct conn *conn, struct conn_run *run);

/* Sends a GOAWAY, if the socket takes it at once. calm: with ENHANCE_YOUR_CALM, because too much memory is kept. */
void conn_http2_send_goaway(struct conn *conn, bool calm);

#endif
