/* client.c - see client.h. A request is assigned to a connection when it is due, leaves in connection_write(), and ends
 * in request_end() or, with all behind it, in connection_fail(). Who reads turn() sees everything that a client does.
 */
#include "bench/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine.h"
#include "bench/response.h"
#include "bench/schedule.h"
#include "io/io.h"

enum {
	READ_MAX = 256 * 1024,     /* bytes read at a time; more than RESPONSE_HEAD_MAX */
	WRITE_PARTS = 64,          /* requests written at a time */
	OPEN_BATCH = 64,           /* connections opened in a turn, so that the others get theirs */
	WAITING_MAX = 1024 * 1024, /* requests that are due and wait for a connection */
	NONE = -1
};
static const int64_t second_ns = 1000000000, ramp_step_ns = 1000000;
static const int64_t spin_ns = 50000;
static const int64_t open_pause_ns = 100000000; /* after a connection could not be opened, until the next try */

/* A request under way. */
struct pending {
	int64_t due_ns, sent_ns, first_ns; /* first_ns: of its answer; 0: not yet */
	unsigned target;
};

enum state { STATE_CLOSED, STATE_CONNECTING, STATE_OPEN };

/* Those closed; in open loop, those that can take another request. */
enum list { LIST_NONE, LIST_CLOSED, LIST_ROOM, LISTS };

struct connection {
	int fd;
	uint8_t state, list;
	uint16_t first;        /* the pending request whose answer comes next */
	uint16_t assigned;     /* requests under way */
	uint16_t written;      /* of them handed to the kernel, and */
	uint32_t partly;       /* bytes of the one after them */
	uint32_t requests;     /* ever assigned */
	uint32_t input_length; /* bytes of a head that is not complete */
	int32_t previous, next;
	int64_t opened_ns;
	char *input;
	struct response response;
};

struct client {
	const struct plan *plan;
	unsigned number;
	io_loop *loop;
	struct schedule schedule;
	int64_t started_ns, end_ns, now_ns, tick_ns, open_again_ns;
	int64_t busy_ns; /* when something came in last */
	uint64_t requests_left;
	struct connection *connection;
	unsigned connections, open; /* open: of them */
	uint32_t sources_taken;     /* connections ever opened */
	struct pending *pending;    /* plan->depth for each connection */
	int32_t list[LISTS];        /* first of each */
	unsigned under_way;         /* requests */
	int64_t *waiting;           /* when requests were due that wait for a connection; a ring */
	unsigned waiting_first, waiting_count;
	struct measures *filling;
	char *input; /* READ_MAX bytes */
	/* shared with the main thread */
	pthread_t thread;
	pthread_mutex_t mutex;
	struct measures *collected;
	bool ended;
	atomic_bool stop;
};

static bool open_loop(const struct client *c) { return c->plan->rate > 0; }

/* Whether further requests may begin. */
static bool running(const struct client *c) { return c->requests_left && c->now_ns < c->end_ns; }

static struct pending *pending_of(const struct client *c, const struct connection *conn, unsigned place) {
	unsigned depth = c->plan->depth;
	return &c->pending[(size_t)(conn - c->connection) * depth + (conn->first + place) % depth];
}

static bool worn_out(const struct client *c, const struct connection *conn) {
	return c->plan->per_connection && conn->requests >= c->plan->per_connection;
}

static bool has_room(const struct client *c, const struct connection *conn) {
	return conn->assigned < c->plan->depth && !worn_out(c, conn);
}

static void move_to(struct client *c, struct connection *conn, enum list list) {
	int32_t self = (int32_t)(conn - c->connection);
	if (conn->list == list) return;
	if (conn->list != LIST_NONE) {
		if (conn->next != NONE) c->connection[conn->next].previous = conn->previous;
		if (conn->previous != NONE) c->connection[conn->previous].next = conn->next;
		else c->list[conn->list] = conn->next;
	}
	conn->list = (uint8_t)list;
	if (list == LIST_NONE) return;
	conn->previous = NONE;
	conn->next = c->list[list];
	if (conn->next != NONE) c->connection[conn->next].previous = self;
	c->list[list] = self;
}

