/* header_rules.c - see header_rules.h. Matching gives a list of rules; a table of the lists seen has their sets, and
 * for values that are filled in, of which pieces: what these are is asked of the patterns again. */
#include "gatling/site/rules/header_rules.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/http/chars.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/pattern.h"

enum { SLOTS = 2 * HEADER_SETS_MAX };

/* In the ids that are hashes, of sets that are not kept; those that are counted never come so far. */
#define HASHED (UINT64_C(1) << 63)

struct header_field {
	struct slice name, value; /* of the rules' text */
	unsigned rule;
	bool detach;
	bool fills; /* the value has a placeholder */
};

struct header_rule {
	struct pattern pattern;
	unsigned first, fields, line;
};

/* Of a value that is filled in: what one field says. */
struct header_piece {
	const struct header_field *field;
	bool joined; /* to the piece before it */
};

/* A set, and the rules that it is for. */
struct known_set {
	uint64_t hash;
	struct header_set *set; /* in the same piece of memory, as is all that it refers to, but for the rules' text */
	unsigned rules;
	uint16_t rule[];
};

struct header_rules {
	char *text;
	struct header_rule *rule;
	struct header_field *field;
	unsigned rules, rule_capacity, fields, field_capacity;
	bool hosts;    /* some pattern has one */
	bool skipping; /* while it is read: fields of a pattern that is left out */
	/* large enough for what can match at all */
	uint16_t *matched;
	const struct header_field **gathered;
	struct header_set *scratch;
	struct header_piece *piece; /* of the scratch set, as are */
	char *joined;               /* values */
	size_t joined_length;
	char *filling; /* HEADER_OCTETS_MAX bytes; NULL: no value is ever filled in */
	struct slice filled;
	uint64_t id;                    /* that no set has */
	struct known_set *known[SLOTS]; /* open addressing, half of it at most */
	unsigned sets;
	size_t bytes;
};

