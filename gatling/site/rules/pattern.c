/* pattern.c - see pattern.h. A pattern becomes a row of tokens for the host, one for the path before the splat, and one
 * for the path behind it, which is written backwards and matched from the end, so that one function walks all three. */
#include "gatling/site/rules/pattern.h"

#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/base/owfat.h"
#include "gatling/http/chars.h"

enum {
	TEXT_MAX = PATTERN_MAX + 2,               /* one '/' may be added behind the host, one at the end */
	TOKENS_MAX = 2 * PATTERN_CAPTURES_MAX + 2 /* text around each, in host and path */
};

#define NO_MATCH SIZE_MAX

const char pattern_no_memory[] = "there is no memory";

enum token_type { TOKEN_TEXT, TOKEN_NAME, TOKEN_SPLAT };

struct token {
	enum token_type type;
	uint16_t at, length; /* what has to be there, or the name */
	uint16_t capture;    /* number of what a name or splat stands for */
};

struct pattern_parts {
	struct token *token;
	unsigned host, before, behind; /* tokens of each row; between the last two there may be the splat */
	unsigned captures;
	bool splat;
	/* For each octet of the text: how many octets before it, itself included, are what the token's text begins with,
	 * fewer than all up to there. */
	uint16_t *border;
	char *text;
};

/* --- compiling --- */

struct builder {
	struct pattern_parts parts; /* of what follows */
	struct token token[TOKENS_MAX];
	uint16_t border[TEXT_MAX];
	char text[TEXT_MAX];
	unsigned tokens, used, names;
	unsigned row; /* first token of the host or path that is being read */
	unsigned splat;
};

static struct slice token_text(const struct pattern_parts *parts, const struct token *token) {
	if (token->type == TOKEN_SPLAT) return SLICE("splat");
	return (struct slice){.at = parts->text + token->at, .length = token->length};
}

static struct token *last_token(struct builder *b) { return b->tokens > b->row ? &b->token[b->tokens - 1] : NULL; }

static const char *add_octet(struct builder *b, char c) {
	struct token *last = last_token(b);
	if (last && last->type == TOKEN_TEXT) {
		if (c == '/' && b->text[b->used - 1] == '/') return "it has an empty segment, which no path has";
		last->length++;
	} else {
		b->token[b->tokens++] = (struct token){.type = TOKEN_TEXT, .at = (uint16_t)b->used, .length = 1};
	}
	b->text[b->used++] = c;
	return NULL;
}

static const char *add_capture(struct builder *b, struct token token, struct slice name) {
	const struct token *last = last_token(b);
	for (unsigned i = 0; i < b->tokens; i++) {
		if (b->token[i].type == TOKEN_TEXT || !slice_equal(token_text(&b->parts, &b->token[i]), name)) continue;
		return token.type == TOKEN_SPLAT && b->token[i].type == TOKEN_SPLAT
				   ? "it has a second '*', and one is possible: :name stands for a segment"
				   : "it has the same name twice";
	}
	if (last && last->type != TOKEN_TEXT) return "it has no text between two placeholders";
	token.at = (uint16_t)b->used;
	token.capture = (uint16_t)b->parts.captures++;
	b->token[b->tokens++] = token;
	return NULL;
}

static const char *add_name(struct builder *b, struct slice name) {
	if (b->names++ == PATTERN_NAMES_MAX) return "it has too many placeholders";
	const char *wrong = add_capture(b, (struct token){.type = TOKEN_NAME, .length = (uint16_t)name.length}, name);
	if (wrong) return wrong;
	memcpy(b->text + b->used, name.at, name.length);
	b->used += (unsigned)name.length;
	return NULL;
}

static const char *add_splat(struct builder *b) {
	b->splat = b->tokens;
	b->parts.splat = true;
	return add_capture(b, (struct token){.type = TOKEN_SPLAT}, SLICE("splat"));
}

/* Takes an encoded octet off the front. */
static const char *take_encoded(struct slice *rest, char *octet) {
	int high = rest->length > 2 ? scan_fromhex((unsigned char)rest->at[1]) : -1;
	int low = rest->length > 2 ? scan_fromhex((unsigned char)rest->at[2]) : -1;
	if (high < 0 || low < 0) return "its percent-encoding is broken";
	*octet = (char)(high * 16 + low);
	if (*octet == '/' || *octet == '\0') return "it has an encoded '/' or NUL, which no path has";
	slice_drop(rest, 3);
	return NULL;
}

