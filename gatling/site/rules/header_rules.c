/* header_rules.c - see header_rules.h. Matching gives a list of rules. The set that is made of it stays in a table
 * for the next request that the same rules match; a set that needs the same place replaces it. */
#include "gatling/site/rules/header_rules.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/field_line.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/pattern.h"

struct header_field {
	struct slice name, value; /* of the rules' text */
	const struct header_rule *rule;
	unsigned line;
	bool detach;
	bool joins;  /* it is joined with those of the same name before it */
	bool single; /* it replaces those of the same name of patterns before its own */
	bool fills;  /* the value has a placeholder or splat */
};

struct header_rule {
	struct pattern pattern;
	const struct header_field *field; /* its first field */
	unsigned fields, line;
	size_t values; /* bytes of the values of its fields */
	size_t octets; /* which a response gets with it, at least */
};

/* A set with the rules that it is for and all memory that it refers to, except for the rules' text. */
struct cached_set {
	struct header_set set;
	size_t size;
	unsigned rules, fields;
	const struct header_field **field; /* in the end, those of struct header_filled */
	uint16_t *rule;
	struct header_item item[];
};

struct header_rules {
	char *text;
	struct header_rule *rule;
	struct header_field *field;
	unsigned rules, fields;
	bool hosts;                  /* some pattern has one */
	unsigned compared;           /* pairs of fields, by report_replaced() */
	struct rules_report *report; /* while the file is read */
	unsigned skipping; /* the line of a wrong pattern, whose fields are ignored while the file is read; 0: none */
	uint64_t seed;     /* of the ids of the sets */
	uint16_t *matched; /* rules that the last header_rules_match() found */
	struct cached_set *cached[HEADER_SETS_MAX];
	size_t cached_bytes;
	struct cached_set *spare; /* for a set that does not fit into the table: large enough for all fields */
};

/* --- parsing --- */

enum { COMPARED_MAX = 1 << 20 /* pairs of fields of a file, of which one may replace the other */ };

/* Returns whether only the server can set the field, which is about itself or the framing of the message. */
static bool is_servers_own(struct slice name) {
	struct slice own, all = SLICE("Accept-Ranges, Age, Allow, Connection, Content-Length, "
								  "Content-Range, Date, ETag, Keep-Alive, Last-Modified, Location, Server, Trailer, "
								  "Transfer-Encoding, Upgrade, WWW-Authenticate");
	while (slice_next_element(&all, &own))
		if (slice_equal_nocase(name, own)) return true;
	return slice_starts_nocase(name, SLICE("Proxy-"));
}

/* Returns whether a response has the field once, so that joining two values would break it: each browser takes another
 * one, or none. Cache-Control is a list, but two of them contradict each other. */
static bool is_single(struct slice name) {
	struct slice one,
		all = SLICE("Access-Control-Allow-Credentials, Access-Control-Allow-Origin, Access-Control-Max-Age, "
					"Cache-Control, CDN-Cache-Control, Content-Disposition, Content-Location, Content-Type, "
					"Cross-Origin-Embedder-Policy, Cross-Origin-Opener-Policy, "
					"Cross-Origin-Resource-Policy, Expires, Netlify-CDN-Cache-Control, "
					"Origin-Agent-Cluster, Pragma, Referrer-Policy, Refresh, Retry-After, "
					"Service-Worker-Allowed, SourceMap, Strict-Transport-Security, Surrogate-Control, "
					"X-Content-Type-Options, X-DNS-Prefetch-Control, X-Download-Options, "
					"X-Frame-Options, X-Permitted-Cross-Domain-Policies, X-UA-Compatible, "
					"X-XSS-Protection");
	while (slice_next_element(&all, &one))
		if (slice_equal_nocase(name, one)) return true;
	return false;
}

