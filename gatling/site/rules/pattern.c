/* pattern.c - see pattern.h. A pattern is a list of tokens: those of the host, then those of the path. The tokens
 * before the splat are matched from the start of the path, and the tokens behind it from the end, which needs no
 * backtracking. Without a splat, the text at the end of the pattern is matched from the end, too. */
#include "gatling/site/rules/pattern.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/path.h"

#define NO_SPLAT UINT_MAX

const char pattern_no_memory[] = "there is no memory";

enum token_type { TOKEN_TEXT, TOKEN_NAME, TOKEN_SPLAT };

struct token {
	enum token_type type;
	struct slice text; /* the text to match, or the name */
};

struct pattern_parts {
	unsigned tokens, names;
	unsigned host;      /* tokens of the host */
	unsigned splat;     /* index of the splat, or NO_SPLAT */
	char *end;          /* end of the octets behind the tokens, to which the tokens refer */
	struct token *last; /* the last one of the host or path that is being read, or NULL */
	struct token token[];
};

/* --- compiling --- */

static int find_name(const struct pattern_parts *p, struct slice name) {
	for (unsigned i = 0; i < p->tokens; i++)
		if (p->token[i].type != TOKEN_TEXT && slice_equal(p->token[i].text, name)) return (int)i;
	return -1;
}

static void add_token(struct pattern_parts *p, enum token_type type, size_t length) {
	p->last = &p->token[p->tokens++];
	*p->last = (struct token){.type = type, .text = {.at = p->end, .length = length}};
}

static const char *add_octet(struct pattern_parts *p, char c) {
	if (!p->last || p->last->type != TOKEN_TEXT) add_token(p, TOKEN_TEXT, 0);
	else if (c == '/' && p->end[-1] == '/') return "it has an empty segment, which no path has";
	*p->end++ = c;
	p->last->text.length++;
	return NULL;
}

static const char *add_capture(struct pattern_parts *p, enum token_type type, struct slice name) {
	if (type == TOKEN_SPLAT && p->splat != NO_SPLAT) return "it has a second '*': use :name, which matches one segment";
	if (find_name(p, name) >= 0) return "it has the same name twice";
	if (p->last && p->last->type != TOKEN_TEXT) return "it has no text between two placeholders";
	if (type == TOKEN_NAME && p->names++ == PATTERN_NAMES_MAX) return "it has too many placeholders";
	if (type == TOKEN_SPLAT) p->splat = p->tokens;
	add_token(p, type, name.length);
	p->end = text_copy(p->end, name);
	return NULL;
}

/* Decodes the percent-encoded octet at the front, and takes all but its last digit off. Returns NULL, or what is
 * wrong. */
static const char *take_encoded(struct slice *rest, char *octet) {
	if (!path_is_encoded(*rest)) return "its percent-encoding is broken";
	*octet = (char)path_decode_byte(*rest);
	if (*octet == '/' || *octet == '\0') return "it has an encoded '/' or NUL, which no path has";
	slice_drop(rest, 2);
	return NULL;
}

struct slice pattern_placeholder(struct slice text) {
	struct slice name = {.at = text.at, .length = 0};
	if (!text.length || text.at[0] != ':') return name;
	for (name.at++; name.length + 1 < text.length; name.length++) {
		char c = text_lower(name.at[name.length]);
		if ((c < 'a' || c > 'z') && (name.length == 0 || (!text_is_digit(c) && c != '_'))) break;
	}
	return name;
}

struct slice pattern_next_name(struct slice *text, struct slice *name) {
	size_t n = 0;
	while (!(*name = pattern_placeholder(slice_rest(*text, n))).length && n < text->length) n++;
	struct slice before = slice_first(*text, n);
	slice_drop(text, n + (name->length ? 1 + name->length : 0));
	return before;
}

/* Returns the name of the placeholder that is the segment at the start of the text, which begins with ':'. */
static struct slice segment_placeholder(struct slice text) {
	struct slice rest = slice_rest(text, 1);
	return slice_first(rest, slice_until(rest, '/'));
}

/* Adds the host or the path, which must not be empty. segments: placeholders are whole segments. Returns NULL, or what
 * is wrong. */
