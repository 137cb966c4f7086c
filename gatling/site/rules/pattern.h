/* pattern.h - which paths, and of which hosts, a rule is for.
 *
 * A pattern is a path that begins with '/', or a URL that begins with http:// or https://. In it,
 *   *      is a splat: any characters, '/' too, or none; once at most, and not in a host;
 *   :name  is a placeholder: one or more characters of one segment, so not '/', and in a host not '.';
 *   %XX    is that octet, without a meaning of its own: %2A is a '*', %3A a ':';
 * and everything else is itself. Scheme and port of a URL do not count; its host is the same in either case of letters.
 *
 * Between two of those that vary there has to be text, which says where they part. Where they can part in several
 * ways, a placeholder is as short as it can be: it ends where the text behind it begins first; or, where that text ends
 * the segment, at the last place for it. Of those behind a splat the last one is the shortest, then the one before it,
 * and the splat takes what is left. If there is any way to match, it is found: before the splat a segment of the
 * pattern is good for one segment of the path alone, in which the shortest placeholders leave most room to what
 * follows; and behind it the same holds backwards. Neither way is ever taken back, and text is searched for with a
 * table of where to go on (Knuth, Morris, Pratt), so a match takes a number of steps that is linear in the lengths of
 * path and pattern. */
#ifndef GATLING_SITE_RULES_PATTERN_H
#define GATLING_SITE_RULES_PATTERN_H

#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/http/host.h"

enum {
	PATTERN_MAX = 1000,                           /* bytes as it is written */
	PATTERN_NAMES_MAX = 16,                       /* placeholders of one */
	PATTERN_CAPTURES_MAX = PATTERN_NAMES_MAX + 1, /* with its splat */
	PATTERN_START = sizeof(uint64_t)
};

/* Whether a '/' at the end counts. LOOSE: "/a" and "/a/" are one path and one pattern, and a splat behind "/a/" may
 * stand for nothing in "/a", too; where it stands for something, the '/' that the path ends with is part of it. */
enum pattern_mode { PATTERN_EXACT, PATTERN_LOOSE };

struct pattern_parts;

struct pattern {
	uint64_t key, mask;          /* the text that the path begins with, as far as it fits; or the hash of all of it */
	bool literal;                /* that is: the path has neither splat nor placeholder */
	struct pattern_parts *parts; /* owned */
};

/* What patterns are matched with; made once for all of them. */
struct pattern_subject {
	struct slice host; /* absent: no pattern with a host matches */
	struct slice path;
	size_t length;   /* of the path, one more with the '/' that LOOSE adds */
	uint64_t key[2]; /* the path's first octets, then zeros; its hash, for the patterns that are literal */
	char host_name[HOST_MAX];
};

struct pattern_captures {
	struct slice value[PATTERN_CAPTURES_MAX]; /* parts of the subject, numbered as pattern_capture() says */
};

/* The length of http:// or https:// at the start, else 0. */
size_t pattern_scheme(struct slice text);

/* Whether the text is to be one: it begins with '/' or a scheme. */
bool pattern_begins(struct slice text);

/* NULL: *pattern is filled; free it with pattern_free(). Else what is wrong, or pattern_no_memory. The text need not
 * outlive the call. */
const char *pattern_compile(struct pattern *pattern, struct slice text, enum pattern_mode mode);
extern const char pattern_no_memory[];

void pattern_free(struct pattern *pattern);

/* Whether it is for one host, or hosts, alone. */
bool pattern_has_host(const struct pattern *pattern);

/* Whether it has neither splat nor placeholder; then *host is its host, absent if it has none. */
bool pattern_is_literal(const struct pattern *pattern, struct slice *host);

/* The number of what that name, "splat" for a splat, stands for; -1: there is none of that name. */
int pattern_capture(const struct pattern *pattern, struct slice name);

/* How many there are. */
unsigned pattern_captures(const struct pattern *pattern);

/* The length of a placeholder's name at the start, 0 if there is none: a letter, then letters, digits and '_'. */
size_t pattern_name(struct slice text);

/* The authority (absent, or with a port) and the path (decoded as path_decode() does, with a '/' in front) of a
 * request. Refers to the path. With the mode of the patterns. An authority that is none is as good as absent. */
void pattern_subject(struct pattern_subject *subject, struct slice authority, struct slice path,
					 enum pattern_mode mode);

/* Behind what pattern_match() asks first. */
bool pattern_match_parts(const struct pattern *pattern, const struct pattern_subject *subject,
						 struct pattern_captures *captures);

/* Fills *captures if it matches; else they are undefined. */
static inline bool pattern_match(const struct pattern *pattern, const struct pattern_subject *subject,
								 struct pattern_captures *captures) {
	return (subject->key[pattern->literal] & pattern->mask) == pattern->key &&
		   pattern_match_parts(pattern, subject, captures);
}

#endif
