/* redirect_rules.c - see redirect_rules.h. A target is kept as it is written, and filled in when its rule matches
 * (redirect_target.h). */
#include "gatling/site/rules/redirect_rules.h"

#include <errno.h>

#include "gatling/base/workspace.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/parameters.h"
#include "gatling/site/rules/redirect_rule.h"

/* The rules of a site must not hold up other sites, so what they make the server do for a request is counted in bytes
 * that are compared (pattern_subject.work). A byte of a query counts as WORK_PARAMETER for each parameter that is
 * looked for, one of a target that is filled in as WORK_FILLING, looking for a file as WORK_FILE. */
enum { REQUEST_WORK_MAX = 2 << 20, WORK_PARAMETER = 4, WORK_FILLING = 16, WORK_FILE = 1024 };

/* Returns whether the query has the parameters of the rule, and fills in their values. */
static bool match_parameters(const struct redirect_rule *rule, struct slice query, struct slice *values) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (!parameter_find(query, &rule->parameter[i], &values[i])) return false;
	return true;
}

/* Returns whether the query may have the parameters of the rule. */
static bool may_match_parameters(const struct redirect_rule *rule, const struct parameter_notes *noted) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (!parameters_may_have(noted, &rule->parameter[i])) return false;
	return true;
}

int redirect_find_name(const struct redirect_rule *rule, struct slice name) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (rule->parameter[i].captures && slice_equal(rule->parameter[i].value, name))
			return PATTERN_TOKENS_MAX + (int)i;
	return pattern_capture(&rule->pattern, name);
}

/* Returns the index of redirect_find_name() for the longest name with which the text begins, and its length, or -1 and
 * 0. */
static int find_first_name(const struct redirect_rule *rule, struct slice text, size_t *length) {
	int found = pattern_capture_first(&rule->pattern, text, length);
	for (unsigned i = 0; i < rule->parameters; i++) {
		const struct slice name = rule->parameter[i].value;
		if (!rule->parameter[i].captures || name.length <= *length || !slice_starts(text, name)) continue;
		found = PATTERN_TOKENS_MAX + (int)i;
		*length = name.length;
	}
	return found;
}

struct slice redirect_next_name(const struct redirect_rule *rule, struct slice *text, int *name) {
	size_t n = 0, length = 0;
	for (*name = -1; n < text->length; n++)
		if (text->at[n] == ':' && (*name = find_first_name(rule, slice_rest(*text, n + 1), &length)) >= 0) break;
	const struct slice before = slice_first(*text, n);
	slice_drop(text, n + (*name >= 0 ? 1 + length : 0));
	return before;
}

/* --- conditions --- */

/* Returns whether a language range (RFC 4647, section 3.3.1) matches a language. */
static bool is_in_range(struct slice language, struct slice range) {
	return slice_starts_nocase(language, range) &&
		   (language.length == range.length || language.at[range.length] == '-');
}

static bool speaks_one_of(struct slice language, struct slice ranges) {
	for (struct slice range; slice_next_element(&ranges, &range);)
		if (is_in_range(language, range)) return true;
	return false;
}

static bool has_one_of(const struct redirect_request *q, struct slice names) {
	for (struct slice name; slice_next_element(&names, &name);)
		if (q->has_cookie && q->has_cookie(q->context, name)) return true;
	return false;
}

/* Returns whether the conditions of the rule are met, and adds to *vary what the answer depends on. */
static bool meets_conditions(const struct redirect_rule *rule, const struct redirect_request *q, unsigned *vary) {
	if (rule->languages.at) *vary |= REDIRECT_VARY_LANGUAGE;
	if (rule->languages.at && !(q->language && speaks_one_of(q->language(q->context), rule->languages))) return false;
	if (rule->cookies.at) *vary |= REDIRECT_VARY_COOKIE;
	return !rule->cookies.at || has_one_of(q, rule->cookies);
}

/* --- matching --- */

/* Finds the value of a name, see struct redirect_filling. */
static size_t find_value(const void *context, struct slice text, struct slice *value, bool *encoded) {
	const struct redirect_match *m = context;
	size_t length;
	const int i = find_first_name(m->rule, text, &length);
	*encoded = i >= PATTERN_TOKENS_MAX;
	if (i >= 0) *value = *encoded ? m->parameter[i - PATTERN_TOKENS_MAX] : m->captures.value[i];
	return length;
}

/* Returns whether the rule is for the scheme of a request. */
static bool has_scheme(const struct redirect_rule *rule, const struct redirect_request *request) {
	return request->any_scheme || rule->scheme != (request->secure ? SCHEME_HTTP : SCHEME_HTTPS);
}

/* Fills in the request of a client that follows a redirect of this request. Writes the path to `decoded` (1 +
 * REDIRECT_TARGET_MAX bytes). Returns false if it is not valid. */
