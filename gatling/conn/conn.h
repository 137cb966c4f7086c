/* conn.h - a client's connection, as the worker sees it. An idle connection owns no buffer. */
#ifndef GATLING_CONN_CONN_H
#define GATLING_CONN_CONN_H

#include <sys/socket.h>

#include "gatling/conn/conn_context.h"

struct conn;

/* Makes a connection of the accepted, non-blocking descriptor fd, which it owns from then on. limits_take_connection()
 * has counted it. port is the port that it came in on, 0 for a unix socket; secure: it speaks TLS; proxied: it begins
 * with a PROXY header, and peer is that of a unix socket until then. NULL (ENOMEM): fd has been closed. */
struct conn *conn_new(struct conn_context *context, int fd, unsigned port, bool secure, bool proxied,
					  const struct peer *peer);

/* Has a new connection wait until the loop reports it, in its next turn at the earliest, instead of reading from it at
 * once. Its deadline begins then. May free it. */
void conn_wait(struct conn_context *context, struct conn *conn);

/* Handle what the loop reports: the descriptor can be read, can be written, or is past its deadline. Each of them may
 * free the connection. */
void conn_readable(struct conn_context *context, struct conn *conn);
void conn_writable(struct conn_context *context, struct conn *conn);
void conn_timed_out(struct conn_context *context, struct conn *conn);

/* Returns the connection of a descriptor of the loop; NULL if it belongs to something else. */
struct conn *conn_of(const struct conn_context *context, int fd);

/* What is looked at to make room (shed.c, heavy.c, min_rate.c). */

/* Returns whose part of everything it takes, see conn_owner(). */
const struct peer *conn_peer(const struct conn *conn);

/* Whether content is under way, and it is the client's turn to take or to send it. */
bool conn_waits_for_client(const struct conn *conn);

/* Whether the connection waits for a request of which nothing has been read. */
bool conn_idle(const struct conn *conn);

/* Whether it waits for the rest of a request head or of a handshake. */
bool conn_unfinished(const struct conn *conn);

/* Whether an idle connection can be closed without loss. HTTP/2: its client has acknowledged everything; of HTTP/1.1
 * close(2) loses nothing that was sent. */
bool conn_can_close_idle(const struct conn *conn);

/* Returns when its deadline was set, on the clock of io_now(); 0: it has not been read from yet. */
int64_t conn_since(const struct conn *conn);

/* Returns the bytes of memory that are kept for it, and those of OpenSSL, see budget.h. */
size_t conn_memory(const struct conn *conn);

/* Closes an idle connection. If a request has come meanwhile, answers that instead and returns false. */
bool conn_close_idle(struct conn_context *context, struct conn *conn);

/* Closes a connection for which too much memory is kept. An HTTP/2 client is told so (ENHANCE_YOUR_CALM). */
void conn_close_over_budget(struct conn_context *context, struct conn *conn);

/* Closes a connection, and resets it: what the client has not taken is dropped, and takes no memory of the kernel any
 * more. */
void conn_reset(struct conn_context *context, struct conn *conn);

/* Called for each connection when context->draining has changed: announces the end to an HTTP/2 client, closes what is
 * to be closed at once. */
void conn_drain(struct conn_context *context, struct conn *conn);

/* Closes the connection at once, logs its responses and frees it. */
void conn_close(struct conn_context *context, struct conn *conn);

#endif
