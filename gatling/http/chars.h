/* chars.h - the character classes of HTTP. */
#ifndef GATLING_HTTP_CHARS_H
#define GATLING_HTTP_CHARS_H

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "gatling/base/slice.h"

/* CHAR_TOKEN: tchar (RFC 9110, section 5.6.2). CHAR_TEXT: field-vchar, SP, HTAB and obs-text (5.5). CHAR_TARGET:
 * characters of a request target, which are the visible ones except '#', and bytes over 127, since some clients do not
 * encode them. CHAR_HOST: characters of a host name. CHAR_QUOTABLE: printable ASCII except '"' and '\\'.
 * CHAR_UNRESERVED: characters of a URL that need no encoding (RFC 3986, section 2.3). */
enum char_class {
	CHAR_TOKEN = 1,
	CHAR_TEXT = 2,
	CHAR_TARGET = 4,
	CHAR_HOST = 8,
	CHAR_QUOTABLE = 16,
	CHAR_UNRESERVED = 32
};

extern unsigned char char_classes[256];

static inline bool char_is(char octet, enum char_class class) {
	return (char_classes[(unsigned char)octet] & class) != 0;
}

/* The octets that are tested at once, as vector types of GCC and Clang, which use SSE2 and NEON instructions.
 * Processors compare signed numbers in fewer instructions. */
typedef unsigned char char_octets __attribute__((vector_size(16)));
typedef signed char char_numbers __attribute__((vector_size(16)));
enum { CHAR_OCTETS = sizeof(char_octets) };

/* Returns how many elements, each 0 or -1, precede the first 0; there must be one. */
static inline size_t chars_before_zero(char_numbers elements) {
#ifdef __SSE2__
	return (size_t)__builtin_ctz(~(unsigned)_mm_movemask_epi8((__m128i)elements));
#else
	uint64_t half[2];
	elements = ~elements;
	memcpy(half, &elements, sizeof half);
	const uint64_t first = half[0] ? half[0] : half[1];
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	const int bits = __builtin_clzll(first);
#else
	const int bits = __builtin_ctzll(first);
#endif
	return (size_t)bits / 8 + (half[0] ? 0 : sizeof half[0]);
#endif
}

/* Returns whether all elements, each 0 or -1, are -1. */
static inline bool chars_all(char_numbers elements) {
#ifdef __SSE2__
	return _mm_movemask_epi8((__m128i)elements) == 0xffff;
#else
	uint64_t half[2];
	memcpy(half, &elements, sizeof half);
	return (half[0] & half[1]) == UINT64_MAX;
#endif
}

/* Returns whether octets are certainly of a class; others may be. Each range of octets is moved up to 127, which is the
 * highest number. */
static inline char_numbers chars_certain(char_octets o, enum char_class class) {
	const char_numbers graphic = (char_numbers)(o + (127 - '~'));
	if (class == CHAR_TEXT) return graphic > ' ';
	if (class == CHAR_TARGET) return graphic > '$';
	if (class == CHAR_QUOTABLE) return (graphic > ' ') & (char_numbers)((o != '"') & (o != '\\'));
	const char_numbers letter = (char_numbers)((o | 0x20) + (127 - 'z')) > 127 - ('z' - 'a' + 1);
	const char_numbers digit = (char_numbers)(o + (127 - '9')) > 127 - ('9' - '-' + 1); /* or one of "-./" */
	return letter | (digit & (char_numbers)(o != '/'));
}

/* Does what chars_span() does, but octet by octet. */
static inline size_t chars_span_short(struct slice text, enum char_class class) {
	size_t n = 0;
	while (n < text.length && char_is(text.at[n], class)) n++;
	return n;
}

/* Returns how many octets at the start of text are of the class. */
static inline __attribute__((always_inline)) size_t chars_span(struct slice text, enum char_class class) {
	size_t n = 0;
	while (n + CHAR_OCTETS <= text.length) {
		char_octets octets;
		memcpy(&octets, text.at + n, sizeof octets);
		const char_numbers certain = chars_certain(octets, class);
		if (chars_all(certain)) {
			n += CHAR_OCTETS;
			continue;
		}
		n += chars_before_zero(certain);
		if (!char_is(text.at[n], class)) return n;
		n++;
	}
	return n + chars_span_short((struct slice){.at = text.at + n, .length = text.length - n}, class);
}

/* Takes the octets of a class off the front of *text. */
static inline __attribute__((always_inline)) struct slice chars_take(struct slice *text, enum char_class class) {
	const struct slice taken = {.at = text->at, .length = chars_span(*text, class)};
	*text = (struct slice){.at = taken.at + taken.length, .length = text->length - taken.length};
	return taken;
}

#endif