size_t pattern_name(struct slice text) {
	size_t n = 0;
	for (; n < text.length; n++) {
		char c = text.at[n];
		if ((c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (n == 0 || ((c < '0' || c > '9') && c != '_'))) break;
	}
	return n;
}

/* The name behind a ':' at the start of the text, empty if there is none. */
static struct slice placeholder(struct slice text) {
	struct slice name = {.at = text.at + 1, .length = text.length - 1};
	name.length = text.at[0] == ':' ? pattern_name(name) : 0;
	return name;
}

/* Takes the host of a URL, without its port and the dot of the root, off the front. */
static const char *build_host(struct builder *b, struct slice *rest) {
	const char *slash = memchr(rest->at, '/', rest->length), *wrong = NULL;
	struct slice host = {.at = rest->at, .length = slash ? (size_t)(slash - rest->at) : rest->length};
	slice_drop(rest, host.length);
	size_t n = host.length;
	while (n && host.at[n - 1] >= '0' && host.at[n - 1] <= '9') n--;
	if (n && host.at[n - 1] == ':') host.length = n - 1;
	if (host.length && host.at[host.length - 1] == '.') host.length--;
	if (!host.length) return "it has no host";
	while (host.length && !wrong) {
		struct slice name = placeholder(host);
		char c = host.at[0];
		if (name.length) {
			wrong = add_name(b, name);
			slice_drop(&host, 1 + name.length);
			continue;
		}
		if (!char_is(c, CHAR_HOST)) return "its host has more than names, letters, digits, '-', '_' and '.'";
		wrong = add_octet(b, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
		slice_drop(&host, 1);
	}
	b->parts.host = b->row = b->tokens;
	return wrong;
}

static const char *build_path(struct builder *b, struct slice rest, enum pattern_mode mode) {
	const char *wrong = rest.length ? NULL : add_octet(b, '/');
	while (rest.length && !wrong) {
		struct slice name = placeholder(rest);
		char c = rest.at[0];
		if (c == '%') {
			wrong = take_encoded(&rest, &c);
			if (!wrong) wrong = add_octet(b, c);
			continue;
		}
		if (name.length) wrong = add_name(b, name);
		else if (c == '*') wrong = add_splat(b);
		else wrong = add_octet(b, c);
		slice_drop(&rest, 1 + name.length);
	}
	if (wrong || mode == PATTERN_EXACT) return wrong;
	/* to match the paths that LOOSE puts a '/' behind */
	const struct token *last = last_token(b);
	bool complete = last->type == TOKEN_SPLAT || (last->type == TOKEN_TEXT && b->text[b->used - 1] == '/');
	return complete ? NULL : add_octet(b, '/');
}

/* What may not stand as it is anywhere in a pattern. */
static const char *check_octets(struct slice text) {
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c < ' ' || c == 127) return "it has a control character";
		if (c == ' ') return "it has a blank: write %20";
		if (c == '?' || c == '#') return "it has a query or fragment: as part of a path, '?' is %3F and '#' is %23";
	}
	return NULL;
}

size_t pattern_scheme(struct slice text) {
	static const struct slice scheme[] = {SLICE("http://"), SLICE("https://")};
	for (int i = 0; i < 2; i++)
		if (text.length >= scheme[i].length && strncasecmp(text.at, scheme[i].at, scheme[i].length) == 0)
			return scheme[i].length;
	return 0;
}

bool pattern_begins(struct slice text) { return (text.length && text.at[0] == '/') || pattern_scheme(text); }

static const char *build(struct builder *b, struct slice text, enum pattern_mode mode) {
	size_t n = pattern_scheme(text);
	if (!pattern_begins(text)) return "it does not begin with '/', http:// or https://";
	if (text.length > PATTERN_MAX) return "it is too long";
	const char *wrong = check_octets(text);
	slice_drop(&text, n);
	if (!wrong && n) wrong = build_host(b, &text);
	return wrong ? wrong : build_path(b, text, mode);
}

/* --- from the builder to the pattern --- */

static void reverse_octets(char *at, size_t length) {
	for (size_t i = 0; i < length / 2; i++) {
		char c = at[i];
		at[i] = at[length - 1 - i];
		at[length - 1 - i] = c;
	}
}

