/* schedule.c - see schedule.h. Random numbers: xoshiro256**, seeded by splitmix64 (Blackman and Vigna, 2018). */
#include "bench/httpbench/load/schedule.h"

#include <math.h>

static const double never_ns = 1e18; /* 32 years */

static uint64_t splitmix(uint64_t *state) {
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* Returns a number in (0, 1]. */
static double uniform(uint64_t *r) {
	uint64_t result = rotate(r[1] * 5, 7) * 9, t = r[1] << 17;
	r[2] ^= r[0];
	r[3] ^= r[1];
	r[1] ^= r[2];
	r[0] ^= r[3];
	r[2] ^= t;
	r[3] = rotate(r[3], 45);
	return (double)((result >> 11) + 1) * 0x1p-53;
}

/* Goes on by so many requests. A changing rate changes how fast this clock runs (Çinlar, "Introduction to Stochastic
 * Processes", 1975, 4.7). */
static void advance(struct schedule *s, double requests) {
	s->next += requests;
	if (s->plan->stages.count) s->next_ns = 1e9 * stages_when(&s->plan->stages, s->next * s->plan->clients);
	else s->next_ns = s->next * s->interval_ns;
}

static double pause(struct schedule *s) { return -log(uniform(s->due_random)); }

void schedule_start(struct schedule *s, const struct plan *plan, unsigned number, int64_t started_ns) {
	uint64_t seed = plan->seed, state = splitmix(&seed) + ((uint64_t)plan->rank << 32) + number;
	s->plan = plan;
	for (int i = 0; i < 4; i++) s->due_random[i] = splitmix(&state);
	for (int i = 0; i < 4; i++) s->target_random[i] = splitmix(&state);
	s->interval_ns = plan->rate > 0 ? 1e9 * plan->clients / plan->rate : 0;
	s->started_ns = started_ns;
	/* the requests of all clients alternate, and so do those of all ranks */
	s->next = 0;
	advance(s,
			plan->arrival == ARRIVAL_CONSTANT ? (number + (double)plan->rank / plan->ranks) / plan->clients : pause(s));
}

int64_t schedule_due(const struct schedule *s) {
	return s->started_ns + llround(s->next_ns < never_ns ? s->next_ns : never_ns);
}

void schedule_advance(struct schedule *s) { advance(s, s->plan->arrival == ARRIVAL_CONSTANT ? 1 : pause(s)); }

unsigned schedule_target(struct schedule *s) {
	if (s->plan->targets == 1) return 0;
	double at = uniform(s->target_random);
	unsigned low = 0, high = s->plan->targets - 1;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (s->plan->share[middle] < at) low = middle + 1;
		else high = middle;
	}
	return low;
}

unsigned schedule_fields(struct schedule *s) {
	return s->plan->heads ? (unsigned)ceil(uniform(s->target_random) * s->plan->heads) - 1 : 0;
}
