/* client.c - see client.h. run_turn() is one turn of a client's loop; connection.c handles the connections. */
#include "bench/httpbench/load/client.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench/httpbench/load/connection.h"
#include "bench/httpbench/load/http1.h"
#include "bench/httpbench/load/http2.h"
#include "bench/httpbench/load/http3.h"
#include "bench/httpbench/load/websocket.h"
#include "bench/machine.h"

enum {
	OPEN_BATCH = 64,      /* connections opened in a turn, so that the others are served, too */
	DISPATCH_BATCH = 1024 /* requests dispatched in a turn */
};
static const int64_t second_ns = 1000000000, ramp_step_ns = 1000000;
static const int64_t spin_ns = 50000, crowded_ns = 100000000;

struct client {
	struct connections pool;
	int64_t started_ns, tick_ns, handed_over_ns;
	int64_t drop_ns;          /* when requests under way are dropped */
	bool busy;                /* the last turn had work */
	int64_t busy_ns;          /* the time of the last turn with work */
	int64_t crowded_until_ns; /* until then, other threads want this processor */
	int64_t idle_ns, cpu_ns;  /* time spent waiting since the last tick; the thread's processor time at that tick */
	/* shared with the main thread */
	pthread_t thread;
	pthread_mutex_t mutex;
	struct measures *collected;
	bool started, ended;
	_Atomic int64_t stop_ns; /* the time of client_stop(); 0: it was not called */
};

/* Returns whether further requests may begin. */
static bool running(const struct client *c) { return c->pool.requests_left && c->pool.now_ns < c->pool.end_ns; }

/* Returns a closed connection for a request, or NULL if there is none or opening one has just failed. */
static struct connection *take_closed(struct client *c) {
	return c->pool.now_ns < c->pool.open_again_ns ? NULL : connections_take(&c->pool, CONNECTION_LIST_CLOSED);
}

/* --- closed loop --- */

static bool is_idle(const struct connection *conn) { return conn->state == CONNECTION_OPEN && !conn->assigned; }

/* Assigns as many requests to a connection as it can take. With HTTP/2 some may end while they are sent. */
static void refill(struct client *c, struct connection *conn) {
	do {
		while (running(c) && connection_has_room(conn)) {
			c->pool.requests_left--;
			connection_assign(&c->pool, conn, c->pool.now_ns, false);
		}
		if (!conn->assigned) connection_close(&c->pool, conn);
		else if (conn->state == CONNECTION_CLOSED) connection_open(&c->pool, conn);
		else connection_write(&c->pool, conn);
	} while (is_idle(conn));
}

/* Returns how many connections should be open now. */
static unsigned wanted(const struct client *c) {
	int64_t passed = c->pool.now_ns - c->started_ns;
	if (passed >= c->pool.plan->ramp_ns) return c->pool.count;
	return (unsigned)((double)c->pool.count * (double)passed / (double)c->pool.plan->ramp_ns) + 1;
}

/* Opens connections until enough are open. */
static void open_missing(struct client *c) {
	struct connection *conn;
	for (int i = 0; i < OPEN_BATCH && running(c) && c->pool.open < wanted(c) && (conn = take_closed(c)); i++)
		if (c->pool.plan->hold) connection_open(&c->pool, conn);
		else refill(c, conn);
}

/* --- open loop --- */

/* Assigns a request to an idle connection, to a new one, or to one with other requests. Returns false if none can take
 * it. */
static bool place(struct client *c, int64_t due_ns, bool again) {
	struct connection *conn = connections_take(&c->pool, CONNECTION_LIST_IDLE);
	if (!conn) conn = take_closed(c);
	if (!conn) conn = connections_take(&c->pool, CONNECTION_LIST_ROOM);
	if (!conn) return false;
	c->pool.now_ns = machine_clock_ns();
	c->busy = true;
	connection_assign(&c->pool, conn, due_ns, again);
	if (conn->state == CONNECTION_CLOSED) connection_open(&c->pool, conn);
	else connection_write(&c->pool, conn);
	return true;
}

/* Returns whether requests in the backlog may still get a connection. */
static bool in_time(const struct client *c) {
	return c->drop_ns == INT64_MAX && c->pool.now_ns < c->pool.end_ns + c->pool.plan->timeout_ns;
}

/* Returns whether another request is due before the end of the run, which may have passed. */
static bool more_due(const struct client *c) {
	return plan_open_loop(c->pool.plan) && c->pool.requests_left && schedule_due(&c->pool.schedule) < c->pool.end_ns;
}

