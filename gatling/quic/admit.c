/* admit.c - see endpoint.h: when clients begin a connection. A handshake takes about a millisecond. So they come after
 * those that have one, and under overload only those begin that have hardly waited: the others try again a second later
 * (RFC 9002, section 6.2.2), or use TCP. This is "controlled delay" (B. Maurer, Fail at Scale, ACM Queue 13(8), 2015),
 * but overload does not end when the queue is empty for a moment, as it is whenever those that have waited are dropped.
 */
#include <stdatomic.h>

#include "gatling/base/notice.h"
#include "gatling/quic/endpoint.h"
#include "gatling/status/counters.h"

/* Leaves packets without an answer, as there is overload. */
static void refuse(struct quic *e, unsigned refused) {
	static notice_time next;
	static atomic_uint untold;
	if (!refused) return;
	e->overload_until_ms = io_now(e->context->loop) + QUIC_OVERLOAD_MS;
	count_n(COUNT_REFUSED_OVERLOAD, refused);
	atomic_fetch_add(&untold, refused);
	if (notice_due(&next))
		notice_line(LEVEL_WARNING,
					"overload: left %u first packets of HTTP/3 without an answer, as more come than can be served",
					atomic_exchange(&untold, 0));
}

bool quic_is_overloaded(const struct quic *e) { return io_now(e->context->loop) < e->overload_until_ms; }

/* While others have waited since before this turn, the socket is read to its end: connections that there are should not
 * wait behind those who begin. */
void quic_begin_later(struct quic *e, const struct quic_datagram *d) {
	const int64_t now_ms = io_now(e->context->loop);
	if (d->length < QUIC_INITIAL_MIN || !(d->bytes[0] & QUIC_LONG_HEADER)) return;
	refuse(e, !quic_queue_add(&e->beginning, d, now_ms));
	e->reads_on |= e->beginning.first && e->beginning.first->since_ms < now_ms;
}

/* Begins a connection, unless an earlier packet of the client has done so. late: begins none. Returns false if the
 * packet was dropped for that. */
static bool begin(struct quic *e, const struct quic_datagram *d, bool late) {
	struct quic_connection *c = quic_connection_for(e, d);
	if (!c && e->handed_over) {
		quic_take_datagram(e, d); /* which passes it on */
		return true;
	}
	if (!c && late) return false;
	if (!c) c = quic_begin(e, d);
	if (c) quic_take_counted(c, d);
	return true;
}

void quic_begin_waiting(struct quic *e) {
	const struct quic_queue *q = &e->beginning;
	const int64_t now_ms = io_now(e->context->loop);
	int64_t since_ms = now_ms - (quic_is_overloaded(e) ? QUIC_WAIT_MS : QUIC_BURST_MS);
	if (since_ms > e->last_turn_ms) since_ms = e->last_turn_ms; /* nobody is late after one turn, however long */
	const int64_t until_ns = q->first ? io_read_clock() + QUIC_BEGIN_NS : 0;
	unsigned refused = 0;
	for (bool more = q->first; more; more = quic_queue_drop(&e->beginning) && q->first && io_read_clock() < until_ns)
		refused += !begin(e, &q->first->datagram, q->first->since_ms < since_ms);
	e->last_turn_ms = now_ms;
	refuse(e, refused);
}