/* Open loop: keeps the list of those that can take another request. */
static void list_by_room(struct client *c, struct connection *conn) {
	move_to(c, conn, has_room(c, conn) ? LIST_ROOM : LIST_NONE);
}

static void assign(struct client *c, struct connection *conn, int64_t due_ns) {
	struct pending *p = pending_of(c, conn, conn->assigned++);
	*p = (struct pending){.due_ns = due_ns, .target = schedule_target(&c->schedule)};
	conn->requests++;
	c->under_way++;
}

/* --- the end of requests and connections --- */

static void fail(struct client *c, enum failure failure) {
	c->filling->failure[failure]++;
	histogram_censor(&c->filling->duration[DURATION_WHOLE]);
}

static void connection_close(struct client *c, struct connection *conn) {
	if (conn->state != STATE_CLOSED) {
		io_close(c->loop, conn->fd);
		c->open--;
	}
	free(conn->input);
	conn->input = NULL;
	conn->state = STATE_CLOSED;
	move_to(c, conn, LIST_CLOSED);
}

/* Ends the connection with every request on it; those behind the first were broken off. */
static void connection_fail(struct client *c, struct connection *conn, enum failure failure) {
	for (unsigned i = 0; i < conn->assigned; i++) fail(c, i == 0 ? failure : FAILURE_RESET);
	c->under_way -= conn->assigned;
	if (conn->state != STATE_OPEN) c->open_again_ns = c->now_ns + open_pause_ns;
	connection_close(c, conn);
}

static enum failure failure_of(int error) {
	switch (error) {
	case ECONNREFUSED: return FAILURE_REFUSED;
	case ECONNRESET:
	case EPIPE: return FAILURE_RESET;
	case ETIMEDOUT: return FAILURE_TIMEOUT;
	case EADDRNOTAVAIL: return FAILURE_PORTS;
	case EMFILE:
	case ENFILE: return FAILURE_DESCRIPTORS;
	default: return FAILURE_CONNECT;
	}
}

static void wait_for_connection(struct client *c, int64_t due_ns) {
	if (c->waiting_count == WAITING_MAX) fail(c, FAILURE_UNSENT);
	else c->waiting[(c->waiting_first + c->waiting_count++) % WAITING_MAX] = due_ns;
}

/* The server ends the connection although more was asked for: that goes to another one, due when it was. */
static void give_back(struct client *c, struct connection *conn) {
	for (unsigned i = 0; i < conn->assigned; i++) {
		if (i < conn->written) c->filling->sent--;
		if (open_loop(c)) wait_for_connection(c, pending_of(c, conn, i)->due_ns);
		else c->requests_left++;
	}
	c->under_way -= conn->assigned;
	conn->assigned = 0;
}

static void set_deadline(struct client *c, const struct connection *conn) {
	int64_t sent_ns = conn->assigned ? pending_of(c, conn, 0)->sent_ns : 0;
	io_timeout(c->loop, conn->fd, sent_ns ? (sent_ns + c->plan->timeout_ns) / 1000000 : 0);
}

/* The answer is complete. false: so is the connection, which is closed. */
static bool request_end(struct client *c, struct connection *conn) {
	const struct pending *p = pending_of(c, conn, 0);
	struct histogram *duration = c->filling->duration;
	const struct response *r = &conn->response;
	const struct expected *expected = &c->plan->expected;
	if (r->status / 100 != 2 && r->status != 304) {
		fail(c, FAILURE_STATUS);
	} else if (expected->at && (r->differs || r->seen != expected->length)) {
		fail(c, FAILURE_BYTES);
	} else {
		c->filling->answered++;
		histogram_record(&duration[DURATION_FIRST_BYTE], p->first_ns - p->sent_ns);
		histogram_record(&duration[DURATION_WHOLE], c->now_ns - p->due_ns);
	}
	conn->first = (uint16_t)((conn->first + 1) % c->plan->depth);
	conn->assigned--;
	conn->written--;
	c->under_way--;
	bool ends = conn->response.close || (worn_out(c, conn) && !conn->assigned);
	conn->response = (struct response){0};
	if (ends) {
		give_back(c, conn);
		connection_close(c, conn);
		return false;
	}
	set_deadline(c, conn);
	return true;
}

