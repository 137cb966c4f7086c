/* origin.c - see origin.h. */
#include "gatling/status/origin.h"

#include "gatling/base/peer.h"
#include "gatling/http/host.h"

void status_names_add(struct status_names *names, const char *name) {
	const struct slice text = slice_of(name);
	if (names->count < STATUS_NAMES_MAX && host_valid(text)) names->name[names->count++] = text;
}

/* Returns whether a name is that of an authority, whose name is given in lower case, without its port. */
static bool is_named(struct slice authority, struct slice name) {
	char room[HOST_MAX];
	return slice_equal((struct slice){.at = room, .length = host_name(authority, room)}, name);
}

static bool knows(const struct status_names *names, struct slice authority) {
	char room[HOST_MAX];
	struct slice name = {.at = room, .length = host_name(authority, room)};
	struct peer address;
	if (name.length && name.at[0] == '[') return true; /* host_valid() accepts nothing else in brackets */
	if (slice_equal(name, SLICE("localhost")) || peer_parse(name, &address)) return true;
	for (unsigned i = 0; i < names->count; i++)
		if (is_named(names->name[i], name)) return true;
	return false;
}

enum status_permission status_permission(const struct status_names *names, const struct request *q) {
	const bool without = q->minor == 0 && !request_has(q, FIELD_HOST) && !q->host.at;
	if (!names->any && !without && !(q->host.length && knows(names, q->host))) return STATUS_MISDIRECTED;
	return request_of_this_origin(q) ? STATUS_ADMITTED : STATUS_CROSS_SITE;
}
