/* redirect_rules.c - see redirect_rules.h. A target is kept as it is written, and filled in when its rule matches
 * (redirect_target.h). */
#include "gatling/site/rules/redirect_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/owfat.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/parameters.h"
#include "gatling/site/rules/redirect_rule.h"

/* How much is compared for a request, as pattern_subject.work counts it. A byte of a query counts as WORK_PARAMETER for
 * each parameter that is looked for, looking for a file as WORK_FILE. */
enum { REQUEST_WORK_MAX = 2 << 20, WORK_PARAMETER = 4, WORK_FILE = 1024 };

enum { HIDING_WORK_MAX = 1 << 20 /* pairs of rules of a file of which one may hide the other */ };

/* Returns whether the query has the parameters of the rule, and fills in their values. */
static bool match_parameters(const struct redirect_rule *rule, struct slice query, struct slice *values) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (!parameter_find(query, &rule->parameter[i], &values[i])) return false;
	return true;
}

/* Returns whether the query may have the parameters of the rule. */
static bool may_match_parameters(const struct redirect_rule *rule, const uint64_t *noted) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (!parameters_may_have(noted, &rule->parameter[i])) return false;
	return true;
}

/* Returns the index of a name: pattern_capture(), or PATTERN_TOKENS_MAX plus the index of a parameter, or -1 if the
 * rule has no such name. */
static int find_name(const struct redirect_rule *rule, struct slice name) {
	for (unsigned i = 0; i < rule->parameters; i++)
		if (rule->parameter[i].captures && slice_equal(rule->parameter[i].value, name))
			return PATTERN_TOKENS_MAX + (int)i;
	return pattern_capture(&rule->pattern, name);
}

/* Returns the same index for the longest name with which the text begins, and its length, or -1 and 0. */
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

/* Takes the text before the next name, and the name, off the front of a target. Returns the text. *name: its index, or
 * -1 at the end. */
