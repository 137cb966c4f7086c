/* redirect_rules.c - see redirect_rules.h. A target is kept as it is written, and filled in when its rule matches
 * (redirect_target.h). */
#include "gatling/site/rules/redirect_rules.h"

#include <limits.h>
#include <stdlib.h>

#include "gatling/http/path.h"
#include "gatling/site/rules/pattern.h"
#include "gatling/site/rules/redirect_target.h"

enum {
	NO_RULE = -1,
	CIRCLES_MAX = 64 /* after which it is not asked any more what becomes of those that led to one */
};

struct parameter {
	struct slice name, value; /* the value without the ':' of a placeholder */
	bool captures;
};

struct redirect_rule {
	struct pattern pattern;
	struct slice target, whole; /* whole: its line */
	unsigned line, status;
	unsigned first, parameters;
	bool forced;
	bool left_out; /* it closed a circle */
};

/* Slices refer to the text. */
struct redirect_rules {
	char *text;
	struct redirect_rule *rule;
	struct parameter *parameter;
	unsigned rules, rule_capacity, parameters, parameter_capacity;
	bool hosts; /* some pattern has one */
};

static bool is_redirect(const struct redirect_rule *rule) { return rule->status / 100 == 3; }

/* --- parameters of a query --- */

/* Takes the next one off the front of the query. */
static bool next_parameter(struct slice *query, struct slice *name, struct slice *value) {
	if (!query->length) return false;
	const char *end = memchr(query->at, '&', query->length);
	size_t length = end ? (size_t)(end - query->at) : query->length;
	const char *equals = memchr(query->at, '=', length);
	name->at = query->at;
	name->length = equals ? (size_t)(equals - query->at) : length;
	*value = (struct slice){.at = query->at + name->length, .length = length - name->length};
	if (equals) slice_drop(value, 1);
	slice_drop(query, length + (end ? 1 : 0));
	return true;
}

static bool find_parameter(struct slice query, struct slice wanted, struct slice *value) {
	struct slice name;
	if (query.length) slice_drop(&query, 1);
	while (next_parameter(&query, &name, value))
		if (slice_equal(name, wanted)) return true;
	return false;
}

/* Fills in what those of the rule stand for. */
static bool match_parameters(const struct redirect_rules *r, const struct redirect_rule *rule, struct slice query,
							 struct slice *values) {
	for (unsigned i = 0; i < rule->parameters; i++) {
		const struct parameter *p = &r->parameter[rule->first + i];
		if (!find_parameter(query, p->name, &values[i])) return false;
		if (!p->captures && !slice_equal(values[i], p->value)) return false;
	}
	return true;
}

/* The number of the parameter that has this placeholder for a value, or -1. */
static int parameter_capture(const struct redirect_rules *r, const struct redirect_rule *rule, struct slice name) {
	for (unsigned i = 0; i < rule->parameters; i++) {
		const struct parameter *p = &r->parameter[rule->first + i];
		if (p->captures && slice_equal(p->value, name)) return (int)i;
	}
	return -1;
}

/* --- from a rule to its target --- */

/* What a rule has matched. */
struct found {
	struct pattern_captures captures;
	struct slice parameter[REDIRECT_PARAMETERS_MAX];
};

/* For find_value(). */
struct names {
	const struct redirect_rules *rules;
	const struct redirect_rule *rule;
	const struct found *found;
};

static bool find_value(const void *context, struct slice name, struct slice *value, bool *encoded) {
	const struct names *n = context;
	int i = pattern_capture(&n->rule->pattern, name);
	*encoded = i < 0;
	if (i >= 0) *value = n->found->captures.value[i];
	else if ((i = parameter_capture(n->rules, n->rule, name)) >= 0) *value = n->found->parameter[i];
	return i >= 0;
}

/* Writes the rule's target. The query is that of the request. */
static bool fill_in(const struct redirect_rules *r, const struct redirect_rule *rule, const struct found *found,
					struct slice query, char *buffer, struct slice *target) {
	const struct names names = {.rules = r, .rule = rule, .found = found};
	const struct target_filling filling = {.target = rule->target,
										   .query = rule->parameters ? (struct slice){0} : query,
										   .path_only = !is_redirect(rule),
										   .find = find_value,
										   .context = &names};
	return target_fill(&filling, buffer, target);
}

