/* client.c - see client.h. Who reads turn() sees everything that a client does; what happens on a connection is in
 * connection.c. */
#include "bench/httpbench/load/client.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "bench/httpbench/load/connection.h"
#include "bench/machine.h"

enum {
	OPEN_BATCH = 64,          /* connections opened in a turn, so that the others get theirs */
	DISPATCH_BATCH = 1024,    /* and requests dispatched */
	WAITING_MAX = 1024 * 1024 /* requests that are due and wait for a connection */
};
static const int64_t second_ns = 1000000000, ramp_step_ns = 1000000;
static const int64_t spin_ns = 50000, crowded_ns = 100000000;

/* Whether further requests may begin. */
static bool running(const struct client *c) { return c->requests_left && c->now_ns < c->end_ns; }

/* A request is due, and leaves with no connection. */
static void leave_unsent(struct client *c) {
	c->filling->failure[FAILURE_UNSENT]++;
	histogram_censor(&c->filling->duration[DURATION_WHOLE]);
	histogram_censor(&c->filling->duration[DURATION_LATENESS]);
}

static void wait_for_connection(struct client *c, int64_t due_ns, bool again) {
	if (c->waiting_count == WAITING_MAX) leave_unsent(c);
	else c->waiting[(c->waiting_first + c->waiting_count++) % WAITING_MAX] = (struct waiting){due_ns, again};
}

void client_give_back(struct client *c, int64_t due_ns) {
	if (open_loop(c)) wait_for_connection(c, due_ns, true);
	else c->requests_left++;
}

/* A closed connection for a request, or NULL: there is none, or opening one has just failed. */
static struct connection *take_closed(struct client *c) {
	return c->now_ns < c->open_again_ns ? NULL : connection_take(c, LIST_CLOSED);
}

/* --- closed loop --- */

/* As many requests as the connection takes are due now. */
static void refill(struct client *c, struct connection *conn) {
	while (running(c) && connection_has_room(c, conn)) {
		c->requests_left--;
		connection_assign(c, conn, c->now_ns, false);
	}
	if (!conn->assigned) connection_close(c, conn);
	else if (conn->state == STATE_CLOSED) connection_open(c, conn);
	else connection_write(c, conn);
}

/* How many connections there should be by now. */
static unsigned wanted(const struct client *c) {
	int64_t passed = c->now_ns - c->started_ns;
	if (passed >= c->plan->ramp_ns) return c->connections;
	return (unsigned)((double)c->connections * (double)passed / (double)c->plan->ramp_ns) + 1;
}

/* Opens connections that are missing. */
static void open_missing(struct client *c) {
	struct connection *conn;
	for (int i = 0; i < OPEN_BATCH && running(c) && c->open < wanted(c) && (conn = take_closed(c)); i++)
		refill(c, conn);
}

/* --- open loop --- */

/* Sends a request on an idle connection, or a new one, or behind others. false: there is no connection for it. */
static bool place(struct client *c, int64_t due_ns, bool again) {
	struct connection *conn = connection_take(c, LIST_IDLE);
	if (!conn) conn = take_closed(c);
	if (!conn) conn = connection_take(c, LIST_ROOM);
	if (!conn) return false;
	c->now_ns = machine_clock_ns();
	c->busy = true;
	connection_assign(c, conn, due_ns, again);
	if (conn->state == STATE_CLOSED) connection_open(c, conn);
	else connection_write(c, conn);
	return true;
}

/* Whether what waits for a connection may still get one. */
static bool in_time(const struct client *c) {
	return !atomic_load(&c->stop) && c->now_ns < c->end_ns + c->plan->timeout_ns;
}

/* Whether more is to be due before the end; that may have passed while this thread was held up. */
static bool more_due(const struct client *c) {
	return open_loop(c) && c->requests_left && schedule_due(&c->schedule) < c->end_ns;
}

static void dispatch(struct client *c) {
	while (c->waiting_count && in_time(c)) {
		const struct waiting *w = &c->waiting[c->waiting_first];
		if (!place(c, w->due_ns, w->again)) break;
		c->waiting_first = (c->waiting_first + 1) % WAITING_MAX;
		c->waiting_count--;
	}
	for (int i = 0; i < DISPATCH_BATCH && more_due(c) && schedule_due(&c->schedule) <= c->now_ns; i++) {
		int64_t due_ns = schedule_due(&c->schedule);
		schedule_advance(&c->schedule);
		c->requests_left--;
		if (!c->waiting_count && place(c, due_ns, false)) continue;
		c->filling->count[COUNT_WAITED]++;
		wait_for_connection(c, due_ns, false);
	}
}

/* --- the loop --- */

/* The processor time of a second that did not go into work: all, but for what passed outside of await(). */
static void note_spinning(struct client *c, int64_t from_ns) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	int64_t cpu_ns = (int64_t)t.tv_sec * second_ns + t.tv_nsec;
	int64_t work_ns = c->now_ns - from_ns - c->idle_ns, spun_ns = cpu_ns - c->cpu_ns - work_ns;
	if (spun_ns > 0) c->filling->spun_ns += (uint64_t)spun_ns;
	c->cpu_ns = cpu_ns;
	c->idle_ns = 0;
}

static void hand_over(struct client *c) {
	note_spinning(c, c->handed_over_ns);
	c->handed_over_ns = c->now_ns;
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
	if (more_due(c) && schedule_due(&c->schedule) < next) next = schedule_due(&c->schedule);
	if (c->waiting_count && c->open_again_ns > c->now_ns && c->open_again_ns < next) next = c->open_again_ns;
	if (!running(c) || open_loop(c) || c->open == c->connections) return next;
	int64_t opens = c->now_ns < c->open_again_ns ? c->open_again_ns : c->now_ns;
	if (opens == c->now_ns && c->open >= wanted(c)) opens += ramp_step_ns;
	if (opens < next) next = opens;
	return next;
}

