/* priority.c - see priority.h. The parser checks the whole syntax of RFC 8941, section 4.2, but keeps only integers and
 * booleans. */
#include "gatling/http2/priority.h"

#include "gatling/base/text.h"
#include "gatling/http/chars.h"

enum { INTEGER_DIGITS = 15, DECIMAL_DIGITS = 12, FRACTION_DIGITS = 3, URGENCY_MAX = 7 };

struct item {
	enum { ITEM_INTEGER, ITEM_BOOLEAN, ITEM_OTHER } type;
	int64_t value;
};

static char peek(const struct slice *s) { return s->length ? s->at[0] : '\0'; }

static bool take(struct slice *s, char c) {
	if (!s->length || s->at[0] != c) return false;
	slice_drop(s, 1);
	return true;
}

static void skip_blanks(struct slice *s, const char *blanks) {
	while (s->length && s->at[0] && strchr(blanks, s->at[0])) slice_drop(s, 1);
}

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_alpha(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

static bool take_key(struct slice *s, struct slice *key) {
	*key = (struct slice){.at = s->at, .length = 0};
	if (!is_lower(peek(s)) && peek(s) != '*') return false;
	while (s->length && (is_lower(s->at[0]) || text_is_digit(s->at[0]) || (s->at[0] && strchr("_-.*", s->at[0])))) {
		slice_drop(s, 1);
		key->length++;
	}
	return true;
}

/* Parses an integer or a decimal (section 4.2.4). */
static bool take_number(struct slice *s, struct item *item) {
	bool negative = take(s, '-');
	size_t digits = 0, fraction = 0;
	int64_t value = 0;
	for (; text_is_digit(peek(s)) && digits <= INTEGER_DIGITS; slice_drop(s, 1), digits++)
		value = value * 10 + (s->at[0] - '0');
	if (!digits || digits > INTEGER_DIGITS) return false;
	*item = (struct item){.type = ITEM_INTEGER, .value = negative ? -value : value};
	if (!take(s, '.')) return true;
	item->type = ITEM_OTHER;
	for (; text_is_digit(peek(s)); slice_drop(s, 1)) fraction++;
	return digits <= DECIMAL_DIGITS && fraction > 0 && fraction <= FRACTION_DIGITS;
}

static bool take_string(struct slice *s) {
	slice_drop(s, 1);
	while (s->length) {
		char c = s->at[0];
		slice_drop(s, 1);
		if (c == '"') return true;
		if (c < ' ' || c > '~') return false;
		if (c == '\\' && !take(s, '"') && !take(s, '\\')) return false;
	}
	return false;
}

static bool take_bytes(struct slice *s) {
	slice_drop(s, 1);
	while (is_alpha(peek(s)) || text_is_digit(peek(s)) || (peek(s) && strchr("+/=", peek(s)))) slice_drop(s, 1);
	return take(s, ':');
}

static bool take_boolean(struct slice *s, struct item *item) {
	slice_drop(s, 1);
	*item = (struct item){.type = ITEM_BOOLEAN, .value = peek(s) == '1'};
	return take(s, '0') || take(s, '1');
}

/* Parses a bare item (section 4.2.3.1). */
static bool take_bare_item(struct slice *s, struct item *item) {
	char c = peek(s);
	*item = (struct item){.type = ITEM_OTHER};
	if (c == '-' || text_is_digit(c)) return take_number(s, item);
	if (c == '?') return take_boolean(s, item);
	if (c == '"') return take_string(s);
	if (c == ':') return take_bytes(s);
	if (!is_alpha(c) && c != '*') return false;
	while (s->length && (char_is(s->at[0], CHAR_TOKEN) || s->at[0] == ':' || s->at[0] == '/')) slice_drop(s, 1);
	return true;
}

static bool take_parameters(struct slice *s) {
	while (take(s, ';')) {
		struct slice key;
		struct item ignored;
		skip_blanks(s, " ");
		if (!take_key(s, &key) || (take(s, '=') && !take_bare_item(s, &ignored))) return false;
	}
	return true;
}

static bool take_inner_list(struct slice *s, struct item *item) {
	struct item ignored;
	slice_drop(s, 1);
	*item = (struct item){.type = ITEM_OTHER};
	while (s->length) {
		skip_blanks(s, " ");
		if (take(s, ')')) return true;
		if (!take_bare_item(s, &ignored) || !take_parameters(s) || (peek(s) != ' ' && peek(s) != ')')) return false;
	}
	return false;
}

static bool take_member(struct slice *s, struct slice *key, struct item *item) {
	*item = (struct item){.type = ITEM_BOOLEAN, .value = 1};
	if (!take_key(s, key)) return false;
	if (take(s, '=') && !(peek(s) == '(' ? take_inner_list(s, item) : take_bare_item(s, item))) return false;
	return take_parameters(s);
}

void priority_parse(struct slice value, struct priority *priority) {
	struct priority found = *priority;
	skip_blanks(&value, " ");
	while (value.length && value.at[value.length - 1] == ' ') value.length--;
	while (value.length) {
		struct slice key;
		struct item item;
		if (!take_member(&value, &key, &item)) return;
		if (slice_equal(key, SLICE("u")) && item.type == ITEM_INTEGER && item.value >= 0 && item.value <= URGENCY_MAX)
			found.urgency = (uint8_t)item.value;
		if (slice_equal(key, SLICE("i")) && item.type == ITEM_BOOLEAN) found.incremental = item.value;
		skip_blanks(&value, " \t");
		if (!value.length) break;
		if (!take(&value, ',')) return;
		skip_blanks(&value, " \t");
		if (!value.length) return; /* a trailing comma */
	}
	*priority = found;
}