static void dispatch(struct client *c) {
	while (c->pool.backlog.count && in_time(c)) {
		const struct backlog_entry *first = backlog_first(&c->pool.backlog);
		if (!place(c, first->due_ns, first->again)) break;
		backlog_remove(&c->pool.backlog);
	}
	for (int i = 0; i < DISPATCH_BATCH && more_due(c) && schedule_due(&c->pool.schedule) <= c->pool.now_ns; i++) {
		int64_t due_ns = schedule_due(&c->pool.schedule);
		schedule_advance(&c->pool.schedule);
		c->pool.requests_left--;
		if (!c->pool.backlog.count && place(c, due_ns, false)) continue;
		c->pool.filling->count[COUNT_WAITED]++;
		connections_wait(&c->pool, due_ns, false);
	}
}

/* --- the loop --- */

/* Adds to spun_ns the processor time since from_ns that was spent in await(). */
static void note_spinning(struct client *c, int64_t from_ns) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	int64_t cpu_ns = (int64_t)t.tv_sec * second_ns + t.tv_nsec;
	int64_t work_ns = c->pool.now_ns - from_ns - c->idle_ns, spun_ns = cpu_ns - c->cpu_ns - work_ns;
	if (spun_ns > 0) c->pool.filling->spun_ns += (uint64_t)spun_ns;
	c->cpu_ns = cpu_ns;
	c->idle_ns = 0;
}

static void hand_over(struct client *c) {
	note_spinning(c, c->handed_over_ns);
	c->handed_over_ns = c->pool.now_ns;
	pthread_mutex_lock(&c->mutex);
	measures_add(c->collected, c->pool.filling);
	pthread_mutex_unlock(&c->mutex);
	measures_reset(c->pool.filling);
	while (c->tick_ns <= c->pool.now_ns) c->tick_ns += second_ns;
}

/* Returns the next time at which there is something to do even without input. */
static int64_t next_moment(const struct client *c) {
	int64_t next = c->drop_ns < c->tick_ns ? c->drop_ns : c->tick_ns;
	if (running(c) && c->pool.end_ns < next) next = c->pool.end_ns;
	if (more_due(c) && schedule_due(&c->pool.schedule) < next) next = schedule_due(&c->pool.schedule);
	if (c->pool.backlog.count && c->pool.open_again_ns > c->pool.now_ns && c->pool.open_again_ns < next)
		next = c->pool.open_again_ns;
	if (!running(c) || !plan_opens_all(c->pool.plan) || c->pool.open == c->pool.count) return next;
	int64_t opens = c->pool.now_ns < c->pool.open_again_ns ? c->pool.open_again_ns : c->pool.now_ns;
	if (opens == c->pool.now_ns && c->pool.open >= wanted(c)) opens += ramp_step_ns;
	if (opens < next) next = opens;
	return next;
}

/* Waits for the next event. A thread that sleeps wakes up late, and the server pays for waking it. Therefore the thread
 * polls after it had work, and shortly before a request is due. It does not poll while other threads want its
 * processor, since after sched_yield() it may wait milliseconds for its turn, whereas after sleeping it is preferred.
 */
static int await(struct client *c) {
	bool busy = c->busy, alone = c->pool.now_ns >= c->crowded_until_ns;
	int64_t before_ns = c->pool.now_ns, next_ns = next_moment(c), began_ns = busy ? 0 : machine_clock_ns();
	bool spin = !busy && alone &&
				(before_ns < c->busy_ns + spin_ns || (plan_open_loop(c->pool.plan) && next_ns < before_ns + spin_ns));
	if (spin) sched_yield();
	int result;
	if (busy || spin) result = io_wait(c->pool.loop, 0);
	else result = io_waituntil(c->pool.loop, plan_open_loop(c->pool.plan) && alone ? next_ns - spin_ns : next_ns);
	c->pool.now_ns = io_now_ns(c->pool.loop);
	if (!busy) c->idle_ns += c->pool.now_ns - began_ns;
	if (spin && c->pool.now_ns - began_ns > spin_ns) c->crowded_until_ns = c->pool.now_ns + crowded_ns;
	return result;
}

static void readable(struct client *c, struct connection *conn) {
	bool open = connection_read(&c->pool, conn);
	if (plan_open_loop(c->pool.plan) || (open && conn->state != CONNECTION_OPEN)) return;
	/* a new connection replaces it at once */
	if (open || (running(c) && (conn = take_closed(c)))) refill(c, conn);
}

/* Handles that the first request of a connection has had no answer in time. If something has come since it was sent,
 * the connection is sound, and the other requests can go on. */
static void time_out(struct client *c, struct connection *conn) {
	struct connection_request *p = connection_at(&c->pool, conn, conn->head);
	const struct connection_protocol *protocol = c->pool.protocol;
	const bool sound = p && p->sent_ns && conn->state == CONNECTION_OPEN && conn->since_ns > p->sent_ns;
	if (!sound || !protocol->cancel || !protocol->cancel(conn, p)) {
		connection_fail(&c->pool, conn, FAILURE_TIMEOUT);
		return;
	}
	connection_failed(&c->pool, conn, p, FAILURE_TIMEOUT);
	if (plan_open_loop(c->pool.plan)) connection_write(&c->pool, conn);
	else refill(c, conn);
}