static struct slice next_name(const struct redirect_rule *rule, struct slice *text, int *name) {
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
	if (rule->languages.at && !speaks_one_of(q->language, rule->languages)) return false;
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

bool redirect_rule_has_scheme(const struct redirect_rule *rule, const struct redirect_request *request) {
	return request->any_scheme || rule->scheme != (request->secure ? SCHEME_HTTP : SCHEME_HTTPS);
}

bool redirect_follow(struct slice target, const struct redirect_request *request, char *decoded,
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

/* Returns the start of the target's path that no client chooses. */
static struct slice fixed_start(const struct redirect_rule *rule) {
	struct slice path = rule->target.path;
	int name;
	return next_name(rule, &path, &name);
}

/* Returns whether a redirect has led to this path already, and would lead on for ever: "/b/c/x" with a rule "/b" and a
 * splat that leads to "/b/c/:splat". path: with a '/' at its end. */
static bool has_led_to(const struct redirect_rule *rule, struct slice path) {
	if (!redirect_rule_redirects(rule) || rule->target.authority.at || !pattern_is_open(&rule->pattern)) return false;
	const struct slice from = pattern_path_start(&rule->pattern), to = fixed_start(rule);
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
	return redirect_rule_redirects(match->rule) && redirect_follow(target, &here, decoded, &next) &&
		   slice_equal(next.path, request->path) && (!known || next.secure == here.secure) &&
		   (next.host.at == request->host.at || redirect_target_same_host(next.host, request->host)) &&
		   match_parameters(match->rule, next.query, values);
}

/* Writes the target of the rule that has matched. A redirect goes without a query that does not fit. */
static enum redirect_filled fill_in(const struct redirect_match *match, const struct redirect_request *request,
									char *buffer, struct slice *target) {
	const struct redirect_rule *rule = match->rule;
	if (rule->keeps_path) {
		if (3 * request->path.length > REDIRECT_TARGET_MAX) return REDIRECT_MISFIT;
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

bool redirect_leads_on(const struct redirect_match *match, const struct redirect_request *request, char *buffer,
					   struct slice *target) {
	return fill_in(match, request, buffer, target) == REDIRECT_FILLED && !leads_to_itself(match, request, *target);
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
	return (REDIRECT_WORK_FILLING + WORK_PARAMETER * rule->parameters) * length;
}

/* Returns whether a rule applies to the path even if one above leaves it to a file: it runs what is there, or refuses
 * to. */
static bool is_first(const struct redirect_rule *rule, struct slice path) {
	return rule->scripts || rule->refuses_program || is_source(rule, path);
}

bool redirect_rules_match(const struct redirect_rules *r, const struct redirect_request *request, bool there,
						  char *buffer, struct redirect *result) {
	struct pattern_subject subject;
	struct redirect_match match;
	const unsigned rules = there ? r->forced : r->rules;
	result->vary = 0;
	if (!request->path.length || !rules) return false;
	const uint64_t *noted = NULL; /* by parameters_note() */
	const bool deep = r->programs && request->reach;
	const struct slice reach = deep ? request->reach(request->context, request->path) : request->path;
	pattern_subject(&subject, r->hosts ? request->host : (struct slice){0}, request->path, PATTERN_LOOSE);
	bool left = false; /* to a file */
	unsigned i = 0;
	for (; i < rules && subject.work <= REQUEST_WORK_MAX; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		if (left && !is_first(rule, request->path)) continue;
		if (!rule->scripts && !pattern_may_match(&rule->pattern, &subject)) continue;
		if (!redirect_rule_has_scheme(rule, request)) continue;
		match.rule = rule;
		result->script = 0;
		if (rule->scripts && !find_script(r, rule, request, reach, &subject.work, &result->script)) break;
		if (rule->scripts ? !result->script : !pattern_match_parts(&rule->pattern, &subject, &match.captures)) continue;
		if (rule->parameters && !noted) noted = parameters_note(request->query);
		if (!may_match_parameters(rule, noted)) continue;
		subject.work += WORK_PARAMETER * rule->parameters * request->query.length;
		if (!match_parameters(rule, request->query, match.parameter)) continue;
		if (rule->conditional && !meets_conditions(rule, request, &result->vary)) continue;
		if (has_led_to(rule, subject.path)) continue;
		subject.work += filling_work(rule, request);
		const enum redirect_filled filled = fill_in(&match, request, buffer, &result->target);
		if (filled == REDIRECT_MISFIT && rule->forced) break;
		if (filled != REDIRECT_FILLED || leads_to_itself(&match, request, result->target)) continue;
		left = there && !rule->forced && !is_source(rule, request->path); /* the file comes first */
		if (left) continue;
		result->status = (int)rule->status;
		result->forced = rule->forced;
		result->upstream = r->may_pass ? rule->upstream : NULL;
		result->refused = rule->refused || (rule->upstream && !r->may_pass);
		result->own_path = rule->own_path;
		result->fixed = fixed_start(rule);
		result->extension = rule->extension;
		return true;
	}
	/* a rule that was not compared, or whose script or target is not known, may protect something */
	const bool undecided = i < rules || subject.work > REQUEST_WORK_MAX;
	if (undecided) *result = (struct redirect){.status = 503, .forced = true, .refused = true, .vary = result->vary};
	return undecided;
}

/* --- parsing --- */

/* Takes the next word off the front. Returns false at the end, or where a comment begins. */
static bool next_word(struct slice *line, struct slice *word) {
	*line = slice_trim(*line);
	if (!line->length || line->at[0] == '#') return false;
	*word = slice_first(*line, slice_until(*line, ' '));
	word->length = slice_until(*word, '\t');
	slice_drop(line, word->length);
	return true;
}

static bool parse_parameter(struct redirect_rule *rule, struct slice word, struct rules_error *error) {
	struct parameter p = {.value = word};
	const char *wrong = NULL;
	p.name = rules_take_until(&p.value, '=');
	if (!p.name.length || p.name.length == word.length)
		return rules_fail(error, "'%.*s' is neither a parameter nor a path or URL to go to", RULES_SHOWN(word));
	p.captures = p.value.length > 1 && p.value.at[0] == ':';
	if (p.captures) slice_drop(&p.value, 1);
	for (unsigned i = 0; i < rule->parameters; i++)
		if (slice_equal(rule->parameter[i].name, p.name)) wrong = "is there twice";
	if (p.captures && find_name(rule, p.value) >= 0) wrong = "has a name that is there twice";
	if (memchr(word.at, '&', word.length)) wrong = "has a '&': write each parameter as a word of its own";
	if (rule->parameters == REDIRECT_PARAMETERS_MAX) wrong = "is one parameter too many";
	if (wrong) return rules_fail(error, "'%.*s' %s", RULES_SHOWN(word), wrong);
	p.hash = parameter_hash(&p);
	rule->parameter[rule->parameters++] = p;
	return true;
}

/* Returns whether a URL is that of a program. */
static bool is_program(struct slice url) {
	if (!url.at || url.length < strlen("fcgi://")) return false;
	struct slice scheme = slice_first(url, strlen("fcgi://"));
	return slice_equal_nocase(scheme, SLICE("fcgi://")) || slice_equal_nocase(scheme, SLICE("scgi://"));
}

/* Returns the extension of the last name in a path, with its '.', or an absent slice. */
static struct slice extension_of(struct slice path) {
	for (size_t at = path.length; at-- && path.at[at] != '/';)
		if (path.at[at] == '.') return slice_rest(path, at);
	return (struct slice){0};
}

/* Makes the rule one that passes requests on. Its target is then the path and query of its URL. Returns false if the
 * URL is wrong or not allowed. */
static bool set_upstream(struct redirect_rule *rule, const struct upstreams_allowed *allowed,
						 struct rules_error *error) {
	static const struct upstreams_allowed none;
	const bool program = is_program(rule->to);
	struct slice scheme = slice_first(rule->to, strlen("http://")), rest = slice_rest(rule->to, scheme.length);
	char address[UPSTREAM_TEXT_MAX], option[UPSTREAM_TEXT_MAX];
	const char *wrong = NULL;
	if (rule->status != 200) wrong = "is no URL to redirect to: only 200 goes with it";
	if (!program && (rule->status != 200 || !slice_equal_nocase(scheme, SLICE("http://"))))
		wrong = "is no http:// URL to pass requests on to with 200: redirect there with 301 or 302";
	if (!wrong) wrong = upstream_target_parse(scheme, &rest, &rule->upstream);
	if (wrong == upstream_no_memory) return rules_no_memory(error);
	if (!wrong && rest.length && rest.at[0] != '/' && rest.at[0] != '?') wrong = "has a path without a '/' in front";
	if (!wrong && redirect_target_split(rest).fragment.at)
		wrong = "has a fragment, which no request has: as part of a path, '#' is %23";
	if (wrong) return rules_fail(error, "'%.*s' %s", RULES_SHOWN(rule->to), wrong);
	if (rule->upstream->protocol == UPSTREAM_FCGI) rule->extension = extension_of(redirect_target_split(rest).path);
	const struct upstream_address *refused = upstreams_refused(allowed ? allowed : &none, rule->upstream);
	if (refused) {
		upstream_format(address, refused);
		upstream_format_allowed(option, refused);
		return rules_fail(error, "nothing is passed on to %s without --upstream %s", address, option);
	}
	rule->target = redirect_target_split(rest);
	rule->target.scheme = rule->target.authority = (struct slice){0};
	rule->own_path = program && !rule->target.path.length;
	if (!rule->target.path.length) rule->target.path = SLICE("/");
	return true;
}

/* Returns whether the rule leads to another path of the site, or of an upstream, with a segment of dots. */
static bool leads_to_dots(const struct redirect_rule *rule) {
	return !redirect_rule_redirects(rule) && rule->target.path.length && path_has_dots(rule->target.path);
}

/* Has a wrong rule for a program refuse requests with 503, since scripts are never sent; likewise one that would have
 * sent an error, or another path, in the place of files. Returns false for other rules. */
static bool refuse(struct redirect_rule *rule) {
	const bool hides = rule->forced && !rule->conditional && !redirect_rule_redirects(rule);
	if (!is_program(rule->to) && !hides) return false;
	upstream_target_release(rule->upstream);
	rule->upstream = NULL;
	rule->refused = rule->forced = true;
	rule->refuses_program = is_program(rule->to);
	rule->status = 503;
	rule->parameters = 0;
	rule->target = (struct redirect_target){.path = SLICE("/")};
	return true;
}

/* Notes which parameters the path of the target gets. */
static void note_names_of_path(struct redirect_rule *rule) {
	for (struct slice rest = rule->target.path; rest.length;) {
		int name;
		(void)next_name(rule, &rest, &name);
		if (name >= PATTERN_TOKENS_MAX) rule->parameter[name - PATTERN_TOKENS_MAX].in_path = true;
	}
}

static bool check_to(struct redirect_rule *rule, const struct upstreams_allowed *allowed, struct rules_error *error) {
	const bool program = is_program(rule->to);
	if ((program || (rule->target.authority.at && !redirect_rule_redirects(rule))) &&
		!set_upstream(rule, allowed, error))
		return false;
	rule->scripts = rule->own_path && rule->upstream->protocol == UPSTREAM_FCGI;
	rule->forced |= rule->scripts;

	const char *wrong = redirect_target_check(rule->upstream ? rule->target.path : rule->to);
	if (!wrong && rule->upstream && rule->target.query.at) wrong = redirect_target_check(rule->target.query);
	if (!wrong && leads_to_dots(rule)) wrong = "has a segment '.' or '..': write the path that it leads to";
	if (wrong) return rules_fail(error, "'%.*s' %s", RULES_SHOWN(rule->to), wrong);
	note_names_of_path(rule);
	for (struct slice rest = rule->target.authority, name; rest.length;) {
		(void)pattern_next_name(&rest, &name);
		if (name.length && find_name(rule, name) < 0)
			return rules_fail(error, "nothing before '%.*s' has the name :%.*s of its host", RULES_SHOWN(rule->to),
							  RULES_SHOWN(name));
	}
	return true;
}

#define STATUSES "200, 301, 302, 303, 307, 308, 401, 403, 404, 410, 418, 451, 500 or 503"

static bool parse_status(struct redirect_rule *rule, struct slice word, struct rules_error *error) {
	struct slice known = SLICE("200, 301, 302, 303, 307, 308, 401, 403, 404, 410, 418, 451, 500, 503"), status,
				 digits = word;
	rule->forced = slice_ends(word, SLICE("!"));
	if (rule->forced) digits.length--;
	while (slice_next_element(&known, &status))
		if (slice_equal(status, digits)) return scan_uint(status.at, &rule->status) > 0;
	return rules_fail(error, "'%.*s' is not a status for a rule: use " STATUSES, RULES_SHOWN(word));
}

/* Parses a condition: NAME=VALUE,VALUE... */
static bool parse_condition(struct redirect_rule *rule, struct slice word, struct slice name, struct slice value,
							struct rules_error *error) {
	struct slice *const condition = slice_equal(name, SLICE("Language")) ? &rule->languages
									: slice_equal(name, SLICE("Cookie")) ? &rule->cookies
																		 : NULL;
	rule->conditional = true;
	if (slice_equal(name, SLICE("Country")) || slice_equal(name, SLICE("Role")))
		return rules_fail(error, "the condition %.*s is never met, since the server knows no %s", RULES_SHOWN(name),
						  name.at[0] == 'C' ? "country of a client" : "roles");
	if (!condition) return rules_fail(error, "the condition %.*s is not supported", RULES_SHOWN(name));
	if (!rule->status) return rules_fail(error, "'%.*s' needs a status in front of it, such as 301", RULES_SHOWN(word));
	if (condition->at) return rules_fail(error, "'%.*s' is the second condition of its kind", RULES_SHOWN(word));
	if (!value.length) return rules_fail(error, "'%.*s' has no value", RULES_SHOWN(word));
	*condition = value;
	return true;
}

/* Parses a word that follows `from`: a parameter, `to`, the status, or a condition. */
static bool parse_word(struct redirect_rule *rule, struct slice word, struct rules_error *error) {
	if (!rule->to.at && (slice_equal(word, SLICE("200")) || slice_equal(word, SLICE("200!")))) {
		rule->keeps_path = true;
		rule->to = SLICE("/");
		rule->target = redirect_target_split(rule->to);
		return parse_status(rule, word, error);
	}
	if (!rule->to.at && !pattern_begins(word) && !is_program(word)) return parse_parameter(rule, word, error);
	if (!rule->to.at) {
		rule->to = word;
		rule->target = redirect_target_split(word);
		return true;
	}
	struct slice value = word, name = rules_take_until(&value, '=');
	if (name.length && name.length < word.length) return parse_condition(rule, word, name, value, error);
	if (!name.length || rule->status) return rules_fail(error, "'%.*s' is not a condition", RULES_SHOWN(word));
	return parse_status(rule, word, error);
}

/* Parses what follows `from`. */
static bool parse_words(struct redirect_rule *rule, struct slice line, const struct upstreams_allowed *allowed,
						struct rules_error *error) {
	for (struct slice word; next_word(&line, &word);)
		if (!parse_word(rule, word, error)) return false;
	if (!rule->to.at) return rules_fail(error, "the rule has no path or URL to go to");
	if (!rule->status) rule->status = is_program(rule->to) ? 200 : 301;
	return check_to(rule, allowed, error);
}

/* Returns whether a redirect could lead to a path of the pattern, so that it would be skipped there. */
static bool may_lead_to(const struct redirect_rule *redirect, const struct pattern *pattern) {
	const struct slice from = pattern_path_start(pattern), to = fixed_start(redirect);
	return from.length < to.length ? slice_starts(to, from) : slice_starts(from, to);
}

/* Returns the line of a rule above that surely answers every request that the last one would, or 0. */
static unsigned hidden_by(struct redirect_rules *r) {
	const struct redirect_rule *last = &r->rule[r->rules - 1];
	for (unsigned i = 0; i + 1 < r->rules && !last->upstream && r->hiding_work <= HIDING_WORK_MAX; i++) {
		const struct redirect_rule *rule = &r->rule[i];
		r->hiding_work++;
		if (rule->parameters || rule->conditional || rule->upstream || rule->refused) continue;
		if (rule->scheme != SCHEME_ANY && rule->scheme != last->scheme) continue;
		if (!pattern_covers(&rule->pattern, &last->pattern)) continue;
		if (!redirect_rule_redirects(rule) || !may_lead_to(rule, &last->pattern)) return rule->line;
	}
	return 0;
}

/* Returns whether a file is always sent in the place of the rule. */
static bool has_file_in_way(const struct redirect_rules *r, const struct redirect_rule *rule) {
	struct slice path = pattern_path_start(&rule->pattern);
	if (!r->report->thorough || !r->report->there || rule->forced || !rule->pattern.literal || rule->upstream)
		return false;
	if (pattern_host(&rule->pattern).at) return false;
	if (rule->status == 200 && slice_starts(rule->target.path, slice_first(path, path.length - 1)))
		return false; /* it only says which file that is */
	if (r->report->there(r->report, path)) return true;
	path.length -= path.length > 1;
	return r->report->there(r->report, path);
}

/* Reports a rule that can never apply. */
static void report_hidden(struct redirect_rules *r, struct rules_error *error) {
	const struct redirect_rule *rule = &r->rule[r->rules - 1];
	const unsigned line = r->report->tell ? hidden_by(r) : 0;
	if (line) (void)rules_fail(error, "it never applies: line %u comes first", line);
	else if (!r->report->tell || !has_file_in_way(r, rule)) return;
	else (void)rules_fail(error, "it does not apply while there is a file: write %u! if it should", rule->status);
	r->report->tell(r->report, error);
}

static void free_rule(struct redirect_rule *rule) {
	pattern_free(&rule->pattern);
	upstream_target_release(rule->upstream);
}

/* Adds a rule, unless it closes a circle. */
static bool add_rule(struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	r->rule[r->rules++] = *rule;
	int before = redirect_closes_circle(r);
	if (before == REDIRECT_NO_RULE) {
		report_hidden(r, error);
		return true;
	}
	r->rules--;
	return rules_fail(error, "it leads in a circle: line %u leads back to it", r->rule[before].line);
}

/* Returns whether a rule has a status with '!' that is not one of a redirect, though it may not have been read. */
static bool is_meant_forced(struct slice line) {
	for (struct slice word; next_word(&line, &word);)
		if (slice_ends(word, SLICE("!")) && word.at[0] != '3') return true;
	return false;
}

/* Adds a rule that refuses requests, and says so. */
static void add_refused(struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	const size_t length = strlen(error->text);
	snprintf(error->text + length, sizeof error->text - length, "; its paths are answered with 503");
	r->rule[r->rules++] = *rule;
	r->protecting = true;
}

static bool add_line(void *rules, struct slice line, struct rules_error *error) {
	struct redirect_rules *r = rules;
	struct redirect_rule rule = {
		.line = error->line, .parameter = r->parameter + r->parameters, .next = REDIRECT_NO_RULE};
	struct slice from = {0};
	(void)next_word(&line, &from);
	if (r->rules == RULES_MAX) return rules_full(error, RULES_MAX, "rules");
	const char *wrong = pattern_compile(&rule.pattern, from, PATTERN_LOOSE);
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	if (wrong)
		return rules_fail(error, "the pattern is wrong: %s%s", wrong,
						  slice_ends(from, SLICE(":")) ? "; fields belong in the file _headers" : "");
	r->hosts |= pattern_host(&rule.pattern).at != NULL;
	rule.scheme = from.at[0] == '/'                           ? SCHEME_ANY
				  : slice_starts_nocase(from, SLICE("https")) ? SCHEME_HTTPS
															  : SCHEME_HTTP;
	bool added = parse_words(&rule, line, r->report->upstreams, error) && add_rule(r, &rule, error);
	if (!added && is_meant_forced(line)) rule.forced = true;
	r->programs |= is_program(rule.to);
	r->protecting |= is_program(rule.to);
	r->passing |= added && rule.upstream;
	if (added) r->parameters += rule.parameters;
	const bool refused = !added && refuse(&rule);
	if (refused) add_refused(r, &rule, error);
	else if (!added) free_rule(&rule);
	if ((added || refused) && (rule.forced || is_program(rule.to))) r->forced = r->rules;
	return added;
}

static bool begin(void *rules, struct slice copy, unsigned lines) {
	struct redirect_rules *r = rules;
	size_t rules_most = lines < RULES_MAX ? lines : RULES_MAX, parameters = 0;
	for (size_t i = 0; i < copy.length; i++) parameters += copy.at[i] == '=';
	if (parameters > rules_most * REDIRECT_PARAMETERS_MAX) parameters = rules_most * REDIRECT_PARAMETERS_MAX;
	r->text = (char *)copy.at;
	r->rule = calloc(rules_most + 1, sizeof *r->rule);
	r->parameter = calloc(parameters + 1, sizeof *r->parameter);
	return r->rule && r->parameter;
}

void *redirect_rules_parse(struct slice text, struct rules_report *report) {
	struct redirect_rules *r = calloc(1, sizeof *r);
	if (r) r->report = report;
	if (rules_read(r, text, begin, add_line, report)) return r;
	redirect_rules_free(r);
	return NULL;
}

void redirect_rules_free(void *redirect_rules) {
	struct redirect_rules *r = redirect_rules;
	if (!r) return;
	for (unsigned i = 0; i < r->rules; i++) free_rule(&r->rule[i]);
	free(r->parameter);
	free(r->rule);
	free(r->text);
	free(r);
}
