/* gate.c - see gate.h. */
#include "gatling/gate.h"

#include <limits.h>

void gate_count(struct gate *g) {
	pthread_mutex_lock(&g->mutex);
	g->counts = false;
	pthread_mutex_unlock(&g->mutex);
}

/* Ends a time in which a socket listened. */
static void note(struct gate *g, int64_t now_ns) {
	if (g->counts) {
		g->sum += g->came;
		g->listened_s += (double)(now_ns - g->turned_ns) / 1e9;
	}
	if (g->listened_s > GATE_FORGETS_MS / 1e3) {
		g->sum /= 2;
		g->listened_s /= 2;
	}
	g->counts = true;
	g->came = 0;
	g->turned_ns = now_ns;
}

void gate_shut(struct gate *g, unsigned came, int64_t now_ns) {
	pthread_mutex_lock(&g->mutex);
	g->came += came;
	if (--g->listening == 0) note(g, now_ns);
	pthread_mutex_unlock(&g->mutex);
}

unsigned gate_open(struct gate *g, int64_t now_ns) {
	double refused = 0;
	pthread_mutex_lock(&g->mutex);
	if (g->listening++ == 0) {
		if (g->listened_s > 0) refused = g->sum / g->listened_s * (double)(now_ns - g->turned_ns) / 1e9;
		g->turned_ns = now_ns;
	}
	pthread_mutex_unlock(&g->mutex);
	return refused < INT_MAX ? (unsigned)refused : INT_MAX;
}
