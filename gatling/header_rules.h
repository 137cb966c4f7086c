/* header_rules.h - the file _headers: which fields the owner of a site wants responses for which paths to have.
 *
 * A line that does not begin with a blank is a pattern (pattern.h, PATTERN_EXACT); the lines below it that do are its
 * fields, "Name: value", or "! Name", which takes away what was said about that name so far, here and by the server
 * itself. Empty lines, and lines whose first character but blanks is '#', are passed over. All patterns that match
 * count, in the order of the file. What is said of one name more than once is joined with ", " (RFC 9110, section 5.3),
 * but for Set-Cookie, which is sent as often as it is said. Values are sent as they are written: a placeholder of the
 * pattern in a value is refused. So are the fields that the server alone can know: Content-Length, Date, ETag, ... */
#ifndef GATLING_HEADER_RULES_H
#define GATLING_HEADER_RULES_H

#include <stdint.h>

#include "gatling/rules.h"

enum {
	HEADER_FIELDS_MAX = 8192,               /* fields of a file */
	HEADER_SETS_MAX = 1024,                 /* sets that are kept for a file, and */
	HEADER_SETS_BYTES_MAX = 4 * 1024 * 1024 /* the memory they take */
};

struct header_item {
	struct slice name, value; /* the name as it is written first */
	bool detach;              /* no value: the response has no such field, whatever the server would say */
};

/* What one response gets, each name once, but for Set-Cookie. A value stands instead of the server's own.
 *
 * The same rules give the same set each time, so that what is made of it can be kept by its id. There are more ways for
 * rules to match together than memory to keep their sets; when HEADER_SETS_MAX is reached, those not seen before are
 * made anew each time, with an id of their own that never comes again, and are `transient`. */
struct header_set {
	uint64_t id;    /* of all sets in the process, never 0 */
	bool transient; /* gone with the next header_rules_match(); else it lives as long as the rules */
	size_t octets;  /* of the fields as lines: name, ": ", value, CRLF */
	unsigned count;
	struct header_item item[];
};

struct header_rules;

/* NULL: *error says why (line 0: no memory, or too large). The text need not outlive the call. */
struct header_rules *header_rules_parse(struct slice text, struct rules_error *error);

void header_rules_free(struct header_rules *rules);

/* The fields for a request of that authority (absent, or with a port) and path (decoded as path_decode() does, with a
 * '/' in front). NULL: none. Owned by the rules. Takes memory only for a set that is seen the first time; when there is
 * none, the set is a transient one. One thread at a time. */
const struct header_set *header_rules_match(struct header_rules *rules, struct slice host, struct slice path);

#endif
