/* timer.c - deadlines of descriptors in a hashed timing wheel (Varghese and Lauck, 1987, scheme 6). Setting, moving and
 * cancelling are O(1). To move a deadline later, as each request on a busy connection does, costs one store: the entry
 * stays in its slot, and is moved when that slot comes up. */
#include <time.h>

#include "io/internal.h"

enum { TIMED_OUT = IO_SLOT_TIMED_OUT - 1 }; /* index of the list of io_timedout() */
enum { TICK_NS = IO_TICK_MS * IO_NS_PER_MS };

int64_t io_read_clock(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * IO_NS_PER_S + t.tv_nsec;
}

void io_timer_init(io_loop *loop) {
	loop->tick = loop->now_ns / TICK_NS;
	loop->next_tick = INT64_MAX;
	for (int i = 0; i <= IO_WHEEL_SLOTS; i++) loop->slot[i] = -1;
}

/* Returns the first tick at which the deadline has passed. */
static int64_t tick_of(int64_t deadline_ms) { return (deadline_ms + IO_TICK_MS - 1) / IO_TICK_MS; }

static void link_entry(io_loop *loop, int fd, int slot) {
	struct io_entry *e = &loop->entry[fd];
	e->timer_slot = (uint16_t)(slot + 1);
	e->timer_prev = -1;
	e->timer_next = loop->slot[slot];
	if (e->timer_next != -1) loop->entry[e->timer_next].timer_prev = fd;
	loop->slot[slot] = fd;
	if (slot < IO_WHEEL_SLOTS) loop->slots_used[slot / 64] |= UINT64_C(1) << slot % 64;
}

static void unlink_entry(io_loop *loop, int fd) {
	struct io_entry *e = &loop->entry[fd];
	int slot = e->timer_slot - 1;
	if (e->timer_next != -1) loop->entry[e->timer_next].timer_prev = e->timer_prev;
	if (e->timer_prev != -1) loop->entry[e->timer_prev].timer_next = e->timer_next;
	else loop->slot[slot] = e->timer_next;
	if (slot < IO_WHEEL_SLOTS && loop->slot[slot] == -1) loop->slots_used[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	e->timer_slot = IO_SLOT_NONE;
}

static void schedule(io_loop *loop, int fd, int64_t tick) {
	int64_t horizon = loop->tick + IO_WHEEL_SLOTS - 1;
	if (tick <= loop->tick) tick = loop->tick + 1;
	if (tick > horizon) tick = horizon;
	if (tick < loop->next_tick) loop->next_tick = tick;
	link_entry(loop, fd, (int)(tick % IO_WHEEL_SLOTS));
}

/* Returns the tick at which the slot of the entry comes up. */
static int64_t tick_linked(const io_loop *loop, const struct io_entry *e) {
	int64_t ahead = (e->timer_slot - 1 - loop->tick) % IO_WHEEL_SLOTS;
	if (ahead <= 0) ahead += IO_WHEEL_SLOTS;
	return loop->tick + ahead;
}

void io_timeout(io_loop *loop, int fd, int64_t deadline_ms) {
	struct io_entry *e = &loop->entry[fd];
	e->deadline_ms = deadline_ms;
	if (e->timer_slot == IO_SLOT_TIMED_OUT && deadline_ms && tick_of(deadline_ms) <= loop->tick) return;
	if (e->timer_slot != IO_SLOT_NONE && e->timer_slot != IO_SLOT_TIMED_OUT &&
		(deadline_ms == 0 || tick_linked(loop, e) <= tick_of(deadline_ms)))
		return;
	if (e->timer_slot != IO_SLOT_NONE) unlink_entry(loop, fd);
	if (deadline_ms) schedule(loop, fd, tick_of(deadline_ms));
}

int64_t io_deadline(const io_loop *loop, int fd) { return loop->entry[fd].deadline_ms; }

void io_timer_cancel(io_loop *loop, int fd) {
	struct io_entry *e = &loop->entry[fd];
	e->deadline_ms = 0;
	if (e->timer_slot != IO_SLOT_NONE) unlink_entry(loop, fd);
}

void io_timer_advance(io_loop *loop) {
	int64_t now = loop->now_ns / TICK_NS;
	/* after a long pause, one round of the wheel is enough */
	if (now - loop->tick > IO_WHEEL_SLOTS) loop->tick = now - IO_WHEEL_SLOTS;
	while (loop->tick < now) {
		int slot = (int)(++loop->tick % IO_WHEEL_SLOTS);
		for (int fd = loop->slot[slot], next; fd != -1; fd = next) {
			struct io_entry *e = &loop->entry[fd];
			next = e->timer_next;
			unlink_entry(loop, fd);
			if (!e->deadline_ms) continue;
			if (tick_of(e->deadline_ms) <= now) link_entry(loop, fd, TIMED_OUT);
			else schedule(loop, fd, tick_of(e->deadline_ms));
		}
	}
}

int io_timedout(io_loop *loop) {
	int fd = loop->slot[TIMED_OUT];
	if (fd == -1) return -1;
	unlink_entry(loop, fd);
	loop->entry[fd].deadline_ms = 0;
	return fd;
}

/* Returns how many slots lie between a slot and the next one in use, or -1 if none is. 0: it is in use itself. */
static int slots_to_next(const io_loop *loop, unsigned slot) {
	const uint64_t from = UINT64_MAX << slot % 64;
	for (unsigned i = 0; i <= IO_WHEEL_WORDS; i++) { /* the first word twice: also for the slots before this one */
		unsigned word = (slot / 64 + i) % IO_WHEEL_WORDS;
		uint64_t used = loop->slots_used[word] & (i == 0 ? from : i == IO_WHEEL_WORDS ? ~from : UINT64_MAX);
		if (used) return (int)((word * 64 + (unsigned)__builtin_ctzll(used) - slot) % IO_WHEEL_SLOTS);
	}
	return -1;
}

/* Returns whether next_tick is right: that of a slot in use, or INT64_MAX if there is none. */
static bool next_is_known(const io_loop *loop) {
	if (loop->next_tick == INT64_MAX) return true;
	return loop->next_tick > loop->tick && loop->slot[loop->next_tick % IO_WHEEL_SLOTS] != -1;
}

int64_t io_timer_limit(io_loop *loop) {
	if (loop->slot[TIMED_OUT] != -1) return 0;
	if (!next_is_known(loop)) {
		int slots = slots_to_next(loop, (unsigned)((loop->tick + 1) % IO_WHEEL_SLOTS));
		loop->next_tick = slots == -1 ? INT64_MAX : loop->tick + 1 + slots;
	}
	if (loop->next_tick == INT64_MAX) return -1;
	int64_t wait_ms = loop->next_tick * IO_TICK_MS - loop->now_ns / IO_NS_PER_MS;
	return wait_ms < 0 ? 0 : wait_ms * IO_NS_PER_MS;
}
