/* queue.c - see endpoint.h: datagrams that wait, in the order in which they came. */
#include <stdlib.h>

#include "gatling/quic/endpoint.h"

static size_t size_of(const struct quic_waiting *w) { return sizeof *w + w->datagram.length; }

bool quic_queue_add(struct quic_queue *q, const struct quic_datagram *d, int64_t now_ms) {
	const ngtcp2_addr *local = &d->path.local, *remote = &d->path.remote;
	struct quic_waiting *w = q->bytes < QUIC_QUEUE ? malloc(sizeof *w + d->length) : NULL;
	if (!w) return false;
	*w = (struct quic_waiting){.datagram = *d, .since_ms = now_ms};
	ngtcp2_path_storage_init(&w->path, local->addr, local->addrlen, remote->addr, remote->addrlen, NULL);
	w->datagram.path = w->path.path;
	w->datagram.bytes = memcpy(w->bytes, d->bytes, d->length);
	*(q->last ? &q->last->next : &q->first) = w;
	q->last = w;
	q->bytes += size_of(w);
	return true;
}

bool quic_queue_drop(struct quic_queue *q) {
	struct quic_waiting *w = q->first;
	if (!w) return false;
	q->bytes -= size_of(w);
	q->first = w->next;
	if (!q->first) q->last = NULL;
	free(w);
	return true;
}

void quic_queue_clear(struct quic_queue *q) {
	while (quic_queue_drop(q)) {}
}
