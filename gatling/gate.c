/* gate.c - see gate.h. */
#include "gatling/gate.h"

#include <limits.h>

void gate_count(struct gate *g) {
	pthread_mutex_lock(&g->mutex);
	g->counts = false;
	pthread_mutex_unlock(&g->mutex);
}

/* Returns the seconds since the address last began or stopped listening, and notes that it does so now. now_ns may be
 * earlier than that, if another worker was faster. */
static double turn(struct gate *g, int64_t now_ns) {
	const int64_t passed_ns = now_ns > g->turned_ns ? now_ns - g->turned_ns : 0;
	g->turned_ns += passed_ns;
	return (double)passed_ns / 1e9;
}

/* Adds a period of listening to the sums, if all of its connections were counted. */
static void note(struct gate *g, double listened_s) {
	if (g->counts) {
		g->sum += g->came;
		g->listened_s += listened_s;
	}
	if (g->listened_s > GATE_FORGETS_MS / 1e3) {
		g->sum /= 2;
		g->listened_s /= 2;
	}
	g->counts = true;
	g->came = 0;
}

void gate_shut(struct gate *g, unsigned came, int64_t now_ns) {
	pthread_mutex_lock(&g->mutex);
	g->came += came;
	if (--g->listening == 0) note(g, turn(g, now_ns));
	pthread_mutex_unlock(&g->mutex);
}

unsigned gate_open(struct gate *g, int64_t now_ns) {
	double refused = 0;
	pthread_mutex_lock(&g->mutex);
	if (g->listening++ == 0) {
		const double shut_s = turn(g, now_ns);
		if (g->listened_s > 0) refused = g->sum / g->listened_s * shut_s;
	}
	pthread_mutex_unlock(&g->mutex);
	return refused < INT_MAX ? (unsigned)refused : INT_MAX;
}
