/* connection.c - see connection.h. */
#include "bench/httpbench/load/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/client/socket.h"
#include "bench/machine.h"
#include "bench/platform.h"

static const int64_t open_pause_ns = 100000000; /* after failing to open one, until the next try */

bool connection_has_room(const struct connection *conn) {
	return conn->assigned < conn->room && !conn->retired && !conn->broken;
}

void connections_wait(struct connections *c, int64_t due_ns, bool again) {
	if (!backlog_add(&c->backlog, due_ns, again)) measures_unsent(c->filling, c->now_ns);
}

/* --- lists --- */

static void move_to(struct connections *c, struct connection *conn, enum connection_list list) {
	int32_t self = (int32_t)(conn - c->connection);
	if (conn->list == list) return;
	if (conn->list != CONNECTION_LIST_NONE) {
		*(conn->next == -1 ? &c->tail[conn->list] : &c->connection[conn->next].previous) = conn->previous;
		*(conn->previous == -1 ? &c->head[conn->list] : &c->connection[conn->previous].next) = conn->next;
	}
	conn->list = (uint8_t)list;
	if (list == CONNECTION_LIST_NONE) return;
	conn->next = -1;
	conn->previous = c->tail[list];
	*(conn->previous == -1 ? &c->head[list] : &c->connection[conn->previous].next) = self;
	c->tail[list] = self;
}

/* In open loop, keeps the lists of connections that can take another request up to date. */
static void list_by_room(struct connections *c, struct connection *conn) {
	if (!plan_open_loop(c->plan) || conn->state != CONNECTION_OPEN) return;
	move_to(c, conn,
			!connection_has_room(conn) ? CONNECTION_LIST_NONE
			: conn->assigned           ? CONNECTION_LIST_ROOM
									   : CONNECTION_LIST_IDLE);
}

struct connection *connections_take(struct connections *c, enum connection_list list) {
	if (c->head[list] == -1) return NULL;
	struct connection *conn = &c->connection[c->head[list]];
	move_to(c, conn, CONNECTION_LIST_NONE);
	return conn;
}

/* --- requests --- */

struct connection_request *connection_at(const struct connections *c, const struct connection *conn, uint16_t place) {
	return place == CONNECTION_NONE ? NULL : &c->pending[(size_t)(conn - c->connection) * c->plan->depth + place];
}

const struct target *connection_target(const struct connections *c, const struct connection *conn) {
	const struct connection_request *const first = connection_at(c, conn, conn->head);
	return &c->plan->target[first ? first->target : 0];
}

static uint16_t place_of(const struct connections *c, const struct connection *conn,
						 const struct connection_request *p) {
	return (uint16_t)(p - connection_at(c, conn, 0));
}

/* Frees the places of all requests. */
static void clear_requests(struct connections *c, struct connection *conn) {
	for (unsigned i = 0; i < c->plan->depth; i++)
		connection_at(c, conn, (uint16_t)i)->next = i + 1 < c->plan->depth ? (uint16_t)(i + 1) : CONNECTION_NONE;
	conn->head = conn->tail = conn->unsent = CONNECTION_NONE;
	conn->free = conn->assigned = 0;
	conn->room = (uint16_t)c->plan->depth;
}

void connection_assign(struct connections *c, struct connection *conn, int64_t due_ns, bool again) {
	const uint16_t place = conn->free;
	struct connection_request *p = connection_at(c, conn, place);
	conn->free = p->next;
	conn->retired = ++conn->requests == c->plan->per_connection;
	*p = (struct connection_request){.due_ns = due_ns,
									 .placed_ns = c->now_ns,
									 .target = schedule_target(&c->schedule),
									 .fields = schedule_fields(&c->schedule),
									 .again = again,
									 .last = conn->retired,
									 .previous = conn->tail,
									 .next = CONNECTION_NONE};
	if (conn->tail == CONNECTION_NONE) conn->head = place;
	else connection_at(c, conn, conn->tail)->next = place;
	conn->tail = place;
	if (conn->unsent == CONNECTION_NONE) conn->unsent = place;
	conn->assigned++;
	c->under_way++;
}

/* Removes a request from its connection. */
static void unlink_request(struct connections *c, struct connection *conn, struct connection_request *p) {
	const uint16_t place = place_of(c, conn, p);
	if (p->previous == CONNECTION_NONE) conn->head = p->next;
	else connection_at(c, conn, p->previous)->next = p->next;
	if (p->next == CONNECTION_NONE) conn->tail = p->previous;
	else connection_at(c, conn, p->next)->previous = p->previous;
	if (conn->unsent == place) conn->unsent = p->next;
	p->next = conn->free;
	conn->free = place;
	conn->assigned--;
	c->under_way--;
}

