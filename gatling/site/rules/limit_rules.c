/* limit_rules.c - see limit_rules.h. */
#include "gatling/site/rules/limit_rules.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gatling/base/lines.h"
#include "gatling/base/slice.h"
#include "gatling/client/limit_value.h"
#include "gatling/site/rules/pattern.h"

enum word { BODY, CONNECT, FIRST, BETWEEN, TUNNEL, RATE, LOG, WORDS };

static const struct slice word_name[WORDS] = {
	[BODY] = SLICE("body"),
	[CONNECT] = SLICE("upstream-connect"),
	[FIRST] = SLICE("upstream-first"),
	[BETWEEN] = SLICE("upstream-between"),
	[TUNNEL] = SLICE("upstream-tunnel"),
	[RATE] = SLICE("address-rate"),
	[LOG] = SLICE("log"),
};

struct limit_rule {
	struct pattern pattern;
	unsigned line, words; /* words: a bit for each that it sets */
	struct path_limits limits;
};

struct limit_rules {
	char *text;
	struct limit_rule *rule;
	unsigned rules;
	bool hosts; /* some pattern has one */
};

/* --- parsing --- */

static bool take_value(struct path_limits *l, enum word word, struct slice value, struct rules_error *error) {
	static const struct slice log_words[] = {SLICE("on"), SLICE("off")};
	int *const seconds[WORDS] = {[CONNECT] = &l->upstream.connect_s,
								 [FIRST] = &l->upstream.first_s,
								 [BETWEEN] = &l->upstream.between_s,
								 [TUNNEL] = &l->upstream.tunnel_s};
	switch (word) {
	case BODY:
		return limit_size(value, &l->upstream.body_max) ||
			   rules_fail(error, "body takes a number of bytes, or one with K, M or G appended");
	case RATE:
		return limit_rate(value, &l->rate) ||
			   rules_fail(error, "address-rate takes requests a second, and perhaps a burst, as 5:20 or 10/m");
	case LOG:
		l->unlogged = slice_equal(value, log_words[1]);
		return slice_is_one_of(value, log_words, 2) || rules_fail(error, "log is on or off");
	default:
		return limit_number(value, 1, LIMIT_SECONDS_MAX, seconds[word]) ||
			   rules_fail(error, "%.*s takes a number of seconds from 1 to %d", RULES_SHOWN(word_name[word]),
						  LIMIT_SECONDS_MAX);
	}
}

static bool take_word(struct limit_rule *rule, struct slice word, struct rules_error *error) {
	const struct slice name = rules_take_until(&word, '=');
	const size_t place = slice_place(name, word_name, WORDS);
	if (place == WORDS)
		return rules_fail(error,
						  "'%.*s' is no limit of a path: these are body, upstream-connect, upstream-first, "
						  "upstream-between, upstream-tunnel, address-rate and log",
						  RULES_SHOWN(name));
	if (rule->words & 1U << place) return rules_fail(error, "%.*s stands twice", RULES_SHOWN(name));
	rule->words |= 1U << place;
	return take_value(&rule->limits, place, word, error);
}

static bool add_line(void *rules, struct slice line, struct rules_error *error) {
	struct limit_rules *r = rules;
	struct limit_rule rule = {.line = error->line, .limits.rate_of = slice_hash(0, line)};
	struct slice pattern;
	if (!lines_next_word(&line, &pattern) || !pattern_begins(pattern))
		return rules_fail(error, "a line begins with a pattern, such as /api/*");
	if (r->rules == RULES_MAX) return rules_full(error, RULES_MAX, "lines");
	for (struct slice word; lines_next_word(&line, &word);)
		if (!take_word(&rule, word, error)) return false;
	if (!rule.words) return rules_fail(error, "there is no limit behind the pattern, such as body=1M");
	const char *wrong = pattern_compile(&rule.pattern, pattern, PATTERN_EXACT);
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	if (wrong) return rules_fail(error, "the pattern is wrong: %s", wrong);
	r->hosts |= pattern_host(&rule.pattern).at != NULL;
	r->rule[r->rules++] = rule;
	return true;
}

static bool begin(void *rules, struct slice copy, unsigned lines) {
	struct limit_rules *r = rules;
	r->text = (char *)copy.at;
	r->rule = calloc((lines < RULES_MAX ? lines : RULES_MAX) + 1, sizeof *r->rule);
	return r->rule;
}

void *limit_rules_parse(struct slice text, struct rules_report *report) {
	struct limit_rules *r = calloc(1, sizeof *r);
	if (rules_read(r, text, begin, add_line, report)) return r;
	limit_rules_free(r);
	return NULL;
}

void limit_rules_free(void *limit_rules) {
	struct limit_rules *r = limit_rules;
	if (!r) return;
	for (unsigned i = 0; i < r->rules; i++) pattern_free(&r->rule[i].pattern);
	free(r->rule);
	free(r->text);
	free(r);
}

/* --- matching --- */

/* Sets what a line says. */
static void apply(const struct limit_rule *rule, struct slice site, struct path_limits *to) {
	const struct path_limits *l = &rule->limits;
	if (rule->words & 1U << BODY) to->upstream.body_max = l->upstream.body_max;
	if (rule->words & 1U << CONNECT) to->upstream.connect_s = l->upstream.connect_s;
	if (rule->words & 1U << FIRST) to->upstream.first_s = l->upstream.first_s;
	if (rule->words & 1U << BETWEEN) to->upstream.between_s = l->upstream.between_s;
	if (rule->words & 1U << TUNNEL) to->upstream.tunnel_s = l->upstream.tunnel_s;
	if (rule->words & 1U << RATE) to->rate = l->rate, to->rate_of = slice_hash(l->rate_of, site);
	if (rule->words & 1U << LOG) to->unlogged = l->unlogged;
	to->line = rule->line;
}

bool limit_rules_match(const struct limit_rules *r, struct slice site, struct slice host, struct slice path,
					   struct path_limits *limits) {
	struct pattern_subject subject;
	struct pattern_captures captures;
	pattern_subject(&subject, r->hosts ? host : (struct slice){0}, path, PATTERN_EXACT);
	for (unsigned i = 0; i < r->rules; i++) {
		if (pattern_match(&r->rule[i].pattern, &subject, &captures)) apply(&r->rule[i], site, limits);
		if (subject.work <= LIMIT_WORK_MAX) continue;
		limits->line = r->rule[i].line;
		return false;
	}
	return true;
}
