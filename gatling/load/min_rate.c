/* min_rate.c - see min_rate.h. */
#include "gatling/load/min_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/conn.h"
#include "gatling/conn/rate_window.h"

int min_rate_due(struct conn_context *w, int64_t now_ms) {
	struct rate_windows *m = &w->rate;
	const bool enough = w->connections <= (uint64_t)w->connections_max * MIN_RATE_FROM / 100;
	if (!w->options->min_rate || (enough && !cache_lacks_files(w->site.cache))) {
		if (!m->enough_ms) m->enough_ms = now_ms;
		return -1;
	}
	return m->next_walk_ms > now_ms ? (int)(m->next_walk_ms - now_ms) : 0;
}

/* Makes room for the windows of all descriptors. Returns false if memory runs out; then nothing is enforced. */
static bool grow(struct rate_windows *m, int bound) {
	if (bound <= m->count) return true;
	struct rate_window *grown = realloc(m->window, (size_t)bound * sizeof *grown);
	if (!grown) return false;
	memset(grown + m->count, 0, (size_t)(bound - m->count) * sizeof *grown);
	m->window = grown;
	m->count = bound;
	return true;
}

/* Returns whether the client was too slow in its window, if that is over now. Then begins the next window. */
static bool is_too_slow(const struct conn_context *w, struct rate_window *window, const struct conn *c, int fd) {
	int64_t now_ms = io_now(w->loop), bytes = conn_waits_for_client(c) ? platform_transferred(fd) : -1;
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
	int bound = io_fd_bound(w->loop);
	/* windows from before a pause in the shortage do not count: clients may have been idle since */
	if (m->count && m->enough_ms && now_ms - m->enough_ms > MIN_RATE_WALK_MS)
		memset(m->window, 0, (size_t)m->count * sizeof *m->window);
	m->enough_ms = 0;
	m->next_walk_ms = now_ms + MIN_RATE_WALK_MS;
	if (!grow(m, bound)) return;
	for (int fd = 0; fd < bound; fd++) {
		struct conn *c = conn_of(w, fd);
		if (!c || !is_too_slow(w, &m->window[fd], c, fd)) continue;
		conn_reset(w, c);
		m->closed++;
		count_one(COUNT_CLOSED_SLOW);
	}
	if (m->closed) report(w);
}