void connection_sending(struct connections *c, struct connection_request *p) {
	if (!p->sent_ns) p->sent_ns = c->now_ns;
}

void connection_sent(struct connections *c, struct connection *conn, struct connection_request *p) {
	connection_sending(c, p);
	p->sent = true;
	conn->unsent = p->next;
	c->filling->count[COUNT_SENT]++;
}

/* --- the end of requests and connections --- */

/* Closes a connection and resets its state. sound: the server is told first, by the protocol and, over TLS, with
 * close_notify. */
static void end(struct connections *c, struct connection *conn, bool sound) {
	if (sound && conn->session && c->protocol->leave) c->protocol->leave(c, conn);
	if (conn->session) c->protocol->session_free(conn->session);
	if (conn->state != CONNECTION_CLOSED) {
		tls_close(conn->tls, sound);
		io_close(c->loop, conn->fd);
		c->open--;
	}
	free(conn->input);
	conn->tls = NULL;
	conn->session = NULL;
	conn->input = NULL;
	conn->state = CONNECTION_CLOSED;
	conn->broken = conn->retired = false;
	conn->requests = conn->input_length = 0;
	clear_requests(c, conn);
	move_to(c, conn, CONNECTION_LIST_CLOSED);
}

void connection_close(struct connections *c, struct connection *conn) { end(c, conn, true); }

/* Records the lateness of a request that leaves its first connection. */
static void note_lateness(struct connections *c, const struct connection_request *p) {
	if (plan_open_loop(c->plan) && !p->again)
		histogram_record(&c->filling->duration[DURATION_LATENESS], p->placed_ns - p->due_ns);
}

static void request_fail(struct connections *c, const struct connection_request *p, enum failure failure) {
	c->filling->failure[failure]++;
	c->filling->ended_ns = c->now_ns;
	note_lateness(c, p);
	if (p->sent_ns) histogram_censor(&c->filling->duration[DURATION_FIRST_BYTE]);
	histogram_censor(&c->filling->duration[DURATION_WHOLE]);
}

/* Returns whether the next attempt would fail at once, in the same way. */
static bool is_lasting(const struct connections *c, enum failure failure) {
	if (failure == FAILURE_PORTS || failure == FAILURE_DESCRIPTORS) return true;
	return !plan_open_loop(c->plan) && (failure == FAILURE_REFUSED || failure == FAILURE_CONNECT);
}

void connection_fail(struct connections *c, struct connection *conn, enum failure failure) {
	/* on an open connection, the requests behind the first were cut off */
	enum failure rest = conn->state == CONNECTION_OPEN && failure != FAILURE_TIMEOUT ? FAILURE_RESET : failure;
	for (uint16_t place = conn->head; place != CONNECTION_NONE;) {
		const struct connection_request *p = connection_at(c, conn, place);
		request_fail(c, p, place == conn->head ? failure : rest);
		place = p->next;
	}
	c->under_way -= conn->assigned;
	if (conn->state == CONNECTION_CONNECTING) histogram_censor(&c->filling->duration[DURATION_CONNECT]);
	if (conn->state == CONNECTION_HANDSHAKE) histogram_censor(&c->filling->duration[DURATION_HANDSHAKE]);
	if (conn->state == CONNECTION_UPGRADE) histogram_censor(&c->filling->duration[DURATION_UPGRADE]);
	if (is_lasting(c, failure)) c->open_again_ns = c->now_ns + open_pause_ns;
	end(c, conn, false);
}

void connection_drop(struct connections *c, struct connection *conn) {
	c->under_way -= conn->assigned;
	c->filling->count[COUNT_DROPPED] += conn->assigned;
	end(c, conn, false);
}

/* Keeps the reason for which the first connection of QUIC has failed. */
static void note_why(struct connections *c, enum failure failure, const char *why) {
	char *kept = failure == FAILURE_TLS ? c->filling->tls_failed : c->filling->quic_failed;
	if (!*kept) snprintf(kept, QUIC_TEXT, "%s", why);
}

/* Closes a connection that has failed with errno. */
static void fail(struct connections *c, struct connection *conn) {
	enum failure failure = measures_reason(errno);
	if (conn->state == CONNECTION_HANDSHAKE && conn->tls && (failure == FAILURE_SHORT || failure == FAILURE_RESET))
		failure = FAILURE_TLS;
	bool connecting = failure == FAILURE_REFUSED || failure == FAILURE_CONNECT;
	if (connecting && !c->filling->connect_error) c->filling->connect_error = errno;
	if (failure == FAILURE_TLS && conn->tls && !*c->filling->tls_failed) tls_explain(conn->tls, c->filling->tls_failed);
	if (c->quic && conn->session && conn->assigned) note_why(c, failure, c->protocol->why(conn));
	connection_fail(c, conn, failure);
}

