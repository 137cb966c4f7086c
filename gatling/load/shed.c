/* shed.c - see shed.h. A walk over all connections finds candidates. The SHED_CANDIDATES with the highest ranks are
 * kept for the next calls, and each is tested again before it is closed. */
#include "gatling/load/shed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/base/workspace.h"
#include "gatling/conn/budget.h"
#include "gatling/status/counters.h"

/* A rank consists of the state of the connection, the number of connections of its address, and its age in
 * milliseconds. */
enum { ADDRESS_SHIFT = 38, HEAD_SHIFT = 60 };

/* The same of one that takes memory: pages, and behind them its age, so that of two with as much the older one goes. */
enum { PAGE_SHIFT = 12, PAGES_SHIFT = 32 };

/* Returns the rank of a connection; 0: it stays open. */
typedef int64_t rank_fn(const struct conn_context *w, const struct shed *s, const struct walked *at);

static int64_t age_of(const struct conn_context *w, const struct walked *at) {
	const int64_t since_ms = at->is->since(at->connection);
	return since_ms ? io_now(w->loop) - since_ms : 0;
}

static int64_t rank_of(const struct conn_context *w, const struct shed *s, const struct walked *at) {
	const int64_t age = age_of(w, at), heavy = (int64_t)heavy_weight(&s->heavy, at->is->peer(at->connection));
	const int64_t rank = (heavy << ADDRESS_SHIFT) + age;
	if (s->descriptors && !at->is->has_descriptor) return 0;
	if (at->is->is_unfinished(at->connection))
		return age > SHED_HEAD_MS || heavy ? (INT64_C(1) << HEAD_SHIFT) + rank : 0;
	return (age > SHED_IDLE_MS || heavy) && at->is->is_idle(at->connection) ? rank : 0;
}

