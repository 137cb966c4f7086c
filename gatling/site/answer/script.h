/* script.h - finds the script, and the path behind it, for a request that is passed on over FastCGI or SCGI. */
#ifndef GATLING_SITE_ANSWER_SCRIPT_H
#define GATLING_SITE_ANSWER_SCRIPT_H

#include "gatling/site/rules/redirect_rules.h"
#include "gatling/site/site_context.h"
#include "gatling/upstream/upstream_head.h"

/* Returns 0 if the site has a regular file at a path (decoded, with a leading '/') that is not hidden, ENOENT if it has
 * none, or an errno if that is unknown for now. */
int script_look(const struct site_context *context, const struct site *site, struct slice path);

/* Returns the first part of a path, as above, at which there may be files; below it there certainly are none. */
struct slice script_reach(const struct site_context *context, const struct site *site, struct slice path);

/* Returns whether a path has the name of a script: of PHP (.php, .phtml, .phar) or CGI (.cgi, .fcgi), in either case.
 * With --upstream, such files are never sent, so that a mistake in a rule, or a rule of another site, does not reveal
 * them. */
bool script_is_named(struct slice path);

/* Finds the script that a rule leads to. path: of the request, as above.
 *
 * If the rule has found a script of the site, it is that. Otherwise the target of the rule decides. Over FastCGI the
 * first part of the target that is a file is the script, and the rest is PATH_INFO. If a client has chosen that file,
 * it may be run only if script_is_named(), or with the extension that the target has. Without a file all of the target
 * is PATH_INFO, and SCRIPT_NAME is what precedes that in the path of the request: "/wiki" for "/wiki/(star)
 * scgi://HOST/:splat". *script refers to context->room. Returns 0, or the status to answer: 404 if the target is
 * not a path, or a hidden one, or a file that may not be run; 503 if it is unknown for now whether it is a file. */
int script_find(const struct site_context *context, const struct site *site, const struct redirect *rule,
				struct slice path, struct upstream_script *script);

#endif