/* Returns the first name in the value that the pattern has, or an empty slice. */
static struct slice name_in(struct slice value, const struct pattern *pattern) {
	struct slice name;
	do (void)pattern_next_name(&value, &name);
	while (name.length && pattern_capture(pattern, name) < 0);
	return name;
}

static bool describes_content(struct slice name) {
	return slice_equal_nocase(name, SLICE("Content-Type")) || slice_equal_nocase(name, SLICE("Content-Encoding")) ||
		   slice_equal_nocase(name, SLICE("X-Content-Type-Options"));
}

static bool check_field(const struct header_field *f, const struct pattern *pattern, struct rules_error *error) {
	if (!f->name.length || chars_span(f->name, CHAR_TOKEN) != f->name.length)
		return rules_fail(error, "'%.*s' is not a field name", RULES_SHOWN(f->name));
	if (f->detach && slice_equal_nocase(f->name, SLICE("Server")))
		return rules_fail(error, "the server always sends Server: remove this line");
	if (slice_equal_nocase(f->name, SLICE("Content-Encoding")) && slice_equal_nocase(f->value, SLICE("identity")))
		return rules_fail(error, "a file without a coding has no Content-Encoding: remove this line");
	if (is_servers_own(f->name))
		return rules_fail(error, "only the server can set %.*s: remove this line", RULES_SHOWN(f->name));
	if (slice_equal_nocase(f->name, SLICE("Basic-Auth"))) {
		/* do not report the password */
		error->whole.length = (size_t)(f->name.at + f->name.length - error->whole.at);
		return rules_fail(error, "Basic-Auth is not supported: use a file .htaccess for passwords");
	}
	if (!f->detach && !f->value.length) return rules_fail(error, "%.*s has no value", RULES_SHOWN(f->name));
	if (chars_span(f->value, CHAR_TEXT) != f->value.length)
		return rules_fail(error, "the value of %.*s has a control character", RULES_SHOWN(f->name));
	if (f->fills && describes_content(f->name))
		return rules_fail(error, "the value of %.*s may not contain :%.*s", RULES_SHOWN(f->name),
						  RULES_SHOWN(name_in(f->value, pattern)));
	return true;
}

/* Returns whether a line looks like a pattern rather than a field, up to its first blank or ':'. */
static bool is_like_pattern(struct slice line) {
	size_t length = 0;
	while (length < line.length && !strchr(": \t", line.at[length])) length++;
	const struct slice word = slice_first(line, length);
	const bool named = length + 1 < line.length && line.at[length] == ':' && strchr(" \t", line.at[length + 1]);
	return (!named && memchr(word.at, '.', length)) || memchr(word.at, '/', length) || memchr(word.at, '*', length) ||
		   slice_equal_nocase(word, SLICE("http")) || slice_equal_nocase(word, SLICE("https"));
}

/* Returns how many bytes a response gets with the field besides those of the rule before it, at least. */
static size_t octets_of(const struct header_rule *rule, const struct header_field *f) {
	const size_t value = f->fills ? 0 : f->value.length;
	if (f->detach) return 0;
	for (unsigned i = 0; i < rule->fields && f->joins; i++)
		if (slice_equal_nocase(rule->field[i].name, f->name)) return sizeof ", " - 1 + value;
	return f->name.length + value + FIELD_LINE_MORE;
}

/* Reports that the last field replaces one of a pattern above, if its own pattern is a part of that one, or the other
 * way round, so that the field above never applies. */
static void report_replaced(struct header_rules *r, struct rules_error *error) {
	const struct header_field *last = &r->field[r->fields - 1];
	const struct header_field *const end = last->rule->field;
	if (end < last && slice_equal_nocase(last[-1].name, last->name)) return; /* it continues the line above it */
	for (const struct header_field *f = r->field; f < end && r->compared < COMPARED_MAX; f++, r->compared++) {
		if (!f->single || f->detach || !slice_equal_nocase(f->name, last->name)) continue;
		if (pattern_covers(&last->rule->pattern, &f->rule->pattern)) {
			rules_fail(error,
					   "it replaces that of line %u, which never applies: write the pattern for more paths first",
					   f->line);
			if (r->report->tell) r->report->tell(r->report, error);
		} else if (pattern_covers(&f->rule->pattern, &last->rule->pattern)) {
			rules_fail(error, "it replaces that of line %u for this pattern", f->line);
			if (r->report->note) r->report->note(r->report, error);
		}
	}
}