static int64_t one(const struct conn_context *w, const struct walked *at) {
	(void)w, (void)at;
	return 1;
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

static void find(const struct conn_context *w, struct shed *s, rank_fn *rank) {
	int64_t least = 0;
	s->first = s->count = 0;
	for (struct walked at = {0}; walk_on(&at, w);) {
		const int64_t found = rank(w, s, &at);
		if (found <= least) continue;
		s->candidate[s->count++] = (struct shed_candidate){
			.rank = found, .since_ms = at.is->since(at.connection), .kind = at.kind, .number = at.number};
		if (s->count == sizeof s->candidate / sizeof *s->candidate) least = keep_highest(s);
	}
	(void)keep_highest(s);
}

static bool is_heavy(const struct shed_candidate *c) {
	return c->rank >> ADDRESS_SHIFT & ((1 << (HEAD_SHIFT - ADDRESS_SHIFT)) - 1);
}

/* Leaves out idle connections that are not of heavy addresses, if there are any of these: when those are closed, others
 * of the same addresses may have come. */
static void keep_heavy(struct shed *s) {
	bool heavy = false;
	for (unsigned i = 0; i < s->count; i++) heavy |= is_heavy(&s->candidate[i]);
	while (heavy && s->candidate[s->count - 1].rank < INT64_C(1) << ADDRESS_SHIFT) s->count--;
}

/* Returns where a candidate is; its connection is NULL if it has ended. */
static struct walked place_of(const struct conn_context *w, const struct shed_candidate *found) {
	const struct conn_kind *is = w->kinds[found->kind];
	return (struct walked){
		.kind = found->kind, .number = found->number, .is = is, .connection = is->at(w, found->number)};
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
	const struct walked at = place_of(w, found);
	if (!at.connection || at.is->since(at.connection) != found->since_ms || !rank_of(w, w->shed, &at)) return false;
	const bool idle = !at.is->is_unfinished(at.connection);
	if (!at.is->close(w, at.connection, idle ? CONN_CLOSE_IDLE : CONN_CLOSE_UNFINISHED)) return false;
	count_one(idle ? COUNT_CLOSED_IDLE : COUNT_CLOSED_UNFINISHED);
	if (idle) w->shed->idle++;
	else w->shed->heads++;
	return true;
}

/* Returns whether an address that has all connections was heavy in the last walk, and that was not long ago. */
static bool still_alone(const struct conn_context *w) {
	return w->shed->alone && io_now(w->loop) < w->shed->walk_ms + SHED_ALONE_MS;
}

bool shed_refuses(struct conn_context *w, const struct peer *peer) {
	if ((w->shed->alone && !still_alone(w)) || !heavy_weight(&w->shed->heavy, peer)) return false;
	w->shed->refused++;
	count_one(COUNT_REFUSED_HEAVY);
	report(w->shed, w);
	return true;
}

unsigned shed_connections(struct conn_context *w, unsigned wanted, bool descriptors) {
	struct shed *s = w->shed;
	unsigned gone = 0;
	if (descriptors != s->descriptors) s->first = s->count;
	s->descriptors = descriptors;
	if (wanted > SHED_BATCH) wanted = SHED_BATCH;
	const bool still = still_alone(w);
	const bool alone = w->connections_max >= SHED_LAST_LEAST &&
					   w->connections > (uint64_t)w->connections_max * (still ? SHED_FROM : SHED_LAST) / 100;
	/* one that begins to be heavy could take the last places before the next walk */
	bool due = (alone && !still) || io_now(w->loop) >= s->walk_ms;
	if (alone && !still) s->first = s->count;
	while (gone < wanted) {
		if (s->first == s->count) {
			if (!due) break;
			due = false;
			s->alone = alone;
			heavy_find(&s->heavy, w, one, alone);
			find(w, s, rank_of);
			keep_heavy(s);
			s->walk_ms = io_now(w->loop) + SHED_WALK_MS;
			if (!s->count) break;
		}
		gone += close_candidate(w, &s->candidate[s->first++]);
	}
	if (gone) report(s, w);
	return gone;
}

/* --- memory --- */

static int64_t kept(const struct conn_context *w, const struct walked *at) {
	(void)w;
	return (int64_t)at->is->memory(at->connection).kept;
}

static int64_t all(const struct conn_context *w, const struct walked *at) {
	(void)w;
	return (int64_t)at->is->memory(at->connection).all;
}

static int64_t all_of_quic(const struct conn_context *w, const struct walked *at) {
	return at->kind == CONN_QUIC ? all(w, at) : 0;
}

static size_t taken_of(const struct conn_context *w, enum budget budget) {
	return budget == BUDGET_OF_CLIENTS ? w->memory : budget == BUDGET_OF_QUIC ? w->quic_memory : conn_context_memory(w);
}

static uint64_t most_of(const struct conn_context *w, enum budget budget) {
	return budget == BUDGET_OF_CLIENTS ? w->options->client_memory
		   : budget == BUDGET_OF_QUIC  ? w->memory_max / BUDGET_QUIC
									   : w->memory_max;
}

static walk_fn *const has_of[BUDGETS] = {
	[BUDGET_OF_CLIENTS] = kept, [BUDGET_OF_QUIC] = all_of_quic, [BUDGET_OF_ALL] = all};

/* Returns how much of what a connection has may be that of a young handshake. */
static int64_t of_handshake(const struct conn_context *w, const struct walked *at) {
	if (age_of(w, at) > SHED_HEAD_MS || !at->is->is_unfinished(at->connection)) return 0;
	const int64_t has = all(w, at);
	return has < SHED_HANDSHAKE ? has : SHED_HANDSHAKE;
}

/* Returns whether those who come are spared: what their handshakes take does not count, or they would be closed before
 * those who stay. But not if handshakes have taken half of the memory. */
static bool spares_handshakes(const struct conn_context *w, enum budget budget) {
	int64_t sum = 0;
	if (budget != BUDGET_OF_ALL) return false;
	for (struct walked at = {0}; walk_on(&at, w);) sum += of_handshake(w, &at);
	return (uint64_t)sum <= most_of(w, budget) / 2;
}

/* Those of heavy addresses come first. Connections of QUIC that wait for a request follow, the longest idle first: most
 * of what they take is of the library, whatever they do. */
static int64_t memory_rank(const struct conn_context *w, const struct shed *s, const struct walked *at) {
	const int64_t has = has_of[s->budget](w, at), counts = has - (s->spares ? of_handshake(w, at) : 0);
	const int64_t heavy = (int64_t)heavy_weight(&s->heavy, at->is->peer(at->connection));
	if (heavy) return has ? (INT64_C(1) << (HEAD_SHIFT + 1)) + heavy + has : 0;
	const bool idle = s->budget == BUDGET_OF_QUIC && has && age_of(w, at) > SHED_IDLE_MS;
	if (idle && at->is->is_idle(at->connection)) return (INT64_C(1) << HEAD_SHIFT) + age_of(w, at);
	return has ? ((1 + (counts >> PAGE_SHIFT)) << PAGES_SHIFT) + age_of(w, at) : 0;
}

static bool exceeds(const struct conn_context *w, enum budget budget) {
	return taken_of(w, budget) > most_of(w, budget);
}

/* Returns whether 1/BUDGET_RELIEF of a budget is free. */
static bool has_relief(const struct conn_context *w, enum budget budget) {
	const uint64_t most = most_of(w, budget);
	return taken_of(w, budget) <= most - most / BUDGET_RELIEF;
}

static void report_memory(const struct conn_context *w, enum budget budget, unsigned gone) {
	static const char *const taken[BUDGETS] = {[BUDGET_OF_CLIENTS] = "kept for the clients of",
											   [BUDGET_OF_QUIC] = "taken by the QUIC connections of",
											   [BUDGET_OF_ALL] = "taken by the connections of"};
	static notice_time next;
	if (!notice_due(&next)) return;
	notice_line(LEVEL_WARNING,
				"more than %" PRIu64 " bytes were %s a worker: closed the %u dearest (%s sets the limit)",
				most_of(w, budget), taken[budget], gone,
				budget == BUDGET_OF_CLIENTS ? "--limit client-memory" : "--limit memory");
}

__attribute__((cold)) static void shed_memory(struct conn_context *w, enum budget budget) {
	struct shed *const s = WORKSPACE(sizeof *s);
	unsigned gone = 0;
	s->budget = budget;
	while (!has_relief(w, budget)) {
		s->spares = spares_handshakes(w, budget);
		heavy_find(&s->heavy, w, has_of[budget], false);
		find(w, s, memory_rank);
		if (!s->count) break;
		for (unsigned i = 0; i < s->count && !has_relief(w, budget); i++, gone++) {
			const struct walked at = place_of(w, &s->candidate[i]);
			(void)at.is->close(w, at.connection, CONN_CLOSE_DEAR);
		}
	}
	report_memory(w, budget, gone);
}

void shed_over_budget(struct conn_context *w) {
	size_t taken = conn_context_memory(w);
	if (w->memory > w->options->client_memory) shed_memory(w, BUDGET_OF_CLIENTS);
	if (taken > w->memory_max) shed_memory(w, BUDGET_OF_ALL);
	if (taken > w->memory_peak) w->memory_peak = taken;
}

void shed_over_quic_budget(struct conn_context *w) {
	if (exceeds(w, BUDGET_OF_QUIC)) shed_memory(w, BUDGET_OF_QUIC);
	shed_over_budget(w);
}
