/* limit_rules.h - the file _limits: limits that the owner of a site has for some of its paths.
 *
 * A line is a pattern (pattern.h, PATTERN_EXACT) and what applies to the paths that it matches, as --limit has it:
 *   body=SIZE              content of a request for an upstream
 *   upstream-connect=, upstream-first=, upstream-between=, upstream-tunnel=SECONDS
 *   address-rate=N[/UNIT][:BURST] requests of an address, over all paths that the line matches
 *   log=off, log=on        whether requests are logged
 * A comment after it begins with '#'. Lines that begin with '#' are ignored. Of the lines that match, the last that
 * names a limit sets it; those of --limit apply where none does. A wrong line is reported and ignored as a whole. */
#ifndef GATLING_SITE_RULES_LIMIT_RULES_H
#define GATLING_SITE_RULES_LIMIT_RULES_H

#include "gatling/client/address_table.h"
#include "gatling/site/rules/rules.h"
#include "gatling/upstream/upstream_limits.h"

enum { LIMIT_WORK_MAX = 1024 * 1024 /* pattern_subject.work for one path */ };

struct limit_rules;

/* Parses a text. Returns its struct limit_rules, or NULL, which is reported, too, without memory or if the text is too
 * large. The text need not outlive the call. */
void *limit_rules_parse(struct slice text, struct rules_report *report);

void limit_rules_free(void *limit_rules); /* NULL is allowed */

/* The limits of a path. */
struct path_limits {
	struct upstream_limits upstream;
	struct address_rate rate; /* burst 0: none but that of --limit */
	uint64_t rate_of;         /* the same for all paths, workers and processes that share the rate */
	bool unlogged;
	unsigned line; /* of the last pattern that matched; 0: none did */
};

/* Sets what the lines that match say, for a request with that authority (absent, or with a port) and path (decoded,
 * with a leading '/'); the rest stays as it is. site: the path of its directory. Returns false, with the line where it
 * happened, if matching takes too long. */
bool limit_rules_match(const struct limit_rules *rules, struct slice site, struct slice host, struct slice path,
					   struct path_limits *limits);

#endif
