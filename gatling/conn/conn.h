/* conn.h - a client's connection, as the worker sees it. An idle connection owns no buffer. */
#ifndef GATLING_CONN_CONN_H
#define GATLING_CONN_CONN_H

#include <sys/socket.h>

#include "gatling/conn/conn_context.h"
#include "gatling/exchange/wait.h"

struct conn;

/* Returns a connection for the accepted, non-blocking descriptor fd, which it owns from then on.
 * limits_take_connection() must have counted it. port: the port that it came in on, or 0 for a unix socket. secure: it
 * uses TLS. proxied: it begins with a PROXY header; until that has come, peer is that of unix sockets. Returns NULL if
 * memory runs out, after closing fd and giving the count back. */
struct conn *conn_new(struct conn_context *context, int fd, unsigned port, bool secure, bool proxied,
					  const struct peer *peer);

/* Lets a new connection wait until the loop reports it, in its next turn at the earliest, instead of reading from it at
 * once. Its deadline begins with that report. May free it. */
void conn_wait(struct conn_context *context, struct conn *conn);

/* Called by the loop when the descriptor can be read, can be written, or is past its deadline. Each of them may free
 * the connection. */
void conn_readable(struct conn_context *context, struct conn *conn);
void conn_writable(struct conn_context *context, struct conn *conn);
void conn_timed_out(struct conn_context *context, struct conn *conn);

/* Returns the connection of a descriptor of the loop, or NULL if it belongs to something else. */
struct conn *conn_of(const struct conn_context *context, int fd);

/* Returns the client to which the connection counts, see conn_owner(). */
const struct peer *conn_peer(const struct conn *conn);

/* --- deadline.c --- */

/* Returns what the connection waits for. */
struct waiting conn_waits(const struct conn *conn);

/* Return whether it waits for a request of which nothing has been read; or for the client to take content that is under
 * way, also if that is in the kernel, or to send it. */
bool conn_is_idle(const struct conn *conn);
bool conn_waits_for_client(const struct conn *conn);

/* --- conn.c, for making room (conn_tcp.c) --- */

/* Returns whether an idle connection can be closed without loss. With HTTP/2 the client must have acknowledged
 * everything; with HTTP/1.1 close(2) loses nothing that was sent. */
bool conn_can_close_idle(const struct conn *conn);

/* Returns when its deadline was set, on the clock of io_now(), or 0 if it has not been read from yet. */
int64_t conn_since(const struct conn *conn);

/* Closes an idle connection. If a request has come meanwhile, answers it instead and returns false. */
bool conn_close_idle(struct conn_context *context, struct conn *conn);

/* Closes a connection for which too much memory is kept. An HTTP/2 client gets ENHANCE_YOUR_CALM. */
void conn_close_over_budget(struct conn_context *context, struct conn *conn);

/* Called for each connection when context->draining has changed. Announces the end to an HTTP/2 client, and closes a
 * connection that has to end at once. */
void conn_drain(struct conn_context *context, struct conn *conn);

/* Closes the connection at once, logs its responses and frees it. */
void conn_close(struct conn_context *context, struct conn *conn);

#endif
