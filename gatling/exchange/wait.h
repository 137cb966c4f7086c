/* wait.h - what a connection waits for: deadlines, making room and draining depend on it.
 *
 * A client that makes the server wait ends so (conn_timed_out() in conn/conn.c, and check() in quic/deadline.c; the
 * times are those of --limit):
 *
 * WAIT_REQUEST: after keepalive-timeout, closed, over HTTP/2 with GOAWAY, over HTTP/3 with H3_NO_ERROR; counted as
 * keepalive. Part of a TLS record is nothing, nor is part of a frame, but for HEADERS.
 *
 * WAIT_HEAD: after head-timeout, 408 (HTTP/1.1) or GOAWAY (HTTP/2); a PROXY header or a handshake of TCP has no answer;
 * counted as late. QUIC has another limit for handshakes (handshake_limit() in quic/connection.c), also counted as
 * late. HTTP/3 does not wait for heads: the stream is reset, and a connection with such streams alone waits for a
 * request; its time ends when theirs has.
 *
 * WAIT_CLIENT_SENDS: after timeout, 408 (HTTP/1.1, if no response has begun), GOAWAY, or CONNECTION_CLOSE with
 * H3_REQUEST_INCOMPLETE; counted as stalled. With many streams it also means that the client takes nothing, since its
 * windows are closed. The time begins again with 4 KB of content that are passed on (exchange_put()) and, with many
 * streams, with each frame of an answer and each new request.
 *
 * WAIT_CLIENT_TAKES: closed, over HTTP/3 as above, after one to two times the timeout without an acknowledgement
 * (has_acknowledged() in conn/deadline.c); counted as stalled. Any acknowledgement gives it another one, until
 * connections run short: then a slow one is reset, of QUIC with H3_EXCESSIVE_LOAD (load/min_rate.c).
 *
 * It may also wait for others: a job is given up after the timeout, and upstreams have limits of their own (proxied.h).
 * Lingering ends when all is acknowledged, or after the timeout without an acknowledgement. */
#ifndef GATLING_EXCHANGE_WAIT_H
#define GATLING_EXCHANGE_WAIT_H

#include <stdint.h>

enum wait_for {
	WAIT_REQUEST,      /* for a request of which nothing has come: it is idle */
	WAIT_HEAD,         /* for the rest of a PROXY header, a handshake or a request head */
	WAIT_CLIENT_SENDS, /* until the client sends content or, of HTTP/2 and HTTP/3, takes some or opens a window */
	WAIT_CLIENT_TAKES, /* until the client takes what is sent */
	WAIT_JOB,          /* for a job beside the loop */
	WAIT_UPSTREAM,     /* for upstreams alone, which have time limits of their own (proxied.h) */
	WAIT_TUNNEL,       /* the same, and one of them at least is a WebSocket */
	WAIT_DRAIN,        /* until the client knows that the connection ends (HTTP/2) */
	WAIT_LINGER        /* until the client has read the last response */
};

struct waiting {
	enum wait_for what;
	int64_t since_ns; /* when the longest wait for a job, or a head of HTTP/2, began, on the loop's clock; else 0 */
};

#endif
