/* header_rules.h - the file _headers: which fields the owner of a site wants responses for which paths to have.
 *
 * A line that begins with '/', http:// or https:// is a pattern (pattern.h, PATTERN_EXACT), with a comment behind a
 * blank and '#'; the others below it are its fields, "Name: value", or "! Name", which takes away what was said about
 * that name so far, here and by the server itself. They are indented, but need not be. Empty lines, and those that
 * begin with '#', are passed over. What is wrong is told and left out, of a pattern with its fields. All patterns that
 * match count, in the order of the file. What is said of one name more than once is joined with ", " (RFC 9110,
 * section 5.3), but for Set-Cookie, which is sent as often as it is said. Fields that the server alone can know are
 * refused: Content-Length, Date, ETag, ... So is Basic-Auth, which elsewhere asks for a password.
 *
 * In a value, ":name" of a placeholder of its pattern, and ":splat" of its splat, is filled in with what it stands for,
 * percent-encoded but for letters, digits and "-._~/", so that whoever asks cannot add to the value what its syntax
 * knows; any other ':' is itself. Content-Type and X-Content-Type-Options, which say what a file is, cannot have them.
 */
#ifndef GATLING_SITE_RULES_HEADER_RULES_H
#define GATLING_SITE_RULES_HEADER_RULES_H

#include <stdint.h>

#include "gatling/site/rules/rules.h"

enum {
	HEADER_FIELDS_MAX = 8192,               /* fields of a file */
	HEADER_OCTETS_MAX = 8 * 1024,           /* bytes of the fields of one response */
	HEADER_SETS_MAX = 1024,                 /* sets that are kept for a file, and */
	HEADER_SETS_BYTES_MAX = 4 * 1024 * 1024 /* the memory they take */
};

struct header_item {
	struct slice name, value; /* the name as it is written first */
	bool detach;              /* no value: the server does not say it, and it is not of the set, but may be filled in */
};

struct header_piece;

/* What one response gets, each name once, but for Set-Cookie. A value stands instead of the server's own.
 *
 * The same rules give the same set, with the same id, each time, so that what is made of it can be kept by its id,
 * whatever paths are asked for: values that are filled in are not of the set. There are more ways for rules to match
 * together than memory to keep their sets; when HEADER_SETS_MAX is reached, those not seen before are made anew each
 * time, and are `transient`. */
struct header_set {
	uint64_t id;    /* of all sets in the process, never 0 */
	bool transient; /* gone with the next header_rules_match(); else it lives as long as the rules */
	size_t octets;  /* of the fields as lines: name, ": ", value, CRLF; with those that are filled in, more than
					   HEADER_OCTETS_MAX are not to be sent */
	unsigned line;  /* of the last pattern that it is of */
	unsigned pieces;
	const struct header_piece *piece; /* what the values that are filled in are made of */
	unsigned count;
	struct header_item item[];
};

/* Writes the fields, each a line with its CRLF, to out (header_set->octets bytes), but for those about the content,
 * which say Content-Type and the like of a file; and, if what is sent stands in for something else, for one that
 * header_lasts(). The bytes written. */
size_t header_set_lines(const struct header_set *set, bool stands_in, char *out);

/* Whether an item is a Cache-Control with which an answer is kept for more than HEADER_BRIEF_S: it says "immutable"
 * (RFC 8246), or a longer max-age or s-maxage. One that is filled in is never among the items. */
enum { HEADER_BRIEF_S = 3600 };
bool header_lasts(const struct header_item *item);

/* Whether an item is about a field of that name. */
bool header_named(const struct header_item *item, const char *name);

struct header_rules;

/* NULL: no memory, or too large, which is told, too. The text need not outlive the call. */
struct header_rules *header_rules_parse(struct slice text, struct rules_report *report);

void header_rules_free(struct header_rules *rules);

/* The fields for a request of that authority (absent, or with a port) and path (decoded as path_decode() does, with a
 * '/' in front). NULL: none. Owned by the rules. Takes memory only for a set that is seen the first time; when there is
 * none, the set is a transient one. One thread at a time. */
const struct header_set *header_rules_match(struct header_rules *rules, struct slice host, struct slice path);

/* The fields of what the last header_rules_match() has found whose values are filled in: lines, each with its CRLF, the
 * rules' until the next. With a length over HEADER_OCTETS_MAX there is nothing but that length. Visible ASCII comes of
 * the request, all else is the owner's. Takes no memory. */
struct slice header_rules_filled(const struct header_rules *rules);

#endif
