/* fair.c - see fair.h. */
#include "gatling/conn/fair.h"

/* A call that another process interrupted seems long: it counts as FAIR_LONGER usual ones at most. The clock of the
 * thread alone would know better, but takes a system call. */
enum { FAIR_LONGER = 32 };

/* What becomes nothing leaves the table when that is full. */
static void forget_half(struct fair *f) {
	for (unsigned i = 0; i < f->taken.count; i++) f->taken.address[i].weight /= 2;
	f->all_ns /= 2;
	f->samples /= 2;
}

static void count(struct fair *f, uint64_t network, uint64_t ns) {
	uint64_t most = f->samples ? f->all_ns / f->samples * FAIR_LONGER : ns;
	if (ns > most) ns = most;
	heavy_add(&f->taken, network, ns);
	f->all_ns += ns;
	if (++f->samples == 2 * FAIR_SAMPLES) forget_half(f);
}

static void find_waiting(struct fair *f) {
	f->waiting = 0;
	if (f->samples < FAIR_SAMPLES_MIN) return;
	for (unsigned i = 0; i < f->taken.count; i++)
		if (f->taken.address[i].weight > f->all_ns / FAIR_PART) f->waits[f->waiting++] = f->taken.address[i].network;
}

void fair_measure(struct fair *f, fair_fn *run, struct conn_context *w, struct conn *c) {
	uint64_t begun_ns = (uint64_t)io_read_clock();
	w->served = peer_network(conn_peer(c)); /* which a PROXY header changes */
	run(w, c);
	const uint64_t network = w->served;
	if (!network) return; /* a unix socket: a proxy, for many */
	count(f, network, (uint64_t)io_read_clock() - begun_ns);
	find_waiting(f);
}