static bool add_field(struct header_rules *r, struct slice line, struct rules_error *error) {
	struct header_field f = {.detach = line.at[0] == '!', .value = SLICE(""), .line = error->line};
	if (!f.detach && is_like_pattern(line)) {
		r->skipping = error->line; /* the next lines may be its fields */
		return rules_fail(error, "it is neither a pattern, which begins with '/', nor a field");
	}
	if (r->skipping) return rules_fail(error, "it is ignored with the pattern of line %u", r->skipping);
	if (!r->rules) return rules_fail(error, "there is no pattern above this field: write one, such as /*");
	struct header_rule *rule = &r->rule[r->rules - 1];
	struct slice rest = line;
	f.name = rules_take_until(&rest, ':');
	if (!f.detach && f.name.length == line.length) return rules_fail(error, "it is no field: there is no ':'");
	if (f.detach) f.name = slice_trim(slice_rest(line, 1));
	else f.value = slice_trim(rest), f.name = slice_trim(f.name);
	f.rule = rule;
	f.joins = !slice_equal_nocase(f.name, SLICE("Set-Cookie"));
	f.single = is_single(f.name);
	f.fills = name_in(f.value, &rule->pattern).length > 0;
	if (!check_field(&f, &rule->pattern, error)) return false;
	if (r->fields == HEADER_FIELDS_MAX) return rules_full(error, HEADER_FIELDS_MAX, "fields");
	const size_t octets = octets_of(rule, &f);
	if (rule->octets + octets > HEADER_OCTETS_MAX)
		return rules_fail(error, "with it the fields of line %u exceed %d bytes, the most for a response", rule->line,
						  HEADER_OCTETS_MAX);
	r->field[r->fields++] = f;
	if (f.single) report_replaced(r, error);
	rule->fields++;
	rule->octets += octets;
	rule->values += f.value.length;
	return true;
}

static bool add_pattern(struct header_rules *r, struct slice line, struct rules_error *error) {
	for (size_t i = 1; i < line.length; i++)
		if (line.at[i] == '#' && (line.at[i - 1] == ' ' || line.at[i - 1] == '\t')) line.length = i;
	r->skipping = error->line;
	if (r->rules == RULES_MAX) return rules_full(error, RULES_MAX, "rules");
	struct header_rule rule = {.field = &r->field[r->fields], .line = error->line};
	const char *wrong = pattern_compile(&rule.pattern, slice_trim(line), PATTERN_EXACT);
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	if (wrong) return rules_fail(error, "the pattern is wrong: %s", wrong);
	r->hosts |= pattern_host(&rule.pattern).at != NULL;
	r->rule[r->rules++] = rule;
	r->skipping = 0;
	return true;
}

static bool add_line(void *rules, struct slice line, struct rules_error *error) {
	return (pattern_begins(line) ? add_pattern : add_field)(rules, line, error);
}

/* Returns the memory of a set with that many rules, fields and bytes of values. */
static size_t set_size(unsigned rules, unsigned fields, size_t values) {
	size_t field = sizeof(struct header_item) + sizeof(struct header_field *) + sizeof ", " - 1;
	return sizeof(struct cached_set) + fields * field + rules * sizeof(uint16_t) + values;
}

