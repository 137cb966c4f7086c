/* script.h - which program, and which path behind it, a request that is passed on over FastCGI or SCGI means. */
#ifndef GATLING_SITE_ANSWER_SCRIPT_H
#define GATLING_SITE_ANSWER_SCRIPT_H

#include "gatling/site/rules/redirect_rules.h"
#include "gatling/site/site_context.h"
#include "gatling/upstream/upstream_head.h"

/* Returns whether the site has a regular file at a path (decoded, with a '/' in front) that is not hidden. */
bool script_is_file(const struct site_context *context, const struct site *site, struct slice path);

/* Returns the first part of a path, as above, that a file may have: below it there certainly is none. */
struct slice script_reach(const struct site_context *context, const struct site *site, struct slice path);

/* Returns whether a path has the name of a script: of PHP (.php, .phtml, .phar) or CGI (.cgi, .fcgi), whatever the case
 * of the letters. With --upstream, such files are never sent: a rule that has a mistake, or is of another site, must
 * not show them. */
bool script_is_named(struct slice path);

/* Finds what a rule leads to. path: of the request, as above.
 *
 * If the rule has found a script of the site, that is the script. Otherwise the target of the rule says where: over
 * FastCGI the first part of it that is a file is the script, and the rest is PATH_INFO. If a client has chosen that
 * file, it may be run only with the name of a script, or the extension that the target has. Without a file all of it is
 * PATH_INFO, and what is before that in the path of the request is SCRIPT_NAME: with "/wiki/(star) scgi://HOST/:splat"
 * "/wiki". *script lasts until the next call. Returns false if the target is not a path, or a hidden one, or a file
 * that may not be run. */
bool script_find(const struct site_context *context, const struct site *site, const struct redirect *rule,
				 struct slice path, struct upstream_script *script);

#endif
