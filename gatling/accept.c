/* accept.c - see accept.h. */
#include "gatling/accept.h"

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
#include "gatling/conn/fair.h"
#include "gatling/conn/refuse.h"
#include "gatling/conn/shed.h"

/* Looks at a listener again after a pause. */
static void pause_one(const struct acceptor *w, int fd, int64_t until_ms) {
	io_dontwantread(w->context->loop, fd);
	io_timeout(w->context->loop, fd, until_ms);
}

static void pause_accepting(struct acceptor *w) {
	w->paused_until_ms = io_now(w->context->loop) + ACCEPT_PAUSE_MS;
	for (unsigned i = 0; i < w->listeners; i++) pause_one(w, w->listener[i].fd, w->paused_until_ms);
}

/* Listens again after platform_reset_queue() has failed. */
static void listen_again(struct listener *l) {
	static notice_time next;
	l->deaf = listen(l->fd, LISTEN_BACKLOG) == -1;
	if (l->deaf && notice_due(&next))
		notice_line(LEVEL_ERROR, "cannot listen on port %u any more: %s; trying again", l->port, strerror(errno));
}

void accept_resume(struct acceptor *w) {
	bool failed = false;
	for (unsigned i = 0; i < w->listeners; i++) {
		struct listener *l = &w->listener[i];
		if (l->deaf) listen_again(l);
		if (l->deaf) pause_one(w, l->fd, io_now(w->context->loop) + ACCEPT_PAUSE_MS);
		else failed |= io_wantread(w->context->loop, l->fd) == -1;
	}
	if (failed) pause_accepting(w);
}

/* Looks at no listener until the next turn. */
static void rest(struct acceptor *w) {
	w->resting = true;
	for (unsigned i = 0; i < w->listeners; i++) io_dontwantread(w->context->loop, w->listener[i].fd);
}

int accept_due(const struct acceptor *w) { return w->resting ? ACCEPT_REST_MS : -1; }

static unsigned shed_from(const struct conn_context *w) {
	return w->connections_max - w->connections_max * (100 - SHED_FROM) / 100;
}

/* Returns how many connections to close: those beyond SHED_FROM, at least one for a client that waits. */
static unsigned connections_to_close(const struct acceptor *w) {
	unsigned from = shed_from(w->context);
	return w->context->connections > from ? w->context->connections - from : 1;
}

