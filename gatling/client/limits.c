/* limits.c - see limits.h. */
#include "gatling/client/limits.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/base/notice.h"
#include "gatling/status/counters.h"

int limits_open(struct limits *l, const struct limits_options *o) {
	*l = (struct limits){.options = *o};
	if (!o->address_connections && !o->address_requests && !o->address_rate.burst && !o->rate.burst) return 0;
	l->table.sets = LIMITS_ADDRESSES / ADDRESS_WAYS;
	l->table.set = calloc(l->table.sets, sizeof *l->table.set);
	return l->table.set ? 0 : -1;
}

void limits_close(struct limits *l) { free(l->table.set); }

enum { EVERYBODY = 1 }; /* the only entry of its table */

enum limit {
	LIMIT_NONE,
	LIMIT_RATE,
	LIMIT_ADDRESS_RATE,
	LIMIT_ADDRESS_REQUESTS,
	LIMIT_ADDRESS_CONNECTIONS,
	LIMIT_PATH_RATE,
	LIMITS
};

/* Logs how many requests or connections were refused over a limit since the last line about it. site: the path of its
 * directory, for LIMIT_PATH_RATE. */
static void report(enum limit limit, const struct peer *peer, struct slice site) {
	static const struct {
		const char *option, *refused;
	} names[LIMITS] = {
		[LIMIT_RATE] = {"--limit rate", "requests"},
		[LIMIT_ADDRESS_RATE] = {"--limit address-rate", "requests"},
		[LIMIT_ADDRESS_REQUESTS] = {"--limit address-requests", "requests"},
		[LIMIT_ADDRESS_CONNECTIONS] = {"--limit address-connections", "connections"},
		[LIMIT_PATH_RATE] = {"an address-rate of ", "requests"},
	};
	static struct {
		notice_time next;
		atomic_uint refused;
	} reports[LIMITS];
	atomic_fetch_add(&reports[limit].refused, 1);
	if (!notice_due(&reports[limit].next)) return;
	char address[PEER_MAX];
	const size_t length = peer_format(address, peer);
	notice_line(LEVEL_NOTICE, "%s refused over %s%.*s%s: %u, the last from %.*s", names[limit].refused,
				names[limit].option, (int)site.length, site.at ? site.at : "",
				limit == LIMIT_PATH_RATE ? "_limits" : "", atomic_exchange(&reports[limit].refused, 0), (int)length,
				address);
}

bool limits_take_connection(struct limits *l, const struct peer *peer) {
	if (!l || !l->options.address_connections || peer_is_unix(peer)) return true;
	bool may = address_hold(&l->table, peer_network(peer), ADDRESS_CONNECTIONS, l->options.address_connections);
	if (!may) {
		count_one(COUNT_REFUSED_LIMIT);
		report(LIMIT_ADDRESS_CONNECTIONS, peer, (struct slice){0});
	}
	return may;
}

void limits_return_connection(struct limits *l, const struct peer *peer) {
	if (l && l->options.address_connections && !peer_is_unix(peer))
		address_release(&l->table, peer_network(peer), ADDRESS_CONNECTIONS, 1);
}

/* Returns the limit that the request exceeds, or LIMIT_NONE. */
static enum limit take_request(struct limits *l, const struct peer *peer, int64_t now_ns) {
	const struct limits_options *o = &l->options;
	uint64_t network = peer_network(peer);
	bool local = peer_is_unix(peer);
	if (!local && o->address_rate.burst && !address_take(&l->table, network, o->address_rate, now_ns))
		return LIMIT_ADDRESS_RATE;
	if (!local && o->address_requests && !address_hold(&l->table, network, ADDRESS_REQUESTS, o->address_requests))
		return LIMIT_ADDRESS_REQUESTS;
	struct address_table all = {.set = l->all, .sets = 1};
	if (!o->rate.burst || address_take(&all, EVERYBODY, o->rate, now_ns)) return LIMIT_NONE;
	limits_return_requests(l, peer, 1);
	return LIMIT_RATE;
}

int limits_take_request(struct limits *l, const struct peer *peer, int64_t now_ns) {
	const enum limit over = l ? take_request(l, peer, now_ns) : LIMIT_NONE;
	if (!over) return 0;
	count_one(COUNT_LIMITED);
	report(over, peer, (struct slice){0});
	return over == LIMIT_RATE ? 503 : 429;
}

bool limits_take_of_rate(const struct peer *peer, uint64_t rate_of, struct address_rate rate, int64_t now_ns,
						 struct slice site) {
	static struct address_entry entries[LIMITS_RATED / ADDRESS_WAYS][ADDRESS_WAYS];
	struct address_table table = {.set = entries, .sets = LIMITS_RATED / ADDRESS_WAYS};
	const uint64_t network = peer_network(peer);
	const struct slice octets = {.at = (const char *)&network, .length = sizeof network};
	if (peer_is_unix(peer) || address_take(&table, slice_hash(rate_of, octets), rate, now_ns)) return true;
	count_one(COUNT_LIMITED);
	report(LIMIT_PATH_RATE, peer, site);
	return false;
}

void limits_return_requests(struct limits *l, const struct peer *peer, unsigned count) {
	if (l && l->options.address_requests && !peer_is_unix(peer))
		address_release(&l->table, peer_network(peer), ADDRESS_REQUESTS, count);
}
