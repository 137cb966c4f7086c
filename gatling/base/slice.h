/* slice.h - a pointer and a length: bytes that another variable owns; and text that is written into memory. */
#ifndef GATLING_BASE_SLICE_H
#define GATLING_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "gatling/base/owfat.h"

struct slice {
	const char *at; /* NULL: absent, which differs from empty */
	size_t length;
};

/* A string literal as a slice. */
#define SLICE(literal) ((struct slice){.at = (literal), .length = sizeof(literal) - 1})

/* A NUL-terminated string as a slice. */
static inline struct slice slice_of(const char *text) { return (struct slice){.at = text, .length = strlen(text)}; }

static inline bool slice_equal(struct slice a, struct slice b) {
	return a.length == b.length && memcmp(a.at, b.at, b.length) == 0;
}

/* Compares without regard to the case of ASCII letters. */
static inline bool slice_equal_nocase(struct slice a, struct slice b) {
	return a.length == b.length && strncasecmp(a.at, b.at, b.length) == 0;
}

static inline bool slice_starts(struct slice s, struct slice start) {
	return s.length >= start.length && memcmp(s.at, start.at, start.length) == 0;
}

static inline bool slice_starts_nocase(struct slice s, struct slice start) {
	return s.length >= start.length && strncasecmp(s.at, start.at, start.length) == 0;
}

static inline bool slice_ends(struct slice s, struct slice end) {
	return s.length >= end.length && memcmp(s.at + s.length - end.length, end.at, end.length) == 0;
}

static inline bool slice_ends_nocase(struct slice s, struct slice end) {
	return s.length >= end.length && strncasecmp(s.at + s.length - end.length, end.at, end.length) == 0;
}

/* Returns the place in a list of the slice that is equal to s, or count if there is none. */
static inline size_t slice_place(struct slice s, const struct slice *list, size_t count) {
	size_t i = 0;
	while (i < count && !slice_equal(s, list[i])) i++;
	return i;
}

static inline bool slice_is_one_of(struct slice s, const struct slice *list, size_t count) {
	return slice_place(s, list, count) < count;
}

/* Does the same without regard to the case of ASCII letters. */
static inline bool slice_is_one_of_nocase(struct slice s, const struct slice *list, size_t count) {
	for (size_t i = 0; i < count; i++)
		if (slice_equal_nocase(s, list[i])) return true;
	return false;
}

/* Returns the first length bytes of s, which must not be shorter. */
static inline struct slice slice_first(struct slice s, size_t length) {
	return (struct slice){.at = s.at, .length = length};
}

/* Returns all but the first length bytes. */
static inline struct slice slice_rest(struct slice s, size_t length) {
	return (struct slice){.at = s.at + length, .length = s.length - length};
}

/* Drops the first length bytes. */
static inline void slice_drop(struct slice *s, size_t length) { *s = slice_rest(*s, length); }

/* Returns how many bytes precede the first c, or all if there is none. The slice may be empty, but not absent. */
static inline size_t slice_until(struct slice s, char c) {
	const char *found = memchr(s.at, c, s.length);
	return found ? (size_t)(found - s.at) : s.length;
}

/* Returns the slice without the spaces and tabs at its ends. */
static inline struct slice slice_trim(struct slice s) {
	while (s.length && (s.at[0] == ' ' || s.at[0] == '\t')) s.at++, s.length--;
	while (s.length && (s.at[s.length - 1] == ' ' || s.at[s.length - 1] == '\t')) s.length--;
	return s;
}

/* Takes the next element off the front of a comma-separated list (RFC 9110, section 5.6.1), and trims it. Skips empty
 * elements. Returns false at the end. Not for elements that may contain a comma. */
static inline bool slice_next_element(struct slice *list, struct slice *element) {
	while (list->length) {
		size_t length = slice_until(*list, ',');
		*element = slice_trim(slice_first(*list, length));
		slice_drop(list, length < list->length ? length + 1 : length);
		if (element->length) return true;
	}
	return false;
}

/* Returns whether a comma-separated list has an element; the case of letters does not matter. */
static inline bool slice_has_element_nocase(struct slice list, struct slice wanted) {
	for (struct slice element; slice_next_element(&list, &element);)
		if (slice_equal_nocase(element, wanted)) return true;
	return false;
}

/* Hashes s, for tables in memory, as FNV-1a does (http://www.isthe.com/chongo/tech/comp/fnv/), but eight bytes at a
 * time; the last eight may overlap those before. The length is hashed, too, so that leading zeros count if there are
 * fewer than eight bytes. The seed is multiplied by 2^64 / golden ratio, so that no change of a letter undoes a change
 * of the seed. It does not withstand an adversary who chooses the keys. */
