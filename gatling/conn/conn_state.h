/* conn_state.h - the inside of a connection. conn.c has its life: what each state does, and which events it wants.
 * deadline.c says what it waits for, and how long it may. conn_http1.c and conn_http2.c have the functions of
 * the states, and conn_relay.c and transport.c what these use. */
#ifndef GATLING_CONN_CONN_STATE_H
#define GATLING_CONN_CONN_STATE_H

#include "gatling/client/proxy_header.h"
#include "gatling/conn/conn_context.h"
#include "gatling/exchange/exchange.h"
#include "gatling/exchange/wait.h"
#include "gatling/http/body.h"

enum {
	CONN_PIPELINE_MAX = 64,           /* responses in a batch, */
	CONN_PIPELINE_BYTES = 128 * 1024, /* their bytes, */
	CONN_PIPELINE_FILES = 4,          /* and their open files */
	/* How often a lingering connection (RFC 9112, section 9.6) is tested. It is closed when the client has acknowledged
	 * everything, has acknowledged nothing for timeout_s, or has sent CONN_LINGER_BYTES. */
	CONN_LINGER_MS = 2000,
	CONN_GONE_MS = 1000,         /* between two looks at a client that has ended its side and waits for an upstream */
	CONN_TUNNEL_LAST_MS = 10000, /* a WebSocket that is silent this long is closed when the worker ends */
	CONN_LINGER_LAST_MS = 100,   /* CONN_LINGER_MS with DRAIN_IDLE: a successor may wait for this process to end */
	CONN_LINGER_BYTES = 4 * 1024 * 1024
};

/* What a connection is doing; in brackets, how long it may (conn_options.h; for the others see deadline.c). The
 * deadline is set when the state changes, and when output makes progress or 4 KB of content were passed on. */
enum conn_state {
	CONN_PROXY,     /* before the PROXY header of a balancer (head_timeout_s) */
	CONN_HANDSHAKE, /* the TLS handshake (head_timeout_s) */
	CONN_IDLE, /* HTTP/1.1: before a request (keepalive_timeout_s); if responses are under way, CONN_WRITE follows */
	CONN_HEAD, /* HTTP/1.1: part of a request head has been read (head_timeout_s) */
	CONN_CONTINUE, /* HTTP/1.1: a 100 has to be sent before the client sends the request's body (timeout_s) */
	CONN_BODY,     /* HTTP/1.1: the response is ready, and is sent after the request's body has come (timeout_s) */
	CONN_JOB,      /* HTTP/1.1: the request waits for a job; nothing is read (timeout_s) */
	CONN_PASS,     /* HTTP/1.1: the request is passed on to an upstream, and its response to the client */
	CONN_WRITE,    /* HTTP/1.1: responses are sent; nothing is read (timeout_s without an acknowledgement) */
	CONN_HTTP2,    /* HTTP/2: frames are read and sent */
	CONN_LINGER,   /* the last response has been sent; bytes that still come are read and dropped */
	CONN_CLOSED    /* the connection is to be freed */
};

/* What happens after the responses under way. */
enum conn_ending {
	CONN_ENDING_NONE,
	CONN_ENDING_CLOSE, /* the connection is closed, after CONN_LINGER if the client has sent more */
	CONN_ENDING_LINGER /* CONN_LINGER, since the client may still be sending */
};

/* An idle connection takes two cache lines: the order of the members leaves no gaps. */
struct conn {
	uint8_t kind;               /* COOKIE_CONNECTION */
	uint8_t state;              /* enum conn_state */
	uint8_t ending : 2;         /* enum conn_ending */
	bool begun : 1;             /* a request has been read, so the connection stays HTTP/1.1 */
	bool head : 1;              /* CONN_BODY: the request is a HEAD */
	bool frames_wait : 1;       /* CONN_HTTP2: frames wait for the socket, or for a file to be read */
	bool admitted : 1;          /* HTTP/1.1: the request at the front of the input is within the limits */
	bool rated : 1;             /* and it is counted for the rate of its path */
	bool input_ended : 1;       /* CONN_HTTP2, CONN_PASS: the client has ended its side */
	unsigned forwarding : 2;    /* enum forwarding: the field that names the client of each request */
	bool secure : 1;            /* the client uses TLS, to here or to a balancer; CONN_PROXY: a handshake follows */
	unsigned unsent_halved : 5; /* the context's when the limit was set; CONN_UNSENT_UNKNOWN: the listener's limit */
	int fd;
	struct conn_context *context;
	struct peer peer; /* the client; with forwarding, that of the current request */
	uint16_t port;
	uint8_t requests; /* HTTP/1.1: how many are under way that limits_take_request() has counted */
	uint8_t counted;  /* the state as which the counters have it */
	union {
		struct body body; /* of HTTP/1.1 */
		struct {
			uint32_t bytes;      /* CONN_LINGER: how many were dropped */
			uint32_t stalled_ms; /* since when nothing was acknowledged */
		} linger;
	};
	int32_t unacknowledged;          /* bytes in the send queue at the last deadline; INT32_MAX: unknown */
	uint32_t memory;                 /* bytes that are kept for it, as counted in the context's sum */
	int64_t since_ms;                /* when its deadline was set; 0: not yet */
	struct exchange *exchange;       /* CONN_JOB, CONN_PASS: the request; otherwise NULL */
	struct tls *tls;                 /* NULL: none */
	struct http2 *http2;             /* NULL: this is HTTP/1.1 */
	struct response_batch *outgoing; /* HTTP/1.1: responses under way; HTTP/2: frames to be sent; NULL: none */
	struct conn_input {
		size_t length;
		char bytes[];
	} * input; /* read but not handled yet: part of a request, or requests behind responses that wait; NULL: none */
};

