/* redirect_rule.h - a rule of _redirects, for the files that match rules and read them. */
#ifndef GATLING_SITE_RULES_REDIRECT_RULE_H
#define GATLING_SITE_RULES_REDIRECT_RULE_H

#include "gatling/site/rules/pattern.h"
#include "gatling/site/rules/redirect_target.h"

struct parameter;        /* parameters.h */
struct redirect_request; /* redirect_rules.h */
struct rules_report;     /* rules.h */
struct rules_error;      /* rules.h */
struct upstream_target;  /* upstream/upstream_address.h */

enum scheme { SCHEME_ANY, SCHEME_HTTP, SCHEME_HTTPS };

/* Slices refer to the text of the rules. */
struct redirect_rule {
	struct pattern pattern;
	struct slice to;
	struct redirect_target target;
	struct slice fixed; /* the start of the target's path that no client chooses */
	unsigned line, status, parameters;
	struct parameter *parameter;
	enum scheme scheme;              /* of the requests it is for; 0: any */
	struct slice languages, cookies; /* its conditions: lists, separated by commas; absent: none */
	bool forced, conditional;
	bool keeps_path;                  /* it leads to the path of the request */
	bool own_path, scripts, refused;  /* see struct redirect; scripts: for scripts of the site */
	struct slice extension;           /* of the scripts that the target leads to (FastCGI), with its '.'; or absent */
	struct upstream_target *upstream; /* NULL: requests are not passed on */
};

struct redirect_rules {
	char *text;
	struct redirect_rule *rule;
	struct parameter *parameter;
	unsigned rules, parameters;
	unsigned hiding_work;        /* pairs of rules that were compared by hidden_by() */
	bool hosts;                  /* some pattern has one */
	bool programs;               /* some rule is for a program */
	bool protecting;             /* some rule may protect files: redirect_rules_may_send() */
	unsigned forced;             /* behind the last rule that may apply where there is a file; 0: none may */
	bool passing;                /* some rule passes requests on */
	bool may_pass;               /* see redirect_rules_permit() */
	struct rules_report *report; /* while the file is read */
};

/* What a rule has matched. */
struct redirect_match {
	const struct redirect_rule *rule;
	struct pattern_captures captures;
	struct slice parameter[REDIRECT_PARAMETERS_MAX];
};

/* Returns whether a rule denies access to a file where it applies. */
static inline bool redirect_rule_denies(const struct redirect_rule *rule) {
	return rule->forced && rule->status >= 400;
}

static inline bool redirect_rule_redirects(const struct redirect_rule *rule) { return rule->status / 100 == 3; }

/* --- redirect_rules.c --- */

/* Returns the index of a name: pattern_capture(), or PATTERN_TOKENS_MAX plus the index of a parameter, or -1 if the
 * rule has no such name. */
int redirect_find_name(const struct redirect_rule *rule, struct slice name);

/* Takes the text before the next name, and the name, off the front of a target. Returns the text. *name: its index, or
 * -1 at the end. */
struct slice redirect_next_name(const struct redirect_rule *rule, struct slice *text, int *name);

/* --- redirect_hidden.c --- */

/* Reports the last rule if it can never apply: a rule above it, or a file, always comes first. */
void redirect_report_hidden(struct redirect_rules *rules, struct rules_error *error);

#endif
