/* fair.c - see fair.h. */
#include "gatling/load/fair.h"

#include <string.h>

_Static_assert(HEAVY_COUNTERS <= 2 * FAIR_PART, "there is room for all that are counted");

/* A call that another process has interrupted seems long, so it counts as at most FAIR_LONGER average calls. The clock
 * of the thread would be exact, but takes a system call. */
enum { FAIR_LONGER = 32 };

/* Halves everything. Addresses that have nothing left leave the table when it is full. */
static void forget_half(struct fair *f) {
	for (unsigned i = 0; i < f->taken.count; i++) f->taken.address[i].weight /= 2;
	f->all_ns /= 2;
	f->samples /= 2;
}

bool fair_has(const struct fair *f, uint64_t network) {
	for (unsigned i = 0; i < f->waiting; i++)
		if (f->waits[i] == network) return true;
	return false;
}

static void find_waiting(struct fair *f) {
	uint64_t waits[2 * FAIR_PART];
	unsigned waiting = 0;
	for (unsigned i = 0; f->samples >= FAIR_SAMPLES_MIN && i < f->taken.count; i++) {
		const uint64_t network = f->taken.address[i].network;
		const unsigned part = fair_has(f, network) ? 2 * FAIR_PART : FAIR_PART;
		if (f->taken.address[i].weight > f->all_ns / part) waits[waiting++] = network;
	}
	memcpy(f->waits, waits, waiting * sizeof *waits);
	if (waiting && !f->waiting) f->others_ms = io_read_clock() / 1000000; /* nobody has waited until now */
	f->waiting = waiting;
}

void fair_count(struct fair *f, uint64_t network, uint64_t ns) {
	uint64_t most = f->samples ? f->all_ns / f->samples * FAIR_LONGER : ns;
	if (ns > most) ns = most;
	heavy_add(&f->taken, network, ns);
	f->all_ns += ns;
	if (++f->samples == 2 * FAIR_SAMPLES) forget_half(f);
	find_waiting(f);
}

/* Counts what has been done for an address since begun_ns. That of a unix socket is a proxy's, with many clients. */
static void count_since(struct fair *f, uint64_t network, int64_t begun_ns) {
	if (network) fair_count(f, network, (uint64_t)(io_read_clock() - begun_ns));
}

void fair_measure(struct fair *f, fair_fn *run, struct conn_context *w, struct conn *c) {
	const int64_t begun_ns = io_read_clock();
	w->served = peer_network(conn_peer(c)); /* which a PROXY header changes */
	run(w, c);
	count_since(f, w->served, begun_ns);
}

/* --- QUIC --- */

static bool waits(const struct conn_context *w, const struct peer *client) {
	const int64_t now_ms = io_now(w->loop);
	return fair_waits(w->fair, client, now_ms) && !fair_is_alone(w->fair, now_ms);
}

static int64_t turn_ns(const struct conn_context *w) { return fair_turn_ns(w->fair, io_now(w->loop)); }

static int64_t begun(const struct conn_context *w) { return fair_samples(w->fair) ? io_read_clock() : 0; }

static void ended(const struct conn_context *w, const struct peer *client, int64_t begun_ns) {
	count_since(w->fair, peer_network(client), begun_ns);
}

const struct conn_turns fair_turns = {.waits = waits, .turn_ns = turn_ns, .begun = begun, .ended = ended};
