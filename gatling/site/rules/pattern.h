/* pattern.h - patterns for the paths, and the hosts, that a rule applies to.
 *
 * A pattern is a path that begins with '/', or a URL that begins with http:// or https://. In it,
 *   *      is a splat: it matches any characters, also '/', or none. A pattern has at most one, and none in its host.
 *   :name  is a placeholder: it matches one or more characters of one segment: not '/', and in a host not '.'. In a
 *          PATTERN_LOOSE path it is a whole segment, and its name all that follows the ':'; elsewhere ':' is itself.
 *   %XX    is that octet and nothing else: %2A matches '*', %3A matches ':'.
 * Every other character matches itself, but a text that looks like a regular expression is refused: one that ends with
 * '$', or has a '(' before '.', '[', '\' or '^'. The scheme and port of a URL are ignored; its host matches in either
 * case.
 *
 * Between placeholders, and between a placeholder and the splat, there must be text. If a path can be divided among
 * them in several ways, each placeholder before the splat is as short as possible, the first one first; each
 * placeholder behind the splat is as short as possible, the last one first; the splat matches the rest. The text at the
 * end of a pattern without splat matches the end of the path. No placeholder is ever tried with a second length, so a
 * match compares at most as many octets as the product of the lengths of path and pattern. That can be a thousand times
 * the length of the path, so matches are counted by what they compare (pattern_subject.work): code that matches a path
 * with several patterns stops at a limit of its own, and the answer is an error, never that of fewer rules. */
#ifndef GATLING_SITE_RULES_PATTERN_H
#define GATLING_SITE_RULES_PATTERN_H

#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/http/host.h"

enum {
	PATTERN_MAX = 1000,          /* bytes of a pattern as it is written */
	PATTERN_NAMES_MAX = 16,      /* placeholders in a pattern */
	PATTERN_PATH_MAX = 8 * 1024, /* bytes of a path that are matched */
	/* placeholders, the splat, and the text around them in host and path */
	PATTERN_TOKENS_MAX = 2 * (PATTERN_NAMES_MAX + 1) + 2,
	PATTERN_START = sizeof(uint64_t),
	PATTERN_PLACE_WORK = 4 /* octets, for which a place counts where the text behind a placeholder may begin */
};

/* EXACT, as Cloudflare has it: a '/' at the end counts. LOOSE, as Netlify has it: "/a" and "/a/" are the same path and
 * the same pattern, and a splat behind "/a/" also matches nothing in "/a". If a splat at the end matches something, a
 * '/' at the end of the path is part of it. */
enum pattern_mode { PATTERN_EXACT, PATTERN_LOOSE };

struct pattern_parts;

struct pattern {
	uint64_t key, mask;          /* first octets of a matching path; if literal, the hash of all of it */
	bool literal;                /* there is neither splat nor placeholder */
	struct pattern_parts *parts; /* owned */
};

/* The host and path that patterns are matched with. */
struct pattern_subject {
	struct slice host; /* absent: no pattern with a host matches */
	struct slice path;
	bool slash;      /* PATTERN_LOOSE has added one to the path, which then is a copy */
	uint64_t key[2]; /* the first octets of the path; its hash, for literal patterns */
	size_t work;     /* octets that have been compared with patterns, roughly; the caller may add others */
	char host_name[HOST_MAX];
	char loose[PATTERN_PATH_MAX + 1];
};

/* What splat and placeholders have matched: parts of the subject, indexed by pattern_capture(). */
struct pattern_captures {
	struct slice value[PATTERN_TOKENS_MAX];
};

/* Returns whether the text begins as a pattern does: with '/' or a scheme. */
bool pattern_begins(struct slice text);

/* Returns the name of the placeholder at the start of the text, as hosts and PATTERN_EXACT paths have them: a letter,
 * then letters, digits and '_', behind a ':'. Empty if there is none. */
struct slice pattern_placeholder(struct slice text);

/* Takes the text before the next such placeholder, and the placeholder, off the front. Returns the text. *name: of the
 * placeholder, empty at the end. */
struct slice pattern_next_name(struct slice *text, struct slice *name);

/* Fills in *pattern and returns NULL; pattern_free() frees it. Otherwise returns what is wrong with the text, or
 * pattern_no_memory. The text need not outlive the call. */
const char *pattern_compile(struct pattern *pattern, struct slice text, enum pattern_mode mode);
extern const char pattern_no_memory[];

void pattern_free(struct pattern *pattern);

/* Returns the host, or if it has placeholders, its first part; absent if the pattern has none. */
struct slice pattern_host(const struct pattern *pattern);

/* Returns the index in pattern_captures of the placeholder of that name, or of the splat, whose name is "splat", or -1
 * if the pattern has none of that name. */
int pattern_capture(const struct pattern *pattern, struct slice name);

/* Returns the same index for the longest name with which the text begins, and its length, or -1 if the text begins with
 * none. */
int pattern_capture_first(const struct pattern *pattern, struct slice text, size_t *length);

/* Returns the octets with which every path begins that the pattern matches; PATTERN_LOOSE: with a '/' at its end. */
struct slice pattern_path_start(const struct pattern *pattern);

/* Returns whether the pattern ends with a splat. */
bool pattern_is_open(const struct pattern *pattern);

/* Returns whether the first pattern surely matches whatever the second one does: they are the same but for their names,
 * or it is a path with a splat at its end. Both have the same mode. */
bool pattern_covers(const struct pattern *pattern, const struct pattern *other);

/* Fills in the subject for an authority (absent, or with a port; ignored if invalid) and a path (decoded, with a '/' in
 * front), to which it refers. The mode is that of the patterns. Its work is 0. */
void pattern_subject(struct pattern_subject *subject, struct slice authority, struct slice path,
					 enum pattern_mode mode);

/* The part of pattern_match() that is not inline. */
bool pattern_match_parts(const struct pattern *pattern, struct pattern_subject *subject,
						 struct pattern_captures *captures);

/* Returns whether the pattern may match, by a quick test. */
static inline bool pattern_may_match(const struct pattern *pattern, const struct pattern_subject *subject) {
	return (subject->key[pattern->literal] & pattern->mask) == pattern->key;
}

/* Returns whether the pattern matches, and fills in *captures; if it does not, they are undefined. Adds to
 * subject->work. */
static inline bool pattern_match(const struct pattern *pattern, struct pattern_subject *subject,
								 struct pattern_captures *captures) {
	return pattern_may_match(pattern, subject) && pattern_match_parts(pattern, subject, captures);
}

#endif