void connection_failed(struct connections *c, struct connection *conn, struct connection_request *p,
					   enum failure failure) {
	request_fail(c, p, failure);
	unlink_request(c, conn, p);
}

void connection_give_back(struct connections *c, struct connection *conn, struct connection_request *p) {
	if (++c->given_back > (uint64_t)c->count * c->plan->depth) { /* and none was answered meanwhile */
		connection_failed(c, conn, p, FAILURE_RESET);
		return;
	}
	if (p->sent) c->filling->count[COUNT_SENT]--;
	note_lateness(c, p);
	if (plan_open_loop(c->plan)) connections_wait(c, p->due_ns, true);
	else c->requests_left++;
	unlink_request(c, conn, p);
}

void connection_answered(struct connections *c, struct connection *conn, struct connection_request *p) {
	struct histogram *duration = c->filling->duration;
	const struct response *r = &p->response;
	const struct response_expected *expected = &c->plan->expected;
	c->given_back = 0; /* a wrong answer counts, too */
	if (expected->status ? r->status != expected->status : r->status / 100 != 2 && r->status != 304) {
		c->filling->status[r->status % MEASURES_STATUSES]++;
		connection_failed(c, conn, p, FAILURE_STATUS);
		return;
	}
	if (expected->at && (r->differs || r->seen != expected->length)) {
		connection_failed(c, conn, p, FAILURE_BYTES);
		return;
	}
	c->filling->count[COUNT_ANSWERED]++;
	c->filling->count[COUNT_LATE] += c->now_ns > c->end_ns;
	c->filling->last_ns = c->filling->ended_ns = c->now_ns;
	note_lateness(c, p);
	histogram_record(&duration[DURATION_FIRST_BYTE], p->first_ns - p->sent_ns);
	histogram_record(&duration[DURATION_WHOLE], c->now_ns - p->due_ns);
	unlink_request(c, conn, p);
}

/* Sets the deadline to that of the first request. */
static void set_deadline(struct connections *c, const struct connection *conn) {
	const struct connection_request *p = connection_at(c, conn, conn->head);
	int64_t since_ns = !p ? 0 : p->sent_ns ? p->sent_ns : p->placed_ns;
	io_timeout(c->loop, conn->fd, p ? (since_ns + c->plan->timeout_ns) / 1000000 : 0);
}

/* --- opening --- */

/* Enters the next state, and records how long the last one took. */
static void next_state(struct connections *c, struct connection *conn, enum connection_state state,
					   enum duration duration) {
	c->now_ns = machine_clock_ns();
	histogram_record(&c->filling->duration[duration], c->now_ns - conn->since_ns);
	conn->state = (uint8_t)state;
	conn->since_ns = c->now_ns;
}

/* Returns the state after connecting and the TLS handshake. */
static enum connection_state established(const struct connections *c) {
	return c->protocol->upgrades ? CONNECTION_UPGRADE : CONNECTION_OPEN;
}

void connection_upgraded(struct connections *c, struct connection *conn) {
	next_state(c, conn, CONNECTION_OPEN, DURATION_UPGRADE);
}

/* Returns 0, or -1 with errno. */
static int begin_session(struct connections *c, struct connection *conn) {
	if (!c->protocol->session_new || (conn->session = c->protocol->session_new(c, conn))) return 0;
	errno = ENOMEM;
	return -1;
}

/* Returns 0 if the connection is established, or -1 with errno; EAGAIN: not yet. */
static int continue_connecting(struct connections *c, struct connection *conn) {
	if (socket_connected(c->loop, conn->fd) == -1) return -1;
	next_state(c, conn, c->tls ? CONNECTION_HANDSHAKE : established(c), DURATION_CONNECT);
	c->filling->count[COUNT_CONNECTED]++;
	if (!c->tls) return begin_session(c, conn);
	if ((conn->tls = tls_open(c->tls, conn->fd))) return 0;
	errno = ENOMEM;
	return -1;
}

void connection_secured(struct connections *c, struct connection *conn, const tls_stream *tls) {
	next_state(c, conn, established(c), DURATION_HANDSHAKE);
	c->filling->count[COUNT_RESUMED] += tls_resumed(tls);
	if (!*c->filling->tls) tls_describe(tls, c->filling->tls);
}

