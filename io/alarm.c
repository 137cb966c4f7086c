/* alarm.c - alarms in a binary heap, from place 1 on. To move one later, as each packet of a connection does, costs one
 * store: it stays filed under the earlier time, and is moved when it has come to the front. */
#include "io/alarm.h"

#include <errno.h>
#include <stdlib.h>

#include "io/internal.h"

enum { ROOM_MINIMUM = 64 };

/* No wait for an alarm is longer, so that mechanisms can count it in any unit. */
static const int64_t LIMIT_MAX_NS = (int64_t)3600 * IO_NS_PER_S;

static void put(io_loop *loop, unsigned place, struct io_filed f) {
	loop->alarm[place] = f;
	f.alarm->place = place;
}

/* Puts an alarm at a free place, or above it. Returns its place. */
static unsigned rise(io_loop *loop, unsigned place, struct io_filed f) {
	for (; place > 1 && loop->alarm[place / 2].at_ns > f.at_ns; place /= 2) put(loop, place, loop->alarm[place / 2]);
	put(loop, place, f);
	return place;
}

/* Puts an alarm at a free place, or below it. */
static void sink(io_loop *loop, unsigned place, struct io_filed f) {
	for (unsigned child; (child = 2 * place) <= loop->alarms; place = child) {
		if (child < loop->alarms && loop->alarm[child + 1].at_ns < loop->alarm[child].at_ns) child++;
		if (loop->alarm[child].at_ns >= f.at_ns) break;
		put(loop, place, loop->alarm[child]);
	}
	put(loop, place, f);
}

static bool make_room(io_loop *loop) {
	if (loop->alarms + 1 < loop->alarm_room) return true;
	const unsigned room = loop->alarm_room ? 2 * loop->alarm_room : ROOM_MINIMUM;
	struct io_filed *grown = realloc(loop->alarm, room * sizeof *grown);
	if (!grown) return false;
	loop->alarm = grown;
	loop->alarm_room = room;
	return true;
}

int io_alarm_set(io_loop *loop, struct io_alarm *a, int64_t deadline_ns) {
	if (!deadline_ns) {
		io_alarm_cancel(loop, a);
		return 0;
	}
	if (!a->place && !make_room(loop)) {
		errno = ENOMEM;
		return -1;
	}
	/* not in this turn: what sets it again and again would keep io_alarm_due() busy for ever */
	a->deadline_ns = deadline_ns > loop->now_ns ? deadline_ns : loop->now_ns + 1;
	if (a->place && loop->alarm[a->place].at_ns <= a->deadline_ns) return 0;
	const unsigned place = a->place ? a->place : ++loop->alarms;
	(void)rise(loop, place, (struct io_filed){.at_ns = a->deadline_ns, .alarm = a});
	return 0;
}

void io_alarm_cancel(io_loop *loop, struct io_alarm *a) {
	const unsigned place = a->place;
	if (!place) return;
	*a = (struct io_alarm){0};
	const struct io_filed last = loop->alarm[loop->alarms--];
	if (last.alarm != a && rise(loop, place, last) == place) sink(loop, place, last);
}

/* Returns the first alarm if it is filed under a time up to limit_ns, or NULL. Those that were moved later are filed
 * anew. */
static struct io_alarm *first(io_loop *loop, int64_t limit_ns) {
	while (loop->alarms && loop->alarm[1].at_ns <= limit_ns) {
		struct io_alarm *a = loop->alarm[1].alarm;
		if (a->deadline_ns == loop->alarm[1].at_ns) return a;
		sink(loop, 1, (struct io_filed){.at_ns = a->deadline_ns, .alarm = a});
	}
	return NULL;
}

struct io_alarm *io_alarm_due(io_loop *loop) {
	struct io_alarm *a = first(loop, loop->now_ns);
	if (a) io_alarm_cancel(loop, a);
	return a;
}

int64_t io_alarm_limit(io_loop *loop, int64_t timeout_ns) {
	const int64_t now_ns = io_read_clock();
	if (timeout_ns < 0 || timeout_ns > LIMIT_MAX_NS) timeout_ns = LIMIT_MAX_NS;
	const struct io_alarm *a = first(loop, now_ns + timeout_ns);
	if (!a) return timeout_ns;
	return a->deadline_ns > now_ns ? a->deadline_ns - now_ns : 0;
}