static const char *add_part(struct pattern_parts *p, struct slice part, bool is_host, bool segments) {
	const char *wrong = NULL;
	p->last = NULL;
	do {
		struct slice name = {0};
		if (!segments) name = pattern_placeholder(part);
		else if (part.at[0] == ':' && part.at[-1] == '/') name = segment_placeholder(part);
		char c = part.at[0];
		if (name.length) wrong = add_capture(p, TOKEN_NAME, name);
		else if (is_host && char_is(c, CHAR_HOST)) wrong = add_octet(p, text_lower(c));
		else if (is_host) wrong = "its host has more than names, letters, digits, '-', '_' and '.'";
		else if (c == '*') wrong = add_capture(p, TOKEN_SPLAT, SLICE("splat"));
		else if (c != '%' || !(wrong = take_encoded(&part, &c))) wrong = add_octet(p, c);
		slice_drop(&part, 1 + name.length);
	} while (part.length && !wrong);
	return wrong;
}

/* Takes the host of a URL, with its port, off the front, and adds it without the port and the dot of the root. */
static const char *add_host(struct pattern_parts *p, struct slice *rest) {
	struct slice host = slice_first(*rest, slice_until(*rest, '/'));
	slice_drop(rest, host.length);
	size_t n = host.length;
	while (n && text_is_digit(host.at[n - 1])) n--;
	if (n && host.at[n - 1] == ':') host.length = n - 1;
	if (slice_ends(host, SLICE("."))) host.length--;
	const char *wrong = host.length ? add_part(p, host, true, false) : "it has no host";
	p->host = p->tokens;
	return wrong;
}

static const char *add_path(struct pattern_parts *p, struct slice path, enum pattern_mode mode) {
	const char *wrong = add_part(p, path.length ? path : SLICE("/"), false, mode == PATTERN_LOOSE);
	if (wrong || mode == PATTERN_EXACT) return wrong;
	/* pattern_subject() adds a '/' to the path, too */
	bool complete = p->last->type == TOKEN_SPLAT || (p->last->type == TOKEN_TEXT && p->end[-1] == '/');
	return complete ? NULL : add_octet(p, '/');
}

/* Returns whether the text was meant as a regular expression, such as "/a/(.*)" or "/a/([0-9]+)$". */
static bool is_regular_expression(struct slice text) {
	const struct slice begins = SLICE(".[\\^"); /* with one of these, behind a '(' */
	for (size_t i = 0; i + 1 < text.length; i++)
		if (text.at[i] == '(' && slice_until(begins, text.at[i + 1]) < begins.length) return true;
	return slice_ends(text, SLICE("$"));
}

/* Returns what is wrong with octets that no part of a pattern may have. */
static const char *check_octets(struct slice text) {
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c < ' ' || c == 127) return "it has a control character";
		if (c == ' ') return "it has a blank: write %20";
		if (c == '?' || c == '#') return "it has a query or fragment: as part of a path, '?' is %3F and '#' is %23";
	}
	return NULL;
}

bool pattern_begins(struct slice text) { return (text.length && text.at[0] == '/') || host_scheme_length(text); }

/* Returns the parts for a pattern, or NULL without memory. Each '*' and ':' of the text makes two tokens at most:
 * itself and the text behind it. The octets are at most those of the text, the name of the splat, and a '/' behind the
 * host and behind the path. */
static struct pattern_parts *parts_new(struct slice text) {
	size_t tokens = 4, octets = text.length + sizeof "splat//";
	for (size_t i = 0; i < text.length; i++) tokens += text.at[i] == '*' || text.at[i] == ':' ? 2 : 0;
	struct pattern_parts *p = malloc(sizeof *p + tokens * sizeof *p->token + octets);
	if (p) *p = (struct pattern_parts){.splat = NO_SPLAT, .end = (char *)&p->token[tokens]};
	return p;
}

/* Fills in the members that pattern_match() tests first. */
static void make_key(struct pattern *pattern) {
	const struct pattern_parts *p = pattern->parts;
	struct slice start = p->token[p->host].text;
	size_t n = start.length < PATTERN_START ? start.length : PATTERN_START;
	assert(start.at); /* the '/' with which a path begins */
	pattern->literal = !p->names && p->splat == NO_SPLAT;
	pattern->key = pattern->mask = 0;
	memcpy(&pattern->key, start.at, n);
	memset(&pattern->mask, 0xFF, n);
	if (!pattern->literal) return;
	pattern->key = slice_hash(0, start);
	pattern->mask = UINT64_MAX;
}

