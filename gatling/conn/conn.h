/* conn.h - a client's connection and every way it can go. An idle one owns no buffer. */
#ifndef GATLING_CONN_CONN_H
#define GATLING_CONN_CONN_H

#include <sys/socket.h>

#include "gatling/conn/context.h"

struct conn;

/* A connection on the accepted, non-blocking descriptor fd, which it owns; port: where it came in, 0 for a unix socket;
 * secure: it speaks TLS. NULL (ENOMEM): fd is closed. */
struct conn *conn_new(struct conn_context *context, int fd, unsigned port, bool secure, const struct sockaddr *peer);

/* Their descriptor can be read, can be written, is past its deadline. Each may end the connection. */
void conn_readable(struct conn_context *context, struct conn *conn);
void conn_writable(struct conn_context *context, struct conn *conn);
void conn_timed_out(struct conn_context *context, struct conn *conn);

/* The connection on a descriptor of the loop; NULL: it is of something else. */
struct conn *conn_of(const struct conn_context *context, int fd);

/* What a connection may be closed for, to make room: see shed.h. */
bool conn_idle(const struct conn *conn);           /* it waits for a request of which nothing has been read, */
bool conn_unfinished(const struct conn *conn);     /* or for the rest of a head or handshake */
bool conn_can_close_idle(const struct conn *conn); /* an idle one can be closed: its client has read everything */
int64_t conn_since(const struct conn *conn);       /* since then, on the clock of io_now() */
size_t conn_memory(const struct conn *conn);       /* bytes that are kept for it, see budget.h */

/* Closes an idle one and returns true, unless a request has come meanwhile: that is answered. */
bool conn_close_idle(struct conn_context *context, struct conn *conn);

/* Closes one for which too much is kept; a client of HTTP/2 is told so (ENHANCE_YOUR_CALM). */
void conn_calm(struct conn_context *context, struct conn *conn);

/* The worker takes no more connections: parts with an idle one, and tells a client of HTTP/2. */
void conn_drain(struct conn_context *context, struct conn *conn);

void conn_close(struct conn_context *context, struct conn *conn);

#endif
