/* redirect_hidden.c - see redirect_rule.h: finds rules that never apply, while the file is read. */
#include "gatling/site/rules/redirect_rule.h"
#include "gatling/site/rules/redirect_rules.h"
#include "gatling/site/rules/rules.h"

enum { HIDING_WORK_MAX = 1 << 20 /* pairs of rules of a file of which one may hide the other */ };

/* Returns whether a redirect could lead to a path of the pattern, so that it would be skipped there. */
static bool may_lead_to(const struct redirect_rule *redirect, const struct pattern *pattern) {
	const struct slice from = pattern_path_start(pattern), to = redirect->fixed;
	return from.length < to.length ? slice_starts(to, from) : slice_starts(from, to);
}

/* Returns whether the rule is for scripts, which it may protect. */
static bool runs_program(const struct redirect_rule *rule) {
	return rule->upstream && rule->upstream->protocol != UPSTREAM_HTTP;
}

/* Returns the line of a rule above that surely answers every request that the last one would, or 0. */
static unsigned hidden_by(struct redirect_rules *r) {
	const struct redirect_rule *last = &r->rule[r->rules - 1];
	for (unsigned i = 0; i + 1 < r->rules && !runs_program(last) && r->hiding_work <= HIDING_WORK_MAX; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		r->hiding_work++;
		if (redirect_rule_denies(last) && !rule->forced) continue; /* it applies where there is a file */
		if (rule->parameters || rule->conditional || runs_program(rule) || rule->refused) continue;
		if (rule->scheme != SCHEME_ANY && rule->scheme != last->scheme) continue;
		if (!pattern_covers(&rule->pattern, &last->pattern)) continue;
		if (!redirect_rule_redirects(rule) || !may_lead_to(rule, &last->pattern)) return rule->line;
	}
	return 0;
}

/* Returns whether a file is always sent in the place of the rule. */
static bool has_file_in_way(const struct redirect_rules *r, const struct redirect_rule *rule) {
	struct slice path = pattern_path_start(&rule->pattern);
	if (!r->report->there || rule->forced || !rule->pattern.literal || rule->upstream) return false;
	if (pattern_host(&rule->pattern).at) return false;
	if (rule->status == 200 && slice_starts(rule->target.path, slice_first(path, path.length - 1)))
		return false; /* it only says which file that is */
	if (r->report->there(r->report, path)) return true;
	path.length -= path.length > 1;
	return r->report->there(r->report, path);
}

void redirect_report_hidden(struct redirect_rules *r, struct rules_error *error) {
	const struct redirect_rule *rule = &r->rule[r->rules - 1];
	const unsigned line = r->report->tell ? hidden_by(r) : 0;
	if (line) (void)rules_fail(error, "it never applies: line %u comes first", line);
	else if (!r->report->tell || !has_file_in_way(r, rule)) return;
	else (void)rules_fail(error, "it does not apply while there is a file: write %u! if it should", rule->status);
	r->report->tell(r->report, error);
}