static void reverse_behind_splat(struct builder *b) {
	unsigned first = b->splat + 1;
	for (unsigned i = first; i < b->tokens; i++)
		if (b->token[i].type == TOKEN_TEXT) reverse_octets(b->text + b->token[i].at, b->token[i].length);
	for (unsigned i = first, last = b->tokens; i + 1 < last; i++) {
		struct token token = b->token[i];
		b->token[i] = b->token[--last];
		b->token[last] = token;
	}
}

static void fill_borders(struct builder *b) {
	for (unsigned t = 0; t < b->tokens; t++) {
		const char *text = b->text + b->token[t].at;
		uint16_t *border = b->border + b->token[t].at, fits = 0;
		if (b->token[t].type != TOKEN_TEXT) continue;
		border[0] = 0;
		for (size_t i = 1; i < b->token[t].length; i++) {
			while (fits && text[i] != text[fits]) fits = border[fits - 1];
			if (text[i] == text[fits]) fits++;
			border[i] = fits;
		}
	}
}

static struct pattern_parts *parts_copy(const struct builder *b) {
	size_t tokens = b->tokens * sizeof *b->token, borders = b->used * sizeof *b->border;
	struct pattern_parts *parts = malloc(sizeof *parts + tokens + borders + b->used);
	if (!parts) return NULL;
	*parts = b->parts;
	parts->token = (struct token *)(parts + 1);
	parts->border = (uint16_t *)(parts->token + b->tokens);
	parts->text = (char *)(parts->border + b->used);
	memcpy(parts->token, b->token, tokens);
	memcpy(parts->border, b->border, borders);
	memcpy(parts->text, b->text, b->used);
	return parts;
}

/* Of a path with or without the '/' at its end. */
static uint64_t path_hash(struct slice path, enum pattern_mode mode) {
	if (mode == PATTERN_LOOSE && path.length && path.at[path.length - 1] == '/') path.length--;
	return hash_octets(0, path);
}

static void make_key(struct pattern *pattern, struct slice first, enum pattern_mode mode) {
	size_t n = first.length < PATTERN_START ? first.length : PATTERN_START;
	pattern->key = pattern->mask = 0;
	memcpy(&pattern->key, first.at, n);
	memset(&pattern->mask, 0xFF, n);
	if (!pattern->literal) return;
	pattern->key = path_hash(first, mode);
	pattern->mask = UINT64_MAX;
}

const char *pattern_compile(struct pattern *pattern, struct slice text, enum pattern_mode mode) {
	struct builder b;
	memset(&b.parts, 0, sizeof b.parts);
	b.parts.token = b.token;
	b.parts.text = b.text;
	b.tokens = b.used = b.names = b.row = b.splat = 0;
	const char *wrong = build(&b, text, mode);
	if (wrong) return wrong;
	if (b.parts.splat) reverse_behind_splat(&b);
	b.parts.before = (b.parts.splat ? b.splat : b.tokens) - b.parts.host;
	b.parts.behind = b.parts.splat ? b.tokens - b.splat - 1 : 0;
	fill_borders(&b);
	pattern->parts = parts_copy(&b);
	if (!pattern->parts) return pattern_no_memory;
	pattern->literal = b.tokens - b.parts.host == 1;
	make_key(pattern, token_text(pattern->parts, &pattern->parts->token[b.parts.host]), mode);
	return NULL;
}

void pattern_free(struct pattern *pattern) { free(pattern->parts); }

/* --- what is in it --- */

bool pattern_has_host(const struct pattern *pattern) { return pattern->parts->host > 0; }

bool pattern_is_literal(const struct pattern *pattern, struct slice *host) {
	const struct pattern_parts *p = pattern->parts;
	*host = p->host ? token_text(p, &p->token[0]) : (struct slice){0};
	return p->captures == 0;
}

unsigned pattern_captures(const struct pattern *pattern) { return pattern->parts->captures; }

int pattern_capture(const struct pattern *pattern, struct slice name) {
	const struct pattern_parts *p = pattern->parts;
	unsigned tokens = p->host + p->before + p->behind + p->splat;
	for (unsigned i = 0; i < tokens; i++)
		if (p->token[i].type != TOKEN_TEXT && slice_equal(token_text(p, &p->token[i]), name))
			return p->token[i].capture;
	return -1;
}

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

/* What a row of tokens is matched with. */
struct view {
	struct slice text;
	size_t length; /* more than the text's: '/' follow */
	bool backwards;
	char separator;
};

static char octet_at(const struct view *v, size_t at) {
	size_t i = v->backwards ? v->length - 1 - at : at;
	return i < v->text.length ? v->text.at[i] : '/';
}

