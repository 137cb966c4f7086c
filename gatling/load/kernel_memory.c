/* kernel_memory.c - see kernel_memory.h. */
#include "gatling/load/kernel_memory.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/load/walk.h"
#include "gatling/status/counters.h"

/* The delay of a client is the binary logarithm of the seconds that it needs, plus one; 0: less than one second, or
 * that is not known yet. */
enum { DELAYS = 32, DELAY_LEAST = 3 };

int kernel_memory_due(const struct conn_context *w, int64_t now_ms) {
	const struct kernel_windows *k = &w->kernel;
	if (!k->most || w->connections < KERNEL_MEMORY_LEAST || (w->sent == k->sent && !k->window)) return -1;
	return k->next_walk_ms > now_ms ? (int)(k->next_walk_ms - now_ms) : 0;
}

/* Goes to the next connection of TCP, which is the first kind. */
static bool walk_on_tcp(struct walked *at, const struct conn_context *w) {
	return walk_on(at, w) && at->kind == CONN_TCP;
}

/* Makes room for the windows of all connections. Returns false if memory runs out. */
static bool grow(struct kernel_windows *k, int bound) {
	if (bound <= k->count) return true;
	struct kernel_window *grown = walk_grow(k->window, k->count, bound, sizeof *grown);
	if (!grown) return false;
	k->window = grown;
	k->count = bound;
	return true;
}

/* Returns the delay of a client that has taken so many bytes in a time, and has still to take those that are held. */
static unsigned delay_of(uint64_t held, uint64_t taken, int64_t ms) {
	uint64_t seconds = held * (uint64_t)ms / 1000 / (taken + 1);
	unsigned delay = 0;
	for (; seconds && delay < DELAYS - 1; seconds /= 2) delay++;
	return delay;
}

/* Measures a connection, and begins a window when the last one is over. A client that has taken everything is measured
 * anew: it is not slow while there is nothing to take. */
static void measure(struct kernel_window *window, const struct walked *at, uint64_t held, uint64_t unsent,
					int64_t now_ms) {
	const int64_t bytes = at->is->carried(at->connection);
	if (!unsent || bytes < window->bytes) *window = (struct kernel_window){0};
	window->held = held;
	if (!unsent) return;
	const int64_t ms = window->since_ms ? now_ms - window->since_ms : 0;
	if (ms >= KERNEL_MEMORY_KNOWN_MS) window->delay = delay_of(unsent, (uint64_t)(bytes - window->bytes), ms);
	if (ms && ms < KERNEL_MEMORY_WINDOW_MS) return;
	window->since_ms = now_ms;
	window->bytes = bytes;
}

/* Measures all connections, if they have windows. Returns what the kernel holds for them. */
static uint64_t walk(const struct conn_context *w) {
	uint64_t all = 0, unsent;
	for (struct walked at = {0}; walk_on_tcp(&at, w);) {
		const uint64_t held = at.is->in_kernel(at.connection, &unsent);
		if (w->kernel.window) measure(&w->kernel.window[at.number], &at, held, unsent, io_now(w->loop));
		all += held;
	}
	return all;
}

static void forget_all(struct kernel_windows *k) {
	free(k->window);
	k->window = NULL;
	k->count = 0;
}

static void report(struct kernel_windows *k) {
	static notice_time next;
	if (!notice_due(&next)) return;
	notice_line(LEVEL_WARNING,
				"the kernel held more than %" PRIu64 " bytes for the connections of a worker: closed the %lu slowest "
				"(sysctl net.ipv4.tcp_mem sets how much it has)",
				k->most, k->closed);
	k->closed = 0;
}

/* Closes the clients with the longest delays until there is relief. */
static void relieve(struct conn_context *w, uint64_t held) {
	struct kernel_windows *k = &w->kernel;
	const uint64_t enough = k->most - k->most / KERNEL_MEMORY_RELIEF;
	for (unsigned delay = DELAYS - 1; delay >= DELAY_LEAST; delay--) {
		for (struct walked at = {0}; held > enough && walk_on_tcp(&at, w);) {
			const struct kernel_window *window = &k->window[at.number];
			if (window->delay != delay) continue;
			held -= window->held < held ? window->held : held;
			(void)at.is->close(w, at.connection, CONN_CLOSE_SLOW);
			k->closed++;
			count_one(COUNT_CLOSED_SLOW);
		}
	}
	if (k->closed) report(k);
}

void kernel_memory_enforce(struct conn_context *w) {
	struct kernel_windows *k = &w->kernel;
	const int64_t now_ms = io_now(w->loop);
	const int bound = w->kinds[CONN_TCP]->bound(w);
	const bool paused = now_ms > k->next_walk_ms + KERNEL_MEMORY_WALK_MS; /* clients may have been idle since */
	if (paused || (k->window && !grow(k, bound))) forget_all(k);
	const uint64_t held = walk(w);
	k->next_walk_ms = now_ms + (held < k->most / 4 ? KERNEL_MEMORY_REST_MS : KERNEL_MEMORY_WALK_MS);
	k->sent = w->sent;
	if (held <= k->most / 2) forget_all(k);
	else if (!k->window && grow(k, bound)) (void)walk(w); /* their windows begin */
	else if (k->window && held > k->most) relieve(w, held);
}
