/* fuzz_rules.c - whatever _headers and _redirects contain, they are parsed within their bounds; patterns match what a
 * slow and simple matcher does; and nothing that a client requests breaks out of a value or target. The last line of
 * the input is a host, a path and a query, separated by blanks; the rest is the file. For libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/http/chars.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/pattern.h"
#include "gatling/site/rules/redirect_rules.h"
#include "gatling/upstream/upstream_address.h"
#include "tests/unit/told.h"

enum { SLOW_MAX = 40, STEPS_MAX = 100000 };

static void require(bool holds) {
	if (!holds) abort();
}

/* --- patterns --- */

static unsigned steps;

static struct slice behind(struct slice s, size_t n) { return (struct slice){.at = s.at + n, .length = s.length - n}; }

/* Returns the length of a splat or placeholder at the start of the rest of a pattern, or 0. */
static size_t wildcard(struct slice rest, enum pattern_mode mode) {
	if (rest.at[0] == '*') return 1;
	if (rest.at[0] != ':' || (mode == PATTERN_LOOSE && rest.at[-1] != '/')) return 0;
	size_t name = pattern_placeholder(rest).length;
	if (mode == PATTERN_LOOSE) name = slice_until(behind(rest, 1), '/');
	return name ? 1 + name : 0;
}

/* Returns whether the pattern matches, by trying all lengths. */
static bool matches(struct slice pattern, struct slice path, enum pattern_mode mode) {
	if (++steps > STEPS_MAX) return false;
	if (!pattern.length) return !path.length;
	size_t n = wildcard(pattern, mode);
	if (!n) return path.length && pattern.at[0] == path.at[0] && matches(behind(pattern, 1), behind(path, 1), mode);
	for (size_t i = pattern.at[0] != '*'; i <= path.length; i++) {
		if (pattern.at[0] != '*' && path.at[i - 1] == '/') return false;
		if (matches(behind(pattern, n), behind(path, i), mode)) return true;
	}
	return false;
}

/* Checks that a pattern is the path if its names are replaced by their values. */
static void check_captures(const struct pattern *pattern, struct slice text, struct slice path,
						   const struct pattern_captures *captures) {
	while (text.length) {
		size_t n = wildcard(text, PATTERN_EXACT);
		struct slice part = {.at = text.at, .length = 1};
		if (n) {
			struct slice name = text.at[0] == '*' ? SLICE("splat") : (struct slice){.at = text.at + 1, .length = n - 1};
			int i = pattern_capture(pattern, name);
			require(i >= 0 && i < PATTERN_TOKENS_MAX);
			part = captures->value[i];
			require(text.at[0] == '*' || (part.length && !memchr(part.at, '/', part.length)));
		}
		require(part.length <= path.length && memcmp(part.at, path.at, part.length) == 0);
		path = behind(path, part.length);
		text = behind(text, n ? n : 1);
	}
	require(path.length == 0);
}

/* Returns whether the last character of a PATTERN_LOOSE pattern is a splat, and not one of a name. */
static bool ends_with_splat(struct slice text) {
	size_t segment = text.length;
	while (segment && text.at[segment - 1] != '/') segment--;
	return text.at[text.length - 1] == '*' && text.at[segment] != ':';
}

static struct slice with_slash(struct slice s, char *out, bool wanted) {
	memcpy(out, s.at, s.length);
	if (wanted && s.at[s.length - 1] != '/') out[s.length++] = '/';
	return (struct slice){.at = out, .length = s.length};
}

static void check_pattern(struct slice text, struct slice path, enum pattern_mode mode) {
	char written[SLOW_MAX + 1], asked[SLOW_MAX + 1];
	struct pattern pattern;
	struct pattern_subject subject;
	struct pattern_captures captures;
	if (pattern_compile(&pattern, text, mode)) return;
	pattern_subject(&subject, SLICE("a.example.com"), path, mode);
	bool found = pattern_match(&pattern, &subject, &captures);
	if (text.length <= SLOW_MAX && path.length <= SLOW_MAX && text.at[0] == '/' && !memchr(text.at, '%', text.length)) {
		bool loose = mode == PATTERN_LOOSE;
		struct slice slow = with_slash(text, written, loose && !ends_with_splat(text));
		steps = 0;
		bool expected = matches(slow, with_slash(path, asked, loose), mode);
		require(steps > STEPS_MAX || found == expected);
		if (found && !loose) check_captures(&pattern, text, path, &captures);
	}
	pattern_free(&pattern);
}

/* --- the files --- */

/* Checks that each line is a name, ": ", and a value without control characters. */
static void check_filled(struct slice lines) {
	if (!lines.at) require(!lines.length || lines.length > HEADER_OCTETS_MAX);
	while (lines.at && lines.length) {
		const char *end = memmem(lines.at, lines.length, "\r\n", 2);
		require(end);
		struct slice line = {.at = lines.at, .length = (size_t)(end - lines.at)};
		const char *colon = memchr(line.at, ':', line.length);
		require(colon && colon > line.at && colon[1] == ' ' && chars_span(line, CHAR_TEXT) == line.length);
		lines = behind(lines, line.length + 2);
	}
}