/* Whether a redirect would lead back to this rule, for the same path and host. */
static bool leads_to_itself(const struct redirect_rules *r, const struct redirect_rule *rule,
							const struct redirect_request *request, struct slice target) {
	char decoded[REDIRECT_TARGET_MAX];
	struct slice query, path = target_path(target, &query), values[REDIRECT_PARAMETERS_MAX];
	size_t length;
	if (!target_is_local(target) && !target_same_host(target_authority(target), request->host)) return false;
	if (path_decode(path, decoded, &length) != 0) return false;
	struct slice asked = request->path;
	slice_drop(&asked, 1);
	if (!slice_equal((struct slice){.at = decoded, .length = length}, asked)) return false;
	return match_parameters(r, rule, query, values);
}

/* --- matching --- */

/* Whether this rule is for that request. */
static bool rule_matches(const struct redirect_rules *r, const struct redirect_rule *rule,
						 const struct pattern_subject *subject, const struct redirect_request *request,
						 struct found *found) {
	return pattern_match(&rule->pattern, subject, &found->captures) &&
		   match_parameters(r, rule, request->query, found->parameter);
}

/* Whether its target can be used, too. */
static bool rule_applies(const struct redirect_rules *r, const struct redirect_rule *rule,
						 const struct redirect_request *request, const struct found *found, char *buffer,
						 struct slice *target) {
	return fill_in(r, rule, found, request->query, buffer, target) &&
		   !(is_redirect(rule) && leads_to_itself(r, rule, request, *target));
}

bool redirect_rules_match(const struct redirect_rules *r, const struct redirect_request *request, bool forced_only,
						  char *buffer, struct redirect *result) {
	struct pattern_subject subject;
	struct found found;
	if (!request->path.length) return false;
	pattern_subject(&subject, r->hosts ? request->host : (struct slice){0}, request->path, PATTERN_LOOSE);
	for (unsigned i = 0; i < r->rules; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		if (forced_only && !rule->forced) continue;
		if (!rule_matches(r, rule, &subject, request, &found)) continue;
		if (!rule_applies(r, rule, request, &found, buffer, &result->target)) continue;
		result->status = (int)rule->status;
		result->forced = rule->forced;
		return true;
	}
	return false;
}

/* --- parsing --- */

static bool parse_from(struct redirect_rules *r, struct redirect_rule *rule, struct slice word,
					   struct rules_error *error) {
	const char *wrong = pattern_compile(&rule->pattern, word, PATTERN_LOOSE);
	if (!wrong) {
		r->hosts |= pattern_has_host(&rule->pattern);
		return true;
	}
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	rules_fail(error, rule->line, "the pattern is wrong: %s%s", wrong,
			   word.at[word.length - 1] == ':' ? "; fields belong into the file _headers" : "");
	return false;
}

static bool parse_parameter(struct redirect_rules *r, struct redirect_rule *rule, struct slice word,
							struct rules_error *error) {
	struct parameter p = {.name = word, .value = SLICE("")};
	struct slice rest = word, twice;
	const char *wrong = NULL;
	if (!memchr(word.at, '=', word.length) || word.at[0] == '=') {
		rules_fail(error, rule->line, "'%.*s' is neither a parameter nor a path or URL to go to", RULES_SHOWN(word));
		return false;
	}
	(void)next_parameter(&rest, &p.name, &p.value); /* there is one: the word is not empty */
	struct slice name = p.value.length ? target_placeholder(p.value) : p.value;
	p.captures = name.length && name.length + 1 == p.value.length;
	if (p.captures) p.value = name;
	for (unsigned i = 0; i < rule->parameters; i++)
		if (slice_equal(r->parameter[rule->first + i].name, p.name)) wrong = "is there twice";
	twice = p.captures ? p.value : (struct slice){0};
	if (twice.at && (pattern_capture(&rule->pattern, twice) >= 0 || parameter_capture(r, rule, twice) >= 0))
		wrong = "has a name that is there twice";
	if (memchr(word.at, '&', word.length)) wrong = "has a '&': each parameter is a word";
	if (rule->parameters == REDIRECT_PARAMETERS_MAX) wrong = "is one parameter too many";
	if (wrong) {
		rules_fail(error, rule->line, "'%.*s' %s", RULES_SHOWN(word), wrong);
		return false;
	}
	void *grown = rules_grow(r->parameter, r->parameters, &r->parameter_capacity, sizeof *r->parameter);
	if (!grown) return rules_no_memory(error);
	r->parameter = grown;
	r->parameter[r->parameters++] = p;
	rule->parameters++;
	return true;
}