/* --- sending --- */

static const struct request_bytes *bytes_of(const struct client *c, const struct connection *conn, unsigned place) {
	const struct target *t = &c->plan->target[pending_of(c, conn, place)->target];
	bool last = conn->requests - conn->assigned + place + 1 == c->plan->per_connection;
	return last ? &t->last : &t->request;
}

static void established(struct client *c, struct connection *conn) {
	conn->state = STATE_OPEN;
	c->filling->connections++;
	histogram_record(&c->filling->duration[DURATION_CONNECT], c->now_ns - conn->opened_ns);
}

/* The connection has taken so many bytes. */
static void written(struct client *c, struct connection *conn, size_t n) {
	if (conn->state == STATE_CONNECTING) established(c, conn);
	for (; n; conn->written++) {
		size_t rest = bytes_of(c, conn, conn->written)->length - conn->partly;
		struct pending *p = pending_of(c, conn, conn->written);
		if (!conn->partly) p->sent_ns = c->now_ns;
		if (n < rest) {
			conn->partly += (uint32_t)n;
			return;
		}
		n -= rest;
		conn->partly = 0;
		c->filling->sent++;
		if (open_loop(c)) histogram_record(&c->filling->duration[DURATION_LATENESS], p->sent_ns - p->due_ns);
	}
}

static void connection_write(struct client *c, struct connection *conn) {
	while (conn->written < conn->assigned) {
		struct iovec part[WRITE_PARTS];
		int parts = 0;
		for (unsigned i = conn->written; i < conn->assigned && parts < WRITE_PARTS; i++) {
			const struct request_bytes *r = bytes_of(c, conn, i);
			size_t skip = i == conn->written ? conn->partly : 0;
			part[parts++] = (struct iovec){.iov_base = r->at + skip, .iov_len = r->length - skip};
		}
		ssize_t n = io_trywritev(c->loop, conn->fd, part, parts);
		if (n == -1 && errno != EAGAIN) {
			connection_fail(c, conn, failure_of(errno));
			return;
		}
		if (n == -1) {
			if (io_wantwrite(c->loop, conn->fd) == -1) connection_fail(c, conn, failure_of(errno));
			return;
		}
		bool idle = conn->written == 0;
		written(c, conn, (size_t)n);
		if (idle) set_deadline(c, conn);
	}
	io_dontwantwrite(c->loop, conn->fd);
	if (io_wantread(c->loop, conn->fd) == -1) connection_fail(c, conn, failure_of(errno));
	else if (open_loop(c)) list_by_room(c, conn);
}

/* What has become of a connect(2) that does not wait: 0: the connection stands, as it does at once on loopback; or the
 * error, EINPROGRESS as long as there is none (D. J. Bernstein, "Non-blocking BSD socket connections"). */
static int connected(int fd) {
	struct sockaddr_storage peer;
	int error = 0;
	socklen_t length = sizeof peer, error_length = sizeof error;
	if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0) return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_length) == -1) return errno;
	return error ? error : EINPROGRESS;
}

/* Connects for the requests that are assigned. They leave in the next turn: of many connections opened in one turn the
 * requests then go out one right after the other, and a server that is quicker than this client is woken once for all
 * of them and not, at this client's expense, for each. */
