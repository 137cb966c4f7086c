/* redirect_circles.c - see redirect_rule.h: finds redirects that lead in a circle, while the file is read. Only those
 * for one path, without parameters and conditions, are followed. */
#include "gatling/site/rules/redirect_rule.h"
#include "gatling/site/rules/redirect_rules.h"
#include "gatling/site/rules/rules.h"

enum { CIRCLES_WORK_MAX = 8 << 20 /* for all circles of a file, see redirect_rules.work */ };

/* Returns whether the rule is for one path, whatever else a request has. */
static bool is_literal(const struct redirect_rule *rule) {
	return rule->pattern.literal && !rule->parameters && !rule->conditional;
}

/* Returns whether the rule that has matched applies. Not inline, to keep its buffer off the stack of the caller. */
__attribute__((noinline)) static bool applies(const struct redirect_match *match,
											  const struct redirect_request *request) {
	char buffer[REDIRECT_TARGET_MAX];
	struct slice target;
	return redirect_leads_on(match, request, buffer, &target);
}

/* Returns the index of the literal redirect that applies to the target of a literal redirect `from`, or
 * REDIRECT_NO_RULE if there is none, or it is not certain. */
static int successor(struct redirect_rules *r, const struct redirect_rule *from) {
	char buffer[REDIRECT_TARGET_MAX], decoded[1 + REDIRECT_TARGET_MAX];
	struct pattern_subject subject;
	struct redirect_match match = {.rule = from};
	struct redirect_request here = {.host = pattern_host(&from->pattern), .secure = from->scheme == SCHEME_HTTPS}, next;
	struct slice target;
	if (!is_literal(from) || !redirect_rule_redirects(from)) return REDIRECT_NO_RULE;
	if (!redirect_leads_on(&match, &here, buffer, &target) || !redirect_follow(target, &here, decoded, &next))
		return REDIRECT_NO_RULE;
	pattern_subject(&subject, next.host, next.path, PATTERN_LOOSE);
	bool there = next.host.at == here.host.at && r->report->there && r->report->there(r->report, next.path);
	for (unsigned i = 0; i < r->rules && r->work <= CIRCLES_WORK_MAX; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		if (!pattern_may_match(&rule->pattern, &subject) || !redirect_rule_has_scheme(rule, &next)) continue;
		subject.work = 0;
		const bool matches = pattern_match_parts(&rule->pattern, &subject, &match.captures);
		r->work += subject.work;
		if (!matches) continue;
		/* it may come first, or the file does */
		if (!is_literal(rule) || (there && !rule->forced)) return REDIRECT_NO_RULE;
		r->work += REDIRECT_WORK_FILLING * rule->to.length;
		match.rule = rule;
		if (!pattern_host(&rule->pattern).at != !next.host.at || !applies(&match, &next)) continue;
		return redirect_rule_redirects(rule) ? (int)i : REDIRECT_NO_RULE;
	}
	return REDIRECT_NO_RULE;
}

/* Where a rule leads is kept: a rule that is added later can only change that for those that led nowhere. */
int redirect_closes_circle(struct redirect_rules *r) {
	int last = (int)r->rules - 1, at = last;
	for (unsigned steps = 0; steps < r->rules && at != REDIRECT_NO_RULE; steps++) {
		struct redirect_rule *rule = &r->rule[at];
		int next = rule->next == REDIRECT_NO_RULE ? successor(r, rule) : rule->next;
		if (next == last) return at;
		at = rule->next = next;
	}
	return REDIRECT_NO_RULE;
}
