/* redirect_rules.h - the file _redirects: paths for which a redirect, or the content of another path, is sent.
 *
 * A line is a rule of words with blanks between them. A word that begins with '#' begins a comment:
 *
 *     from [name=value...] to [status[!]] [Condition=value...]
 *
 * from    a pattern (pattern.h, PATTERN_LOOSE). If it is a URL, the scheme counts, too, but not the port.
 * name=   The query must have a parameter of that name with that value, both decoded as those of forms. If the value
 *         is :name, it may be any, also empty, and :name stands for it; but not "." or "..", in any encoding, if it
 *         becomes part of the path of `to`. If a query repeats a parameter, the first that suits counts.
 * to      a path, or a URL to redirect to. The names of `from` and of parameters in it, and :splat, are replaced. Any
 *         other ':' is itself. In a path, values of parameters have %2F for '/'. A path of the site or of an upstream
 *         has no segment "." or "..", as it is written or with names replaced. A placeholder in the host of a URL needs
 *         text behind it that begins with '.', so that clients cannot choose the domain.
 * status  301 (the default), 302, 303, 307, 308: a redirect. 200, 401, 403, 404, 410, 418, 451, 500, 503: the content
 *         of the path `to`, a file of the site, with that status; the query and fragment of `to` are ignored. With 200,
 *         `to` may be left out: then it is the path of the request. 200 and a URL http://HOST:PORT/...: the request is
 *         passed on to that host, or to any of several with commas between them (upstream_address.h). A URL fcgi:// or
 *         scgi:// is that of a program: the same with 200, or no status. It has no fragment.
 * !       The rule also applies where there is a file. But a rule above it that applies comes first: if that has no
 *         '!', the file is sent.
 * Condition
 *         Language=de,en: the client prefers one of these languages, or a variety of one. Cookie=a,b: it has one of
 *         these cookies. Both: both are met. Country and Role are never met.
 *
 * A rule with fcgi:// and no path is for the scripts of the site: it applies to a path if that, or a part of it that
 * ends before a '/', matches `from` and is a file. One with a path also applies where there is a file with the
 * extension of that path. If the URL of a program is wrong, or not allowed, the rule is not ignored, but answers with
 * 503, since scripts are never sent.
 *
 * Wrong rules are ignored. But a wrong one without conditions that has a '!' and is no redirect answers with 503, since
 * it may hide files.
 *
 * A redirect, or a URL, gets the query of the request if the rule has no parameters and `to` has no query; a redirect
 * only if it fits. A rule is skipped if it would redirect to the path and host of the request; if it has parameters,
 * only if its target has them, too; if `from` has a scheme, only if its target has that of the request. */
#ifndef GATLING_SITE_RULES_REDIRECT_RULES_H
#define GATLING_SITE_RULES_REDIRECT_RULES_H

#include "gatling/site/rules/redirect_target.h"
#include "gatling/site/rules/rules.h"
#include "gatling/upstream/upstream_address.h"

struct redirect_rules;

struct redirect_request {
	struct slice host;  /* absent, or with a port */
	struct slice path;  /* decoded as path_decode() does, with a '/' in front */
	struct slice query; /* with its '?', or absent */
	bool secure;        /* over https */
	bool any_scheme;    /* it is unknown whether it came over https: it has the scheme of any rule */
	/* Returns the language that the client prefers (Accept-Language), or an empty slice. NULL: that is not known. */
	struct slice (*language)(const void *context);
	/* Returns whether the request has a cookie of that name. NULL: it has none. */
	bool (*has_cookie)(const void *context, struct slice name);
	/* Returns 0 if there is a file at a path, as above, ENOENT if there is none, or an errno if that is unknown for
	 * now. NULL: there is none. */
	int (*find_file)(const void *context, struct slice path);
	/* Returns the first part of a path at which there may be a file. NULL: all of it. */
	struct slice (*reach)(const void *context, struct slice path);
	const void *context;
};

/* Fields of a request on which the answer depends. */
enum { REDIRECT_VARY_LANGUAGE = 1, REDIRECT_VARY_COOKIE = 2 };

struct redirect {
	unsigned line; /* of the rule; 0: it is not known which applies */
	int status;
	bool forced;
	unsigned vary; /* is filled in also if no rule applies */
	/* For a redirect: the value of Location. Otherwise: an absolute path, percent-encoded, for path_decode(). Visible
	 * ASCII; if it begins with '/', neither '/' nor '\' follows. Written to the caller's buffer. */
	struct slice target;
	const struct upstream_target *upstream; /* the request is passed on there, with `target`; NULL: it is not */
	bool has_query;                         /* it is that of the target, not of the request */
	bool by_path;                           /* only host and path have led to this rule, and to `target` without a query
											   of the request; is filled in if a rule applies */
	bool refused;                           /* it is not passed on, since the rule is wrong, or may not do so */
	bool own_path;                          /* the target has no path of its own, but that of the request */
	struct slice fixed;                     /* the start of the target's path, as written, that no client chooses */
	struct slice extension;                 /* of the target's scripts, with its '.'; or absent */
	size_t script; /* bytes of the path of the request that name a file, which is a script; 0: none */
};

/* Parses a text. Returns its struct redirect_rules, or NULL, which is reported, too, without memory or if the text is
 * too large. The text need not outlive the call. */
void *redirect_rules_parse(struct slice text, struct rules_report *report);

void redirect_rules_free(void *redirect_rules); /* NULL is allowed */

/* Returns whether the file at a path (as that of a request) may be sent, since it is no script: it neither matches a
 * rule with fcgi:// for scripts of the site, or a refused one, whatever the host and parameters of the rule, nor has
 * the extension of the scripts that a rule leads to. */
bool redirect_rules_may_send(const struct redirect_rules *rules, struct slice path);

/* Returns whether there is a rule that passes requests on. */
bool redirect_rules_passing(const struct redirect_rules *rules);

/* Sets whether the rules may pass requests on. Until then, or if they may not, such a rule refuses the requests for
 * which it applies. */
void redirect_rules_permit(struct redirect_rules *rules, bool may_pass);

/* Returns whether there is a rule for a program: with fcgi:// or scgi://. */
bool redirect_rules_programs(const struct redirect_rules *rules);

/* Returns whether there is a rule that may apply where there is a file. */
bool redirect_rules_forced(const struct redirect_rules *rules);

/* Returns whether a rule applies, which is the first one in the file, and fills in *result. there: there may be a file,
 * which comes before a rule without '!': then this returns whether the rule comes before the file. But a rule that runs
 * what is there, or one with '!' and a status from 400 on, comes before those above it that would leave the path to the
 * file. Skips a rule whose target would have no valid host, does not fit into the buffer (REDIRECT_TARGET_MAX bytes),
 * or would be a path with a segment "." or "..". But the result is `refused` if the target of a forced rule does not
 * fit, since that may protect a file, or if comparing a long path or query with all rules would take too long, or if it
 * is unknown whether a file is there that a rule is for. */
bool redirect_rules_match(const struct redirect_rules *rules, const struct redirect_request *request, bool there,
						  char *buffer, struct redirect *result);

#endif