static void check_headers(struct slice text, struct slice host, struct slice path) {
	struct told told = nothing_told;
	struct header_rules *rules = header_rules_parse(text, &told.report);
	require(rules || told.count);
	if (!rules) return;
	static struct header_filled filled;
	const struct header_set *set = header_rules_match(rules, host, path, &filled);
	require(set == header_rules_match(rules, host, path, &filled));
	for (unsigned i = 0; set && i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		require(item->name.length && item->detach == !item->value.length);
		for (size_t n = 0; n < item->name.length; n++) require(char_is(item->name.at[n], CHAR_TOKEN));
		require(chars_span(item->value, CHAR_TEXT) == item->value.length);
		for (unsigned j = 0; j < i; j++)
			require(!slice_equal_nocase(item->name, set->item[j].name) ||
					slice_equal_nocase(item->name, SLICE("Set-Cookie")));
	}
	check_filled(filled.lines);
	header_rules_free(rules);
}

/* Takes an octet off the front of a path, decoded. */
static unsigned char take_octet(struct slice *path) {
	const bool encoded = path_is_encoded(*path);
	const unsigned char octet = encoded ? path_decode_byte(*path) : (unsigned char)path->at[0];
	*path = behind(*path, encoded ? 3 : 1);
	return octet;
}

/* Checks that a path begins as its rule says, and has no segment that a URL parser takes for "." or "..". */
static void check_place(struct slice path, struct slice fixed) {
	for (struct slice rest = path; fixed.length;) require(rest.length && take_octet(&rest) == take_octet(&fixed));
	while (path.length) {
		unsigned dots = 0, others = 0;
		for (path = behind(path, 1); path.length && path.at[0] != '/';)
			if (take_octet(&path) == '.') dots++;
			else others++;
		require(others || !dots || dots > 2);
	}
}

static void check_redirects(struct slice text, const struct redirect_request *request) {
	static char buffer[REDIRECT_TARGET_MAX];
	static struct upstreams_allowed allowed;
	struct told told = nothing_told;
	struct redirect result;
	if (!allowed.count) require(upstreams_allow(&allowed, "127.0.0.1"));
	told.report.upstreams = &allowed;
	struct redirect_rules *rules = redirect_rules_parse(text, &told.report);
	if (rules) redirect_rules_permit(rules, true);
	require(rules || told.count);
	if (!rules) return;
	const bool matched = redirect_rules_match(rules, request, false, buffer, &result);
	if (matched && result.refused && result.status == 503) {
		require(result.forced);
	} else if (matched) {
		const char *at = result.target.at;
		size_t n = result.target.length;
		require(n > 0 && n <= REDIRECT_TARGET_MAX);
		for (size_t i = 0; i < n; i++) require(at[i] > ' ' && at[i] <= '~' && !memchr("\\\"<>^`{|}", at[i], 10));
		if (at[0] == '/') require(n == 1 || at[1] != '/');
		else require(result.status / 100 == 3 && strncasecmp(at, "http", 4) == 0);
		if (result.status / 100 != 3) {
			const char *query = memchr(at, '?', n);
			require((!query || result.upstream) && !memchr(at, '#', n));
			check_place((struct slice){.at = at, .length = query ? (size_t)(query - at) : n}, result.fixed);
		}
	}
	bool forced = redirect_rules_match(rules, request, true, buffer, &result);
	require(!forced || result.forced);
	redirect_rules_free(rules);
}

/* Returns the path as path_decode() makes it for a request, in out (1 + path.length bytes), or another one if it
 * refuses the path. */
static struct slice asked(struct slice path, char *out) {
	size_t length;
	out[0] = '/';
	if (!path.length || path_decode(path, out + 1, &length) != 0) return SLICE("/a/b-c/d");
	return (struct slice){.at = out, .length = 1 + length};
}

static struct slice take_word(struct slice *line) {
	const char *blank = memchr(line->at, ' ', line->length);
	struct slice word = {.at = line->at, .length = blank ? (size_t)(blank - line->at) : line->length};
	*line = behind(*line, word.length + (blank ? 1 : 0));
	return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	char *copy = malloc(length + 1), *decoded = malloc(length + 1);
	if (!copy || !decoded) abort();
	if (length) memcpy(copy, data, length);
	const char *end = memrchr(copy, '\n', length);
	struct slice text = {.at = copy, .length = end ? (size_t)(end - copy) : 0};
	struct slice last = {.at = copy + text.length, .length = length - text.length};
	if (end) last = behind(last, 1);
	struct redirect_request request = {.host = take_word(&last), .path = take_word(&last), .query = take_word(&last)};
	request.path = asked(request.path, decoded);
	/* a request with another octet is refused */
	const bool is_query =
		slice_starts(request.query, SLICE("?")) && chars_span(request.query, CHAR_TARGET) == request.query.length;
	if (!is_query) request.query = (struct slice){0};
	/* of exact size, so that a sanitizer sees reads beyond the end */
	char *file = malloc(text.length ? text.length : 1);
	if (file) {
		memcpy(file, copy, text.length);
		const char *line = memchr(file, '\n', text.length);
		struct slice all = {.at = file, .length = text.length};
		struct slice first = {.at = file, .length = line ? (size_t)(line - file) : text.length};
		check_pattern(first, request.path, PATTERN_EXACT);
		check_pattern(first, request.path, PATTERN_LOOSE);
		check_headers(all, request.host, request.path);
		check_redirects(all, &request);
	}
	free(file);
	free(decoded);
	free(copy);
	return 0;
}
