/* redirect_rules.c - see redirect_rules.h. A target is kept as it is written, and filled in when its rule matches. */
#include "gatling/redirect_rules.h"

#include <stdlib.h>

#include "gatling/octet.h"
#include "gatling/owfat.h"
#include "gatling/path.h"
#include "gatling/pattern.h"

enum { NO_RULE = -1 };

struct parameter {
	struct slice name, value; /* the value without the ':' of a placeholder */
	bool captures;
};

struct redirect_rule {
	struct pattern pattern;
	struct slice target;
	unsigned line, status;
	unsigned first, parameters;
	bool forced;
	bool conditional; /* never applies */
};

/* Slices refer to the text. */
struct redirect_rules {
	char *text;
	struct redirect_rule *rule;
	struct parameter *parameter;
	unsigned rules, rule_capacity, parameters, parameter_capacity;
	bool hosts; /* some pattern has one */
};

static void skip(struct slice *s, size_t length) {
	s->at += length;
	s->length -= length;
}

static bool is_redirect(const struct redirect_rule *rule) { return rule->status / 100 == 3; }

static bool is_local(struct slice target) { return target.at[0] == '/'; }

/* The length of http:// or https:// at the start, else 0. */
static size_t scheme_length(struct slice url) {
	static const struct slice scheme[] = {SLICE("http://"), SLICE("https://")};
	for (int i = 0; i < 2; i++)
		if (url.length >= scheme[i].length && strncasecmp(url.at, scheme[i].at, scheme[i].length) == 0)
			return scheme[i].length;
	return 0;
}

/* The authority of a target, absent if it is local. */
static struct slice authority_of(struct slice target) {
	size_t n = scheme_length(target), end = n;
	if (!n) return (struct slice){0};
	while (end < target.length && !memchr("/?#", target.at[end], 3)) end++;
	return (struct slice){.at = target.at + n, .length = end - n};
}

/* The name behind a ':' at the start, empty if there is none. */
static struct slice placeholder(struct slice text) {
	struct slice name = {.at = text.at + 1, .length = text.length - 1};
	name.length = text.at[0] == ':' ? pattern_name(name) : 0;
	return name;
}

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
	if (equals) skip(value, 1);
	skip(query, length + (end ? 1 : 0));
	return true;
}