static bool follow(struct slice target, const struct redirect_request *request, char *decoded,
				   struct redirect_request *next) {
	struct redirect_target to = redirect_target_split(target);
	size_t length;
	if (path_decode(to.path, decoded + 1, &length) != 0) return false;
	decoded[0] = '/';
	next->host = to.authority.at ? to.authority : request->host;
	next->secure = to.scheme.length ? slice_starts_nocase(to.scheme, SLICE("https")) : request->secure;
	next->any_scheme = request->any_scheme && !to.scheme.length;
	next->path = (struct slice){.at = decoded, .length = 1 + length};
	next->query = to.query;
	return true;
}

/* Returns whether a redirect has led to this path already, and would lead on for ever: "/b/c/x" with a rule "/b" and a
 * splat that leads to "/b/c/:splat". path: with a '/' at its end. */
static bool has_led_to(const struct redirect_rule *rule, struct slice path) {
	if (!redirect_rule_redirects(rule) || rule->target.authority.at || !pattern_is_open(&rule->pattern)) return false;
	const struct slice from = pattern_path_start(&rule->pattern), to = rule->fixed;
	return to.length > from.length && slice_starts(to, from) && slice_starts(path, to);
}

/* Returns whether the target is a redirect that the same rule would answer, for the same path and host. */
static bool leads_to_itself(const struct redirect_match *match, const struct redirect_request *request,
							struct slice target) {
	char decoded[1 + REDIRECT_TARGET_MAX];
	struct slice values[REDIRECT_PARAMETERS_MAX];
	struct redirect_request here = *request, next;
	const bool known = !request->any_scheme || match->rule->scheme != SCHEME_ANY;
	if (request->any_scheme) here.secure = match->rule->scheme == SCHEME_HTTPS;
	return redirect_rule_redirects(match->rule) && follow(target, &here, decoded, &next) &&
		   slice_equal(next.path, request->path) && (!known || next.secure == here.secure) &&
		   (next.host.at == request->host.at || redirect_target_same_host(next.host, request->host)) &&
		   match_parameters(match->rule, next.query, values);
}

/* Writes the target of the rule that has matched. A redirect goes without a query that does not fit. */
static enum redirect_filled fill_in(const struct redirect_match *match, const struct redirect_request *request,
									char *buffer, struct slice *target) {
	const struct redirect_rule *rule = match->rule;
	if (rule->keeps_path) {
		if (3 * request->path.length > REDIRECT_TARGET_MAX || path_has_dots(request->path)) return REDIRECT_MISFIT;
		*target = (struct slice){.at = buffer, .length = path_encode(request->path, buffer)};
		return REDIRECT_FILLED;
	}
	struct redirect_filling filling = {.target = rule->target,
									   .query = rule->parameters ? (struct slice){0} : request->query,
									   .path_only = !redirect_rule_redirects(rule) && !rule->upstream,
									   .no_dots = !redirect_rule_redirects(rule),
									   .find = find_value,
									   .context = match};
	const enum redirect_filled filled = redirect_target_fill(&filling, buffer, target);
	if (filled != REDIRECT_MISFIT || !redirect_rule_redirects(rule)) return filled;
	filling.query = (struct slice){0};
	return redirect_target_fill(&filling, buffer, target);
}

/* Finds how many bytes of the path, within `reach`, name a script that the rule is for, or 0. Returns false if that is
 * unknown. Not inline, to keep the stack of the caller small. */
__attribute__((noinline)) static bool find_script(const struct redirect_rules *r, const struct redirect_rule *rule,
												  const struct redirect_request *q, struct slice reach, size_t *work,
												  size_t *script) {
	struct pattern_subject subject;
	struct pattern_captures captures;
	*script = 0;
	for (size_t at = 2; at <= reach.length && *work <= REQUEST_WORK_MAX; at++) {
		if (at < q->path.length && q->path.at[at] != '/') continue;
		struct slice part = slice_first(q->path, at);
		pattern_subject(&subject, r->hosts ? q->host : (struct slice){0}, part, PATTERN_LOOSE);
		const bool matches = pattern_match(&rule->pattern, &subject, &captures);
		*work += part.length + subject.work;
		if (!matches) continue;
		*work += WORK_FILE;
		const int error = q->find_file ? q->find_file(q->context, part) : ENOENT;
		if (error == ENOENT) continue;
		if (!error) *script = at;
		return !error;
	}
	return true;
}

/* Returns whether a path has the extension of scripts, which are run and never sent. */
static bool is_source(const struct redirect_rule *rule, struct slice path) {
	return rule->extension.length && slice_ends(path, rule->extension);
}

bool redirect_rules_forced(const struct redirect_rules *r) { return r->forced > 0; }

bool redirect_rules_passing(const struct redirect_rules *r) { return r->passing; }

bool redirect_rules_programs(const struct redirect_rules *r) { return r->programs; }

