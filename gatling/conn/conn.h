/* conn.h - a client's connection and every way it can go. An idle one owns no buffer. */
#ifndef GATLING_CONN_CONN_H
#define GATLING_CONN_CONN_H

#include <sys/socket.h>

#include "gatling/worker.h"

enum {
	PIPELINE_MAX = 64,           /* responses sent together */
	PIPELINE_BYTES = 128 * 1024, /* and bytes */
	PIPELINE_FILES = 4,          /* and open files */
	LINGER_MS =
		2000, /* a closed connection is read on for so long, or so long since the client has acknowledged something, */
	LINGER_BYTES = 4 * 1024 * 1024 /* and so far: the client can read the last answer (RFC 9112, section 9.6) */
};
#define NEVER_MS INT64_C(3153600000000) /* a hundred years: what no timeout is */

struct conn;

/* Jobs that a request waits for, one after the other, until it is answered without; so many that no answer takes more.
 */
enum { WAITS_MAX = 4 };

/* A connection on the accepted, non-blocking descriptor fd, which it owns. NULL (ENOMEM): fd is closed. */
struct conn *conn_new(struct worker *worker, int fd, const struct listener *listener, const struct sockaddr *peer);

/* Their descriptor can be read, can be written, is past its deadline. Each may end the connection. */
void conn_readable(struct worker *worker, struct conn *conn);
void conn_writable(struct worker *worker, struct conn *conn);
void conn_timed_out(struct worker *worker, struct conn *conn);

/* The connection on a descriptor of the loop; NULL: it is of something else. */
struct conn *conn_of(const struct worker *worker, int fd);

/* What a connection may be closed for, to make room: see shed.h. */
bool conn_idle(const struct conn *conn);           /* it waits for a request of which nothing has been read, */
bool conn_unfinished(const struct conn *conn);     /* or for the rest of a head or handshake */
bool conn_can_close_idle(const struct conn *conn); /* an idle one can be closed: its client has read everything */
int64_t conn_since(const struct conn *conn);       /* since then, on the clock of io_now() */
size_t conn_memory(const struct conn *conn);       /* bytes that are kept for it, see budget.h */

/* Closes an idle one and returns true, unless a request has come meanwhile: that is answered. */
bool conn_close_idle(struct worker *worker, struct conn *conn);

/* Closes one for which too much is kept; a client of HTTP/2 is told so (ENHANCE_YOUR_CALM). */
void conn_calm(struct worker *worker, struct conn *conn);

/* The worker takes no more connections: parts with an idle one, and tells a client of HTTP/2. */
void conn_drain(struct worker *worker, struct conn *conn);

void conn_close(struct worker *worker, struct conn *conn);

#endif
