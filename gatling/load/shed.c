/* shed.c - see shed.h. A walk over all connections finds candidates. The SHED_CANDIDATES with the highest ranks are
 * kept for the next calls, and each is tested again before it is closed. */
#include "gatling/load/shed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/base/workspace.h"
#include "gatling/conn/budget.h"
#include "gatling/conn/conn.h"

/* A rank consists of the state of the connection, the number of connections of its address, and its age in
 * milliseconds. */
enum { ADDRESS_SHIFT = 38, HEAD_SHIFT = 60 };

/* Returns the rank of a connection; 0: it stays open. */
static int64_t rank_of(const struct conn_context *w, const struct conn *c) {
	int64_t age = conn_since(c) ? io_now(w->loop) - conn_since(c) : 0;
	int64_t heavy = (int64_t)heavy_weight(&w->shed->heavy, conn_peer(c)), rank = (heavy << ADDRESS_SHIFT) + age;
	if (conn_is_unfinished(c)) return age > SHED_HEAD_MS || heavy ? (INT64_C(1) << HEAD_SHIFT) + rank : 0;
	if (age <= SHED_IDLE_MS && !heavy) return 0;
	return conn_is_idle(c) && conn_can_close_idle(c) ? rank : 0;
}

static int64_t memory_of(const struct conn_context *w, const struct conn *c) {
	(void)w;
	return (int64_t)conn_memory(c);
}

/* --- the highest ranks of a walk --- */

static int highest_first(const void *a, const void *b) {
	const struct shed_candidate *x = a, *y = b;
	return x->rank > y->rank ? -1 : x->rank < y->rank;
}

/* Sorts the candidates, keeps SHED_CANDIDATES of them, and returns the rank that further ones have to exceed. */
static int64_t keep_highest(struct shed *s) {
	qsort(s->candidate, s->count, sizeof *s->candidate, highest_first);
	if (s->count < SHED_CANDIDATES) return 0;
	s->count = SHED_CANDIDATES;
	return s->candidate[SHED_CANDIDATES - 1].rank;
}

static void walk(const struct conn_context *w, struct shed *s,
				 int64_t (*rank)(const struct conn_context *w, const struct conn *c)) {
	int64_t least = 0;
	s->first = s->count = 0;
	for (int fd = 0; fd < io_fd_bound(w->loop); fd++) {
		const struct conn *c = conn_of(w, fd);
		int64_t found = c ? rank(w, c) : 0;
		if (found <= least) continue;
		s->candidate[s->count++] = (struct shed_candidate){.rank = found, .since_ms = conn_since(c), .fd = fd};
		if (s->count == sizeof s->candidate / sizeof *s->candidate) least = keep_highest(s);
	}
	(void)keep_highest(s);
}

/* --- room for others --- */

static const char *remedy(const struct conn_context *w) {
	return w->limited ? "--limit connections sets how many there may be"
					  : "more descriptors (ulimit -n) or workers (-j) make room for more";
}

static void report(struct shed *s, const struct conn_context *w) {
	static notice_time next;
	if (!notice_due(&next)) return;
	notice_line(LEVEL_WARNING,
				"a worker has %u of %u connections, has closed %lu with an unfinished request or handshake and "
				"%lu idle ones, and refused %lu of addresses with many; %s",
				w->connections, w->connections_max, s->heads, s->idle, s->refused, remedy(w));
	s->heads = s->idle = s->refused = 0;
}

void shed_say_full(struct conn_context *w) {
	static notice_time next;
	if (!notice_due(&next)) return;
	notice_line(LEVEL_WARNING, "a worker has no connection left, of %u, and none is idle: new ones wait; %s",
				w->connections_max, remedy(w));
}

/* Closes a candidate, unless something has happened on it since the walk, or it has a request, which is answered now.
 * Returns whether it was closed. */
static bool close_candidate(struct conn_context *w, const struct shed_candidate *found) {
	struct conn *c = conn_of(w, found->fd);
	if (!c || conn_since(c) != found->since_ms || !rank_of(w, c)) return false;
	bool idle = conn_is_idle(c);
	if (idle && !conn_close_idle(w, c)) return false;
	if (!idle) conn_close(w, c);
	count_one(idle ? COUNT_CLOSED_IDLE : COUNT_CLOSED_UNFINISHED);
	if (idle) w->shed->idle++;
	else w->shed->heads++;
	return true;
}

bool shed_refuses(struct conn_context *w, const struct peer *peer) {
	if (!heavy_weight(&w->shed->heavy, peer)) return false;
	w->shed->refused++;
	count_one(COUNT_REFUSED_HEAVY);
	report(w->shed, w);
	return true;
}

unsigned shed_connections(struct conn_context *w, unsigned wanted) {
	struct shed *s = w->shed;
	unsigned gone = 0;
	if (wanted > SHED_BATCH) wanted = SHED_BATCH;
	while (gone < wanted) {
		if (s->first == s->count) {
			if (io_now(w->loop) < s->walk_ms) break;
			heavy_find(&s->heavy, w);
			walk(w, s, rank_of);
			s->walk_ms = io_now(w->loop) + SHED_WALK_MS;
			if (!s->count) break;
		}
		gone += close_candidate(w, &s->candidate[s->first++]);
	}
	if (gone) report(s, w);
	return gone;
}

/* --- memory --- */

/* Returns whether more is taken than a budget allows, of which 1/BUDGET_RELIEF has to be free. */
static bool exceeds(size_t taken, uint64_t most) { return taken > most - most / BUDGET_RELIEF; }

__attribute__((cold)) static void shed_memory(struct conn_context *w) {
	struct shed *const s = WORKSPACE(sizeof *s);
	static notice_time next;
	const bool of_clients = w->memory > w->options->client_memory;
	unsigned gone = 0;
	for (bool over = true; over;) {
		walk(w, s, memory_of);
		if (!s->count) break;
		for (unsigned i = 0; i < s->count && over; i++, gone++) {
			conn_close_over_budget(w, conn_of(w, s->candidate[i].fd));
			over = exceeds(w->memory, w->options->client_memory) || exceeds(conn_context_memory(w), w->memory_max);
		}
	}
	if (notice_due(&next))
		notice_line(LEVEL_WARNING,
					"more than %" PRIu64 " bytes were %s a worker: closed the %u dearest (%s sets the limit)",
					of_clients ? w->options->client_memory : w->memory_max,
					of_clients ? "kept for the clients of" : "taken by the connections of", gone,
					of_clients ? "--limit client-memory" : "--limit memory");
}

void shed_over_budget(struct conn_context *w) {
	size_t taken = conn_context_memory(w);
	if (w->memory > w->options->client_memory || taken > w->memory_max) shed_memory(w);
	if (taken > w->memory_peak) w->memory_peak = taken;
}