const char *pattern_compile(struct pattern *pattern, struct slice text, enum pattern_mode mode) {
	size_t scheme = host_scheme_length(text);
	if (!pattern_begins(text)) return "it does not begin with '/', http:// or https://";
	if (text.length > PATTERN_MAX) return "it is too long";
	if (is_regular_expression(text))
		return "it looks like a regular expression: use * and :name, or write '(' and '$' as %28 and %24";
	const char *wrong = check_octets(text);
	if (wrong) return wrong;
	struct pattern_parts *p = parts_new(text);
	if (!p) return pattern_no_memory;
	slice_drop(&text, scheme);
	if (scheme) wrong = add_host(p, &text);
	if (!wrong) wrong = add_path(p, text, mode);
	if (wrong) {
		free(p);
		return wrong;
	}
	pattern->parts = p;
	make_key(pattern);
	return NULL;
}

void pattern_free(struct pattern *pattern) { free(pattern->parts); }

struct slice pattern_host(const struct pattern *pattern) {
	return pattern->parts->host ? pattern->parts->token[0].text : (struct slice){0};
}

int pattern_capture(const struct pattern *pattern, struct slice name) { return find_name(pattern->parts, name); }

int pattern_capture_first(const struct pattern *pattern, struct slice text, size_t *length) {
	const struct pattern_parts *p = pattern->parts;
	int found = -1;
	*length = 0;
	for (unsigned i = 0; i < p->tokens; i++) {
		const struct slice name = p->token[i].text;
		if (p->token[i].type == TOKEN_TEXT || name.length <= *length || !slice_starts(text, name)) continue;
		found = (int)i;
		*length = name.length;
	}
	return found;
}

/* Returns whether the hosts that b matches are among those of a. */
static bool hosts_cover(const struct pattern_parts *a, const struct pattern_parts *b) {
	for (unsigned i = 0; i < a->host; i++)
		if (i >= b->host || a->token[i].type != b->token[i].type ||
			(a->token[i].type == TOKEN_TEXT && !slice_equal(a->token[i].text, b->token[i].text)))
			return false;
	return !a->host || a->host == b->host;
}

bool pattern_covers(const struct pattern *a, const struct pattern *b) {
	const struct pattern_parts *p = a->parts, *q = b->parts;
	if (!hosts_cover(p, q)) return false;
	const struct token *first = &p->token[p->host];
	const unsigned tokens = p->tokens - p->host;
	if (tokens == 2 && first[1].type == TOKEN_SPLAT) return slice_starts(q->token[q->host].text, first->text);
	if (tokens != q->tokens - q->host) return false;
	for (unsigned i = 0; i < tokens; i++) {
		const struct token *other = &q->token[q->host + i];
		if (first[i].type != other->type || (other->type == TOKEN_TEXT && !slice_equal(first[i].text, other->text)))
			return false;
	}
	return true;
}

bool pattern_is_open(const struct pattern *pattern) {
	return pattern->parts->token[pattern->parts->tokens - 1].type == TOKEN_SPLAT;
}

struct slice pattern_path_start(const struct pattern *pattern) {
	return pattern->parts->token[pattern->parts->host].text;
}

/* --- matching --- */

void pattern_subject(struct pattern_subject *subject, struct slice authority, struct slice path,
					 enum pattern_mode mode) {
	subject->host = (struct slice){0};
	if (authority.length && host_valid(authority))
		subject->host = (struct slice){.at = subject->host_name, .length = host_name(authority, subject->host_name)};
	subject->slash = mode == PATTERN_LOOSE && !slice_ends(path, SLICE("/")) && path.length < sizeof subject->loose;
	if (subject->slash) {
		*text_copy(subject->loose, path) = '/';
		path = (struct slice){.at = subject->loose, .length = path.length + 1};
	}
	subject->path = path;
	subject->work = 0;
	subject->key[false] = 0;
	memcpy(&subject->key[false], path.at, path.length < PATTERN_START ? path.length : PATTERN_START);
	subject->key[true] = slice_hash(0, path);
}

/* What is left of a host or path: tokens are matched with its start, or backwards with its end. */
struct view {
	struct slice left;
	char separator;
	bool backwards;
	size_t work; /* octets that were compared more than once, see struct pattern_subject */
};

/* Returns the octets that follow the first `behind` ones, or backwards, that precede the last `behind` ones. */
static inline const char *octets(const struct view *v, size_t behind, size_t length) {
	return v->left.at + (v->backwards ? v->left.length - behind - length : behind);
}