static void heed_stop(struct client *c) {
	const int64_t stop_ns = atomic_load(&c->stop_ns);
	if (!stop_ns) return;
	if (running(c)) c->pool.end_ns = c->pool.now_ns;
	c->drop_ns = stop_ns + CLIENT_GRACE_S * second_ns;
}

static bool run_turn(struct client *c) {
	if (await(c) == -1) return false;
	c->busy = false;
	heed_stop(c);
	for (int fd; (fd = io_canwrite(c->pool.loop)) != -1; c->busy = true) {
		c->pool.now_ns = machine_clock_ns();
		struct connection *conn = io_cookie(c->pool.loop, fd);
		connection_write(&c->pool, conn);
		if (!plan_open_loop(c->pool.plan) && is_idle(conn)) refill(c, conn);
	}
	for (int fd; (fd = io_canread(c->pool.loop)) != -1; c->busy = true) readable(c, io_cookie(c->pool.loop, fd));
	for (struct io_alarm *alarm; (alarm = io_alarm_due(c->pool.loop)); c->busy = true)
		connection_expire(&c->pool, (struct connection *)alarm);
	if (c->busy) c->busy_ns = c->pool.now_ns;
	for (int fd; (fd = io_timedout(c->pool.loop)) != -1;) time_out(c, io_cookie(c->pool.loop, fd));
	if (plan_open_loop(c->pool.plan)) dispatch(c);
	if (plan_opens_all(c->pool.plan)) open_missing(c);
	if (c->pool.now_ns >= c->tick_ns) hand_over(c);
	if (c->pool.now_ns >= c->drop_ns) return false;
	if (running(c) || more_due(c) || c->pool.under_way) return true;
	return c->pool.backlog.count && in_time(c);
}

static void *client_thread(void *argument) {
	struct client *c = argument;
	(void)io_private_descriptors(NULL, 0); /* if it fails, the clients share the limit of descriptors */
	c->pool.loop = io_loop_new();
	while (c->pool.loop && run_turn(c)) {}
	for (; c->pool.backlog.count; backlog_remove(&c->pool.backlog))
		if (c->drop_ns == INT64_MAX) measures_unsent(c->pool.filling, c->pool.now_ns);
		else c->pool.filling->count[COUNT_DROPPED]++;
	if (!c->pool.loop) c->pool.filling->failure[FAILURE_DESCRIPTORS]++;
	for (unsigned i = 0; i < c->pool.count; i++) {
		struct connection *conn = &c->pool.connection[i];
		if (conn->assigned && c->pool.now_ns >= c->drop_ns) connection_drop(&c->pool, conn);
		else if (conn->assigned) connection_fail(&c->pool, conn, FAILURE_CONNECT); /* the loop has failed */
		else connection_close(&c->pool, conn);
	}
	io_loop_free(c->pool.loop);
	c->pool.filling->queued_ns = machine_queued_ns();
	hand_over(c);
	pthread_mutex_lock(&c->mutex);
	c->ended = true;
	pthread_mutex_unlock(&c->mutex);
	return NULL;
}

/* --- for the main thread --- */

void client_free(struct client *c) {
	if (!c) return;
	if (c->started) pthread_join(c->thread, NULL);
	connections_free(&c->pool);
	free(c->collected);
	free(c);
}

static const struct connection_protocol *protocol_of(const struct plan *plan) {
	return plan->http2 ? &http2 : plan->http3 ? &http3 : plan->websocket ? &websocket : &http1;
}

struct client *client_new(const struct plan *plan, unsigned number) {
	struct client *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	pthread_mutex_init(&c->mutex, NULL);
	if (connections_init(&c->pool, plan, protocol_of(plan), number) == 0 &&
		(c->collected = calloc(1, sizeof *c->collected)))
		return c;
	client_free(c);
	errno = ENOMEM;
	return NULL;
}

int client_start(struct client *c, int64_t started_ns) {
	const struct plan *plan = c->pool.plan;
	c->started_ns = c->pool.now_ns = c->handed_over_ns = started_ns;
	c->pool.end_ns = plan->duration_ns ? started_ns + plan->duration_ns : INT64_MAX - plan->timeout_ns;
	c->tick_ns = started_ns + second_ns;
	c->drop_ns = INT64_MAX;
	schedule_start(&c->pool.schedule, plan, c->pool.number, started_ns);
	errno = pthread_create(&c->thread, NULL, client_thread, c);
	c->started = errno == 0;
	return c->started ? 0 : -1;
}

bool client_collect(struct client *c, struct measures *sum) {
	pthread_mutex_lock(&c->mutex);
	measures_add(sum, c->collected);
	measures_reset(c->collected);
	bool ended = c->ended;
	pthread_mutex_unlock(&c->mutex);
	return !ended;
}

void client_stop(struct client *c) { atomic_store(&c->stop_ns, machine_clock_ns()); }