static uint64_t next_id(void) {
	static _Atomic uint64_t last;
	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

/* --- parsing --- */

/* They say what the server does or how a message is framed, and are wrong in any other hand. */
static bool is_servers_own(struct slice name) {
	static const struct slice own[] = {SLICE("Accept-Ranges"),
									   SLICE("Age"),
									   SLICE("Allow"),
									   SLICE("Connection"),
									   SLICE("Content-Encoding"),
									   SLICE("Content-Length"),
									   SLICE("Content-Range"),
									   SLICE("Date"),
									   SLICE("ETag"),
									   SLICE("Keep-Alive"),
									   SLICE("Last-Modified"),
									   SLICE("Location"),
									   SLICE("Server"),
									   SLICE("Trailer"),
									   SLICE("Transfer-Encoding"),
									   SLICE("Upgrade"),
									   SLICE("WWW-Authenticate")};
	static const struct slice proxy = SLICE("Proxy-");
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (slice_equal_nocase(name, own[i])) return true;
	return name.length >= proxy.length && strncasecmp(name.at, proxy.at, proxy.length) == 0;
}

static bool is_token(struct slice s) {
	size_t n = 0;
	while (n < s.length && char_is(s.at[n], CHAR_TOKEN)) n++;
	return n > 0 && n == s.length;
}

/* The first placeholder of the pattern in the value, empty if there is none. */
static struct slice placeholder_in(struct slice value, const struct pattern *pattern) {
	for (size_t i = 0; i < value.length; i++) {
		struct slice name = {.at = value.at + i + 1, .length = value.length - i - 1};
		if (value.at[i] != ':') continue;
		name.length = pattern_name(name);
		if (name.length && pattern_capture(pattern, name) >= 0) return name;
	}
	return (struct slice){0};
}

/* They say what a file is, whoever asks. */
static bool is_of_content(struct slice name) {
	return slice_equal_nocase(name, SLICE("Content-Type")) || slice_equal_nocase(name, SLICE("X-Content-Type-Options"));
}

static bool check_field(const struct header_field *f, const struct header_rule *rule, struct rules_error *error) {
	struct slice used = {0};
	unsigned line = error->line;
	if (!is_token(f->name)) rules_fail(error, line, "'%.*s' is no name of a field", RULES_SHOWN(f->name));
	else if (f->detach && slice_equal_nocase(f->name, SLICE("Server"))) return true; /* it says none */
	else if (slice_equal_nocase(f->name, SLICE("Content-Encoding")))
		rules_fail(error, line,
				   "the server says it itself for NAME.gz, NAME.br and NAME.zst beside NAME: leave it out");
	else if (is_servers_own(f->name))
		rules_fail(error, line, "%.*s is the server's own to say: leave it out", RULES_SHOWN(f->name));
	else if (slice_equal_nocase(f->name, SLICE("Basic-Auth"))) { /* it would tell all what it keeps */
		rules_fail(error, line, "Basic-Auth is not known here: a password is asked for with a file .htaccess");
		error->whole.length = (size_t)(f->name.at + f->name.length - error->whole.at); /* without the password */
	} else if (!f->detach && !f->value.length) rules_fail(error, line, "%.*s has no value", RULES_SHOWN(f->name));
	else if (chars_text(f->value.at, f->value.length) != f->value.length)
		rules_fail(error, line, "the value of %.*s has a control character", RULES_SHOWN(f->name));
	else if (is_of_content(f->name) && (used = placeholder_in(f->value, &rule->pattern)).length)
		rules_fail(error, line, "the value of %.*s has the placeholder :%.*s, which it cannot have",
				   RULES_SHOWN(f->name), RULES_SHOWN(used));
	else return true;
	return false;
}

/* No field is called so; but the text of a pattern that was meant may begin so. */
static bool is_host(struct slice name) {
	return memchr(name.at, '.', name.length) || slice_equal_nocase(name, SLICE("http")) ||
		   slice_equal_nocase(name, SLICE("https"));
}

static bool parse_field(struct header_rules *r, struct slice line, struct rules_error *error) {
	struct header_field f = {.detach = line.at[0] == '!', .value = SLICE("")};
	if (r->skipping) {
		rules_fail(error, error->line, "it is left out with the pattern above it");
		return false;
	}
	if (!r->rules) {
		rules_fail(error, error->line, "there is no pattern above this field, as /*");
		return false;
	}
	if (f.detach) {
		f.name = slice_trim((struct slice){.at = line.at + 1, .length = line.length - 1});
	} else {
		const char *colon = memchr(line.at, ':', line.length);
		if (!colon || is_host((struct slice){.at = line.at, .length = (size_t)(colon - line.at)})) {
			rules_fail(error, error->line, "it is neither a pattern, which begins with '/', nor a field%s",
					   colon ? "" : ": there is no ':'");
			r->skipping = true; /* what follows may be of a pattern that was meant */
			return false;
		}
		f.name = (struct slice){.at = line.at, .length = (size_t)(colon - line.at)};
		f.value = slice_trim((struct slice){.at = colon + 1, .length = line.length - f.name.length - 1});
	}
	struct header_rule *rule = &r->rule[r->rules - 1];
	if (!check_field(&f, rule, error)) return false;
	f.rule = r->rules - 1;
	f.fills = placeholder_in(f.value, &rule->pattern).length > 0;
	if (f.fills && !r->filling && !(r->filling = malloc(HEADER_OCTETS_MAX))) return rules_no_memory(error);
	if (r->fields == HEADER_FIELDS_MAX) {
		rules_fail(error, error->line, "there are more than %d fields", HEADER_FIELDS_MAX);
		return false;
	}
	void *grown = rules_grow(r->field, r->fields, &r->field_capacity, sizeof *r->field);
	if (!grown) return rules_no_memory(error);
	r->field = grown;
	r->field[r->fields++] = f;
	r->joined_length += f.value.length + 2;
	rule->fields++;
	return true;
}

/* Without a comment behind it. */
static bool parse_pattern(struct header_rules *r, struct slice line, struct rules_error *error) {
	for (size_t i = 1; i < line.length; i++)
		if (line.at[i] == '#' && (line.at[i - 1] == ' ' || line.at[i - 1] == '\t')) line.length = i;
	line = slice_trim(line);
	r->skipping = true;
	if (r->rules == RULES_MAX) {
		rules_fail(error, error->line, "there are more than %d rules", RULES_MAX);
		return false;
	}
	void *grown = rules_grow(r->rule, r->rules, &r->rule_capacity, sizeof *r->rule);
	if (!grown) return rules_no_memory(error);
	r->rule = grown;
	struct header_rule rule = {.first = r->fields, .line = error->line};
	const char *wrong = pattern_compile(&rule.pattern, line, PATTERN_EXACT);
	if (wrong == pattern_no_memory) return rules_no_memory(error);
	if (wrong) {
		rules_fail(error, error->line, "the pattern is wrong: %s", wrong);
		return false;
	}
	r->hosts |= pattern_has_host(&rule.pattern);
	r->rule[r->rules++] = rule;
	r->skipping = false;
	return true;
}

static bool take_line(void *rules, struct slice line, struct rules_error *error) {
	return (pattern_begins(line) ? parse_pattern : parse_field)(rules, line, error);
}

struct header_rules *header_rules_parse(struct slice text, struct rules_report *report) {
	struct rules_error error = {0};
	struct header_rules *r = calloc(1, sizeof *r);
	if (!r || !(r->text = malloc(text.length + 1))) goto no_memory;
	if (text.length) memcpy(r->text, text.at, text.length);
	text.at = r->text;
	if (!rules_read(text, take_line, r, report)) goto wrong;
	r->matched = malloc((r->rules + 1) * sizeof *r->matched);
	r->gathered = calloc(r->fields + 1, sizeof(const struct header_field *));
	r->scratch = malloc(sizeof *r->scratch + r->fields * sizeof *r->scratch->item);
	r->piece = malloc((r->fields + 1) * sizeof *r->piece);
	r->joined = malloc(r->joined_length + 1);
	r->id = next_id();
	if (r->matched && r->gathered && r->scratch && r->piece && r->joined) return r;
no_memory:
	(void)rules_no_memory(&error);
	report->tell(report, &error);
wrong:
	header_rules_free(r);
	return NULL;
}

void header_rules_free(struct header_rules *r) {
	if (!r) return;
	for (unsigned i = 0; i < r->rules; i++) pattern_free(&r->rule[i].pattern);
	for (unsigned i = 0; i < SLOTS; i++) free(r->known[i]);
	free(r->filling);
	free(r->joined);
	free(r->piece);
	free(r->scratch);
	free(r->gathered);
	free(r->matched);
	free(r->field);
	free(r->rule);
	free(r->text);
	free(r);
}

/* --- from rules to a set --- */

static unsigned gather(struct header_rules *r, unsigned matched) {
	unsigned n = 0;
	for (unsigned i = 0; i < matched; i++) {
		const struct header_rule *rule = &r->rule[r->matched[i]];
		for (unsigned f = 0; f < rule->fields; f++) r->gathered[n++] = &r->field[rule->first + f];
	}
	return n;
}

/* The next of the same name as that one; n if there is none. */
static unsigned next_of_name(struct header_rules *r, unsigned i, unsigned n) {
	const struct header_field *f = r->gathered[i];
	for (i++; i < n; i++)
		if (slice_equal_nocase(r->gathered[i]->name, f->name)) break;
	return i;
}

/* Whether a field of its name comes before it, with none that detaches it between. */
static bool is_joined_to_another(struct header_rules *r, unsigned i) {
	const struct header_field *f = r->gathered[i];
	while (i--)
		if (slice_equal_nocase(r->gathered[i]->name, f->name)) return !r->gathered[i]->detach;
	return false;
}

static bool is_detached(struct header_rules *r, unsigned i, unsigned n) {
	while ((i = next_of_name(r, i, n)) < n)
		if (r->gathered[i]->detach) return true;
	return false;
}

/* The value of that field with the others of its name behind it, written to *out if there are any. */
static struct slice join(struct header_rules *r, unsigned i, unsigned n, char **out) {
	struct slice value = r->gathered[i]->value;
	unsigned next = next_of_name(r, i, n);
	if (next == n) return value;
	char *start = *out;
	memcpy(*out, value.at, value.length);
	*out += value.length;
	for (; next < n; next = next_of_name(r, next, n)) {
		struct slice more = r->gathered[next]->value;
		memcpy(*out, ", ", 2);
		memcpy(*out + 2, more.at, more.length);
		*out += 2 + more.length;
	}
	return (struct slice){.at = start, .length = (size_t)(*out - start)};
}

static void add_item(struct header_set *set, struct header_item item) {
	set->item[set->count++] = item;
	if (!item.detach) set->octets += item.name.length + item.value.length + 4;
}

/* Adds the pieces of a field and, if they are joined, of the others of its name, if one of them is to be filled in. */
static bool add_pieces(struct header_rules *r, unsigned i, unsigned n, bool joins) {
	struct header_set *set = r->scratch;
	unsigned first = set->pieces;
	bool fills = false;
	for (; i < n; i = joins ? next_of_name(r, i, n) : n) {
		fills |= r->gathered[i]->fills;
		r->piece[set->pieces] = (struct header_piece){.field = r->gathered[i], .joined = set->pieces > first};
		set->pieces++;
	}
	if (!fills) set->pieces = first;
	return fills;
}

/* Makes the scratch set of what n fields were gathered; returns how much of `joined` it uses. */
static size_t make_set(struct header_rules *r, unsigned n) {
	struct header_set *set = r->scratch;
	char *out = r->joined;
	*set = (struct header_set){.piece = r->piece};
	for (unsigned i = 0; i < n; i++) {
		const struct header_field *f = r->gathered[i];
		struct header_item item = {.name = f->name, .value = f->value, .detach = f->detach};
		bool joins = !slice_equal_nocase(f->name, SLICE("Set-Cookie"));
		if (f->detach ? next_of_name(r, i, n) < n : is_detached(r, i, n)) continue;
		if (!f->detach && joins && is_joined_to_another(r, i)) continue;
		if (!f->detach && add_pieces(r, i, n, joins)) {
			item.detach = true;
			item.value = SLICE("");
		} else if (!f->detach && joins) {
			item.value = join(r, i, n, &out);
		}
		add_item(set, item);
	}
	return (size_t)(out - r->joined);
}

/* --- what is filled in --- */

struct value_writer {
	char *at;
	size_t used;
	bool full;
};

static void put_text(struct value_writer *w, struct slice s) {
	w->full |= s.length > HEADER_OCTETS_MAX - w->used;
	if (w->full) return;
	memcpy(w->at + w->used, s.at, s.length);
	w->used += s.length;
}

static void put_encoded(struct value_writer *w, struct slice s) {
	char encoded[3];
	for (size_t i = 0; i < s.length && !w->full; i++) {
		size_t n = path_encode((struct slice){.at = s.at + i, .length = 1}, encoded);
		put_text(w, (struct slice){.at = encoded, .length = n});
	}
}

static void put_value(struct value_writer *w, struct slice value, const struct pattern *pattern,
					  const struct pattern_captures *captures) {
	for (struct slice name; (name = placeholder_in(value, pattern)).length;) {
		struct slice text = {.at = value.at, .length = (size_t)(name.at - value.at) - 1};
		put_text(w, text);
		put_encoded(w, captures->value[pattern_capture(pattern, name)]);
		value.length -= text.length + 1 + name.length;
		value.at = name.at + name.length;
	}
	put_text(w, value);
}

/* Writes the lines that r->filled becomes. */
static void fill_in(struct header_rules *r, const struct header_set *set, const struct pattern_subject *subject) {
	struct value_writer w = {.at = r->filling};
	struct pattern_captures captures;
	unsigned captured = RULES_MAX; /* the rule that they are of */
	for (unsigned i = 0; i < set->pieces && !w.full; i++) {
		const struct header_field *f = set->piece[i].field;
		const struct pattern *pattern = &r->rule[f->rule].pattern;
		if (!set->piece[i].joined) put_text(&w, f->name);
		put_text(&w, set->piece[i].joined ? SLICE(", ") : SLICE(": "));
		if (f->fills && f->rule != captured) (void)pattern_match(pattern, subject, &captures); /* as it did before */
		if (f->fills) captured = f->rule;
		if (f->fills) put_value(&w, f->value, pattern, &captures);
		else put_text(&w, f->value);
		if (i + 1 == set->pieces || !set->piece[i + 1].joined) put_text(&w, SLICE("\r\n"));
	}
	r->filled = w.full ? (struct slice){.length = HEADER_OCTETS_MAX + 1} : (struct slice){.at = w.at, .length = w.used};
}

struct slice header_rules_filled(const struct header_rules *r) {
	return r->filled;
}

/* --- the sets that are known --- */

/* A copy of the scratch set, for those rules. NULL: no memory, or no more of it to be taken. */
static struct known_set *known_set_new(struct header_rules *r, uint64_t hash, unsigned matched, size_t joined) {
	const struct header_set *set = r->scratch;
	size_t pieces = set->pieces * sizeof *r->piece;
	size_t rules = matched * sizeof *r->matched;
	size_t before =
		(sizeof(struct known_set) + rules + _Alignof(struct header_set) - 1) & ~(_Alignof(struct header_set) - 1);
	size_t size = sizeof *set + set->count * sizeof *set->item;
	size_t all = before + size + pieces + joined;
	if (r->sets == HEADER_SETS_MAX || r->bytes + all > HEADER_SETS_BYTES_MAX) return NULL;
	struct known_set *known = malloc(all);
	if (!known) return NULL;
	*known = (struct known_set){.hash = hash, .set = (struct header_set *)((char *)known + before), .rules = matched};
	struct header_piece *piece = (struct header_piece *)((char *)known->set + size);
	char *values = (char *)piece + pieces;
	memcpy(known->rule, r->matched, rules);
	memcpy(known->set, set, size);
	memcpy(piece, r->piece, pieces);
	memcpy(values, r->joined, joined);
	for (unsigned i = 0; i < set->count; i++) {
		struct slice *value = &known->set->item[i].value;
		if (value->at >= r->joined && value->at < r->joined + joined) value->at = values + (value->at - r->joined);
	}
	known->set->piece = piece;
	known->set->id = next_id();
	r->bytes += all;
	r->sets++;
	return known;
}

static const struct header_set *set_of(struct header_rules *r, unsigned matched) {
	size_t length = matched * sizeof *r->matched;
	uint64_t hash = hash_octets(0, (struct slice){.at = (const char *)r->matched, .length = length});
	unsigned slot = (unsigned)(hash % SLOTS);
	for (const struct known_set *k; (k = r->known[slot]); slot = (slot + 1) % SLOTS)
		if (k->hash == hash && k->rules == matched && memcmp(k->rule, r->matched, length) == 0) return k->set;
	size_t joined = make_set(r, gather(r, matched));
	r->scratch->line = r->rule[r->matched[matched - 1]].line;
	r->known[slot] = known_set_new(r, hash, matched, joined);
	if (r->known[slot]) return r->known[slot]->set;
	r->scratch->transient = true;
	r->scratch->id = hash_octets(r->id, (struct slice){.at = (const char *)r->matched, .length = length}) | HASHED;
	return r->scratch;
}

const struct header_set *header_rules_match(struct header_rules *r, struct slice host, struct slice path) {
	struct pattern_subject subject;
	struct pattern_captures captures;
	unsigned matched = 0;
	pattern_subject(&subject, r->hosts ? host : (struct slice){0}, path, PATTERN_EXACT);
	for (unsigned i = 0; i < r->rules; i++)
		if (pattern_match(&r->rule[i].pattern, &subject, &captures) && r->rule[i].fields)
			r->matched[matched++] = (uint16_t)i;
	r->filled = (struct slice){0};
	if (!matched) return NULL;
	const struct header_set *set = set_of(r, matched);
	if (set->pieces) fill_in(r, set, &subject);
	return set;
}

/* --- sets --- */

bool header_named(const struct header_item *item, const char *name) {
	return item->name.length == strlen(name) && strncasecmp(item->name.at, name, item->name.length) == 0;
}

/* Takes everything up to the word, and the word, off the front. false: it is not in there. */
static bool take_until(struct slice *value, struct slice word) {
	for (size_t i = 0; i + word.length <= value->length; i++) {
		if (strncasecmp(value->at + i, word.at, word.length) != 0) continue;
		value->at += i + word.length;
		value->length -= i + word.length;
		return true;
	}
	return false;
}

/* Whether a directive of that name, with its '=', says more than HEADER_BRIEF_S. */
static bool is_long(struct slice value, struct slice name) {
	while (take_until(&value, name)) {
		unsigned seconds = 0;
		for (size_t i = value.length && value.at[0] == '"'; i < value.length && seconds <= HEADER_BRIEF_S; i++) {
			if (value.at[i] < '0' || value.at[i] > '9') break;
			seconds = seconds * 10 + (unsigned)(value.at[i] - '0');
		}
		if (seconds > HEADER_BRIEF_S) return true;
	}
	return false;
}

bool header_lasts(const struct header_item *item) {
	struct slice value = item->value;
	if (item->detach || !header_named(item, "Cache-Control")) return false;
	return is_long(value, SLICE("max-age=")) || is_long(value, SLICE("s-maxage=")) ||
		   take_until(&value, SLICE("immutable"));
}

static char *put(char *at, struct slice s) {
	memcpy(at, s.at, s.length);
	return at + s.length;
}

size_t header_set_lines(const struct header_set *set, bool stands_in, char *out) {
	char *at = out;
	for (unsigned i = 0; i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		if (item->detach || header_named(item, "Content-Type") || header_named(item, "X-Content-Type-Options"))
			continue;
		if (stands_in && header_lasts(item)) continue;
		at = put(put(put(put(at, item->name), SLICE(": ")), item->value), SLICE("\r\n"));
	}
	return (size_t)(at - out);
}
