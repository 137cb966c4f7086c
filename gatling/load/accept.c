/* accept.c - see accept.h. */
#include "gatling/load/accept.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/refuse.h"
#include "gatling/load/fair.h"
#include "gatling/load/shed.h"

/* Leaves a listener alone until a time. */
static void pause_one(const struct acceptor *w, int fd, int64_t until_ms) {
	io_dontwantread(w->context->loop, fd);
	io_timeout(w->context->loop, fd, until_ms);
}

static void pause_accepting(struct acceptor *w) {
	w->paused_until_ms = io_now(w->context->loop) + ACCEPT_PAUSE_MS;
	for (unsigned i = 0; i < w->listeners; i++) pause_one(w, w->listener[i].fd, w->paused_until_ms);
}

/* Returns how many connections to close: those beyond SHED_FROM, at least one for a client that waits. */
static unsigned connections_to_close(const struct conn_context *w) {
	const unsigned from = w->connections_short;
	return w->connections > from ? w->connections - from : 1;
}

static bool has_waiting_client(const struct listener *listener) {
	struct pollfd p = {.fd = listener->fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

/* --- the kernel's memory --- */

/* Sets how much each connection may leave unsent in the kernel. The more connections there are, the less it is, so that
 * n of them that come together stay below a share of the kernel's memory, and n that come one after the other below
 * ln(n) times that. Otherwise each slow reader of a large file would hold megabytes. A few fast readers are not
 * limited: that would take twice the processor time. */
static void limit_unsent(struct acceptor *w) {
	struct conn_context *context = w->context;
	const unsigned sixteens = context->connections / 16 + 1, before = context->unsent_halved;
	const bool first = !w->sixteens; /* a socket that was inherited has the limit of its last owner */
	if (!w->tcp_memory || sixteens == w->sixteens) return;
	w->sixteens = sixteens;
	const uint64_t part = w->tcp_memory / UNSENT_SHARE / ((context->connections + UINT64_C(1)) * w->workers);
	unsigned halved = 0;
	while (CONN_UNSENT_MAX >> halved > CONN_UNSENT_MIN && (uint64_t)CONN_UNSENT_MAX >> halved > part) halved++;
	context->unsent_halved = halved;
	context->unsent_varies |= halved;
	for (unsigned i = 0; i < w->listeners && (first || halved != before); i++)
		if (w->listener[i].port) platform_limit_unsent(w->listener[i].fd, conn_unsent(context));
}

/* --- overload --- */

/* For all workers: how many listeners have overload, and since when; how many connections were refused since then, and
 * since the last line about it. */
static atomic_uint overloaded, refused_in_all, refused_untold;
static _Atomic int64_t overload_since_ms;

static bool has_overload(const struct acceptor *w, const struct listener *l) {
	return l->overload_until_ms && !w->last;
}

static void begin_overload(const struct acceptor *w, struct listener *l) {
	const int64_t now_ms = io_now(w->context->loop);
	if (atomic_fetch_add(&overloaded, 1) == 0) atomic_store(&overload_since_ms, now_ms);
	l->overload_until_ms = now_ms + ACCEPT_OVERLOAD_MS;
	l->came = 0;
	admission_begin(&l->admission, io_now_ns(w->context->loop));
}

static void end_overload(const struct acceptor *w, struct listener *l) {
	l->overload_until_ms = 0;
	if (atomic_fetch_sub(&overloaded, 1) > 1) return;
	const unsigned refused = atomic_exchange(&refused_in_all, 0);
	atomic_store(&refused_untold, 0);
	const int64_t lasted_ms = io_now(w->context->loop) - atomic_load(&overload_since_ms);
	if (refused)
		notice_line(LEVEL_NOTICE, "overload is over after %d s: refused at least %u new connections",
					(int)(lasted_ms / 1000), refused);
}

/* Returns whether the overload is over: no connection was refused for ACCEPT_OVERLOAD_MS, or there was too little to do
 * (which is not known where TLS handshakes are the work). */
static bool is_over(const struct acceptor *w, const struct listener *l) {
	return io_now(w->context->loop) >= l->overload_until_ms || (!l->secure && admission_idle(&l->admission));
}

/* Ends the overload of listeners for which it is over, if they listen, and notes when the next one may end. Returns
 * whether any has overload. */
static bool update_overload(struct acceptor *w) {
	bool any = false;
	w->overload_until_ms = 0;
	for (unsigned i = 0; i < w->listeners; i++) {
		struct listener *l = &w->listener[i];
		if (l->overload_until_ms && l->listening == LISTENER_LISTENS) {
			if (is_over(w, l)) end_overload(w, l);
			else if (!w->overload_until_ms || l->overload_until_ms < w->overload_until_ms)
				w->overload_until_ms = l->overload_until_ms;
		}
		any |= l->overload_until_ms;
	}
	return any;
}

int accept_due(const struct acceptor *w, int64_t now_ms) {
	if (w->resting && now_ms >= w->paused_until_ms) return ACCEPT_REST_MS;
	if (!w->overload_until_ms) return -1;
	return w->overload_until_ms > now_ms ? (int)(w->overload_until_ms - now_ms) : 0;
}

/* Notes whether requests wait too long. */
static void note_waits(struct acceptor *w) {
	const bool waits_long = waits_mean(&w->waits, io_now_ns(w->context->loop)) > ACCEPT_WAIT_LONG_MS;
	if (waits_long && w->waits_long_since_ms) return;
	w->waits_long_since_ms = waits_long ? io_now(w->context->loop) : 0;
}

/* Notes whether a connection waited too long before it was accepted. It is tested only while there is a queue, since it
 * takes a system call. */
static void note_wait(const struct acceptor *w, struct listener *l, int fd) {
	const bool late = l->queued_ms && !has_overload(w, l) && platform_waited_ms(fd, NULL) > ACCEPT_TARGET_MS;
	if (late && l->late_since_ms) return;
	l->late_since_ms = late ? io_now(w->context->loop) : 0;
}

/* Returns whether a state that began at that time (0: it did not) has lasted for an interval. */
static bool has_lasted(const struct acceptor *w, int64_t since_ms) {
	return since_ms && io_now(w->context->loop) - since_ms >= ACCEPT_INTERVAL_MS;
}

/* Returns whether there is overload, which begins here (see ACCEPT_TARGET_MS). A unix socket never has overload:
 * nothing can be refused there. */
static bool find_overload(const struct acceptor *w, struct listener *l) {
	if (w->last || has_overload(w, l)) return !w->last;
	const bool waits_long = has_lasted(w, w->waits_long_since_ms);
	if (!waits_long && !has_lasted(w, l->late_since_ms)) return false;
	if (platform_queue(l->fd, NULL) <= (waits_long ? -1 : ACCEPT_QUEUE_LONG)) return false;
	begin_overload(w, l);
	return true;
}

/* Counts refused connections, and logs how many there were since the last line. */
static void report_refused(const struct acceptor *w, struct listener *l, unsigned refused) {
	static notice_time next;
	if (!refused) return;
	l->overload_until_ms = io_now(w->context->loop) + ACCEPT_OVERLOAD_MS;
	count_n(COUNT_REFUSED_OVERLOAD, refused);
	atomic_fetch_add(&refused_untold, refused);
	atomic_fetch_add(&refused_in_all, refused);
	if (notice_due(&next))
		notice_line(LEVEL_WARNING, "overload: refused at least %u new connections, as more come than can be served",
					atomic_exchange(&refused_untold, 0));
}

/* Leaves a listener alone until it may accept again. */
static void rest(struct acceptor *w, const struct listener *l) {
	w->resting = true;
	io_dontwantread(w->context->loop, l->fd);
}

/* Returns whether a listener has to wait because handshakes are left over. New ones should wait in the queue, where it
 * is noticed if they are too many. */
static bool waits_for_handshakes(const struct acceptor *w, const struct listener *l) {
	return l->secure && w->handshakes_left;
}

/* Sets how many connections are accepted in a turn without overload, see ACCEPT_BATCH. */
static void adapt_batch(struct acceptor *w, struct listener *l) {
	const int64_t now_ns = io_now_ns(w->context->loop), turn_ns = io_read_clock() - now_ns;
	const int64_t turns = turn_ns / (ACCEPT_TURN_MS * INT64_C(1000000)); /* how many of them it took */
	const bool longer = l->behind || turns || waits_mean(&w->waits, now_ns) > ACCEPT_WAIT_MS;
	const int least = turns < ACCEPT_BATCH ? (int)turns + 1 : ACCEPT_BATCH;
	l->batch = longer ? l->batch / 2 : l->batch * 2;
	if (l->batch < least) l->batch = least;
	if (l->batch > ACCEPT_BATCH) l->batch = ACCEPT_BATCH;
	w->sampling |= longer;
}

/* Notes how long the bytes in a socket have waited, at most since that time. */
static void sample(struct acceptor *w, int fd, int64_t since_ms) {
	bool ended; /* the end of a connection, which is not a request */
	int64_t waited_ms = platform_waited_ms(fd, &ended);
	const int64_t most_ms = io_now(w->context->loop) - since_ms;
	if (waited_ms > most_ms) waited_ms = most_ms;
	if (waited_ms >= 0 && !ended) waits_note(&w->waits, io_now_ns(w->context->loop), waited_ms);
}

/* Returns whether to measure the next wait. */
static bool samples(struct acceptor *w) { return w->sampling && ++w->reads % ACCEPT_SAMPLE == 0; }

/* While a request is under way, the bytes may be its content, or those of a tunnel, whose waits say nothing about the
 * loop. Bytes that came during the last response have waited for the loop only since its end. */
void accept_note_wait(struct acceptor *w, const struct conn *c, int fd) {
	if (samples(w) && conn_is_idle(c)) sample(w, fd, conn_since(c));
}

/* Returns how many connections are admitted now. */
static double admitted_of(const struct acceptor *w, struct listener *l) {
	const int64_t now_ns = io_now_ns(w->context->loop);
	return admission_left(&l->admission, waits_left(&w->waits, now_ns), now_ns);
}

/* Notes that a listener no longer listens. */
static void note_end(struct listener *l, enum listening now) {
	if (l->listening != LISTENER_LISTENS) return;
	l->listening = (uint8_t)now;
	l->again_ms = 0;
}

/* Stops listening: the kernel resets the connections that wait, and refuses new ones, which costs far less. */
static void shut(struct listener *l, unsigned queued) {
	l->came += queued;
	note_end(l, platform_stop_listening(l->again, LISTEN_BACKLOG) == 0 ? LISTENER_STOPPED : LISTENER_FAILED);
}

/* Returns whether a listener that does not listen may listen again. */
static bool may_listen(const struct acceptor *w, struct listener *l) {
	if (l->listening == LISTENER_FAILED) return io_now(w->context->loop) >= l->again_ms;
	/* a handshake costs more than a request */
	const double left = admitted_of(w, l), requests = l->secure ? 0 : w->pace.per_s;
	return is_over(w, l) || (!waits_for_handshakes(w, l) && left >= admission_enough(&l->admission, l->came, requests));
}

static void listen_again(const struct acceptor *w, struct listener *l) {
	static notice_time next;
	if (listen(l->again, LISTEN_BACKLOG) == -1) {
		l->listening = LISTENER_FAILED;
		l->again_ms = io_now(w->context->loop) + ACCEPT_PAUSE_MS;
		pause_one(w, l->fd, l->again_ms);
		if (notice_due(&next))
			notice_line(LEVEL_ERROR, "cannot listen on port %u any more: %s; trying again", l->port, strerror(errno));
		return;
	}
	l->listening = LISTENER_LISTENS;
	l->came = 0;
}

void accept_resume(struct acceptor *w) {
	bool failed = false;
	if (io_now(w->context->loop) < w->paused_until_ms) return;
	w->resting = false;
	for (unsigned i = 0; i < w->listeners; i++) {
		struct listener *l = &w->listener[i];
		if (l->listening != LISTENER_LISTENS && may_listen(w, l)) listen_again(w, l);
		w->resting |= l->listening == LISTENER_STOPPED;
		if (l->listening == LISTENER_LISTENS) failed |= io_wantread(w->context->loop, l->fd) == -1;
	}
	if (failed) pause_accepting(w);
}

/* --- accepting --- */

int accept_refusal(struct conn_context *w, const struct peer *peer) {
	const struct peer *owner = conn_owner(w, peer);
	if (w->connections > w->connections_short && shed_refuses(w, owner)) return 503;
	return limits_take_connection(w->exchanges.limits, owner) ? 0 : 429;
}

bool accept_make_room(struct conn_context *w) {
	if (w->connections >= w->connections_short) (void)shed_connections(w, connections_to_close(w), false);
	return w->connections < w->connections_max;
}

/* A batch of connections. */
struct accepted {
	int fresh[ACCEPT_BATCH], count;
	unsigned refused, late;
	int error; /* the reason why it is not full; 0: it is */
};

/* Most are closed without an answer, which is cheapest. */
static void refuse(const struct acceptor *w, const struct listener *l, struct accepted *a, int fd, int status) {
	if (a->refused++ < ACCEPT_ANSWERED) refuse_connection(w->context, fd, l->secure, status);
	else close(fd);
}

/* Accepts a connection, and keeps or refuses it. */
static void take(struct acceptor *w, struct listener *l, struct accepted *a) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	int fd = io_accept(w->context->loop, l->fd, (struct sockaddr *)&address, &length);
	if (fd == -1) {
		/* EINVAL: another process that shares the socket, and has ended or hands over, has shut it */
		const bool failed = errno == EINVAL && l->port;
		a->error = errno == ECONNRESET || failed ? EAGAIN : errno;
		if (failed) note_end(l, LISTENER_FAILED);
		return;
	}
	struct peer peer = peer_of((struct sockaddr *)&address);
	bool proxied = peer_is_in(&peer, &w->context->options->proxies);
	if (proxied) peer = peer_unknown; /* until the PROXY header names the client */
	note_wait(w, l, fd);
	/* its first request has waited, too: since the last batch, which did not accept it */
	if (has_overload(w, l) && !l->secure && samples(w)) sample(w, fd, l->queued_ms);
	const int status = accept_refusal(w->context, &peer);
	if (status) refuse(w, l, a, fd, status);
	else if (conn_new(w->context, fd, l->port, l->secure, proxied, &peer)) a->fresh[a->count++] = fd;
	else a->error = ENOMEM;
}

/* Reads from the new connections at once: most requests have already come, and then the connection is never registered
 * with the event mechanism. Clients that have to wait for others come last, for at most fair_turn_ns(). Returns whether
 * there was time for all of them. */
static bool read_fresh(struct conn_context *w, struct accepted *a) {
	const int64_t now_ms = io_now(w->loop);
	int waiting = 0;
	bool all = true;
	for (int i = 0; i < a->count; i++) {
		struct conn *c = conn_of(w, a->fresh[i]);
		if (c && fair_waits(w->fair, conn_peer(c), now_ms)) a->fresh[waiting++] = a->fresh[i];
		else if (c) fair_run(w->fair, conn_readable, w, c);
		shed_over_budget(w);
	}
	int64_t until_ns = waiting ? io_read_clock() + fair_turn_ns(w->fair, now_ms) : 0;
	w->read_most = CONN_PIECE;
	for (int i = 0; i < waiting; i++) {
		struct conn *c = conn_of(w, a->fresh[i]);
		all = all && (i == 0 || io_read_clock() < until_ns);
		if (c && !all) conn_wait(w, c);
		else if (c) fair_run(w->fair, conn_readable, w, c);
		shed_over_budget(w);
	}
	w->read_most = CONN_SCRATCH;
	return all;
}

/* Closes connections that wait, one by one, where other processes share the queue. */
static void close_waiting(const struct acceptor *w, const struct listener *l, struct accepted *a) {
	for (; a->late < ACCEPT_REFUSED_MAX && !a->error; a->late++) {
		const int fd = io_accept(w->context->loop, l->fd, NULL, NULL);
		if (fd == -1) {
			a->error = errno;
			return;
		}
		close(fd);
	}
}

/* Returns how many connections may be accepted in this turn. */
static int batch_limit(struct acceptor *w, struct listener *l, bool overload) {
	if (w->last) return ACCEPT_BATCH;
	const double left = overload ? admitted_of(w, l) : ACCEPT_BATCH;
	if (!overload) adapt_batch(w, l);
	if (waits_for_handshakes(w, l)) return 0;
	if (!overload) return l->batch;
	return left < ACCEPT_BATCH ? (int)left : ACCEPT_BATCH;
}

/* Returns whether the connections that wait are too many, so that they are refused. A few may wait while requests
 * hardly wait, and where other processes share the queue, which may accept them. */
static bool too_many_wait(const struct acceptor *w, const struct listener *l, int64_t queued) {
	if (l->holder != -1 && waits_left(&w->waits, io_now_ns(w->context->loop)) <= ADMISSION_IDLE_PART) return queued > 0;
	return queued > ACCEPT_WAITING_MOST;
}

/* Under overload, refuses the connections that wait when no more are admitted. If the queue were left to fill, the
 * kernel would drop new connections, and their clients would try again a second later. Answers would cost too much. */
static void refuse_rest(struct acceptor *w, struct listener *l, struct accepted *a) {
	l->came += (unsigned)a->count + a->refused;
	if (a->error || (l->admission.credit >= 1 && !waits_for_handshakes(w, l))) return;
	const int64_t queued = platform_queue(l->fd, NULL);
	if (!too_many_wait(w, l, queued)) return;
	if (l->holder == -1) {
		close_waiting(w, l, a);
	} else {
		a->late = (unsigned)queued;
		shut(l, a->late);
	}
}

/* Accepts a batch of connections. Returns false if no more wait. */
static bool accept_batch(struct acceptor *w, struct listener *l) {
	struct accepted a;
	a.count = a.error = 0;
	a.refused = a.late = 0;
	const bool overload = find_overload(w, l);
	const int most = batch_limit(w, l, overload);
	if (w->context->connections >= w->context->connections_max &&
		!(has_waiting_client(l) && shed_connections(w->context, connections_to_close(w->context), false)))
		a.error = EMFILE;
	while (a.count < most && a.refused < ACCEPT_REFUSED_MAX && w->context->connections < w->context->connections_max &&
		   !a.error)
		take(w, l, &a);
	admission_take(&l->admission, (unsigned)a.count, io_now_ns(w->context->loop));
	if (overload) refuse_rest(w, l, &a);
	if (a.late) report_refused(w, l, a.late);
	l->queued_ms = a.error ? 0 : io_now(w->context->loop);
	if (!l->queued_ms) l->late_since_ms = 0;
	w->sampling |= overload || l->queued_ms;
	limit_unsent(w);
	/* without descriptors or memory, the next try would fail, too */
	if (a.error && a.error != EAGAIN && !w->last) pause_accepting(w);
	else if (l->listening != LISTENER_LISTENS || (overload && !most)) rest(w, l);
	l->behind = !read_fresh(w->context, &a);
	/* there may be too few descriptors because files have them */
	const bool full = w->context->connections > w->context->connections_short ||
					  w->context->connections >= w->context->connections_max;
	if (a.error == EMFILE || a.error == ENFILE || full)
		(void)shed_connections(w->context, connections_to_close(w->context), !full);
	if (w->context->connections >= w->context->connections_max && a.error) shed_say_full(w->context);
	return !a.error;
}

void accept_later(struct acceptor *w, struct listener *l) { w->ready[w->readies++] = l; }

void accept_all(struct acceptor *w) {
	w->sampling = update_overload(w);
	w->handshakes_left = w->context->handshakes > TLS_HANDSHAKES;
	if (w->sampling) pace_note(&w->pace, w->reads - w->reads_noted, io_now_ns(w->context->loop));
	w->reads_noted = w->reads;
	if (w->resting) accept_resume(w);
	note_waits(w);
	while (w->readies) (void)accept_batch(w, w->ready[--w->readies]);
}

void accept_last(struct acceptor *w) {
	w->last = true;
	for (unsigned i = 0; i < w->listeners; i++)
		for (int n = 0; n < ACCEPT_LAST && accept_batch(w, &w->listener[i]); n++) {}
	accept_stop(w);
}

void accept_stop(struct acceptor *w) {
	for (unsigned i = 0; i < w->listeners; i++) {
		struct listener *l = &w->listener[i];
		if (l->overload_until_ms) end_overload(w, l);
		note_end(l, LISTENER_STOPPED);
		if (l->again != l->fd) close(l->again);
		io_close(w->context->loop, l->fd);
		if (l->holder != -1) close(l->holder);
	}
	w->listeners = w->readies = 0;
}