static bool begin(void *rules, struct slice copy, unsigned lines) {
	static _Atomic uint64_t count;
	struct header_rules *r = rules;
	uint64_t number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	unsigned rules_most = lines < RULES_MAX ? lines : RULES_MAX;
	unsigned fields_most = lines < HEADER_FIELDS_MAX ? lines : HEADER_FIELDS_MAX;
	r->text = (char *)copy.at;
	r->seed = slice_hash(0, (struct slice){.at = (const char *)&number, .length = sizeof number});
	r->rule = calloc(rules_most + 1, sizeof *r->rule);
	r->field = calloc(fields_most + 1, sizeof *r->field);
	r->matched = calloc(rules_most + 1, sizeof *r->matched);
	r->spare = malloc(set_size(rules_most, fields_most, copy.length));
	return r->rule && r->field && r->matched && r->spare;
}

void *header_rules_parse(struct slice text, struct rules_report *report) {
	struct header_rules *r = calloc(1, sizeof *r);
	if (r) r->report = report;
	if (rules_read(r, text, begin, add_line, report)) return r;
	header_rules_free(r);
	return NULL;
}

void header_rules_free(void *header_rules) {
	struct header_rules *r = header_rules;
	if (!r) return;
	for (unsigned i = 0; i < r->rules; i++) pattern_free(&r->rule[i].pattern);
	for (unsigned i = 0; i < HEADER_SETS_MAX; i++) free(r->cached[i]);
	free(r->spare);
	free(r->matched);
	free(r->field);
	free(r->rule);
	free(r->text);
	free(r);
}

/* --- from rules to a set --- */

/* Adds a field behind the last of its name, with which it is joined, or at the end. Of the fields of its name it drops
 * those that it removes or replaces, and those that only remove others. */
static void add_to_set(struct cached_set *s, const struct header_field *f) {
	unsigned count = 0, place = 0;
	for (unsigned i = 0; i < s->fields; i++) {
		const struct header_field *other = s->field[i];
		bool same = slice_equal_nocase(other->name, f->name);
		if (same && (f->detach || other->detach || (f->single && other->rule != f->rule))) continue;
		s->field[count++] = other;
		if (same && f->joins) place = count;
	}
	if (!place) place = count;
	for (unsigned i = count; i > place; i--) s->field[i] = s->field[i - 1];
	s->field[place] = f;
	s->fields = count + 1;
}

/* Returns the index behind the fields that are joined to this one. */
static unsigned end_of_joined(const struct cached_set *s, unsigned first) {
	unsigned end = first + 1;
	while (end < s->fields && s->field[end]->joins && slice_equal_nocase(s->field[end]->name, s->field[first]->name))
		end++;
	return end;
}

/* Makes an item of each field and those that are joined to it. */
static void make_items(struct cached_set *s, struct text *values) {
	unsigned filled = 0;
	for (unsigned i = 0, end; i < s->fields; i = end) {
		const struct header_field *f = s->field[i];
		struct header_item item = {.name = f->name, .value = {.at = values->at}, .detach = f->detach};
		end = end_of_joined(s, i);
		for (unsigned n = i; n < end; n++) item.filled |= s->field[n]->fills;
		item.detach |= item.filled;
		for (unsigned n = i; n < end && !f->detach; n++) {
			if (item.detach) {
				s->field[filled++] = s->field[n];
				continue;
			}
			if (n > i) text_add(values, SLICE(", "));
			text_add(values, s->field[n]->value);
		}
		item.value.length = (size_t)(values->at - item.value.at);
		s->item[s->set.count++] = item;
		if (!item.detach) s->set.octets += item.name.length + item.value.length + FIELD_LINE_MORE;
	}
	s->fields = filled;
}