/* Who sleeps is woken late, and by the server at its expense. So behind work and before the moment of a request the
 * next is looked for, not waited for, as long as nobody else wants this processor: who has yielded it to another may
 * not have it back for milliseconds, and who sleeps has, when there is work. */
static int await(struct client *c) {
	bool busy = c->busy, alone = c->now_ns >= c->crowded_until_ns;
	int64_t before_ns = c->now_ns, next_ns = next_moment(c), began_ns = busy ? 0 : machine_clock_ns();
	bool spin = !busy && alone && (before_ns < c->busy_ns + spin_ns || (open_loop(c) && next_ns < before_ns + spin_ns));
	if (spin) sched_yield();
	int result;
	if (busy || spin) result = io_wait(c->loop, 0);
	else result = io_waituntil(c->loop, open_loop(c) && alone ? next_ns - spin_ns : next_ns);
	c->now_ns = io_now_ns(c->loop);
	if (!busy) c->idle_ns += c->now_ns - began_ns;
	if (spin && c->now_ns - began_ns > spin_ns) c->crowded_until_ns = c->now_ns + crowded_ns;
	return result;
}

static void readable(struct client *c, struct connection *conn) {
	bool open = connection_read(c, conn);
	if (open_loop(c) || (open && conn->state != STATE_OPEN)) return;
	/* its place is taken at once */
	if (open || (running(c) && (conn = take_closed(c)))) refill(c, conn);
}

static bool turn(struct client *c) {
	if (await(c) == -1) return false;
	c->busy = false;
	if (atomic_load(&c->stop) && running(c)) c->end_ns = c->now_ns;
	for (int fd; (fd = io_canwrite(c->loop)) != -1; c->busy = true) {
		c->now_ns = machine_clock_ns();
		connection_write(c, io_cookie(c->loop, fd));
	}
	for (int fd; (fd = io_canread(c->loop)) != -1; c->busy = true) readable(c, io_cookie(c->loop, fd));
	if (c->busy) c->busy_ns = c->now_ns;
	for (int fd; (fd = io_timedout(c->loop)) != -1;) connection_fail(c, io_cookie(c->loop, fd), FAILURE_TIMEOUT);
	if (open_loop(c)) dispatch(c);
	else open_missing(c);
	if (c->now_ns >= c->tick_ns) hand_over(c);
	if (running(c) || more_due(c) || c->under_way) return true;
	return c->waiting_count && in_time(c);
}

static void *run(void *argument) {
	struct client *c = argument;
	(void)io_private_descriptors(NULL, 0); /* without it the clients share the limit */
	c->loop = io_loop_new();
	while (c->loop && turn(c)) {}
	for (; c->waiting_count; c->waiting_count--) leave_unsent(c);
	if (!c->loop) c->filling->failure[FAILURE_DESCRIPTORS]++;
	for (unsigned i = 0; i < c->connections; i++) {
		struct connection *conn = &c->connection[i];
		if (conn->assigned) connection_fail(c, conn, FAILURE_CONNECT); /* the loop has failed */
		else connection_close(c, conn);
	}
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

void client_free(struct client *c) {
	if (!c) return;
	if (c->started) pthread_join(c->thread, NULL);
	free(c->connection);
	free(c->pending);
	free(c->waiting);
	free(c->filling);
	free(c->collected);
	free(c->input);
	tls_free(c->tls);
	free(c);
}

struct client *client_new(const struct plan *plan, unsigned number) {
	struct client *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->plan = plan;
	c->number = number;
	c->connections = (unsigned)part_of(plan->connections, plan->clients, number);
	c->requests_left = plan->requests ? part_of(plan->requests, plan->clients, number) : UINT64_MAX;
	c->connection = calloc(c->connections, sizeof *c->connection);
	c->pending = calloc((size_t)c->connections * plan->depth, sizeof *c->pending);
	c->waiting = calloc(WAITING_MAX, sizeof *c->waiting);
	c->filling = calloc(1, sizeof *c->filling);
	c->collected = calloc(1, sizeof *c->collected);
	c->input = malloc(READ_MAX);
	const char *host = plan->target->host;
	if (host) c->tls = tls_new(&plan->tls, host);
	if (!c->connection || !c->pending || !c->waiting || !c->filling || !c->collected || !c->input ||
		(host && !c->tls)) {
		client_free(c);
		errno = ENOMEM;
		return NULL;
	}
	for (int i = 0; i < LISTS; i++) c->head[i] = c->tail[i] = -1;
	for (unsigned i = 0; i < c->connections; i++) connection_close(c, &c->connection[i]);
	pthread_mutex_init(&c->mutex, NULL);
	return c;
}

int client_start(struct client *c, int64_t started_ns) {
	const struct plan *plan = c->plan;
	c->started_ns = c->now_ns = c->handed_over_ns = started_ns;
	c->end_ns = plan->duration_ns ? started_ns + plan->duration_ns : INT64_MAX - plan->timeout_ns;
	c->tick_ns = started_ns + second_ns;
	schedule_start(&c->schedule, plan, c->number, started_ns);
	errno = pthread_create(&c->thread, NULL, run, c);
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

void client_stop(struct client *c) { atomic_store(&c->stop, true); }
