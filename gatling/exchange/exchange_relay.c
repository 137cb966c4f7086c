/* exchange_relay.c - see exchange.h. */
#include <stdlib.h>

#include "gatling/base/workspace.h"
#include "gatling/exchange/exchange.h"
#include "gatling/exchange/owner_fields.h"

bool exchange_waits_for_100(const struct exchange *x) { return x->request->expect_continue && !x->begun; }

/* Frees all of the request but the part that is logged, for a tunnel that has begun: there may be thousands of them,
 * for hours. */
static void slim(struct exchange *x) {
	size_t size;
	struct request *logged = request_keep_logged(x->request, &size);
	if (!logged) return;
	free((struct request *)(uintptr_t)x->request);
	x->request = logged;
	x->copied = (uint32_t)size;
}

static bool give_head(struct exchange *x) {
	struct slice lines;
	const struct upstream_response *head = proxied_head(x->proxied, &lines);
	const bool tunnel = head->status == 101, interim = head->status < 200 && !tunnel;
	x->begun = true;
	x->tunnel = tunnel;
	if (x->added && !interim && !tunnel) {
		char *const all = WORKSPACE(OWNER_FIELDS_MAX);
		lines = (struct slice){.at = all, .length = owner_fields_apply(head->status, lines, slice_of(x->added), all)};
	}
	const int status = x->carrier->head(x->carried, head, lines);
	if (!interim) x->status = (uint16_t)status;
	if (tunnel) slim(x);
	proxied_take_head(x->proxied);
	return status;
}

static bool give_piece(struct exchange *x, struct slice piece) {
	bool kept = false;
	x->bytes += piece.length;
	const bool ok = x->carrier->content(x->carried, piece, &kept);
	x->holds_piece = kept;
	if (!kept) proxied_take(x->proxied);
	return ok;
}

enum exchange_relayed exchange_relay(struct exchange *x) {
	bool ok = true;
	size_t unsent;
	while (ok && !x->holds_piece && (unsent = x->carrier->unsent(x->carried)) < x->carrier->enough) {
		const enum proxied_state state = proxied_state(x->proxied);
		if (state <= PROXIED_WAITS) break;
		if (state == PROXIED_HEAD) {
			ok = give_head(x);
		} else if (state <= PROXIED_TUNNEL) {
			const struct slice piece = proxied_content(x->proxied);
			if (piece.length) ok = give_piece(x, piece);
			else if (proxied_state(x->proxied) == state) break;
		} else if (state == PROXIED_ENDED && !x->ended) {
			x->ended = true;
			ok = x->carrier->end(x->carried, proxied_trailers(x->proxied));
		} else if (unsent) {
			break; /* that is sent first */
		} else {
			return state == PROXIED_ENDED ? RELAY_DONE : x->status ? RELAY_BROKEN : RELAY_FAILED;
		}
	}
	return ok ? RELAY_WAITS : RELAY_BROKEN;
}

size_t exchange_room(const void *owner) {
	const struct exchange *x = owner;
	return x->carrier->room(x->carried);
}

void exchange_taken(struct exchange *x) {
	if (x->holds_piece) proxied_take(x->proxied);
	x->holds_piece = false;
}

bool exchange_put(struct exchange *x, size_t n, const struct slice *trailers) {
	x->begun = true;
	if (trailers) proxied_put_end(x->proxied, *trailers);
	if (x->come + n < PROXIED_CONTENT_LEAST && !trailers) {
		x->come += (uint16_t)n;
		return false;
	}
	x->come = 0;
	return true;
}
