/* accept.c - see accept.h. */
#include "gatling/accept.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/fair.h"
#include "gatling/conn/refuse.h"
#include "gatling/conn/shed.h"

static void pause_accepting(const struct acceptor *w) {
	for (unsigned i = 0; i < w->listeners; i++) {
		io_dontwantread(w->context->loop, w->listener[i].fd);
		io_timeout(w->context->loop, w->listener[i].fd, io_now(w->context->loop) + ACCEPT_PAUSE_MS);
	}
}

void accept_resume(const struct acceptor *w) {
	for (unsigned i = 0; i < w->listeners; i++)
		if (io_wantread(w->context->loop, w->listener[i].fd) == -1) pause_accepting(w);
}

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

/* Notes how long a connection that came to the front of the queue had waited. Returns whether that was too long. This
 * is looked at only while a queue stands: it takes a system call. */
static bool has_waited_too_long(const struct acceptor *w, struct listener *l, int fd) {
	const bool late = l->queued && platform_waited_ms(fd) > ACCEPT_TARGET_MS;
	if (late && l->late_since_ms) return true;
	l->late_since_ms = late ? io_now(w->context->loop) : 0;
	l->taken = 0;
	return late;
}

/* Under overload the queue of the kernel is short: what does not fit it refuses by itself, which costs least. */
static void set_queue(struct listener *l, bool is_short) {
	if (is_short != l->is_short) (void)listen(l->fd, is_short ? ACCEPT_QUEUE_SHORT : LISTEN_BACKLOG);
	l->is_short = is_short;
}

/* Returns whether there is overload. It begins when all connections that came to the front of the queue in the last
 * interval had waited too long. */
