/* chars.c - see chars.h. */
#include "gatling/http/chars.h"

#include <stdint.h>
#include <string.h>

unsigned char char_classes[256];

__attribute__((constructor)) static void classes_init(void) {
	for (int c = 0; c < 256; c++) {
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (alphanumeric || (c && strchr("!#$%&'*+-.^_`|~", c))) char_classes[c] |= CHAR_TOKEN;
		if (c == '\t' || (c >= ' ' && c != 127)) char_classes[c] |= CHAR_TEXT;
		if (c > ' ' && c != 127 && c != '#') char_classes[c] |= CHAR_TARGET;
		if (alphanumeric || c == '-' || c == '_' || c == '.') char_classes[c] |= CHAR_HOST;
		if (c >= ' ' && c < 127 && c != '"' && c != '\\') char_classes[c] |= CHAR_QUOTABLE;
	}
}

/* The octets that are tested at once, as vector types of GCC and Clang, which use SSE2 and NEON instructions. */
typedef unsigned char octets __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));
enum { OCTETS = sizeof(octets) };

/* Returns the number of zero octets before the first nonzero one. word must not be 0. */
static inline size_t zeros(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return (size_t)__builtin_clzll(word) / 8;
#else
	return (size_t)__builtin_ctzll(word) / 8;
#endif
}

/* Returns the number of octets of mask, each 0 or 255, that are 0 before the first that is not. */
static inline size_t clear_before(octets mask) {
	const halves half = (halves)mask;
	if (half[0]) return zeros(half[0]);
	return half[1] ? sizeof half[0] + zeros(half[1]) : OCTETS;
}

/* Returns how many of the OCTETS octets at `at` are certainly of the class, before the first that may not be. */
static inline size_t certain(const char *at, enum char_class class) {
	octets o;
	memcpy(&o, at, sizeof o);
	if (class == CHAR_TEXT) return clear_before((octets)((o < ' ') | (o == 127)));
	if (class == CHAR_TARGET) return clear_before((octets)((o <= ' ') | (o == 127) | (o == '#')));
	if (class == CHAR_QUOTABLE) return clear_before((octets)((o < ' ') | (o > 126) | (o == '"') | (o == '\\')));
	octets letter = (o | 0x20) - 'a', digit = o - '0';
	return clear_before((octets)((letter > 'z' - 'a') & (digit > 9) & (o != '-')));
}

/* Counts the octets at the end, fewer than OCTETS, one by one from n. */
static size_t span_last(struct slice s, size_t n, enum char_class class) {
	while (n < s.length && char_is(s.at[n], class)) n++;
	return n;
}

static inline __attribute__((always_inline)) size_t span(struct slice s, enum char_class class) {
	size_t n = 0;
	while (s.length - n >= OCTETS) {
		size_t more = certain(s.at + n, class);
		n += more;
		if (more == OCTETS) continue;
		if (!char_is(s.at[n], class)) return n;
		n++;
	}
	return span_last(s, n, class);
}

size_t chars_text(struct slice s) { return span(s, CHAR_TEXT); }
size_t chars_token(struct slice s) { return span(s, CHAR_TOKEN); }
size_t chars_target(struct slice s) { return span(s, CHAR_TARGET); }
size_t chars_host(struct slice s) { return span(s, CHAR_HOST); }
size_t chars_quotable(struct slice s) { return span(s, CHAR_QUOTABLE); }