/* What the functions of the states pass to each other while a connection runs. */
struct conn_run {
	struct slice input; /* unhandled bytes, in the scratch buffer; those that are handled are taken off the front */
	size_t known;       /* CONN_HEAD: how many of them conn_http1_head() has seen before */
	bool progress;      /* a new deadline is set */
	bool resumed;       /* output waited when the run began: it gets only its share of the worker's turn */
	bool drained;       /* HTTP/2: the time between the two GOAWAYs is over */
};

/* --- transport.c: the bytes --- */

/* Do what io_tryread() and iob_send() do, through TLS if the connection uses it. The last bytes of a connection are
 * sent with IO_MORE, so that its end (close_notify, FIN) is in the same segment. */
ssize_t conn_receive(struct conn *conn, char *buffer, size_t length);
enum iob_result conn_transmit(struct conn *conn, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Called before much is sent: adapts how much the connection may leave unsent in the kernel to the number of
 * connections. */
void conn_limit_unsent(struct conn *conn);

/* Reads from the client into the scratch buffer, behind the bytes that were kept. *input is both. Returns false if the
 * input has ended (input_ended) or the connection has failed; EAGAIN is not a failure, nor is the end with HTTP/2. */
bool conn_read(struct conn *conn, struct slice *input);

/* Keeps a copy of bytes in the scratch buffer, which other connections use in the meantime. No others may be kept.
 * Returns false without memory. */
bool conn_keep_input(struct conn *conn, struct slice input);

/* Moves the kept bytes to the front of the scratch buffer, and returns them. */
struct slice conn_fetch_input(struct conn *conn);

/* Reads the PROXY header into the scratch buffer; if TLS follows, nothing behind it. *input: the bytes read; *used: the
 * length of the header, 0 if it is not complete, or -1 if there is none. Returns false if the connection has ended or
 * failed. */
bool conn_read_proxy_header(struct conn *conn, struct proxy_header *header, struct slice *input, int *used);

/* Finds the address at the other end, as in the PROXY header if there is one. Returns false if the connection is gone:
 * nobody is at the other end then, and nobody is to be trusted. */
bool conn_other_end(const struct conn *conn, struct peer *peer);

/* Remembers the address in the PROXY header, for a connection whose requests will name their clients. Returns false
 * without memory. */
bool conn_remember_end(struct conn *conn);
void conn_forget_end(const struct conn *conn);

/* Returns whether the client has reset the connection after it has ended its side. */
bool conn_is_reset(const struct conn *conn);

/* Ends the sending side. Returns the next state. */
enum conn_state conn_end(struct conn *conn, bool linger);

/* --- deadline.c --- */

/* Sets the deadline of the connection's state. */
void conn_set_deadline(struct conn *conn);

/* WAIT_JOB: called when the deadline has passed. Ends the waits of requests that have waited for a job for timeout_s.
 * Returns whether there are any; they can then be answered without the job. */
bool conn_give_up_waiting(struct conn *conn);

/* Called when the deadline has passed. Sets a new one and returns true if the client has acknowledged bytes that it has
 * to take since the last deadline (or this is the first one), or if it is not the client that the connection waits
 * for. */
bool conn_extend_deadline(struct conn *conn, enum wait_for what);

/* --- conn_relay.c, for the others --- */

/* Returns the bytes of memory of its exchange, which there must be. */
size_t conn_exchange_memory(const struct conn *conn);

/* CONN_PASS: what it waits for; and whether all of the request has come, so that the client may end its side. */
enum wait_for conn_relay_waits(const struct conn *conn);
bool conn_relay_has_request(const struct conn *conn);

/* --- conn_http1.c: the functions of the states; they return the next state, or the same one if it has to wait --- */

enum conn_state conn_http1_head(struct conn *conn, struct conn_run *run); /* CONN_IDLE, CONN_HEAD */
enum conn_state conn_http1_continue(struct conn *conn);
enum conn_state conn_http1_body(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_job(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_pass(struct conn *conn, struct conn_run *run);
enum conn_state conn_http1_write(struct conn *conn, struct conn_run *run);

/* Answers a request that did not come in time (408). */
enum conn_state conn_http1_refuse_late(struct conn *conn, struct conn_run *run);

/* Answers a client that speaks plain HTTP to the HTTPS port (400). */
enum conn_state conn_http1_refuse_clear(struct conn *conn, struct conn_run *run);

/* --- conn_http2.c --- */

/* CONN_HTTP2: handles the frames that have come, and sends those of the streams. */
enum conn_state conn_http2_run(struct conn *conn, struct conn_run *run);

/* Sends a GOAWAY, if the socket takes it at once. calm: with ENHANCE_YOUR_CALM, since it holds too much memory. */
void conn_http2_send_goaway(struct conn *conn, bool calm);

#endif
