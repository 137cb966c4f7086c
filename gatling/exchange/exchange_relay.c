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

/* Both give something to the carrier, and add to *given how many bytes that was. Return false if it cannot go on. */
static bool give_head(struct exchange *x, size_t *given) {
	struct slice lines;
	const struct upstream_response *head = proxied_head(x->proxied, &lines);
	const bool tunnel = head->status == 101, interim = head->status < 200 && !tunnel;
	const bool known = !interim || x->request->minor; /* HTTP/1.0 has no interim responses */
	x->begun = true;
	x->tunnel = tunnel;
	if (x->added && !interim && !tunnel) {
		char *const all = WORKSPACE(OWNER_FIELDS_MAX);
		lines = (struct slice){.at = all, .length = owner_fields_apply(head->status, lines, slice_of(x->added), all)};
	}
	const int status = known ? x->carrier->head(x->carried, head, lines) : head->status;
	if (known) *given += 1 + lines.length;
	if (!interim) x->status = (uint16_t)status;
	if (tunnel) slim(x);
	proxied_take_head(x->proxied);
	return status;
}

static bool give_piece(struct exchange *x, struct slice piece, size_t *given) {
	bool kept = false;
	x->bytes += piece.length;
	*given += piece.length;
	const bool ok = x->carrier->content(x->carried, piece, &kept);
	x->holds_piece = kept;
	if (!kept) proxied_take(x->proxied);
	return ok;
}

/* Gives the owner's hints to the carrier, before anything that the upstream says. */
static bool give_hints(struct exchange *x, size_t *given) {
	static const struct upstream_response early = {.status = 103, .reason = SLICE("Early Hints")};
	const struct slice lines = slice_of(x->hints);
	const bool ok = x->carrier->head(x->carried, &early, lines);
	*given += 1 + lines.length;
	free(x->hints);
	x->hints = NULL;
	return ok;
}

/* Gives the end to the carrier. Returns what exchange_relay() does. */
static enum exchange_relayed give_end(struct exchange *x, bool given) {
	if (!x->ended && !x->carrier->end(x->carried, proxied_trailers(x->proxied), &given)) return RELAY_BROKEN;
	x->ended = true;
	return given ? RELAY_WAITS : RELAY_DONE; /* that is sent first */
}

enum exchange_relayed exchange_relay(struct exchange *x) {
	struct slice piece;
	size_t given = 0;
	if (x->hints && !give_hints(x, &given)) return RELAY_BROKEN;
	while (!x->holds_piece && given < x->carrier->enough) {
		const enum proxied_state state = proxied_next(x->proxied, &piece);
		if (state <= PROXIED_WAITS) break;
		if (state == PROXIED_ENDED) return give_end(x, given);
		if (state == PROXIED_FAILED) return given ? RELAY_WAITS : x->status ? RELAY_BROKEN : RELAY_FAILED;
		if (!(state == PROXIED_HEAD ? give_head(x, &given) : give_piece(x, piece, &given))) return RELAY_BROKEN;
	}
	return RELAY_WAITS;
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
