/* forwarded.c - see forwarded.h. Lists are parsed from their end, so that what a client has put at the front, such as a
 * quote that is not closed, does not change what its proxy has added. */
#include "gatling/client/forwarded.h"

#include "gatling/base/slice.h"

/* Returns whether the quote at index `at` is part of a quoted string: an odd number of backslashes is before it. */
static bool is_escaped(struct slice s, size_t at) {
	size_t backslashes = 0;
	while (backslashes < at && s.at[at - 1 - backslashes] == '\\') backslashes++;
	return backslashes % 2;
}

/* Takes the last element off the list, and trims it. quoted: it may have quoted strings, with commas in them. */
static struct slice take_last(struct slice *list, bool quoted) {
	size_t start = list->length;
	for (bool inside = false; start && (inside || list->at[start - 1] != ','); start--)
		if (quoted && list->at[start - 1] == '"' && !is_escaped(*list, start - 1)) inside = !inside;
	struct slice element = slice_trim(slice_rest(*list, start));
	list->length = start ? start - 1 : 0;
	return element;
}

/* Takes the next pair off the front of a forwarded-element. */
static struct slice take_pair(struct slice *element) {
	size_t length = 0;
	for (bool inside = false; length < element->length && (inside || element->at[length] != ';'); length++)
		if (element->at[length] == '"' && !is_escaped(*element, length)) inside = !inside;
	struct slice pair = slice_trim(slice_first(*element, length));
	slice_drop(element, length < element->length ? length + 1 : length);
	return pair;
}

/* Returns the value of a parameter, whose name ends with '=', in a forwarded-element (RFC 7239, section 4) without
 * quotes, or an absent slice. */
static struct slice value_of(struct slice element, struct slice name) {
	while (element.length) {
		struct slice pair = take_pair(&element);
		if (!slice_starts_nocase(pair, name)) continue;
		slice_drop(&pair, name.length);
		bool quoted = pair.length >= 2 && pair.at[0] == '"' && pair.at[pair.length - 1] == '"';
		return quoted ? slice_first(slice_rest(pair, 1), pair.length - 2) : pair;
	}
	return (struct slice){0};
}

/* Parses an address, perhaps with a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. */
static bool parse_node(struct slice node, struct peer *peer) {
	if (!node.length) return false;
	size_t colon = slice_until(node, ':'), bracket = slice_until(node, ']');
	struct slice rest = {.at = "", .length = 0};
	if (node.at[0] == '[') {
		if (bracket == node.length) return false;
		rest = slice_rest(node, bracket + 1);
		node = slice_first(slice_rest(node, 1), bracket - 1);
	} else if (colon < node.length && slice_until(slice_rest(node, colon + 1), ':') == node.length - colon - 1) {
		rest = slice_rest(node, colon);
		node = slice_first(node, colon);
	}
	/* all zero would stand for a unix socket */
	return (!rest.length || rest.at[0] == ':') && peer_parse(node, peer) && !peer_is_unix(peer);
}

bool forwarded_client(const struct trusted_proxies *t, enum forwarding by, const struct request *q,
					  struct peer *client) {
	const bool forwarded = by == FORWARDING_FORWARDED;
	const enum field_name name = forwarded ? FIELD_FORWARDED : FIELD_X_FORWARDED_FOR;
	/* a proxy that writes the other field has passed this one on as it came */
	const struct peer_nets *writers = forwarded ? &t->forwarded : &t->x_forwarded_for;
	unsigned hops = 0;
	if (!request_has(q, name)) return false;
	for (unsigned i = q->fields; i-- > 0;) {
		if (q->field[i].name != name) continue;
		for (struct slice list = q->field[i].value; list.length;) {
			struct slice element = take_last(&list, forwarded);
			struct peer peer;
			if (!parse_node(forwarded ? value_of(element, SLICE("for=")) : element, &peer)) return hops > 0;
			*client = peer;
			if (++hops == FORWARDED_HOPS_MAX || !peer_is_in(client, writers)) return true;
		}
	}
	return hops > 0;
}

bool forwarded_over_https(enum forwarding by, const struct request *q) {
	struct slice said = {0};
	if (by == FORWARDING_X_FORWARDED_FOR) said = request_field(q, FIELD_X_FORWARDED_PROTO);
	for (unsigned i = q->fields; by == FORWARDING_FORWARDED && !said.at && i-- > 0;) {
		struct slice list = q->field[i].value;
		if (q->field[i].name == FIELD_FORWARDED) said = value_of(take_last(&list, true), SLICE("proto="));
	}
	return said.at && slice_equal_nocase(said, SLICE("https"));
}