static bool has_waiting_client(const struct listener *listener) {
	struct pollfd p = {.fd = listener->fd, .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

/* --- the kernel's memory --- */

/* Returns how many bytes the n-th connection may leave unsent in the kernel: the fewer, the more there are, so that all
 * of them together stay below a share of the kernel's memory, or the harmonic series of it. Without this each slow
 * reader of a large file holds megabytes; with it, a few fast ones are not limited, which would cost twice the
 * processor time. A power of two, as it is set anew whenever it changes. */
static uint32_t unsent_max(const struct acceptor *w) {
	uint64_t connections = (w->context->connections + UINT64_C(1)) * w->workers;
	uint64_t part = w->tcp_memory / UNSENT_SHARE / connections, limit = UNSENT_MAX;
	while (limit > part && limit > UNSENT_MIN) limit /= 2;
	return (uint32_t)limit;
}

static void limit_unsent(struct acceptor *w) {
	unsigned sixteens = w->context->connections / 16;
	if (!w->tcp_memory || (w->unsent_max && sixteens == w->sixteens)) return;
	w->sixteens = sixteens;
	uint32_t limit = unsent_max(w);
	if (limit == w->unsent_max) return;
	w->unsent_max = limit;
	for (unsigned i = 0; i < w->listeners; i++)
		if (w->listener[i].port) platform_limit_unsent(w->listener[i].fd, limit < UNSENT_MAX ? limit : UINT32_MAX);
}

/* --- overload --- */

static bool has_overload(const struct acceptor *w, const struct listener *l) {
	return io_now(w->context->loop) < l->overload_until_ms && !w->last;
}

/* Notes whether requests wait too long. */
static void note_waits(struct acceptor *w) {
	const bool waits_long = waits_mean(&w->waits, io_now_ns(w->context->loop)) > ACCEPT_WAIT_LONG_MS;
	if (waits_long && w->waits_long_since_ms) return;
	w->waits_long_since_ms = waits_long ? io_now(w->context->loop) : 0;
}

/* Notes whether a connection that came to the front of the queue had waited too long. This is looked at only while a
 * queue stands: it takes a system call. */
static void note_wait(const struct acceptor *w, struct listener *l, int fd) {
	const bool late = l->queued && !has_overload(w, l) && platform_waited_ms(fd, NULL) > ACCEPT_TARGET_MS;
	if (late && l->late_since_ms) return;
	l->late_since_ms = late ? io_now(w->context->loop) : 0;
}

/* Returns whether what began at that time, if it did, has lasted for an interval. */
static bool has_lasted(const struct acceptor *w, int64_t since_ms) {
	return since_ms && io_now(w->context->loop) - since_ms >= ACCEPT_INTERVAL_MS;
}

/* Returns whether there is overload. It begins when all connections that came to the front of the queue in the last
 * interval had waited too long, or requests have. A unix socket has none: nothing can be refused there. */
static bool find_overload(const struct acceptor *w, struct listener *l) {
	if (w->last || has_overload(w, l)) return !w->last;
	const bool waits_long = has_lasted(w, w->waits_long_since_ms);
	if (!waits_long && !has_lasted(w, l->late_since_ms)) return false;
	if (platform_queue(l->fd, NULL) <= (waits_long ? -1 : ACCEPT_QUEUE_LONG)) return false;
	l->overload_until_ms = io_now(w->context->loop) + ACCEPT_OVERLOAD_MS;
	l->refused_ns = io_now_ns(w->context->loop);
	ration_begin(&l->ration, l->refused_ns);
	return true;
}

/* Tells the owner how many were refused since the last line. */
static void report_overload(unsigned refused) {
	static notice_time next;
	static atomic_uint sum;
	atomic_fetch_add(&sum, refused);
	if (notice_due(&next))
		notice_line(LEVEL_WARNING, "overload: refused %u new connections, as more come than can be served",
					atomic_exchange(&sum, 0));
}

/* Sets how many connections are taken in a turn: fewer while the turn of the others takes long, or they wait long for
 * theirs. */
static void adapt_batch(struct acceptor *w, struct listener *l) {
	const int64_t now_ns = io_now_ns(w->context->loop), turn_ns = io_read_clock() - now_ns;
	const int64_t turns = turn_ns / (ACCEPT_TURN_MS * INT64_C(1000000)); /* that it should have been */
	const bool longer = l->behind || turns || waits_mean(&w->waits, now_ns) > ACCEPT_WAIT_MS;
	const int least = turns < ACCEPT_BATCH ? (int)turns + 1 : ACCEPT_BATCH;
	l->most = longer ? l->most / 2 : l->most * 2;
	if (l->most < least) l->most = least;
	if (l->most > ACCEPT_BATCH) l->most = ACCEPT_BATCH;
	w->sampling |= longer;
}

/* What came while its connection was answered has not waited for the loop, and handshakes have a ration of their own.
 */
void accept_note_wait(struct acceptor *w, int fd) {
	bool ended; /* the end of a connection is no request, and does not count as bytes */
	const struct conn *c = conn_of(w->context, fd);
	if (c && conn_unfinished(c)) return;
	int64_t waited_ms = platform_waited_ms(fd, &ended);
	const int64_t quiet_ms = c && conn_since(c) ? io_now(w->context->loop) - conn_since(c) : INT64_MAX;
	if (waited_ms > quiet_ms) waited_ms = quiet_ms;
	if (waited_ms >= 0 && !ended) waits_note(&w->waits, io_now_ns(w->context->loop), waited_ms);
}

/* --- accepting --- */

int accept_refusal(struct conn_context *w, const struct peer *peer) {
	const struct peer *owner = conn_owner(w, peer);
	if (w->connections > shed_from(w) && shed_refuses(w, owner)) return 503;
	return limits_take_connection(w->limits, owner) ? 0 : 429;
}

/* What a batch has taken. */
struct accepted {
	int fresh[ACCEPT_BATCH], count;
	unsigned refused, late;
	int error; /* why it is not full; 0: it is */
};

/* The cheapest answer is none. */
static void refuse(const struct acceptor *w, const struct listener *l, struct accepted *a, int fd, int status) {
	if (a->refused++ < ACCEPT_ANSWERED) refuse_connection(w->context, fd, l->secure, status);
	else close(fd);
}

/* Takes one connection: keeps it, or refuses it. */
static void take(struct acceptor *w, struct listener *l, struct accepted *a) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	int fd = io_accept(w->context->loop, l->fd, (struct sockaddr *)&address, &length);
	if (fd == -1) { /* in a take-over the other process may just be resetting the queue */
		a->error = errno == ECONNRESET || errno == EINVAL ? EAGAIN : errno;
		return;
	}
	struct peer peer = peer_of((struct sockaddr *)&address);
	bool proxied = peer_is_in(&peer, &w->context->options->proxies);
	if (proxied) peer = peer_unknown; /* until its header says whose the connection is */
	note_wait(w, l, fd);
	/* Its first request has waited, too. While the ration is short it waits for that, which says nothing of the server.
	 */
	if (has_overload(w, l) && l->most == ACCEPT_BATCH) accept_sample(w, fd);
	const int status = accept_refusal(w->context, &peer);
	if (status) refuse(w, l, a, fd, status);
	else if (conn_new(w->context, fd, l->port, l->secure, proxied, &peer)) a->fresh[a->count++] = fd;
	else a->error = ENOMEM;
}

/* Reads from the new connections at once: most requests are there already, and then the event mechanism need not hear
 * of the connection at all. Those that have to wait for others come last, and only for fair_turn_ns(). Returns
 * whether that was time enough. */
static bool begin(struct conn_context *w, struct accepted *a) {
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

/* Closes connections that wait, one by one. */
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

/* Resets the connections that wait for more than the ration, under overload. While requests hardly wait they can
 * wait, too, as long as they are few. If the queue were left to fill, the kernel would drop whoever comes, who then
 * comes again a second later. An answer would cost too much. A queue that others share, or that a service manager
 * keeps, is emptied one by one. */
static void refuse_rest(const struct acceptor *w, struct listener *l, struct accepted *a) {
	const int64_t now_ns = io_now_ns(w->context->loop);
	if (a->error || l->ration.credit >= 1 || now_ns - l->refused_ns < ACCEPT_REFUSING_MS * INT64_C(1000000)) return;
	const int64_t queued = platform_queue(l->fd, NULL);
	if (queued <= 0 || (waits_left(&w->waits, now_ns) > RATION_IDLE_PART && queued <= ACCEPT_WAITING_MOST)) return;
	l->refused_ns = now_ns;
	if (l->keeper == -1) {
		close_waiting(w, l, a);
	} else {
		a->error = EAGAIN;
		a->late = (unsigned)queued;
		l->deaf = platform_reset_queue(l->fd, LISTEN_BACKLOG) == -1;
		if (l->deaf) pause_one(w, l->fd, io_now(w->context->loop) + ACCEPT_PAUSE_MS);
	}
	count_n(COUNT_REFUSED_LATE, a->late);
}

/* Sets how many may be taken. */
static void limit_batch(struct acceptor *w, struct listener *l, bool overload) {
	if (overload) {
		const int64_t now_ns = io_now_ns(w->context->loop);
		const double left = ration_left(&l->ration, waits_left(&w->waits, now_ns), now_ns);
		l->most = left < ACCEPT_BATCH ? (int)left : ACCEPT_BATCH;
	} else if (w->last) {
		l->most = ACCEPT_BATCH;
	} else {
		adapt_batch(w, l);
	}
}

/* Takes a batch. Returns false if there were no more. */
static bool accept_batch(struct acceptor *w, struct listener *l) {
	struct accepted a;
	a.count = a.error = 0;
	a.refused = a.late = 0;
	const bool overload = find_overload(w, l);
	limit_batch(w, l, overload);
	if (w->context->connections >= w->context->connections_max &&
		!(has_waiting_client(l) && shed_connections(w->context, connections_to_close(w))))
		a.error = EMFILE;
	while (a.count < l->most && a.refused < ACCEPT_REFUSED_MAX &&
		   w->context->connections < w->context->connections_max && !a.error)
		take(w, l, &a);
	ration_take(&l->ration, (unsigned)a.count, io_now_ns(w->context->loop));
	if (overload) refuse_rest(w, l, &a);
	l->queued = !a.error;
	if (!l->queued) l->late_since_ms = 0;
	w->sampling |= l->queued;
	if (a.late) {
		l->overload_until_ms = io_now(w->context->loop) + ACCEPT_OVERLOAD_MS;
		report_overload(a.late);
	}
	limit_unsent(w);
	/* without descriptors or memory another try at once would fail, too */
	if (a.error && a.error != EAGAIN && !w->last) pause_accepting(w);
	else if (overload && !l->most) rest(w);
	l->behind = !begin(w->context, &a);
	/* here the descriptors that are missing are taken by files */
	if (a.error == EMFILE || a.error == ENFILE || w->context->connections > shed_from(w->context))
		(void)shed_connections(w->context, connections_to_close(w));
	if (w->context->connections >= w->context->connections_max && a.error) shed_say_full(w->context);
	return !a.error;
}

void accept_later(struct acceptor *w, struct listener *l) { w->ready[w->readies++] = l; }

void accept_all(struct acceptor *w) {
	if (w->resting && io_now(w->context->loop) >= w->paused_until_ms) accept_resume(w);
	w->resting = w->sampling = false;
	note_waits(w);
	for (unsigned i = 0; i < w->listeners; i++) w->sampling |= has_overload(w, &w->listener[i]);
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
		io_close(w->context->loop, w->listener[i].fd);
		if (w->listener[i].keeper != -1) close(w->listener[i].keeper);
	}
	w->listeners = w->readies = 0;
}