static inline uint64_t slice_hash(uint64_t seed, struct slice s) {
	enum { WORD = sizeof(uint64_t) };
	const uint64_t prime = UINT64_C(1099511628211);
	uint64_t h = seed * UINT64_C(0x9e3779b97f4a7c15) ^ s.length ^ UINT64_C(14695981039346656037), word = 0;
	for (size_t n = 0; n + WORD < s.length; n += WORD) {
		memcpy(&word, s.at + n, WORD);
		h = (h ^ word) * prime;
		h ^= h >> 32;
	}
	if (s.length >= WORD) memcpy(&word, s.at + s.length - WORD, WORD);
	else
		for (size_t n = 0; n < s.length; n++) word = word << 8 | (unsigned char)s.at[n];
	h = (h ^ word) * prime;
	/* every bit of the input changes every bit of the hash (Murmur3, fmix64) */
	h = (h ^ h >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
	return h ^ h >> 33;
}

/* --- text --- */

/* Copies the bytes to `to`, which must have room for them. Returns where they end. */
static inline char *text_copy(char *to, struct slice s) {
	if (s.length) memcpy(to, s.at, s.length);
	return to + s.length;
}

/* Copies slices one after the other, as text_copy(): TEXT_JOIN(at, name, SLICE(": "), value). */
#define TEXT_JOIN(to, ...)                                                                                             \
	text_copy_all((to), (const struct slice[]){__VA_ARGS__},                                                           \
				  sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))

/* Does the work of TEXT_JOIN(), whose literals have to become instructions. */
static inline __attribute__((always_inline)) char *text_copy_all(char *to, const struct slice *list, size_t count) {
#pragma GCC unroll 8
	for (size_t i = 0; i < count; i++) to = text_copy(to, list[i]);
	return to;
}

/* Copies a NUL-terminated string, as text_copy(). */
static inline char *text_copy_string(char *to, const char *text) { return to + fmt_str(to, text); }

/* Writes a number under 100 as two digits, as text_copy(). */
static inline char *text_copy_two(char *to, unsigned number) {
	const char *digits = "0001020304050607080910111213141516171819"
						 "2021222324252627282930313233343536373839"
						 "4041424344454647484950515253545556575859"
						 "6061626364656667686970717273747576777879"
						 "8081828384858687888990919293949596979899";
	memcpy(to, digits + 2 * (size_t)number, 2);
	return to + 2;
}

/* Writes a number in decimal, at most FMT_ULONG bytes, as text_copy(). It takes a third of the instructions of
 * fmt_ulonglong(). */
static inline char *text_copy_number(char *to, uint64_t number) {
	enum { DIGITS_MAX = 20 }; /* digits of 2^64 */
	unsigned digits = 1;
	for (uint64_t limit = 10; digits < DIGITS_MAX && number >= limit; limit *= 10) digits++;
	char *at = to + digits;
	for (; number >= 100; number /= 100) (void)text_copy_two(at -= 2, (unsigned)(number % 100));
	if (number >= 10) (void)text_copy_two(to, (unsigned)number);
	else *to = (char)('0' + number);
	return to + digits;
}

/* Writes a byte as two hexadecimal digits, as text_copy(). */
static inline char *text_copy_hex(char *to, unsigned char byte) {
	*to++ = fmt_tohex((char)(byte >> 4));
	*to++ = fmt_tohex((char)(byte & 15));
	return to;
}

static inline bool text_is_digit(char c) { return c >= '0' && c <= '9'; }

static inline char text_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c; }

/* Takes `start` off the front of the text. Returns false, and takes nothing, if the text does not begin with it. */
static inline bool text_skip(struct slice *text, struct slice start) {
	if (!slice_starts(*text, start)) return false;
	slice_drop(text, start.length);
	return true;
}

/* A bounded writer. Text that does not fit is left out as a whole and sets overflow; nothing is written after that. */
struct text {
	char *start, *at, *end;
	bool overflow;
};

static inline struct text text_begin(char *buffer, size_t size) {
	return (struct text){.start = buffer, .at = buffer, .end = buffer + size};
}

static inline void text_add(struct text *t, struct slice s) {
	t->overflow |= (size_t)(t->end - t->at) < s.length;
	if (!t->overflow) t->at = text_copy(t->at, s);
}

static inline void text_add_char(struct text *t, char c) { text_add(t, (struct slice){.at = &c, .length = 1}); }

/* Appends a number in decimal. */
static inline void text_add_number(struct text *t, uint64_t number) {
	char digits[FMT_ULONG];
	text_add(t, (struct slice){.at = digits, .length = fmt_ulonglong(digits, number)});
}

/* Returns the text that has been written. */
static inline struct slice text_written(const struct text *t) {
	return (struct slice){.at = t->start, .length = (size_t)(t->at - t->start)};
}

#endif
