/* redirect_parse.c - see redirect_rules.h: reads the rules. A target is kept as it is written, and filled in when its
 * rule matches (redirect_target.h). */
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/lines.h"
#include "gatling/base/owfat.h"
#include "gatling/base/slice.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/parameters.h"
#include "gatling/site/rules/redirect_rule.h"
#include "gatling/site/rules/redirect_rules.h"

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
	if (p.captures && redirect_find_name(rule, p.value) >= 0) wrong = "has a name that is there twice";
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
	const size_t of_host = host_scheme_length(rule->to);
	struct slice scheme = slice_first(rule->to, of_host ? of_host : strlen("fcgi://"));
	struct slice rest = slice_rest(rule->to, scheme.length);
	char address[UPSTREAM_TEXT_MAX], option[UPSTREAM_TEXT_MAX];
	const char *wrong = NULL;
	if (rule->status != 200)
		wrong = program ? "is no URL to redirect to: only 200 goes with it"
						: "is a URL, to which only 200 passes requests on: redirect there with 301 or 302";
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
		upstream_format_allowed(option, rule->upstream, refused);
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
	rule->status = 503;
	rule->parameters = 0;
	rule->target = (struct redirect_target){.path = SLICE("/")};
	rule->fixed = rule->target.path;
	return true;
}

/* Notes what precedes the first name in the path of the target, and which parameters the path gets. */
static void note_names_of_path(struct redirect_rule *rule) {
	struct slice rest = rule->target.path;
	int name;
	for (rule->fixed = redirect_next_name(rule, &rest, &name); name >= 0; (void)redirect_next_name(rule, &rest, &name))
		if (name >= PATTERN_TOKENS_MAX) rule->parameter[name - PATTERN_TOKENS_MAX].in_path = true;
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
		if (name.length && redirect_find_name(rule, name) < 0)
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

/* Returns whether a word is the status of an error, with or without '!'. */
static bool is_error(struct slice word) {
	return (word.length == 3 || (word.length == 4 && word.at[3] == '!')) && (word.at[0] == '4' || word.at[0] == '5') &&
		   text_is_digit(word.at[1]) && text_is_digit(word.at[2]);
}

/* Parses a word that follows `from`: a parameter, `to`, the status, or a condition. */
static bool parse_word(struct redirect_rule *rule, struct slice word, struct rules_error *error) {
	if (!rule->to.at && (slice_equal(word, SLICE("200")) || slice_equal(word, SLICE("200!")))) {
		rule->keeps_path = true;
		rule->to = SLICE("/");
		rule->target = redirect_target_split(rule->to);
		return parse_status(rule, word, error);
	}
	if (!rule->to.at && is_error(word))
		return rules_fail(error, "'%.*s' has no page in front of it, which need not exist: write /%.3s.html %.*s",
						  RULES_SHOWN(word), word.at, RULES_SHOWN(word));
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
	for (struct slice word; lines_next_word(&line, &word);)
		if (!parse_word(rule, word, error)) return false;
	if (!rule->to.at) return rules_fail(error, "the rule has no path or URL to go to");
	if (!rule->status) rule->status = is_program(rule->to) ? 200 : 301;
	return check_to(rule, allowed, error);
}

static void free_rule(struct redirect_rule *rule) {
	pattern_free(&rule->pattern);
	upstream_target_release(rule->upstream);
}

/* Returns whether a rule has a status with '!' that is not one of a redirect, though it may not have been read. */
static bool is_meant_forced(struct slice line) {
	for (struct slice word; lines_next_word(&line, &word);)
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
	struct redirect_rule rule = {.line = error->line, .parameter = r->parameter + r->parameters};
	struct slice from = {0};
	(void)lines_next_word(&line, &from);
	if (r->rules == RULES_MAX) return rules_full(error, RULES_MAX, "rules");
	const char *wrong = pattern_compile(&rule.pattern, from, PATTERN_LOOSE);
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	if (wrong)
		return rules_fail(error, "the pattern is wrong: %s%s", wrong,
						  slice_ends(from, SLICE(":")) ? "; fields belong in the file _headers" : "");
	r->hosts |= pattern_host(&rule.pattern).at != NULL;
	rule.scheme = !from.length || from.at[0] == '/'           ? SCHEME_ANY
				  : slice_starts_nocase(from, SLICE("https")) ? SCHEME_HTTPS
															  : SCHEME_HTTP;
	const bool added = parse_words(&rule, line, r->report->upstreams, error);
	if (added) {
		r->rule[r->rules++] = rule;
		r->parameters += rule.parameters;
		redirect_report_hidden(r, error);
	} else if (is_meant_forced(line)) {
		rule.forced = true;
	}
	r->programs |= is_program(rule.to);
	r->protecting |= is_program(rule.to);
	r->passing |= added && rule.upstream;
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
