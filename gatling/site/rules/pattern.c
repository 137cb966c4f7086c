/* pattern.c - see pattern.h. A pattern is a list of tokens: those of the host, then those of the path. The tokens
 * before the splat are matched from the start of the path, the tokens behind it from the end: that needs no
 * backtracking. So is the text at the end of a pattern without splat. */
#include "gatling/site/rules/pattern.h"

#include <limits.h>
#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/base/text.h"
#include "gatling/http/chars.h"
#include "gatling/http/path.h"

#define NO_SPLAT UINT_MAX

const char pattern_no_memory[] = "there is no memory";

enum token_type { TOKEN_TEXT, TOKEN_NAME, TOKEN_SPLAT };

struct token {
	enum token_type type;
	struct slice text; /* that has to be there, or the name */
};

struct pattern_parts {
	unsigned tokens, names;
	unsigned host;      /* tokens of the host */
	unsigned splat;     /* index of the splat, or NO_SPLAT */
	char *end;          /* of the octets behind the tokens, to which these refer */
	struct token *last; /* of the host or path that is being read, or NULL */
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

/* Decodes the percent-encoded octet at the front, and takes all but its last digit off. */
static const char *take_encoded(struct slice *rest, char *octet) {
	if (!path_is_encoded(*rest)) return "its percent-encoding is broken";
	*octet = (char)(scan_fromhex((unsigned char)rest->at[1]) * 16 + scan_fromhex((unsigned char)rest->at[2]));
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

/* Takes the host of a URL with its port off the front, and adds it without port and without the dot of the root. */
static const char *add_host(struct pattern_parts *p, struct slice *rest) {
	const char *wrong = NULL;
	struct slice host = slice_first(*rest, slice_until(*rest, '/'));
	slice_drop(rest, host.length);
	size_t n = host.length;
	while (n && text_is_digit(host.at[n - 1])) n--;
	if (n && host.at[n - 1] == ':') host.length = n - 1;
	if (slice_ends(host, SLICE("."))) host.length--;
	if (!host.length) return "it has no host";
	while (host.length && !wrong) {
		struct slice name = pattern_placeholder(host);
		if (name.length) wrong = add_capture(p, TOKEN_NAME, name);
		else if (char_is(host.at[0], CHAR_HOST)) wrong = add_octet(p, text_lower(host.at[0]));
		else wrong = "its host has more than names, letters, digits, '-', '_' and '.'";
		slice_drop(&host, 1 + name.length);
	}
	p->host = p->tokens;
	p->last = NULL;
	return wrong;
}

static const char *add_path(struct pattern_parts *p, struct slice rest, enum pattern_mode mode) {
	const char *wrong = rest.length ? NULL : add_octet(p, '/');
	while (rest.length && !wrong) {
		struct slice name = pattern_placeholder(rest);
		char c = rest.at[0];
		if (c == '*') wrong = add_capture(p, TOKEN_SPLAT, SLICE("splat"));
		else if (name.length) wrong = add_capture(p, TOKEN_NAME, name);
		else if (c != '%' || !(wrong = take_encoded(&rest, &c))) wrong = add_octet(p, c);
		slice_drop(&rest, 1 + name.length);
	}
	if (wrong || mode == PATTERN_EXACT) return wrong;
	/* LOOSE adds a '/' to the path, too */
	bool complete = p->last->type == TOKEN_SPLAT || (p->last->type == TOKEN_TEXT && p->end[-1] == '/');
	return complete ? NULL : add_octet(p, '/');
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

/* Returns NULL if there is no memory. Each '*' and ':' of the text makes two tokens at most: itself and the text behind
 * it. The octets are at most those of the text, the name of the splat, and a '/' behind the host and behind the path.
 */
static struct pattern_parts *parts_new(struct slice text) {
	size_t tokens = 4, octets = text.length + sizeof "splat//";
	for (size_t i = 0; i < text.length; i++) tokens += text.at[i] == '*' || text.at[i] == ':' ? 2 : 0;
	struct pattern_parts *p = malloc(sizeof *p + tokens * sizeof *p->token + octets);
	if (p) *p = (struct pattern_parts){.splat = NO_SPLAT, .end = (char *)&p->token[tokens]};
	return p;
}

/* Returns the hash of a path that is the same with and without a '/' at its end if the mode is LOOSE. */
static uint64_t path_hash(struct slice path, enum pattern_mode mode) {
	if (mode == PATTERN_LOOSE && path.length && path.at[path.length - 1] == '/') path.length--;
	return hash_octets(0, path);
}

/* Fills in what pattern_match() tests first. */
static void make_key(struct pattern *pattern, enum pattern_mode mode) {
	const struct pattern_parts *p = pattern->parts;
	struct slice start = p->token[p->host].text;
	size_t n = start.length < PATTERN_START ? start.length : PATTERN_START;
	pattern->literal = !p->names && p->splat == NO_SPLAT;
	pattern->key = pattern->mask = 0;
	memcpy(&pattern->key, start.at, n);
	memset(&pattern->mask, 0xFF, n);
	if (!pattern->literal) return;
	pattern->key = path_hash(start, mode);
	pattern->mask = UINT64_MAX;
}

const char *pattern_compile(struct pattern *pattern, struct slice text, enum pattern_mode mode) {
	size_t scheme = host_scheme_length(text);
	if (!pattern_begins(text)) return "it does not begin with '/', http:// or https://";
	if (text.length > PATTERN_MAX) return "it is too long";
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
	make_key(pattern, mode);
	return NULL;
}

void pattern_free(struct pattern *pattern) { free(pattern->parts); }

struct slice pattern_host(const struct pattern *pattern) {
	return pattern->parts->host ? pattern->parts->token[0].text : (struct slice){0};
}

int pattern_capture(const struct pattern *pattern, struct slice name) { return find_name(pattern->parts, name); }

/* --- matching --- */

void pattern_subject(struct pattern_subject *subject, struct slice authority, struct slice path,
					 enum pattern_mode mode) {
	bool add = mode == PATTERN_LOOSE && path.length && path.at[path.length - 1] != '/';
	size_t n = path.length < PATTERN_START ? path.length : PATTERN_START;
	subject->host = (struct slice){0};
	if (authority.length && host_valid(authority))
		subject->host = (struct slice){.at = subject->host_name, .length = host_name(authority, subject->host_name)};
	subject->path = path;
	subject->length = path.length + add;
	subject->key[false] = 0;
	if (n) memcpy(&subject->key[false], path.at, n);
	if (add && n < PATTERN_START) memcpy((char *)&subject->key[false] + n, "/", 1);
	subject->key[true] = path_hash(path, mode);
}

/* What is left of a host or path to be matched, from its start or backwards from its end. */
struct view {
	struct slice text;
	size_t start, end; /* if the end is behind the text, a '/' follows */
	char separator;
	bool backwards;
};

/* Returns where in the text the octets begin that come behind so many others. */
static inline size_t position(const struct view *v, size_t behind, size_t length) {
	return v->backwards ? v->end - behind - length : v->start + behind;
}

static inline bool text_comes(const struct view *v, size_t behind, struct slice text) {
	if (text.length > v->end - v->start - behind) return false;
	size_t at = position(v, behind, text.length);
	if (at + text.length > v->text.length && text.at[--text.length] != '/') return false;
	return memcmp(v->text.at + at, text.at, text.length) == 0;
}

/* Returns how many octets a name matches: those before the next text, or if there is none, all that are left. 0: it
 * does not match, because its segment ends before that. */
static size_t name_length(const struct view *v, const struct slice *next) {
	size_t length = 0, left = v->end - v->start;
	char first = next ? next->at[v->backwards ? next->length - 1 : 0] : v->separator;
	for (; length < left; length++) {
		size_t at = position(v, length, 1);
		char c = at < v->text.length ? v->text.at[at] : '/';
		if (c == first && length && next && text_comes(v, length, *next)) return length;
		if (c == v->separator) return 0;
	}
	return next ? 0 : length;
}

/* Matches tokens with what the view begins with, or ends with if it is backwards, and takes that off. */
static bool match_tokens(const struct token *token, unsigned count, struct view *v, struct slice *captures) {
	for (unsigned left = count; left--;) {
		unsigned i = v->backwards ? left : count - 1 - left;
		size_t length = token[i].text.length;
		if (token[i].type == TOKEN_TEXT) {
			if (!text_comes(v, 0, token[i].text)) return false;
		} else {
			length = name_length(v, left ? &token[v->backwards ? i - 1 : i + 1].text : NULL);
			if (!length) return false;
			captures[i] = (struct slice){.at = v->text.at + position(v, 0, length), .length = length};
		}
		if (v->backwards) v->end -= length;
		else v->start += length;
	}
	return true;
}

/* Matches the tokens from `first` to `end` with all of the view. What is left of it is for the splat. */
static bool match_all(const struct pattern_parts *p, unsigned first, unsigned end, struct view *v,
					  struct slice *captures) {
	bool splat = p->splat < end;
	unsigned tail = splat ? p->splat + 1 : end - (p->token[end - 1].type == TOKEN_TEXT);
	unsigned head = splat ? p->splat : tail;
	v->backwards = true;
	if (!match_tokens(p->token + tail, end - tail, v, captures + tail)) return false;
	v->backwards = false;
	return match_tokens(p->token + first, head - first, v, captures + first) && (splat || v->start == v->end);
}

bool pattern_match_parts(const struct pattern *pattern, const struct pattern_subject *s,
						 struct pattern_captures *captures) {
	const struct pattern_parts *p = pattern->parts;
	struct view host = {.text = s->host, .end = s->host.length, .separator = '.'};
	struct view path = {.text = s->path, .end = s->length, .separator = '/'};
	if (p->host && (!s->host.at || !match_all(p, 0, p->host, &host, captures->value))) return false;
	if (!match_all(p, p->host, p->tokens, &path, captures->value)) return false;
	if (p->splat == NO_SPLAT) return true;
	/* the '/' that LOOSE adds is not part of the splat */
	size_t end = path.end < s->path.length ? path.end : s->path.length;
	size_t start = path.start < end ? path.start : end;
	captures->value[p->splat] = (struct slice){.at = s->path.at + start, .length = end - start};
	return true;
}