void redirect_rules_permit(struct redirect_rules *r, bool may_pass) { r->may_pass = may_pass; }

bool redirect_rules_may_send(const struct redirect_rules *r, struct slice path) {
	struct pattern_subject subject;
	struct pattern_captures captures;
	size_t work = 0;
	if (!r->protecting) return true;
	for (unsigned i = 0; i < r->rules; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		if (is_source(rule, path)) return false;
		if (!rule->scripts && !rule->refused) continue;
		pattern_subject(&subject, pattern_host(&rule->pattern), path, PATTERN_LOOSE);
		if (pattern_match(&rule->pattern, &subject, &captures)) return false;
		work += path.length + subject.work;
		if (work > REQUEST_WORK_MAX) return false; /* a rule that is not compared may be for it */
	}
	return true;
}

/* Returns what filling in the target counts, with looking whether it leads to itself. */
static size_t filling_work(const struct redirect_rule *rule, const struct redirect_request *q) {
	const size_t length = rule->to.length + q->path.length + q->query.length;
	return (WORK_FILLING + WORK_PARAMETER * rule->parameters) * length;
}

/* Returns whether a rule applies to the path even if one above leaves it to a file: it runs what is there, or denies
 * access to it. redirected: without a file, the one above would redirect, which is not denied. */
static bool is_first(const struct redirect_rule *rule, struct slice path, bool redirected) {
	return (redirect_rule_denies(rule) && (!redirected || rule->refused)) || rule->scripts || is_source(rule, path);
}

/* Returns whether a rule looks at more than the host and path of a request. */
static bool looks_further(const struct redirect_rule *rule) {
	return rule->scheme != SCHEME_ANY || rule->scripts || rule->parameters || rule->conditional;
}

bool redirect_rules_match(const struct redirect_rules *r, const struct redirect_request *request, bool there,
						  char *buffer, struct redirect *result) {
	struct pattern_subject subject;
	struct redirect_match match;
	const unsigned rules = there ? r->forced : r->rules;
	result->vary = 0;
	if (!request->path.length || !rules) return false;
	struct parameter_notes *noted = NULL; /* of the query, when the first rule requires parameters */
	const bool deep = r->programs && request->reach;
	const struct slice reach = deep ? request->reach(request->context, request->path) : request->path;
	pattern_subject(&subject, r->hosts ? request->host : (struct slice){0}, request->path, PATTERN_LOOSE);
	bool left = false, redirected = false; /* to a file; by a redirect */
	bool by_path = true;                   /* what is decided so far is the same for all requests with this path */
	unsigned i = 0;
	for (; i < rules && subject.work <= REQUEST_WORK_MAX; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		if (left && !is_first(rule, request->path, redirected)) continue;
		if (!rule->scripts && !pattern_may_match(&rule->pattern, &subject)) continue;
		by_path &= !looks_further(rule);
		if (!has_scheme(rule, request)) continue;
		match.rule = rule;
		result->script = 0;
		if (rule->scripts && !find_script(r, rule, request, reach, &subject.work, &result->script)) break;
		if (rule->scripts ? !result->script : !pattern_match_parts(&rule->pattern, &subject, &match.captures)) continue;
		if (rule->parameters && !noted) parameters_note(request->query, noted = WORKSPACE(sizeof *noted));
		if (!may_match_parameters(rule, noted)) continue;
		subject.work += WORK_PARAMETER * rule->parameters * request->query.length;
		if (!match_parameters(rule, request->query, match.parameter)) continue;
		if (rule->conditional && !meets_conditions(rule, request, &result->vary)) continue;
		if (has_led_to(rule, subject.path)) continue;
		subject.work += filling_work(rule, request);
		result->by_path = by_path;
		by_path = false; /* it may be the query with which the target does not fit */
		const enum redirect_filled filled = fill_in(&match, request, buffer, &result->target);
		if (filled == REDIRECT_MISFIT && rule->forced) break;
		if (filled != REDIRECT_FILLED || leads_to_itself(&match, request, result->target)) continue;
		left = there && !rule->forced && !is_source(rule, request->path); /* the file comes first */
		redirected |= left && redirect_rule_redirects(rule);
		if (left) continue;
		result->line = rule->line;
		result->status = (int)rule->status;
		result->forced = rule->forced;
		result->upstream = r->may_pass ? rule->upstream : NULL;
		result->refused = rule->refused || (rule->upstream && !r->may_pass);
		result->has_query = rule->target.query.at;
		result->own_path = rule->own_path;
		result->fixed = rule->fixed;
		result->extension = rule->extension;
		return true;
	}
	/* a rule that was not compared, or whose script or target is not known, may protect something */
	const bool undecided = i < rules || subject.work > REQUEST_WORK_MAX;
	if (undecided) *result = (struct redirect){.status = 503, .forced = true, .refused = true, .vary = result->vary};
	return undecided;
}