/* Makes the set of the matched rules in the memory at s. fields: how many these have; size: of the memory, in bytes. */
static void make_set(const struct header_rules *r, unsigned rules, unsigned fields, struct cached_set *s, size_t size) {
	*s = (struct cached_set){.size = size, .rules = rules};
	s->field = (const struct header_field **)(s->item + fields);
	s->rule = (uint16_t *)(s->field + fields);
	memcpy(s->rule, r->matched, rules * sizeof *r->matched);
	s->set.item = s->item;
	s->set.line = r->rule[r->matched[rules - 1]].line;
	char *values = (char *)(s->rule + rules);
	struct text text = text_begin(values, size - (size_t)(values - (char *)s));
	for (unsigned i = 0; i < rules; i++) {
		const struct header_rule *rule = &r->rule[r->matched[i]];
		for (unsigned f = 0; f < rule->fields; f++) add_to_set(s, &rule->field[f]);
	}
	make_items(s, &text);
}

/* Returns a set that exceeds HEADER_OCTETS_MAX because of this rule. */
static const struct cached_set *too_much(struct header_rules *r, const struct header_rule *rule) {
	*r->spare = (struct cached_set){.set = {.octets = HEADER_OCTETS_MAX + 1, .line = rule->line}};
	return r->spare;
}

/* Returns the set of the matched rules, from the table or else a new one. */
static const struct cached_set *set_of(struct header_rules *r, unsigned rules) {
	size_t length = rules * sizeof *r->matched;
	uint64_t id = slice_hash(r->seed, (struct slice){.at = (const char *)r->matched, .length = length});
	struct cached_set **place = &r->cached[id % HEADER_SETS_MAX], *s = *place;
	if (s && s->rules == rules && memcmp(s->rule, r->matched, length) == 0) return s;
	unsigned fields = 0;
	size_t values = 0, other = s ? s->size : 0;
	for (unsigned i = 0; i < rules; i++) {
		fields += r->rule[r->matched[i]].fields;
		values += r->rule[r->matched[i]].values;
	}
	/* joining them takes the square of their number */
	if (fields > HEADER_SET_FIELDS_MAX) return too_much(r, &r->rule[r->matched[rules - 1]]);
	size_t size = set_size(rules, fields, values);
	bool fits = r->cached_bytes - other + size <= HEADER_SETS_BYTES_MAX;
	if (fits && (s = malloc(size))) {
		free(*place);
		*place = s;
		r->cached_bytes += size - other;
	} else {
		s = r->spare;
	}
	make_set(r, rules, fields, s, size);
	s->set.id = id ? id : 1;
	return s;
}

/* --- lines with replaced names --- */

static void add_encoded(struct text *t, struct slice s) {
	char encoded[3];
	for (; s.length && !t->overflow; slice_drop(&s, 1))
		text_add(t, (struct slice){.at = encoded, .length = path_encode(slice_first(s, 1), encoded)});
}

static void add_value(struct text *t, struct slice value, const struct pattern *pattern,
					  const struct pattern_captures *captures) {
	while (value.length) {
		struct slice name;
		text_add(t, pattern_next_name(&value, &name));
		int i = pattern_capture(pattern, name);
		if (i >= 0) add_encoded(t, captures->value[i]);
		else if (name.length) text_add(t, (struct slice){.at = name.at - 1, .length = name.length + 1});
	}
}

/* Writes the lines of the set that have replaced names. Their patterns are matched once more, for the captures. */
static void fill_in(struct header_filled *filled, const struct cached_set *s, struct pattern_subject *subject) {
	struct text t = text_begin(filled->text, HEADER_OCTETS_MAX);
	struct pattern_captures captures;
	const struct header_rule *captured = NULL; /* the rule whose captures these are */
	for (unsigned i = 0, end = 0; i < s->fields && !t.overflow && subject->work <= HEADER_WORK_MAX; i++) {
		const struct header_field *f = s->field[i];
		const struct pattern *pattern = &f->rule->pattern;
		if (i == end) text_add(&t, f->name);
		text_add(&t, i == end ? SLICE(": ") : SLICE(", "));
		if (i == end) end = end_of_joined(s, i);
		if (f->fills && f->rule != captured) (void)pattern_match(pattern, subject, &captures); /* it matches again */
		if (f->fills) captured = f->rule;
		add_value(&t, f->value, pattern, &captures);
		if (i + 1 == end) text_add(&t, SLICE("\r\n"));
	}
	const bool fits = !t.overflow && subject->work <= HEADER_WORK_MAX;
	filled->lines = !fits ? (struct slice){.length = HEADER_OCTETS_MAX + 1} : text_written(&t);
}