static bool check_names(const struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	struct slice rest = rule->target;
	for (; rest.length; slice_drop(&rest, 1)) {
		struct slice name = target_placeholder(rest);
		if (!name.length || pattern_capture(&rule->pattern, name) >= 0 || parameter_capture(r, rule, name) >= 0)
			continue;
		rules_fail(error, rule->line, "nothing before '%.*s' has the name :%.*s (a ':' as text is %%3A)",
				   RULES_SHOWN(rule->target), RULES_SHOWN(name));
		return false;
	}
	return true;
}

static bool check_target(const struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	const char *wrong = target_check(rule->target);
	if (!target_is_local(rule->target) && !is_redirect(rule))
		wrong = "is a URL, which is not fetched for the client: with 301 or 302 it is sent there";
	if (!wrong) return check_names(r, rule, error);
	rules_fail(error, rule->line, "'%.*s' %s", RULES_SHOWN(rule->target), wrong);
	return false;
}

static bool parse_status(struct redirect_rule *rule, struct slice word, struct rules_error *error) {
	static const unsigned known[] = {200, 301, 302, 303, 307, 308, 404, 410};
	struct slice digits = word;
	rule->forced = word.at[word.length - 1] == '!';
	if (rule->forced) digits.length--;
	rule->status = 0;
	for (size_t i = 0; i < digits.length && digits.length == 3; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9') break;
		rule->status = rule->status * 10 + (unsigned)(digits.at[i] - '0');
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (rule->status == known[i]) return true;
	rules_fail(error, rule->line, "'%.*s' is no status of a rule: 200, 301, 302, 303, 307, 308, 404 and 410 are",
			   RULES_SHOWN(word));
	return false;
}

/* What comes behind the target. */
static bool parse_rest(struct redirect_rule *rule, struct slice line, struct rules_error *error) {
	struct slice word;
	for (bool first = true; rules_next_word(&line, &word); first = false) {
		const char *equals = memchr(word.at, '=', word.length);
		if (!equals && first) {
			if (!parse_status(rule, word, error)) return false;
			continue;
		}
		struct slice name = {.at = word.at, .length = equals ? (size_t)(equals - word.at) : 0};
		if (name.length) rules_fail(error, rule->line, "the condition %.*s is not known here", RULES_SHOWN(name));
		else rules_fail(error, rule->line, "'%.*s' is no condition", RULES_SHOWN(word));
		return false;
	}
	return true;
}

/* Behind `from`. */
static bool parse_words(struct redirect_rules *r, struct redirect_rule *rule, struct slice line,
						struct rules_error *error) {
	struct slice word;
	while (rules_next_word(&line, &word)) {
		if (!pattern_begins(word)) {
			if (!parse_parameter(r, rule, word, error)) return false;
			continue;
		}
		rule->target = word;
		return parse_rest(rule, line, error) && check_target(r, rule, error);
	}
	rules_fail(error, rule->line, "the rule has no path or URL to go to");
	return false;
}

static bool take_line(void *rules, struct slice line, struct rules_error *error) {
	struct redirect_rules *r = rules;
	struct redirect_rule rule = {.line = error->line, .whole = error->whole, .status = 301, .first = r->parameters};
	struct slice from;
	(void)rules_next_word(&line, &from);
	if (r->rules == RULES_MAX) {
		rules_fail(error, rule.line, "there are more than %d rules", RULES_MAX);
		return false;
	}
	void *grown = rules_grow(r->rule, r->rules, &r->rule_capacity, sizeof *r->rule);
	if (!grown) return rules_no_memory(error);
	r->rule = grown;
	if (!parse_from(r, &rule, from, error)) return false;
	if (!parse_words(r, &rule, line, error)) {
		pattern_free(&rule.pattern);
		r->parameters = rule.first;
		return false;
	}
	r->rule[r->rules++] = rule;
	return true;
}

/* --- circles --- */

/* Whether it is a rule for one path, which gives *host, absent if any. */
static bool is_literal(const struct redirect_rule *rule, struct slice *host) {
	return pattern_is_literal(&rule->pattern, host) && !rule->parameters && !rule->left_out;
}

/* The literal redirect that the target of that one leads to; NO_RULE: none. */
static int successor(const struct redirect_rules *r, unsigned from, struct rules_report *report) {
	char buffer[REDIRECT_TARGET_MAX], decoded[1 + REDIRECT_TARGET_MAX] = "/", other[REDIRECT_TARGET_MAX];
	struct pattern_subject subject;
	struct found found = {0}; /* a literal has nothing to be found */
	struct slice target, query, host;
	size_t length;
	const struct redirect_rule *rule = &r->rule[from];
	if (!is_literal(rule, &host) || !is_redirect(rule)) return NO_RULE;
	if (!fill_in(r, rule, &found, (struct slice){0}, buffer, &target)) return NO_RULE;
	if (!target_is_local(target)) host = target_authority(target);
	if (path_decode(target_path(target, &query), decoded + 1, &length) != 0) return NO_RULE;
	const struct redirect_request next = {.host = host, .path = {.at = decoded, .length = 1 + length}};
	pattern_subject(&subject, host, next.path, PATTERN_LOOSE);
	bool there = target_is_local(target) && report->there && report->there(report, next.path);
	for (unsigned i = 0; i < r->rules; i++) {
		rule = &r->rule[i];
		if (!pattern_match(&rule->pattern, &subject, &found.captures)) continue;
		struct slice its_host;
		if (rule->left_out || (there && !rule->forced)) continue;
		if (!is_literal(rule, &its_host)) return NO_RULE; /* it comes first, perhaps */
		if (!its_host.at != !host.at) continue;
		if (!rule_applies(r, rule, &next, &found, other, &target)) continue;
		return is_redirect(rule) ? (int)i : NO_RULE;
	}
	return NO_RULE;
}

/* The last in the file of a circle that is reached from there, by way of rules not seen on earlier walks; NO_RULE:
 * none. walk[]: by which walk a rule was seen, 0: by none. */
static int find_circle(const int *next, unsigned *walk, unsigned start) {
	int at = (int)start, last;
	for (; at != NO_RULE && !walk[at]; at = next[at]) walk[at] = start + 1;
	if (at == NO_RULE || walk[at] != start + 1) return NO_RULE;
	last = at;
	for (int j = next[at]; j != at; j = next[j])
		if (j > last) last = j;
	return last;
}

/* Leaves out the rule that closes a circle: those that led to it may lead elsewhere then. */
static void leave_out(struct redirect_rules *r, int *next, unsigned *walk, int rule, bool last,
					  struct rules_report *report) {
	struct rules_error error = {.whole = r->rule[rule].whole};
	rules_fail(&error, r->rule[rule].line, "it leads in a circle: line %u leads back to it", r->rule[next[rule]].line);
	report->tell(report, &error);
	r->rule[rule].left_out = true;
	next[rule] = NO_RULE;
	for (unsigned i = 0; i < r->rules; i++)
		if (next[i] == rule) next[i] = last ? NO_RULE : successor(r, i, report);
	memset(walk, 0, r->rules * sizeof *walk);
}

static void drop_left_out(struct redirect_rules *r) {
	unsigned kept = 0;
	for (unsigned i = 0; i < r->rules; i++) {
		if (r->rule[i].left_out) pattern_free(&r->rule[i].pattern);
		else r->rule[kept++] = r->rule[i];
	}
	r->rules = kept;
}

/* false: no memory. */
static bool break_circles(struct redirect_rules *r, struct rules_report *report) {
	unsigned *walk = calloc(r->rules + 1, sizeof *walk);
	int *next = calloc(r->rules + 1, sizeof *next);
	bool ok = walk && next;
	unsigned circles = 0;
	for (unsigned i = 0; ok && i < r->rules; i++) next[i] = successor(r, i, report);
	for (unsigned i = 0; ok && i < r->rules; i++) {
		int last = find_circle(next, walk, i);
		if (last == NO_RULE) continue;
		leave_out(r, next, walk, last, ++circles > CIRCLES_MAX, report);
		i = UINT_MAX; /* from the start */
	}
	free(walk);
	free(next);
	drop_left_out(r);
	return ok;
}

struct redirect_rules *redirect_rules_parse(struct slice text, struct rules_report *report) {
	struct rules_error error = {0};
	struct redirect_rules *r = calloc(1, sizeof *r);
	if (!r || !(r->text = malloc(text.length + 1))) goto no_memory;
	if (text.length) memcpy(r->text, text.at, text.length);
	text.at = r->text;
	if (!rules_read(text, take_line, r, report)) goto wrong;
	if (break_circles(r, report)) return r;
no_memory:
	(void)rules_no_memory(&error);
	report->tell(report, &error);
wrong:
	redirect_rules_free(r);
	return NULL;
}

void redirect_rules_free(struct redirect_rules *r) {
	if (!r) return;
	for (unsigned i = 0; i < r->rules; i++) pattern_free(&r->rule[i].pattern);
	free(r->parameter);
	free(r->rule);
	free(r->text);
	free(r);
}
