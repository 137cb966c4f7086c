/* limits.c - see limits.h. */
#include "gatling/client/limits.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/notice.h"
#include "gatling/status/counters.h"

/* No IPv6 network (RFC 4291: multicast) sends from it: the entry for all clients. */
#define EVERYBODY UINT64_MAX

int limits_open(struct limits *l, const struct limits_options *o) {
	*l = (struct limits){.options = *o};
	if (!o->address_connections && !o->address_requests && !o->address_rate.burst && !o->rate.burst) return 0;
	l->table.sets = LIMITS_ADDRESSES / ADDRESS_WAYS;
	l->table.set = calloc(l->table.sets, sizeof *l->table.set);
	return l->table.set ? 0 : -1;
}

void limits_close(struct limits *l) { free(l->table.set); }

/* Tells the owner how many were refused since the last line. */
static void report(unsigned requests, unsigned connections) {
	static notice_time next;
	static atomic_uint refused_requests, refused_connections;
	atomic_fetch_add(&refused_requests, requests);
	atomic_fetch_add(&refused_connections, connections);
	if (!notice_due(&next)) return;
	requests = atomic_exchange(&refused_requests, 0);
	connections = atomic_exchange(&refused_connections, 0);
	notice_line(LEVEL_NOTICE,
				"over a limit, refused requests: %u, connections: %u (--rate, --address-rate, --address-requests, "
				"--address-connections)",
				requests, connections);
}

bool limits_take_connection(struct limits *l, const struct peer *peer) {
	if (!l || !l->options.address_connections || peer_is_local(peer)) return true;
	bool may = address_hold(&l->table, peer_network(peer), ADDRESS_CONNECTIONS, l->options.address_connections);
	if (!may) {
		count_one(COUNT_REFUSED_LIMIT);
		report(0, 1);
	}
	return may;
}

void limits_return_connection(struct limits *l, const struct peer *peer) {
	if (l && l->options.address_connections && !peer_is_local(peer))
		address_release(&l->table, peer_network(peer), ADDRESS_CONNECTIONS, 1);
}

static int take_request(struct limits *l, const struct peer *peer, int64_t now_ns) {
	const struct limits_options *o = &l->options;
	uint64_t network = peer_network(peer);
	bool local = peer_is_local(peer);
	if (!local && o->address_rate.burst && !address_take(&l->table, network, o->address_rate, now_ns)) return 429;
	if (!local && o->address_requests && !address_hold(&l->table, network, ADDRESS_REQUESTS, o->address_requests))
		return 429;
	if (!o->rate.burst || address_take(&l->table, EVERYBODY, o->rate, now_ns)) return 0;
	limits_return_requests(l, peer, 1);
	return 503;
}

int limits_take_request(struct limits *l, const struct peer *peer, int64_t now_ns) {
	int status = l ? take_request(l, peer, now_ns) : 0;
	if (status) {
		count_one(COUNT_LIMITED);
		report(1, 0);
	}
	return status;
}

void limits_return_requests(struct limits *l, const struct peer *peer, unsigned count) {
	if (l && l->options.address_requests && !peer_is_local(peer))
		address_release(&l->table, peer_network(peer), ADDRESS_REQUESTS, count);
}