/* Returns what continue_connecting() does. */
static int continue_handshake(struct connections *c, struct connection *conn) {
	if (tls_handshake(c->loop, conn->tls) == -1) return -1;
	connection_secured(c, conn, conn->tls);
	return begin_session(c, conn);
}

/* Starts to connect a new socket to the server. Returns 0, or -1 with errno. */
static int start_connecting(struct connections *c, struct connection *conn) {
	const struct plan *p = c->plan;
	const struct target *t = connection_target(c, conn);
	const uint32_t source = c->number + p->clients * c->sources_taken++;
	const struct socket_options options = {
		.datagrams = c->quic,
		/* with one HTTP/1.1 request at a time and without TLS, Nagle's algorithm never delays anything */
		.no_delay = !c->quic && (p->depth > 1 || c->tls || p->http2 || p->websocket),
		/* closing the connection then acknowledges the response */
		.last_ack = p->per_connection == 1 && !c->tls && !p->websocket,
		.sources = &p->sources,
		.source = source};
	const int fd = socket_make(c->loop, conn, t, &options, NULL);
	if (fd == -1 && errno == EINVAL && !*c->filling->source_failed) {
		sources_name(&p->sources, source, c->filling->source_failed);
		errno = EINVAL;
	}
	if (fd == -1) return -1;
	conn->fd = fd;
	conn->state = CONNECTION_CONNECTING;
	c->open++;
	conn->since_ns = machine_clock_ns();
	return socket_connect(fd, t);
}

/* Connects, and goes on as far as possible at once. Returns 0, or -1 with errno. */
static int open_connection(struct connections *c, struct connection *conn) {
	if (start_connecting(c, conn) == -1) return -1;
	if (!c->quic) return continue_connecting(c, conn) == -1 && errno != EAGAIN ? -1 : 0;
	conn->state = CONNECTION_HANDSHAKE; /* UDP is connected at once */
	return begin_session(c, conn);
}

/* Requests are sent in the next turn. If many connections are opened in a turn, their requests then follow each other
 * closely, and a server that is faster than this client is woken once for all of them, and not for each of them at this
 * client's expense. */
void connection_open(struct connections *c, struct connection *conn) {
	if (open_connection(c, conn) == -1 || io_wantwrite(c->loop, conn->fd) == -1) {
		fail(c, conn);
		return;
	}
	io_timeout(c->loop, conn->fd, (conn->since_ns + c->plan->timeout_ns) / 1000000);
}

/* --- sending --- */

ssize_t connection_trywritev(struct connections *c, struct connection *conn, const struct iovec *part, int parts) {
	return conn->tls ? tls_trywritev(c->loop, conn->tls, part, parts)
					 : io_trywritev(c->loop, conn->fd, part, parts, IO_LAST);
}

/* Sets what a connection waits for after an attempt to send. Returns 0, or -1 with errno if the connection has failed.
 */
static int after_sending(struct connections *c, struct connection *conn, int result) {
	bool blocked = result == -1 && errno == EAGAIN;
	if (result == -1 && !blocked) {
		/* the server may have sent a response before it closed */
		conn->broken = !c->quic && conn->assigned && connection_at(c, conn, conn->head)->sent_ns &&
					   (errno == EPIPE || errno == ECONNRESET);
		if (!conn->broken) return -1;
	}
	set_deadline(c, conn);
	list_by_room(c, conn);
	if (!blocked) io_dontwantwrite(c->loop, conn->fd);
	else if (io_wantwrite(c->loop, conn->fd) == -1) return -1;
	/* even if sending is blocked: the server may wait until its responses are read */
	return io_wantread(c->loop, conn->fd);
}

void connection_write(struct connections *c, struct connection *conn) {
	int result = 0;
	if (conn->state == CONNECTION_CONNECTING) {
		result = continue_connecting(c, conn);
		if (result == -1 && errno == EAGAIN) result = io_wantwrite(c->loop, conn->fd);
	}
	if (result == 0 && conn->state == CONNECTION_HANDSHAKE && !c->quic) {
		result = continue_handshake(c, conn);
		if (result == -1 && errno == EAGAIN) return; /* it waits for the direction that TLS needs */
	}
	if (result == 0 && (conn->state == CONNECTION_UPGRADE || conn->state == CONNECTION_OPEN || c->quic))
		result = after_sending(c, conn, conn->broken ? 0 : c->protocol->send(c, conn));
	if (result == -1) fail(c, conn);
	else if (conn->state == CONNECTION_OPEN && conn->retired && !conn->assigned) connection_close(c, conn);
}

