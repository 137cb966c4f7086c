/* header_rules.h - the file _headers: header fields that the owner of a site adds to responses, by path.
 *
 * A line that begins with '/', http:// or https:// is a pattern (pattern.h, PATTERN_EXACT), and may end in a comment: a
 * blank, '#' and more. The lines below it, indented or not, are its fields: "Name: value"; or "! Name", which removes
 * that field, whether a pattern above or the server itself set it. Empty lines, and lines that begin with '#', are
 * ignored. Vary stays where a response depends on Accept-Encoding; to remove Server is an error. Wrong lines are
 * reported and ignored; a wrong pattern with all its fields.
 *
 * All patterns that match apply, in the order of the file. If a field is set more than once, the values are joined with
 * ", " (RFC 9110, section 5.3); Set-Cookie is sent once for each. Fields that only the server can know are refused:
 * Content-Length, Date, ETag, ... So is Basic-Auth, which on other servers asks for a password.
 *
 * In a value, ":name" and ":splat" of its pattern are replaced with what they have matched, percent-encoded except for
 * letters, digits and "-._~/", so that a client cannot add syntax to the value. Every other ':' is itself.
 * Content-Type, Content-Encoding and X-Content-Type-Options, which describe the bytes that are sent, may not contain
 * them. */
#ifndef GATLING_SITE_RULES_HEADER_RULES_H
#define GATLING_SITE_RULES_HEADER_RULES_H

#include <stdint.h>

#include "gatling/site/rules/rules.h"

enum {
	HEADER_FIELDS_MAX = 8192,               /* fields of a file */
	HEADER_OCTETS_MAX = 8 * 1024,           /* bytes of the fields of one response */
	HEADER_SET_FIELDS_MAX = 1024,           /* fields for one path; more count as too many bytes */
	HEADER_WORK_MAX = 1024 * 1024,          /* pattern_subject.work for one path; likewise */
	HEADER_SETS_MAX = 256,                  /* sets that are kept for a file, and */
	HEADER_SETS_BYTES_MAX = 4 * 1024 * 1024 /* the memory that they take */
};

/* A field of a set. It replaces the server's field of that name, which is Cache-Control, Content-Type or
 * X-Content-Type-Options; the server's Vary stays, and is joined with it. */
struct header_item {
	struct slice name, value; /* the name as it is written first */
	bool detach;              /* there is no value here: the field is removed, or its line is in struct header_filled */
	bool filled;              /* its line is there */
};

/* The fields of one response, each name once, except for Set-Cookie. Lines with replaced names are not part of it, so
 * that the same rules always give a set with the same id, whatever the path, and what is made of a set can be kept
 * under its id. */
struct header_set {
	uint64_t id;   /* differs from those of all other sets, and is never 0 */
	size_t octets; /* of the fields as lines: name, ": ", value, CRLF. A response may have HEADER_OCTETS_MAX with those
					  of struct header_filled. */
	unsigned line; /* of the last pattern that matched */
	unsigned count;
	const struct header_item *item;
};

/* How caches may store a response. HEADER_CACHED: as the owner says. HEADER_CACHED_BRIEFLY: for at most HEADER_BRIEF_S,
 * since it stands in for another one. HEADER_UNCACHED: not at all, since it is for one request only. */
enum header_caching { HEADER_CACHED, HEADER_CACHED_BRIEFLY, HEADER_UNCACHED };

/* Writes the fields as lines to out (set->octets bytes), and returns how many bytes that are. Leaves out
 * Content-Type, Content-Encoding and X-Content-Type-Options, which describe a file, and a Cache-Control that allows
 * more than `caching`. */
size_t header_set_lines(const struct header_set *set, enum header_caching caching, char *out);

/* Writes the fields for the response of an upstream, as owner_fields_apply() takes them, to out (HEADER_ADDED_MAX
 * bytes). Returns how many bytes that are. filled: the lines of struct header_filled. Leaves out Content-Type and
 * Content-Encoding. */
enum { HEADER_ADDED_MAX = 2 * HEADER_OCTETS_MAX };
size_t header_set_added(const struct header_set *set, struct slice filled, char *out);

/* Returns whether the item is a Cache-Control that lets caches keep a response for more than HEADER_BRIEF_S: with
 * "immutable" (RFC 8246), or a longer max-age or s-maxage. */
enum { HEADER_BRIEF_S = 3600 };
bool header_lasts(const struct header_item *item);

/* Returns the item of a set with that name, in either case, or NULL. set may be NULL. */
const struct header_item *header_find(const struct header_set *set, const char *name);

/* Returns whether the item has that name, in either case. */
bool header_named(const struct header_item *item, const char *name);

struct header_rules;

/* Parses a text. Returns its struct header_rules, or NULL, which is reported, too, without memory or if the text is too
 * large. The text need not outlive the call. */
void *header_rules_parse(struct slice text, struct rules_report *report);

void header_rules_free(void *header_rules); /* NULL is allowed */

/* The lines, each with its CRLF, of the fields of a set whose names were replaced. If they exceed HEADER_OCTETS_MAX,
 * there is only a length, which exceeds it, too. A client can only add visible ASCII to them. */
struct header_filled {
	struct slice lines; /* in text */
	char text[HEADER_OCTETS_MAX];
};

/* Returns the fields for a request with that authority (absent, or with a port) and path (decoded as path_decode()
 * does, with a leading '/'), or NULL if there are none. They belong to the rules, and are valid until the next call.
 * Only one thread at a time may call this. Fills in *filled in any case. */
const struct header_set *header_rules_match(struct header_rules *rules, struct slice host, struct slice path,
											struct header_filled *filled);

#endif
