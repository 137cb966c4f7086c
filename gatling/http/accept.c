/* accept.c - see accept.h. */
#include "gatling/http/accept.h"

/* Parses a qvalue into thousandths. */
static unsigned parse_qvalue(struct slice s) {
	unsigned weight = 0, unit = ACCEPT_WEIGHT_MAX;
	if (!s.length || (s.at[0] != '0' && s.at[0] != '1') || (s.length > 1 && s.at[1] != '.') || s.length > 5)
		return ACCEPT_WEIGHT_MAX;
	weight = (unsigned)(s.at[0] - '0') * ACCEPT_WEIGHT_MAX;
	for (size_t i = 2; i < s.length; i++) {
		if (!text_is_digit(s.at[i])) return ACCEPT_WEIGHT_MAX;
		unit /= 10;
		weight += (unsigned)(s.at[i] - '0') * unit;
	}
	return weight < ACCEPT_WEIGHT_MAX ? weight : ACCEPT_WEIGHT_MAX;
}

unsigned accept_take_weight(struct slice *element, bool *others) {
	unsigned weight = ACCEPT_WEIGHT_MAX;
	const size_t length = slice_until(*element, ';');
	struct slice rest = slice_rest(*element, length);
	*element = slice_trim(slice_first(*element, length));
	*others = false;
	while (rest.length) {
		slice_drop(&rest, 1);
		const size_t next = slice_until(rest, ';');
		const struct slice parameter = slice_trim(slice_first(rest, next));
		if (slice_starts_nocase(parameter, SLICE("q="))) weight = parse_qvalue(slice_rest(parameter, 2));
		else *others |= parameter.length > 0;
		slice_drop(&rest, next);
	}
	return weight;
}

/* How specific a range that a type is in is; OUTSIDE: it is in none. */
enum precedence { OUTSIDE, ANY_TYPE, ANY_SUBTYPE, NAMED };

static enum precedence precedence_of(struct slice range, struct slice type) {
	if (slice_equal_nocase(range, type)) return NAMED;
	if (slice_equal(range, SLICE("*/*"))) return ANY_TYPE;
	const size_t subtype = slice_until(type, '/') + 1;
	const bool alike = range.length == subtype + 1 && slice_starts_nocase(range, slice_first(type, subtype));
	return alike && range.at[subtype] == '*' ? ANY_SUBTYPE : OUTSIDE;
}

struct accept accept_of(const struct request *request, struct slice type) {
	struct slice lines = request->lines, list;
	struct accept accept = {.weight = ACCEPT_WEIGHT_MAX};
	enum precedence best = OUTSIDE;
	for (bool first = true; request_next_value(&lines, SLICE("accept"), &list); first = false) {
		if (first) accept.weight = 0;
		for (struct slice range; slice_next_element(&list, &range);) {
			bool others;
			const unsigned weight = accept_take_weight(&range, &others);
			const enum precedence precedence = others ? OUTSIDE : precedence_of(range, type);
			if (precedence == OUTSIDE || precedence < best) continue;
			best = precedence;
			accept.weight = weight;
		}
	}
	accept.named = best == NAMED;
	return accept;
}