static inline bool text_comes(const struct view *v, size_t behind, struct slice text) {
	return text.length <= v->left.length - behind && memcmp(octets(v, behind, text.length), text.at, text.length) == 0;
}

enum { WORD = sizeof(uint64_t) };

/* Does what text_comes() does for one of many places, and counts the octets that it compares. */
static inline bool text_comes_at(struct view *v, size_t behind, struct slice text) {
	if (text.length > v->left.length - behind) return false;
	const char *at = octets(v, behind, text.length);
	size_t same = 0;
	while (same + WORD <= text.length && memcmp(at + same, text.at + same, WORD) == 0) same += WORD;
	while (same < text.length && at[same] == text.at[same]) same++;
	v->work += PATTERN_PLACE_WORK + same;
	return same == text.length;
}

/* Returns how many octets are left of the segment. */
static size_t segment_length(const struct view *v) {
	size_t length = 0;
	if (!v->backwards) return slice_until(v->left, v->separator);
	while (length < v->left.length && *octets(v, length, 1) != v->separator) length++;
	return length;
}

/* Returns how many octets a name matches: those before the next text, or all that are left if there is none. Returns 0
 * if its segment ends before that, so that it does not match. */
static size_t name_length(struct view *v, const struct slice *next) {
	if (!next) {
		const size_t segment = segment_length(v);
		return segment == v->left.length ? segment : 0;
	}
	if (next->at[v->backwards ? next->length - 1 : 0] == v->separator) { /* then there is only one place */
		const size_t segment = segment_length(v);
		return text_comes(v, segment, *next) ? segment : 0;
	}
	for (size_t n = 1; n < v->left.length && *octets(v, n - 1, 1) != v->separator; n++)
		if (text_comes_at(v, n, *next)) return n;
	return 0;
}

/* Matches tokens with the start of the view, or with its end if it is backwards, and takes that off. Returns whether
 * they match. */
static bool match_tokens(const struct token *token, unsigned count, struct view *v, struct slice *captures) {
	for (unsigned left = count; left--;) {
		unsigned i = v->backwards ? left : count - 1 - left;
		size_t length = token[i].text.length;
		if (token[i].type == TOKEN_TEXT) {
			if (!text_comes(v, 0, token[i].text)) return false;
		} else {
			length = name_length(v, left ? &token[v->backwards ? i - 1 : i + 1].text : NULL);
			if (!length) return false;
			captures[i] = (struct slice){.at = octets(v, 0, length), .length = length};
		}
		if (!v->backwards) v->left.at += length;
		v->left.length -= length;
	}
	return true;
}

/* Matches the tokens from `first` to `end` with all of the view. With a splat, leaves in the view what that matches. */
static bool match_all(const struct pattern_parts *p, unsigned first, unsigned end, struct view *v,
					  struct slice *captures) {
	bool splat = p->splat < end;
	unsigned tail = splat ? p->splat + 1 : end - (p->token[end - 1].type == TOKEN_TEXT);
	unsigned head = splat ? p->splat : tail;
	v->backwards = true;
	if (!match_tokens(p->token + tail, end - tail, v, captures + tail)) return false;
	v->backwards = false;
	return match_tokens(p->token + first, head - first, v, captures + first) && (splat || !v->left.length);
}

static bool match_host_and_path(const struct pattern_parts *p, const struct pattern_subject *s, struct view *path,
								struct slice *captures) {
	struct view host = {.left = s->host, .separator = '.'};
	if (p->host && (!s->host.at || !match_all(p, 0, p->host, &host, captures))) return false;
	return match_all(p, p->host, p->tokens, path, captures);
}

bool pattern_match_parts(const struct pattern *pattern, struct pattern_subject *s, struct pattern_captures *captures) {
	const struct pattern_parts *p = pattern->parts;
	struct view path = {.left = s->path, .separator = '/'};
	const bool matches = match_host_and_path(p, s, &path, captures->value);
	s->work += s->path.length + path.work;
	if (!matches || p->splat == NO_SPLAT) return matches;
	bool to_end = path.left.at + path.left.length == s->path.at + s->path.length;
	if (s->slash && to_end && path.left.length) path.left.length--; /* that '/' is not part of the splat */
	captures->value[p->splat] = path.left;
	return true;
}
