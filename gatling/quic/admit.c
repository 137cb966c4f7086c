/* admit.c - see endpoint.h: when clients begin a connection. A handshake takes about a millisecond. So they come after
 * those that have one, and under overload only those begin that have hardly waited: the others try again a second later
 * (RFC 9002, section 6.2.2), or use TCP. How long they may wait is decided as by "controlled delay" (B. Maurer, Fail at
 * Scale, ACM Queue 13(8), 2015). */
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

void quic_begin_later(struct quic *e, const struct quic_datagram *d) {
	refuse(e, !quic_queue_add(&e->beginning, d, io_now(e->context->loop)));
	e->reads_on = true;
}

/* Begins a connection, unless an earlier packet of the client has done so; late: only in that case the packet is of use
 * to the client. Returns whether it was. */
static bool begin(struct quic *e, const struct quic_datagram *d, bool late) {
	struct quic_connection *c = quic_connection_for(e, d);
	if (!c && late) return false;
	if (!c && e->handed_over) {
		quic_take_datagram(e, d); /* which passes it on */
		return true;
	}
	if (!c) c = quic_begin(e, d);
	if (c) quic_take_counted(c, d);
	return true;
}

void quic_begin_waiting(struct quic *e) {
	const struct quic_queue *q = &e->beginning;
	const int64_t now_ms = io_now(e->context->loop);
	const int64_t since_ms = now_ms - (now_ms < e->overload_until_ms ? QUIC_WAIT_MS : QUIC_BURST_MS);
	const int64_t until_ns = q->first ? io_read_clock() + QUIC_BEGIN_NS : 0;
	unsigned refused = 0;
	for (bool more = q->first; more; more = quic_queue_drop(&e->beginning) && q->first && io_read_clock() < until_ns)
		refused += !begin(e, &q->first->datagram, q->first->since_ms < since_ms);
	refuse(e, refused);
}
