/* min_rate.c - see min_rate.h. */
#include "gatling/load/min_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/load/walk.h"
#include "gatling/status/counters.h"

int min_rate_due(struct conn_context *w, int64_t now_ms) {
	struct rate_windows *m = &w->rate;
	const bool enough = w->connections <= (uint64_t)w->connections_max * MIN_RATE_FROM / 100;
	if (!w->options->min_rate || (enough && !cache_lacks_files(w->site.cache))) {
		if (!m->enough_ms) m->enough_ms = now_ms;
		return -1;
	}
	return m->next_walk_ms > now_ms ? (int)(m->next_walk_ms - now_ms) : 0;
}

/* Makes room for the windows of all connections of a kind. Returns false if memory runs out; then nothing is
 * enforced. */
static bool grow(struct rate_list *l, int bound) {
	if (bound <= l->count) return true;
	struct rate_window *grown = walk_grow(l->window, l->count, bound, sizeof *grown);
	if (!grown) return false;
	l->window = grown;
	l->count = bound;
	return true;
}

/* Returns whether the client was too slow in its window, if that is over now. Then begins the next window. */
static bool is_too_slow(const struct conn_context *w, struct rate_window *window, const struct walked *at) {
	const int64_t now_ms = io_now(w->loop), bytes = at->is->transferred(at->connection);
	bool measured = window->since_ms && bytes != -1;
	if (measured && now_ms - window->since_ms < MIN_RATE_WINDOW_MS) return false;
	bool slow = measured && (bytes - window->bytes) * 1000 < w->options->min_rate * (now_ms - window->since_ms);
	*window = (struct rate_window){.since_ms = bytes == -1 ? 0 : now_ms, .bytes = bytes};
	return slow;
}

static void report(struct conn_context *w) {
	static notice_time next;
	if (!notice_due(&next)) return;
	notice_line(LEVEL_NOTICE,
				"a worker that was short of connections (it has %u of %u) or of files that may be open has closed %lu "
				"that transferred less than %d bytes a second (--limit min-rate)",
				w->connections, w->connections_max, w->rate.closed, w->options->min_rate);
	w->rate.closed = 0;
}

void min_rate_enforce(struct conn_context *w) {
	struct rate_windows *m = &w->rate;
	const int64_t now_ms = io_now(w->loop);
	/* windows from before a pause in the shortage do not count: clients may have been idle since */
	const bool paused = m->enough_ms && now_ms - m->enough_ms > MIN_RATE_WALK_MS;
	for (int kind = 0; kind < CONN_KINDS; kind++) {
		struct rate_list *l = &m->of[kind];
		if (paused && l->count) memset(l->window, 0, (size_t)l->count * sizeof *l->window);
	}
	m->enough_ms = 0;
	m->next_walk_ms = now_ms + MIN_RATE_WALK_MS;
	for (struct walked at = {0}; walk_on(&at, w);) {
		struct rate_list *l = &m->of[at.kind];
		if (!grow(l, at.is->bound(w)) || !is_too_slow(w, &l->window[at.number], &at)) continue;
		(void)at.is->close(w, at.connection, CONN_CLOSE_SLOW);
		m->closed++;
		count_one(COUNT_CLOSED_SLOW);
	}
	if (m->closed) report(w);
}
