/* exchange_relay.c - see exchange.h. */
#include <stdlib.h>

#include "gatling/exchange/exchange.h"

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
	const struct upstream_response *head = passage_head(x->passage, &lines);
	const bool tunnel = head->status == 101, interim = head->status < 200 && !tunnel;
	x->begun = true;
	x->tunnel = tunnel;
	const int status = x->carrier->head(x->carried, head, lines);
	if (!interim) x->status = (uint16_t)status;
	if (tunnel) slim(x);
	passage_take_head(x->passage);
	return status;
}

static bool give_piece(struct exchange *x, struct slice piece) {
	bool kept = false;
	x->bytes += piece.length;
	const bool ok = x->carrier->content(x->carried, piece, &kept);
	x->holds_piece = kept;
	if (!kept) passage_take(x->passage);
	return ok;
}

enum exchange_relayed exchange_relay(struct exchange *x) {
	bool ok = true;
	while (ok && !x->holds_piece && x->carrier->unsent(x->carried) < x->carrier->enough) {
		const enum passage_state state = passage_state(x->passage);
		if (state <= PASSAGE_WAITS) break;
		if (state == PASSAGE_HEAD) {
			ok = give_head(x);
		} else if (state <= PASSAGE_TUNNEL) {
			const struct slice piece = passage_content(x->passage);
			if (piece.length) ok = give_piece(x, piece);
			else if (passage_state(x->passage) == state) break;
		} else if (state == PASSAGE_ENDED && !x->ended) {
			x->ended = true;
			ok = x->carrier->end(x->carried, passage_trailers(x->passage));
		} else if (x->carrier->unsent(x->carried)) {
			break; /* that is sent first */
		} else {
			return state == PASSAGE_ENDED ? RELAY_DONE : x->status ? RELAY_BROKEN : RELAY_FAILED;
		}
	}
	return ok ? RELAY_WAITS : RELAY_BROKEN;
}

void exchange_taken(struct exchange *x) {
	if (x->holds_piece) passage_take(x->passage);
	x->holds_piece = false;
}

bool exchange_put(struct exchange *x, size_t n, const struct slice *trailers) {
	x->begun = true;
	if (trailers) passage_put_end(x->passage, *trailers);
	if (x->come + n < PASSAGE_CONTENT_LEAST && !trailers) {
		x->come += (uint16_t)n;
		return false;
	}
	x->come = 0;
	return true;
}