static void connection_open(struct client *c, struct connection *conn) {
	const struct target *t = &c->plan->target[pending_of(c, conn, 0)->target];
	int on = 1, off = 0;
	conn->opened_ns = c->now_ns = machine_clock_ns();
	conn->fd = socket(t->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd != -1 && io_fd(c->loop, conn->fd, conn) == -1) {
		close(conn->fd);
		conn->fd = -1;
		errno = EMFILE;
	}
	if (conn->fd == -1) {
		connection_fail(c, conn, failure_of(errno));
		return;
	}
	conn->state = STATE_CONNECTING;
	c->open++;
	uint32_t source = c->plan->rank * c->plan->connections + c->number + c->plan->clients * c->sources_taken++;
	bool bound = !c->plan->sources.count || sources_bind(&c->plan->sources, source, conn->fd) == 0;
	/* with one request at a time there is never anything that Nagle's algorithm would hold back */
	if (c->plan->depth > 1) (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	/* the handshake's last acknowledgement goes with the request, and that of the answer with the end */
	if (c->plan->per_connection == 1) (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
	if (!bound ||
		(connect(conn->fd, (const struct sockaddr *)&t->address, t->address_length) == -1 && errno != EINPROGRESS)) {
		connection_fail(c, conn, failure_of(errno));
		return;
	}
	c->now_ns = machine_clock_ns();
	int error = connected(conn->fd);
	if (!error) established(c, conn);
	else if (error == EINPROGRESS) (void)io_eagain_write(c->loop, conn->fd); /* not wanted yet: cannot fail */
	else {
		connection_fail(c, conn, failure_of(error));
		return;
	}
	io_timeout(c->loop, conn->fd, (c->now_ns + c->plan->timeout_ns) / 1000000);
	if (io_wantwrite(c->loop, conn->fd) == -1) connection_fail(c, conn, failure_of(errno));
}

/* A closed connection for a request, or NULL: there is none, or opening one has just failed. */
static struct connection *take_closed(struct client *c) {
	if (c->list[LIST_CLOSED] == NONE || c->now_ns < c->open_again_ns) return NULL;
	struct connection *conn = &c->connection[c->list[LIST_CLOSED]];
	move_to(c, conn, LIST_NONE);
	conn->first = conn->assigned = conn->written = 0;
	conn->partly = conn->requests = conn->input_length = 0;
	conn->response = (struct response){0};
	return conn;
}

/* Closed loop: as many requests as the connection takes are due now. */
static void refill(struct client *c, struct connection *conn) {
	while (running(c) && has_room(c, conn)) {
		c->requests_left--;
		assign(c, conn, c->now_ns);
	}
	if (conn->state == STATE_CLOSED) connection_open(c, conn);
	else if (conn->assigned) connection_write(c, conn);
	else connection_close(c, conn);
}

/* --- receiving --- */

/* Takes answers apart; false: the connection is closed. */
static bool take(struct client *c, struct connection *conn, const char *data, size_t length) {
	while (length) {
		if (!conn->written) { /* nobody asked; an idle connection may be told so before it is closed */
			connection_fail(c, conn, FAILURE_PROTOCOL);
			return false;
		}
		struct pending *p = pending_of(c, conn, 0);
		if (!p->first_ns) p->first_ns = c->now_ns;
		bool bodiless = c->plan->target[p->target].bodiless;
		bool head = !conn->response.status;
		int n = head ? response_head(&conn->response, data, length, bodiless)
					 : response_content(&conn->response, data, length, &c->plan->expected);
		if (head && n == 0) {
			conn->input = malloc(length);
			if (!conn->input) abort();
			memcpy(conn->input, data, length);
			conn->input_length = (uint32_t)length;
			return true;
		}
		if (n == -1) {
			connection_fail(c, conn, FAILURE_PROTOCOL);
			return false;
		}
		data += n;
		length -= (size_t)n;
		if (response_complete(&conn->response) && !request_end(c, conn)) return false;
	}
	return true;
}

/* The server has closed. */
static void end_of_input(struct client *c, struct connection *conn) {
	if (response_ends_by_close(&conn->response)) {
		conn->response.close = true;
		(void)request_end(c, conn);
	} else {
		connection_fail(c, conn, FAILURE_SHORT);
	}
}

static bool want_read(struct client *c, struct connection *conn) {
	if (io_wantread(c->loop, conn->fd) == 0) return true;
	connection_fail(c, conn, failure_of(errno));
	return false;
}

static void readable(struct client *c, struct connection *conn) {
	size_t kept = conn->input_length;
	if (kept) memcpy(c->input, conn->input, kept);
	io_dontwantread(c->loop, conn->fd); /* before it is known whether anything more is to come */
	ssize_t n = io_tryread(c->loop, conn->fd, c->input + kept, READ_MAX - kept);
	if (n == -1 && errno == EAGAIN) {
		(void)want_read(c, conn);
		return;
	}
	c->now_ns = machine_clock_ns();
	free(conn->input);
	conn->input = NULL;
	conn->input_length = 0;
	if (n == -1) {
		connection_fail(c, conn, failure_of(errno));
	} else if (n == 0) {
		end_of_input(c, conn);
	} else {
		c->filling->bytes += (uint64_t)n;
		if (take(c, conn, c->input, kept + (size_t)n) && want_read(c, conn)) {
			if (!open_loop(c)) refill(c, conn);
			else list_by_room(c, conn);
			return;
		}
	}
	/* it is closed: in closed loop its place is taken at once */
	if (!open_loop(c) && running(c) && (conn = take_closed(c))) refill(c, conn);
}

/* --- the loop --- */

/* Open loop: sends a request on a connection with room, or on a new one. false: there is none. */
static bool place(struct client *c, int64_t due_ns) {
	if (c->list[LIST_ROOM] != NONE) {
		struct connection *conn = &c->connection[c->list[LIST_ROOM]];
		assign(c, conn, due_ns);
		connection_write(c, conn);
		return true;
	}
	struct connection *conn = take_closed(c);
	if (!conn) return false;
	assign(c, conn, due_ns);
	connection_open(c, conn);
	return true;
}

/* Whether what waits for a connection may still get one. */
static bool in_time(const struct client *c) { return c->now_ns < c->end_ns + c->plan->timeout_ns; }

static void dispatch(struct client *c) {
	while (c->waiting_count && in_time(c) && place(c, c->waiting[c->waiting_first])) {
		c->waiting_first = (c->waiting_first + 1) % WAITING_MAX;
		c->waiting_count--;
	}
	while (running(c) && schedule_due(&c->schedule) <= c->now_ns) {
		int64_t due_ns = schedule_due(&c->schedule);
		schedule_advance(&c->schedule);
		c->requests_left--;
		if (c->waiting_count || !place(c, due_ns)) wait_for_connection(c, due_ns);
	}
}

/* How many connections there should be by now. */
static unsigned wanted(const struct client *c) {
	int64_t passed = c->now_ns - c->started_ns;
	if (passed >= c->plan->ramp_ns) return c->connections;
	return (unsigned)((double)c->connections * (double)passed / (double)c->plan->ramp_ns) + 1;
}

/* Closed loop: opens connections that are missing. */
static void open_missing(struct client *c) {
	struct connection *conn;
	for (int i = 0; i < OPEN_BATCH && running(c) && c->open < wanted(c) && (conn = take_closed(c)); i++)
		refill(c, conn);
}

static void hand_over(struct client *c) {
	pthread_mutex_lock(&c->mutex);
	measures_add(c->collected, c->filling);
	pthread_mutex_unlock(&c->mutex);
	measures_reset(c->filling);
	while (c->tick_ns <= c->now_ns) c->tick_ns += second_ns;
}

/* When there is something to do even if nothing comes in. */
static int64_t next_moment(const struct client *c) {
	int64_t next = c->tick_ns;
	if (running(c) && c->end_ns < next) next = c->end_ns;
	if (running(c) && open_loop(c) && schedule_due(&c->schedule) < next) next = schedule_due(&c->schedule);
	if (!running(c) || open_loop(c) || c->open == c->connections) return next;
	int64_t opens = c->now_ns < c->open_again_ns ? c->open_again_ns : c->now_ns;
	if (opens == c->now_ns && c->open >= wanted(c)) opens += ramp_step_ns;
	if (opens < next) next = opens;
	return next;
}

/* Who sleeps is woken late, and by the server at its expense. So behind work and before the moment of a request the
 * next is looked for, not waited for, as long as nobody else wants this processor. */
static int await(struct client *c) {
	int64_t before_ns = c->now_ns, next_ns = next_moment(c);
	bool busy = before_ns == c->busy_ns;
	bool spin = !busy && (before_ns < c->busy_ns + spin_ns || (open_loop(c) && next_ns < before_ns + spin_ns));
	if (spin) sched_yield();
	int result;
	if (busy || spin) result = io_wait(c->loop, 0);
	else result = io_waituntil(c->loop, open_loop(c) ? next_ns - spin_ns : next_ns);
	c->now_ns = io_now_ns(c->loop);
	if (spin) c->filling->spun_ns += (uint64_t)(c->now_ns - before_ns);
	return result;
}

static bool turn(struct client *c) {
	if (await(c) == -1) return false;
	bool busy = false;
	if (atomic_load(&c->stop) && running(c)) c->end_ns = c->now_ns;
	for (int fd; (fd = io_canwrite(c->loop)) != -1; busy = true) {
		c->now_ns = machine_clock_ns();
		connection_write(c, io_cookie(c->loop, fd));
	}
	for (int fd; (fd = io_canread(c->loop)) != -1; busy = true) readable(c, io_cookie(c->loop, fd));
	if (busy) c->busy_ns = c->now_ns;
	for (int fd; (fd = io_timedout(c->loop)) != -1;) connection_fail(c, io_cookie(c->loop, fd), FAILURE_TIMEOUT);
	if (open_loop(c)) dispatch(c);
	else open_missing(c);
	if (c->now_ns >= c->tick_ns) hand_over(c);
	if (running(c) || c->under_way) return true;
	return c->waiting_count && in_time(c);
}

static void *run(void *argument) {
	struct client *c = argument;
	(void)io_private_descriptors(NULL, 0); /* without it the clients share the limit */
	c->loop = io_loop_new();
	while (c->loop && turn(c)) {}
	for (; c->waiting_count; c->waiting_count--) fail(c, FAILURE_UNSENT);
	for (unsigned i = 0; i < c->connections; i++) connection_close(c, &c->connection[i]);
	io_loop_free(c->loop);
	hand_over(c);
	pthread_mutex_lock(&c->mutex);
	c->ended = true;
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

/* --- for the main thread --- */

/* Of a whole, the part of the client of that number. */
static uint64_t part_of(uint64_t whole, unsigned clients, unsigned number) {
	return whole / clients + (number < whole % clients);
}

static void client_free(struct client *c) {
	free(c->connection);
	free(c->pending);
	free(c->waiting);
	free(c->filling);
	free(c->collected);
	free(c->input);
	free(c);
}

struct client *client_start(const struct plan *plan, unsigned number, int64_t started_ns) {
	struct client *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->plan = plan;
	c->number = number;
	c->connections = (unsigned)part_of(plan->connections, plan->clients, number);
	c->requests_left = plan->requests ? part_of(plan->requests, plan->clients, number) : UINT64_MAX;
	c->started_ns = c->now_ns = started_ns;
	c->end_ns = plan->duration_ns ? started_ns + plan->duration_ns : INT64_MAX - plan->timeout_ns;
	c->tick_ns = started_ns + second_ns;
	c->connection = calloc(c->connections, sizeof *c->connection);
	c->pending = calloc((size_t)c->connections * plan->depth, sizeof *c->pending);
	c->waiting = calloc(WAITING_MAX, sizeof *c->waiting);
	c->filling = calloc(1, sizeof *c->filling);
	c->collected = calloc(1, sizeof *c->collected);
	c->input = malloc(READ_MAX);
	int error = ENOMEM;
	if (c->connection && c->pending && c->waiting && c->filling && c->collected && c->input) {
		c->list[LIST_CLOSED] = c->list[LIST_ROOM] = NONE;
		for (unsigned i = c->connections; i > 0; i--) move_to(c, &c->connection[i - 1], LIST_CLOSED);
		schedule_start(&c->schedule, plan, number, started_ns);
		pthread_mutex_init(&c->mutex, NULL);
		error = pthread_create(&c->thread, NULL, run, c);
	}
	if (!error) return c;
	client_free(c);
	errno = error;
	return NULL;
}

bool client_collect(struct client *c, struct measures *sum) {
	pthread_mutex_lock(&c->mutex);
	measures_add(sum, c->collected);
	measures_reset(c->collected);
	bool ended = c->ended;
	pthread_mutex_unlock(&c->mutex);
	return !ended;
}

void client_stop(struct client *c) { atomic_store(&c->stop, true); }

void client_join(struct client *c) {
	pthread_join(c->thread, NULL);
	client_free(c);
}