/* --- receiving --- */

static ssize_t try_read(struct connections *c, struct connection *conn, char *buffer, size_t length) {
	return conn->tls ? tls_tryread(c->loop, conn->tls, buffer, length) : io_tryread(c->loop, conn->fd, buffer, length);
}

void connection_keep(struct connection *conn, const char *data, size_t length) {
	conn->input = malloc(length);
	if (!conn->input) abort();
	memcpy(conn->input, data, length);
	conn->input_length = (uint32_t)length;
}

/* Reads and handles input over TCP. Returns the bytes read, 0 if the connection has been closed, or -1 with errno. */
static ssize_t read_stream(struct connections *c, struct connection *conn) {
	const size_t kept = conn->input_length;
	if (kept) memcpy(c->input, conn->input, kept);
	const ssize_t n = try_read(c, conn, c->input + kept, CONNECTION_READ_MAX - kept);
	if (n >= 0) c->now_ns = machine_clock_ns();
	if (n == 0) c->protocol->end_of_input(c, conn);
	if (n <= 0) return n;
	c->filling->count[COUNT_BYTES] += (uint64_t)n;
	free(conn->input);
	conn->input = NULL;
	conn->input_length = 0;
	return c->protocol->take(c, conn, c->input, kept + (size_t)n) ? n : 0;
}

bool connection_read(struct connections *c, struct connection *conn) {
	if (conn->state == CONNECTION_HANDSHAKE && !c->quic) {
		connection_write(c, conn);
		return conn->state != CONNECTION_CLOSED;
	}
	io_dontwantread(c->loop, conn->fd); /* it may be closed below */
	const ssize_t n = c->quic ? c->protocol->receive(c, conn) : read_stream(c, conn);
	if (conn->state == CONNECTION_CLOSED) return false;
	if ((n == -1 && errno != EAGAIN) || io_wantread(c->loop, conn->fd) == -1) {
		fail(c, conn);
		return false;
	}
	if (n > 0) set_deadline(c, conn);
	if (n > 0 && conn->state == CONNECTION_OPEN) conn->since_ns = c->now_ns;
	list_by_room(c, conn);
	/* in closed loop it is sent with the next requests */
	const bool now = plan_open_loop(c->plan) || conn->state == CONNECTION_HANDSHAKE;
	if (now && c->protocol->wants_to_send && c->protocol->wants_to_send(conn)) connection_write(c, conn);
	return conn->state != CONNECTION_CLOSED;
}

void connection_expire(struct connections *c, struct connection *conn) {
	if (c->protocol->expire(conn) == -1) fail(c, conn);
	else connection_write(c, conn);
}

/* --- all connections --- */

/* Returns the share of the client with that number. */
static uint64_t part_of(uint64_t whole, unsigned clients, unsigned number) {
	return whole / clients + (number < whole % clients);
}

int connections_init(struct connections *c, const struct plan *plan, const struct connection_protocol *protocol,
					 unsigned number) {
	*c = (struct connections){
		.plan = plan,
		.protocol = protocol,
		.number = number,
		.count = (unsigned)part_of(plan->connections, plan->clients, number),
		.requests_left = plan->requests ? part_of(plan->requests, plan->clients, number) : UINT64_MAX,
	};
	c->connection = calloc(c->count, sizeof *c->connection);
	c->pending = calloc((size_t)c->count * plan->depth, sizeof *c->pending);
	c->filling = calloc(1, sizeof *c->filling);
	c->input = malloc(CONNECTION_READ_MAX);
	if (plan->http2) c->output = malloc(CONNECTION_READ_MAX);
	const char *host = plan->target->host;
	if (host) c->tls = tls_new(&plan->tls, host);
	if (c->tls && protocol->thread_new) c->quic = protocol->thread_new(c);
	if (backlog_init(&c->backlog) == -1 || !c->connection || !c->pending || !c->filling || !c->input ||
		(plan->http2 && !c->output) || (host && !c->tls) || (protocol->thread_new && !c->quic)) {
		errno = ENOMEM;
		return -1;
	}
	for (int i = 0; i < CONNECTION_LISTS; i++) c->head[i] = c->tail[i] = -1;
	for (unsigned i = 0; i < c->count; i++) connection_close(c, &c->connection[i]);
	return 0;
}

void connections_free(struct connections *c) {
	free(c->connection);
	free(c->pending);
	free(c->filling);
	free(c->input);
	free(c->output);
	backlog_free(&c->backlog);
	quic_thread_free(c->quic);
	tls_free(c->tls);
}