static bool find_parameter(struct slice query, struct slice wanted, struct slice *value) {
	struct slice name;
	if (query.length) skip(&query, 1);
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

enum part { PART_AUTHORITY, PART_PATH, PART_QUERY, PART_FRAGMENT };

struct writer {
	char *at;
	size_t used;
	enum part part;
	bool local;
	bool failed; /* it does not fit, or is no host */
};

static void put(struct writer *w, char c) {
	/* "//" would begin a host */
	if (c == '/' && w->local && w->part == PART_PATH && w->used == 1) return;
	if (w->used == REDIRECT_TARGET_MAX) w->failed = true;
	else w->at[w->used++] = c;
}

static void put_encoded(struct writer *w, char c) {
	char encoded[3];
	size_t n = path_encode((struct slice){.at = &c, .length = 1}, encoded);
	for (size_t i = 0; i < n; i++) put(w, encoded[i]);
}

static bool is_encoded(struct slice s) {
	return s.length > 2 && s.at[0] == '%' && scan_fromhex((unsigned char)s.at[1]) >= 0 &&
		   scan_fromhex((unsigned char)s.at[2]) >= 0;
}

/* Puts the octet at the start of what is encoded already: what a URL may hold in any part, and what is in `also`, stays
 * as it is. */
static void put_again(struct writer *w, struct slice s, const char *also) {
	char c = s.at[0];
	if (is_encoded(s) || (c && c != '%' && (strchr("!$'()*+,;:@=", c) || strchr(also, c)))) put(w, c);
	else put_encoded(w, c);
}

static bool is_host_text(struct slice s) {
	size_t n = 0;
	while (n < s.length && octet_is(s.at[n], OCTET_HOST)) n++;
	return n > 0 && n == s.length;
}

/* Puts what a placeholder stands for: octets, if it is of the path; else they are encoded already. */
static void put_value(struct writer *w, struct slice value, bool encoded) {
	if (w->part == PART_AUTHORITY && !is_host_text(value)) w->failed = true;
	for (; value.length && !w->failed; skip(&value, 1)) {
		if (encoded) put_again(w, value, "");
		else put_encoded(w, value.at[0]);
	}
}

static void put_placeholder(struct writer *w, const struct redirect_rules *r, const struct redirect_rule *rule,
							const struct found *found, struct slice name) {
	int i = pattern_capture(&rule->pattern, name);
	if (i >= 0) put_value(w, found->captures.value[i], false);
	else if ((i = parameter_capture(r, rule, name)) >= 0) put_value(w, found->parameter[i], true);
}

static void put_query(struct writer *w, struct slice query) {
	if (query.length < 2) return;
	w->part = PART_QUERY;
	put(w, '?');
	for (skip(&query, 1); query.length && !w->failed; skip(&query, 1)) put_again(w, query, "&?");
}

static enum part part_after(enum part part, char c) {
	if (part == PART_AUTHORITY && c == '/') return PART_PATH;
	if (part < PART_QUERY && c == '?') return PART_QUERY;
	return c == '#' ? PART_FRAGMENT : part;
}

/* Puts a stretch of the rule's target, with what its placeholders stand for. */
static void put_text(struct writer *w, const struct redirect_rules *r, const struct redirect_rule *rule,
					 const struct found *found, struct slice text) {
	while (text.length && !w->failed) {
		struct slice name = placeholder(text);
		enum part part = part_after(w->part, text.at[0]);
		bool begins = part != w->part;
		w->part = part;
		if (name.length) put_placeholder(w, r, rule, found, name);
		else if (begins) put(w, text.at[0]);
		else put_again(w, text, part == PART_PATH ? "&" : "&?");
		skip(&text, 1 + name.length);
	}
}

/* Writes the rule's target. The query is what a redirect passes on, if its own is none. */
static bool fill_in(const struct redirect_rules *r, const struct redirect_rule *rule, const struct found *found,
					struct slice query, char *buffer, struct slice *target) {
	struct writer w = {.at = buffer, .local = is_local(rule->target)};
	struct slice front = rule->target, fragment = front;
	const char *hash = memchr(front.at, '#', front.length);
	if (hash) front.length = (size_t)(hash - front.at);
	skip(&fragment, front.length);
	const char *question = memchr(front.at, '?', front.length);
	if (!is_redirect(rule)) {
		if (question) front.length = (size_t)(question - front.at);
		fragment.length = 0;
	}
	for (size_t n = scheme_length(front); n; n--, skip(&front, 1)) put(&w, front.at[0]);
	w.part = w.local ? PART_PATH : PART_AUTHORITY;
	put_text(&w, r, rule, found, front);
	if (is_redirect(rule) && !rule->parameters && !question) put_query(&w, query);
	put_text(&w, r, rule, found, fragment);
	*target = (struct slice){.at = buffer, .length = w.used};
	return !w.failed;
}

/* --- whether a target is what was asked for --- */

/* Without the port that the scheme has anyway, whichever it is. */
static struct slice without_default_port(struct slice authority) {
	static const struct slice port[] = {SLICE(":80"), SLICE(":443"), SLICE(":")};
	for (int i = 0; i < 3; i++) {
		size_t n = port[i].length;
		if (authority.length < n || memcmp(authority.at + authority.length - n, port[i].at, n) != 0) continue;
		authority.length -= n;
		break;
	}
	return authority;
}

static bool same_host(struct slice a, struct slice b) {
	return a.at && b.at && slice_equal_nocase(without_default_port(a), without_default_port(b));
}

/* Takes the path off a target (authority, path, query, fragment), and leaves the query, absent if there is none. */
static struct slice take_path(struct slice target, struct slice *query) {
	struct slice authority = authority_of(target);
	if (authority.at) skip(&target, (size_t)(authority.at - target.at) + authority.length);
	const char *fragment = memchr(target.at, '#', target.length);
	if (fragment) target.length = (size_t)(fragment - target.at);
	const char *question = memchr(target.at, '?', target.length);
	*query = (struct slice){0};
	if (!question) return target;
	size_t length = (size_t)(question - target.at);
	*query = (struct slice){.at = question, .length = target.length - length};
	return (struct slice){.at = target.at, .length = length};
}

/* Whether a redirect would lead back to this rule, for the same path and host. */
static bool leads_to_itself(const struct redirect_rules *r, const struct redirect_rule *rule,
							const struct redirect_request *request, struct slice target) {
	char decoded[REDIRECT_TARGET_MAX];
	struct slice query, path = take_path(target, &query), values[REDIRECT_PARAMETERS_MAX];
	size_t length;
	if (!is_local(target) && !same_host(authority_of(target), request->host)) return false;
	if (path_decode(path, decoded, &length) != 0) return false;
	struct slice asked = request->path;
	skip(&asked, 1);
	if (!slice_equal((struct slice){.at = decoded, .length = length}, asked)) return false;
	return match_parameters(r, rule, query, values);
}

/* --- matching --- */

/* Whether this rule is for that request. */
static bool rule_matches(const struct redirect_rules *r, const struct redirect_rule *rule,
						 const struct pattern_subject *subject, const struct redirect_request *request,
						 struct found *found) {
	return pattern_match(&rule->pattern, subject, &found->captures) && !rule->conditional &&
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

static bool out_of_memory(struct rules_error *error) {
	rules_fail(error, 0, "%s", pattern_no_memory);
	return false;
}

static bool parse_from(struct redirect_rules *r, struct redirect_rule *rule, struct slice word,
					   struct rules_error *error) {
	const char *wrong = pattern_compile(&rule->pattern, word, PATTERN_LOOSE);
	if (!wrong) {
		r->hosts |= pattern_has_host(&rule->pattern);
		return true;
	}
	if (wrong == pattern_no_memory) return out_of_memory(error);
	rules_fail(error, rule->line, "the pattern '%.*s' is wrong: %s", RULES_SHOWN(word), wrong);
	return false;
}

static bool parse_parameter(struct redirect_rules *r, struct redirect_rule *rule, struct slice word,
							struct rules_error *error) {
	struct parameter p;
	struct slice rest = word, twice;
	const char *wrong = NULL;
	if (!memchr(word.at, '=', word.length) || word.at[0] == '=') {
		rules_fail(error, rule->line, "'%.*s' is neither a parameter nor a path or URL to go to", RULES_SHOWN(word));
		return false;
	}
	(void)next_parameter(&rest, &p.name, &p.value); /* there is one: the word is not empty */
	struct slice name = p.value.length ? placeholder(p.value) : p.value;
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
	if (!grown) return out_of_memory(error);
	r->parameter = grown;
	r->parameter[r->parameters++] = p;
	rule->parameters++;
	return true;
}

/* Whether it begins with a '.' and more of a name. */
static bool is_label_next(struct slice s) {
	if (s.length < 2 || s.at[0] != '.') return false;
	skip(&s, 1);
	return placeholder(s).length || (octet_is(s.at[0], OCTET_HOST) && s.at[0] != '.');
}

/* A placeholder must not be the end of the host: that would be whatever host a client likes. NULL, or what is wrong. */
static const char *check_authority(struct slice authority) {
	if (!authority.length) return "has no host";
	while (authority.length) {
		struct slice name = placeholder(authority);
		if (!name.length && authority.at[0] != ':' && !octet_is(authority.at[0], OCTET_HOST))
			return "has a host that is none";
		skip(&authority, 1 + name.length);
		if (name.length && !is_label_next(authority))
			return "has a placeholder in its host without '.' and text behind";
	}
	return NULL;
}

static const char *check_octets(struct slice target) {
	for (; target.length; skip(&target, 1)) {
		unsigned char c = (unsigned char)target.at[0];
		if (c < ' ' || c == 127) return "has a control character";
		if (c == '%' && !is_encoded(target)) return "has a broken percent-encoding";
	}
	return NULL;
}

static bool check_names(const struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	struct slice rest = rule->target;
	for (; rest.length; skip(&rest, 1)) {
		struct slice name = placeholder(rest);
		if (!name.length || pattern_capture(&rule->pattern, name) >= 0 || parameter_capture(r, rule, name) >= 0)
			continue;
		rules_fail(error, rule->line, "nothing before '%.*s' has the name :%.*s (a ':' as text is %%3A)",
				   RULES_SHOWN(rule->target), RULES_SHOWN(name));
		return false;
	}
	return true;
}

static bool check_target(const struct redirect_rules *r, const struct redirect_rule *rule, struct rules_error *error) {
	struct slice target = rule->target;
	const char *wrong = check_octets(target);
	if (!wrong && !is_local(target))
		wrong = is_redirect(rule) ? check_authority(authority_of(target))
								  : "is a URL, which only a redirect can have: a proxy is not supported";
	if (!wrong && is_local(target) && target.length > 1 && memchr("/\\", target.at[1], 2))
		wrong = "begins with two slashes, which would be a host: write its scheme, or one slash";
	if (!wrong) return check_names(r, rule, error);
	rules_fail(error, rule->line, "'%.*s' %s", RULES_SHOWN(target), wrong);
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
static bool parse_rest(struct redirect_rule *rule, struct slice line, struct rules_error *error,
					   struct rules_error *warning) {
	struct slice word;
	for (bool first = true; rules_next_word(&line, &word); first = false) {
		const char *equals = memchr(word.at, '=', word.length);
		if (!equals && first) {
			if (!parse_status(rule, word, error)) return false;
			continue;
		}
		if (!equals || equals == word.at) {
			rules_fail(error, rule->line, "'%.*s' is no condition", RULES_SHOWN(word));
			return false;
		}
		struct slice name = {.at = word.at, .length = (size_t)(equals - word.at)};
		if (!warning->line)
			rules_fail(warning, rule->line, "the rule never applies: the condition %.*s is not known here",
					   RULES_SHOWN(name));
		rule->conditional = true;
	}
	return true;
}

/* Behind `from`. */
static bool parse_words(struct redirect_rules *r, struct redirect_rule *rule, struct slice line,
						struct rules_error *error, struct rules_error *warning) {
	struct slice word;
	while (rules_next_word(&line, &word)) {
		if (word.at[0] != '/' && !scheme_length(word)) {
			if (!parse_parameter(r, rule, word, error)) return false;
			continue;
		}
		rule->target = word;
		return parse_rest(rule, line, error, warning) && check_target(r, rule, error);
	}
	rules_fail(error, rule->line, "the rule has no path or URL to go to");
	return false;
}

static bool parse_rule(struct redirect_rules *r, struct slice line, unsigned number, struct rules_error *error,
					   struct rules_error *warning) {
	struct redirect_rule rule = {.line = number, .status = 301, .first = r->parameters};
	struct slice from;
	if (!rules_next_word(&line, &from)) return true;
	if (r->rules == RULES_MAX) {
		rules_fail(error, number, "there are more than %d rules", RULES_MAX);
		return false;
	}
	void *grown = rules_grow(r->rule, r->rules, &r->rule_capacity, sizeof *r->rule);
	if (!grown) return out_of_memory(error);
	r->rule = grown;
	if (!parse_from(r, &rule, from, error)) return false;
	if (!parse_words(r, &rule, line, error, warning)) {
		pattern_free(&rule.pattern);
		return false;
	}
	r->rule[r->rules++] = rule;
	return true;
}

static bool parse_lines(struct redirect_rules *r, struct slice text, struct rules_error *error,
						struct rules_error *warning) {
	struct rules_lines lines;
	struct slice line;
	if (!rules_lines(&lines, text, error)) return false;
	while (rules_next_line(&lines, &line))
		if (!parse_rule(r, line, lines.line, error, warning)) return false;
	return true;
}

/* --- circles --- */

/* Whether it is a rule for one path, which gives *host, absent if any. */
static bool is_literal(const struct redirect_rule *rule, struct slice *host) {
	return pattern_is_literal(&rule->pattern, host) && !rule->parameters && !rule->conditional;
}

/* The literal redirect that the target of that one leads to; NO_RULE: none. */
static int successor(const struct redirect_rules *r, unsigned from) {
	char buffer[REDIRECT_TARGET_MAX], decoded[1 + REDIRECT_TARGET_MAX] = "/", other[REDIRECT_TARGET_MAX];
	struct pattern_subject subject;
	struct found found;
	struct slice target, query, host;
	size_t length;
	const struct redirect_rule *rule = &r->rule[from];
	if (!is_literal(rule, &host) || !is_redirect(rule)) return NO_RULE;
	if (!fill_in(r, rule, &found, (struct slice){0}, buffer, &target)) return NO_RULE;
	if (!is_local(target)) host = authority_of(target);
	if (path_decode(take_path(target, &query), decoded + 1, &length) != 0) return NO_RULE;
	const struct redirect_request next = {.host = host, .path = {.at = decoded, .length = 1 + length}};
	pattern_subject(&subject, host, next.path, PATTERN_LOOSE);
	for (unsigned i = 0; i < r->rules; i++) {
		rule = &r->rule[i];
		if (!pattern_match(&rule->pattern, &subject, &found.captures)) continue;
		struct slice its_host;
		if (!is_literal(rule, &its_host) || !its_host.at != !host.at) continue;
		if (!rule_applies(r, rule, &next, &found, other, &target)) continue;
		return is_redirect(rule) ? (int)i : NO_RULE;
	}
	return NO_RULE;
}

/* Follows the rules from each one. Of a circle, the last in the file is the one that closes it. */
static bool check_circles(const struct redirect_rules *r, struct rules_error *error) {
	unsigned *walk = calloc(r->rules + 1, sizeof *walk); /* that came by first; 0: none yet */
	int *next = calloc(r->rules + 1, sizeof *next);
	int last = NO_RULE;
	if (!walk || !next) {
		(void)out_of_memory(error);
		last = 0;
	}
	for (unsigned i = 0; i < r->rules && last == NO_RULE; i++) {
		int at = (int)i;
		for (; at != NO_RULE && !walk[at]; at = next[at]) {
			walk[at] = i + 1;
			next[at] = successor(r, (unsigned)at);
		}
		if (at == NO_RULE || walk[at] != i + 1) continue;
		last = at;
		for (int j = next[at]; j != at; j = next[j])
			if (j > last) last = j;
		rules_fail(error, r->rule[last].line, "the redirect leads in a circle: line %u leads back to it",
				   r->rule[at == last ? next[at] : at].line);
	}
	free(walk);
	free(next);
	return last == NO_RULE;
}

struct redirect_rules *redirect_rules_parse(struct slice text, struct rules_error *error, struct rules_error *warning) {
	struct rules_lines lines;
	*warning = (struct rules_error){0};
	if (!rules_lines(&lines, text, error)) return NULL;
	struct redirect_rules *r = calloc(1, sizeof *r);
	if (r) r->text = malloc(text.length + 1);
	if (!r || !r->text) {
		(void)out_of_memory(error);
		redirect_rules_free(r);
		return NULL;
	}
	if (text.length) memcpy(r->text, text.at, text.length);
	text.at = r->text;
	if (parse_lines(r, text, error, warning) && check_circles(r, error)) return r;
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
