/* fair.c - see fair.h. */
#include "gatling/conn/fair.h"

#include <time.h>

/* Of this thread alone: other processes may interrupt it. */
static uint64_t thread_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void forget_half(struct fair *f) {
	for (unsigned i = f->taken.count; i-- > 0;) {
		f->taken.address[i].weight /= 2;
		if (!f->taken.address[i].weight) f->taken.address[i] = f->taken.address[--f->taken.count];
	}
	f->all_ns /= 2;
	f->samples /= 2;
}

static void count(struct fair *f, uint64_t network, uint64_t ns) {
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
	uint64_t network = peer_network(conn_peer(c)), begun_ns = thread_ns();
	run(w, c);
	if (!network) return; /* a unix socket: a proxy, for many */
	count(f, network, thread_ns() - begun_ns);
	find_waiting(f);
}
