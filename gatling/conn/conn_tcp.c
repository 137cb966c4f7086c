/* conn_tcp.c - see conn_kind.h: the connections of TCP, whose numbers are their descriptors. */
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/conn_state.h"

static int bound(const struct conn_context *w) { return io_fd_bound(w->loop); }

static void *at(const struct conn_context *w, int fd) { return conn_of(w, fd); }

static const struct peer *peer(const void *conn) { return conn_peer(conn); }

static int64_t since(const void *conn) { return conn_since(conn); }

static bool is_idle(const void *conn) { return conn_is_idle(conn) && conn_can_close_idle(conn); }

static bool is_unfinished(const void *conn) { return conn_waits(conn).what == WAIT_HEAD; }

static int64_t transferred(const void *conn) {
	const struct conn *c = conn;
	return conn_waits_for_client(c) ? platform_transferred(c->fd) : -1;
}

static int64_t carried(const void *conn) {
	const int64_t bytes = platform_transferred(((const struct conn *)conn)->fd);
	return bytes == -1 ? 0 : bytes;
}

static uint64_t in_kernel(const void *conn, uint64_t *unsent) {
	return platform_socket_memory(((const struct conn *)conn)->fd, unsent);
}

static struct conn_memory memory(const void *conn) {
	const struct conn *c = conn;
	return (struct conn_memory){.kept = c->memory, .all = c->memory + (c->tls ? tls_library_memory(c->tls) : 0)};
}

/* The bytes that the client has not taken are dropped with the connection, and their memory in the kernel is freed. */
static void reset(const struct conn *c) {
	const struct linger none = {.l_onoff = 1};
	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static bool close_for(struct conn_context *w, void *conn, enum conn_closing why) {
	struct conn *c = conn;
	if (why == CONN_CLOSE_IDLE) return conn_close_idle(w, c);
	if (why == CONN_CLOSE_SLOW) reset(c);
	if (why == CONN_CLOSE_DEAR) conn_close_over_budget(w, c);
	else conn_close(w, c);
	return true;
}

const struct conn_kind conn_tcp = {.has_descriptor = true,
								   .bound = bound,
								   .at = at,
								   .peer = peer,
								   .since = since,
								   .is_idle = is_idle,
								   .is_unfinished = is_unfinished,
								   .transferred = transferred,
								   .carried = carried,
								   .in_kernel = in_kernel,
								   .memory = memory,
								   .close = close_for};
