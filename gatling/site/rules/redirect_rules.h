/* redirect_rules.h - the file _redirects: which paths are answered with a redirect, or with another path's content.
 *
 * A line is a rule, its words parted by blanks; a word that begins with '#' begins a comment:
 *
 *     from [name=value...] to [status[!]] [Condition=value...]
 *
 * from    a pattern (pattern.h, PATTERN_LOOSE).
 * name=   The query has to have a parameter of that name, and that value; or any, empty too, that :value then stands
 *         for. Both are compared as they are written; of several with one name the first counts.
 * to      a path, or the URL of a redirect, in which the names of `from` and of parameters, and :splat for a splat, are
 *         filled in. A ':' before a letter that is no such name is written %3A. In the host of a URL, a placeholder
 *         has to have text behind it that begins with '.', so that it cannot become all of a domain.
 * status  301 (if there is none), 302, 303, 307, 308: a redirect. Or 200, 404, 410: the content of the path `to`, a
 *         file of the site, with that status; `to` is used without its query and fragment.
 * !       behind it: the rule counts, too, where there is a file.
 *
 * Conditions cannot be told here, so a rule that has one is left out.
 *
 * The query of a request is passed on with a redirect, if the rule has no parameters and `to` has no query. A rule that
 * would redirect to the path and host asked for is passed over (if it has parameters: only where its target has them,
 * too), so that it cannot redirect to itself. Of redirects between rules for one path each that lead in a circle the
 * last in the file is left out, unless a file is sent where one of them leads, which is looked at when the rules are
 * read; those with a host and those without are not looked at together. */
#ifndef GATLING_SITE_RULES_REDIRECT_RULES_H
#define GATLING_SITE_RULES_REDIRECT_RULES_H

#include "gatling/site/rules/redirect_target.h"
#include "gatling/site/rules/rules.h"

enum { REDIRECT_PARAMETERS_MAX = 16 /* of one rule */ };

struct redirect_rules;

struct redirect_request {
	struct slice host;  /* absent, or with a port */
	struct slice path;  /* decoded as path_decode() does, with a '/' in front */
	struct slice query; /* with its '?', or absent */
};

struct redirect {
	int status;
	bool forced;
	/* Of a redirect: the value of Location. Else: an absolute path, percent-encoded, for path_decode(). Visible ASCII
	 * alone; if it begins with '/', then with one only, and no '\' behind it. Written to the caller's buffer. */
	struct slice target;
};

/* NULL: no memory, or too large, which is told, too. The text need not outlive the call. */
struct redirect_rules *redirect_rules_parse(struct slice text, struct rules_report *report);

void redirect_rules_free(struct redirect_rules *rules);

/* Whether a rule applies; the first in the order of the file does, with forced_only (there is a file) the first forced
 * one. A rule whose target would not fit into the buffer (REDIRECT_TARGET_MAX bytes), or whose host would be none, does
 * not. */
bool redirect_rules_match(const struct redirect_rules *rules, const struct redirect_request *request, bool forced_only,
						  char *buffer, struct redirect *result);

#endif