static bool find_overload(const struct acceptor *w, struct listener *l) {
	const int64_t now_ms = io_now(w->context->loop);
	const int64_t late_ms = l->late_since_ms ? now_ms - l->late_since_ms : 0;
	if (w->last) return false;
	if (now_ms < l->overload_until_ms) return true;
	if (late_ms < ACCEPT_INTERVAL_MS || platform_queue(l->fd, NULL) <= ACCEPT_QUEUE_LONG) return false;
	l->overload_until_ms = now_ms + ACCEPT_OVERLOAD_MS;
	l->rationed_ns = io_now_ns(w->context->loop);
	l->rate = 1000.0 * l->taken / (double)late_ms;
	l->turn_ns = l->credit = 0;
	l->taken = 0;
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

/* Sets how many connections are taken in a turn: fewer while one queues and the turn of the others takes long. */
static void adapt_batch(const struct acceptor *w, struct listener *l) {
	const int64_t turn_ns = io_read_clock() - io_now_ns(w->context->loop);
	const bool longer = l->behind || turn_ns > ACCEPT_TURN_MS * INT64_C(1000000);
	l->most = longer ? l->most / 2 : l->most * 2;
	if (l->most < ACCEPT_LEAST) l->most = ACCEPT_LEAST;
	if (l->most > ACCEPT_BATCH) l->most = ACCEPT_BATCH;
}

/* The same under overload: the longer the others need, the fewer, one if that is ACCEPT_TURN_OVERLOAD_MS. Whoever
 * is taken asks for more a moment later, so the rate cannot grow at once: in a second by RATE_GROWTH times the part of
 * that time which the others leave. Returns the nanoseconds that refusing the rest may take: none while the others
 * leave half of it, as then the rest can wait. */
static int64_t ration(const struct acceptor *w, struct listener *l) {
	static const double RATE_GROWTH = 1.5, RATE_LEAST = 200;
	enum { FORGOTTEN_NS = 50000000 }; /* what was so long ago says nothing of now */
	const int64_t now_ns = io_now_ns(w->context->loop), turn_ns = io_read_clock() - now_ns;
	const int64_t passed_ns = now_ns - l->rationed_ns;
	const double most_ns = ACCEPT_TURN_OVERLOAD_MS * 1e6, passed_s = (double)passed_ns / 1e9;
	l->rationed_ns = now_ns;
	l->turn_ns += ((double)turn_ns - l->turn_ns) / (passed_ns > FORGOTTEN_NS ? 1 : 4);
	if (passed_s > 0) l->rate += (l->taken / passed_s - l->rate) * (passed_s < 1 ? passed_s : 1);
	if (l->rate < RATE_LEAST) l->rate = RATE_LEAST;
	l->taken = 0;
	const double left = l->turn_ns < most_ns ? 1 - l->turn_ns / most_ns : 0, most = ACCEPT_LEAST * left;
	l->credit += l->rate * (1 + RATE_GROWTH * left) * passed_s;
	if (l->credit > ACCEPT_LEAST) l->credit = ACCEPT_LEAST;
	l->most = (int)(l->credit < most ? l->credit : most);
	if (l->most < 1 && l->credit >= 1) l->most = 1; /* whatever the others need, some get in */
	l->credit -= l->most;
	return left < 0.5 ? passed_ns / ACCEPT_REFUSING_PART : 0;
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

static void refuse_late(const struct acceptor *w, const struct listener *l, struct accepted *a, int fd) {
	count_one(COUNT_REFUSED_LATE);
	a->late++;
	refuse(w, l, a, fd, 503);
}

/* Takes one connection: keeps it, or refuses it; overload: if it has waited too long. */
static void take(struct acceptor *w, struct listener *l, struct accepted *a, bool overload) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	int fd = io_accept(w->context->loop, l->fd, (struct sockaddr *)&address, &length), status = 0;
	if (fd == -1) {
		a->error = errno;
		return;
	}
	struct peer peer = peer_of((struct sockaddr *)&address);
	bool proxied = peer_is_in(&peer, &w->context->options->proxies);
	if (proxied) peer = peer_unknown; /* until its header says whose the connection is */
	const bool late = has_waited_too_long(w, l, fd) && overload;
	if (late) {
		refuse_late(w, l, a, fd);
	} else if ((status = accept_refusal(w->context, &peer))) {
		refuse(w, l, a, fd, status);
	} else if (conn_new(w->context, fd, l->port, l->secure, proxied, &peer)) {
		a->fresh[a->count++] = fd;
	} else {
		a->error = ENOMEM;
	}
}

/* Reads from the new connections at once: most requests are there already, and then the event mechanism need not hear
 * of the connection at all. Those that have to wait for others come last, and only for FAIR_TURN_NS. Returns whether
 * that was time enough. */
static bool begin(struct conn_context *w, struct accepted *a) {
	int waiting = 0;
	bool all = true;
	for (int i = 0; i < a->count; i++) {
		struct conn *c = conn_of(w, a->fresh[i]);
		if (c && fair_waits(w->fair, conn_peer(c))) a->fresh[waiting++] = a->fresh[i];
		else if (c) fair_run(w->fair, conn_readable, w, c);
		shed_over_budget(w);
	}
	int64_t until_ns = waiting ? io_read_clock() + FAIR_TURN_NS : 0;
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

/* Refuses connections until that takes too long. */
static void refuse_rest(struct acceptor *w, struct listener *l, struct accepted *a, int64_t until_ns) {
	while (a->refused < ACCEPT_REFUSED_MAX && !a->error && io_read_clock() < until_ns) {
		const int fd = io_accept(w->context->loop, l->fd, NULL, NULL);
		if (fd == -1) {
			a->error = errno;
			return;
		}
		refuse_late(w, l, a, fd);
	}
}

/* Takes a batch. Returns false if there were no more. */
static bool accept_batch(struct acceptor *w, struct listener *l) {
	struct accepted a;
	a.count = a.error = 0;
	a.refused = a.late = 0;
	const bool overload = find_overload(w, l);
	int64_t refusing_ns = 0;
	set_queue(l, overload);
	if (overload) refusing_ns = ration(w, l);
	else if (l->queued && !w->last) adapt_batch(w, l);
	else l->most = ACCEPT_BATCH;
	if (w->context->connections >= w->context->connections_max &&
		!(has_waiting_client(l) && shed_connections(w->context, connections_to_close(w))))
		a.error = EMFILE;
	while (a.count < l->most && a.refused < ACCEPT_REFUSED_MAX &&
		   w->context->connections < w->context->connections_max && !a.error)
		take(w, l, &a, overload);
	l->taken += (unsigned)a.count;
	if (overload) refuse_rest(w, l, &a, io_read_clock() + refusing_ns);
	l->queued = !a.error;
	if (!l->queued) l->late_since_ms = 0;
	if (a.late) {
		l->overload_until_ms = io_now(w->context->loop) + ACCEPT_OVERLOAD_MS;
		report_overload(a.late);
	}
	limit_unsent(w);
	/* without descriptors or memory another try at once would fail, too */
	if (a.error && a.error != EAGAIN && !w->last) pause_accepting(w);
	l->behind = !begin(w->context, &a);
	/* here the descriptors that are missing are taken by files */
	if (a.error == EMFILE || a.error == ENFILE || w->context->connections > shed_from(w->context))
		(void)shed_connections(w->context, connections_to_close(w));
	if (w->context->connections >= w->context->connections_max && a.error) shed_say_full(w->context);
	return !a.error;
}

void accept_later(struct acceptor *w, struct listener *l) { w->ready[w->readies++] = l; }

void accept_all(struct acceptor *w) {
	for (unsigned i = 0; i < w->listeners; i++)
		if (io_now(w->context->loop) >= w->listener[i].overload_until_ms) set_queue(&w->listener[i], false);
	while (w->readies) (void)accept_batch(w, w->ready[--w->readies]);
}

void accept_last(struct acceptor *w) {
	w->last = true;
	for (unsigned i = 0; i < w->listeners; i++)
		for (int n = 0; n < ACCEPT_LAST && accept_batch(w, &w->listener[i]); n++) {}
	accept_stop(w);
}

void accept_stop(struct acceptor *w) {
	for (unsigned i = 0; i < w->listeners; i++) io_close(w->context->loop, w->listener[i].fd);
	w->listeners = w->readies = 0;
}