const struct header_set *header_rules_match(struct header_rules *r, struct slice host, struct slice path,
											struct header_filled *filled) {
	struct pattern_subject subject;
	struct pattern_captures captures;
	unsigned rules = 0;
	pattern_subject(&subject, r->hosts ? host : (struct slice){0}, path, PATTERN_EXACT);
	filled->lines = (struct slice){0};
	for (unsigned i = 0; i < r->rules; i++) {
		const struct header_rule *rule = &r->rule[i];
		if (!pattern_may_match(&rule->pattern, &subject)) continue;
		const bool matches = pattern_match_parts(&rule->pattern, &subject, &captures);
		if (subject.work > HEADER_WORK_MAX) return &too_much(r, rule)->set;
		if (matches && rule->fields) r->matched[rules++] = (uint16_t)i;
	}
	if (!rules) return NULL;
	const struct cached_set *s = set_of(r, rules);
	if (s->fields) fill_in(filled, s, &subject);
	return &s->set;
}

/* --- sets --- */

bool header_named(const struct header_item *item, const char *name) {
	return slice_equal_nocase(item->name, slice_of(name));
}

const struct header_item *header_find(const struct header_set *set, const char *name) {
	for (unsigned i = 0; set && i < set->count; i++)
		if (header_named(&set->item[i], name)) return &set->item[i];
	return NULL;
}

/* Returns whether the text begins with a number above HEADER_BRIEF_S. */
static bool is_long(struct slice text) {
	unsigned seconds = 0;
	(void)text_skip(&text, SLICE("\""));
	for (; text.length && text_is_digit(text.at[0]) && seconds <= HEADER_BRIEF_S; slice_drop(&text, 1))
		seconds = seconds * 10 + (unsigned)(text.at[0] - '0');
	return seconds > HEADER_BRIEF_S;
}

bool header_lasts(const struct header_item *item) {
	static const struct slice age = SLICE("max-age="), shared = SLICE("s-maxage=");
	if (item->detach || !header_named(item, "Cache-Control")) return false;
	for (struct slice rest = item->value; rest.length; slice_drop(&rest, 1)) {
		if (slice_starts_nocase(rest, SLICE("immutable"))) return true;
		if (slice_starts_nocase(rest, age) && is_long(slice_rest(rest, age.length))) return true;
		if (slice_starts_nocase(rest, shared) && is_long(slice_rest(rest, shared.length))) return true;
	}
	return false;
}

static bool allows_more(const struct header_item *item, enum header_caching caching) {
	if (caching == HEADER_UNCACHED) return header_named(item, "Cache-Control");
	return caching == HEADER_CACHED_BRIEFLY && header_lasts(item);
}

size_t header_set_lines(const struct header_set *set, enum header_caching caching, char *out) {
	char *at = out;
	for (unsigned i = 0; i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		if (item->detach || describes_content(item->name) || allows_more(item, caching)) continue;
		at = field_line_put(at, item->name, item->value);
	}
	return (size_t)(at - out);
}

size_t header_set_added(const struct header_set *set, struct slice filled, char *out) {
	char *at = out;
	size_t removed = 0;
	for (unsigned i = 0; i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		if (item->filled || header_named(item, "Content-Type") || header_named(item, "Content-Encoding")) continue;
		if (item->detach && (removed += item->name.length + FIELD_LINE_MORE) > HEADER_OCTETS_MAX) continue;
		if (item->detach) at = TEXT_JOIN(at, item->name, SLICE(":\r\n"));
		else at = field_line_put(at, item->name, item->value);
	}
	at = text_copy(at, filled);
	return (size_t)(at - out);
}