/* Where the segment that is there ends. */
static size_t segment_end(const struct view *v, size_t at) {
	while (at < v->length && octet_at(v, at) != v->separator) at++;
	return at;
}

static bool text_is_at(const struct pattern_parts *p, const struct token *t, const struct view *v, size_t at) {
	const char *text = p->text + t->at;
	if (at > v->length || v->length - at < t->length) return false;
	if (!v->backwards && at + t->length <= v->text.length) return memcmp(v->text.at + at, text, t->length) == 0;
	for (size_t i = 0; i < t->length; i++)
		if (octet_at(v, at + i) != text[i]) return false;
	return true;
}

/* Where the text begins first in the rest of the segment; NO_MATCH: nowhere. */
static size_t find_text(const struct pattern_parts *p, const struct token *t, const struct view *v, size_t at) {
	const char *text = p->text + t->at;
	const uint16_t *border = p->border + t->at;
	size_t fits = 0;
	for (; at < v->length; at++) {
		char c = octet_at(v, at);
		if (c == v->separator) break;
		while (fits && c != text[fits]) fits = border[fits - 1];
		if (c == text[fits]) fits++;
		if (fits == t->length) return at + 1 - fits;
	}
	return NO_MATCH;
}

/* Where the name that begins there ends. Its token t is the last of its row; or the text behind it is, which has to end
 * what is matched; or neither. */
static size_t name_end(const struct pattern_parts *p, const struct token *t, bool last, bool last_text,
					   const struct view *v, size_t at) {
	if (at == v->length || octet_at(v, at) == v->separator) return NO_MATCH;
	if (last) return segment_end(v, at);
	const struct token *text = t + 1;
	const char *separator = memchr(p->text + text->at, v->separator, text->length);
	size_t in_segment = separator ? (size_t)(separator - p->text) - text->at : text->length;
	if (!separator && !last_text) return find_text(p, text, v, at + 1);
	/* the text ends the segment, so there is but one place for it */
	size_t end = segment_end(v, at);
	return end > in_segment ? end - in_segment : NO_MATCH;
}

/* Matches a row, and says how much of the view it takes: the least that it can, or with `whole` all; else NO_MATCH. */
static size_t match_row(const struct pattern_parts *p, unsigned first, unsigned tokens, const struct view *v,
						bool whole, struct pattern_captures *captures) {
	const struct token *token = p->token + first;
	size_t at = 0;
	for (unsigned i = 0; i < tokens; i++) {
		const struct token *t = token + i;
		if (t->type == TOKEN_TEXT) {
			if (!text_is_at(p, t, v, at)) return NO_MATCH;
			at += t->length;
			continue;
		}
		size_t end = name_end(p, t, i + 1 == tokens, whole && i + 2 == tokens, v, at);
		if (end == NO_MATCH || end <= at) return NO_MATCH; /* at least one character */
		captures->value[t->capture] =
			(struct slice){.at = v->text.at + (v->backwards ? v->length - end : at), .length = end - at};
		at = end;
	}
	return whole && at != v->length ? NO_MATCH : at;
}

static bool match_host(const struct pattern_parts *p, const struct pattern_subject *s,
					   struct pattern_captures *captures) {
	const struct view v = {.text = s->host, .length = s->host.length, .separator = '.'};
	return !p->host || (s->host.at && match_row(p, 0, p->host, &v, true, captures) != NO_MATCH);
}

bool pattern_match_parts(const struct pattern *pattern, const struct pattern_subject *s,
						 struct pattern_captures *captures) {
	const struct pattern_parts *p = pattern->parts;
	struct view v = {.text = s->path, .length = s->length, .separator = '/'};
	if (!match_host(p, s, captures)) return false;
	size_t start = match_row(p, p->host, p->before, &v, !p->splat, captures);
	if (start == NO_MATCH || !p->splat) return start != NO_MATCH;
	v.backwards = true;
	size_t behind = match_row(p, p->host + p->before + 1, p->behind, &v, false, captures);
	if (behind == NO_MATCH || start > v.length - behind) return false;
	/* the '/' that LOOSE adds is no part of it */
	size_t end = v.length - behind;
	if (end > s->path.length) end = s->path.length;
	if (start > end) start = end;
	captures->value[p->token[p->host + p->before].capture] =
		(struct slice){.at = s->path.at + start, .length = end - start};
	return true;
}
