/* slice.h - a pointer and a length: bytes that another variable owns. */
#ifndef GATLING_BASE_SLICE_H
#define GATLING_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

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

/* Returns whether s begins with one of a list, without regard to the case of ASCII letters. */
static inline bool slice_starts_as_one_of_nocase(struct slice s, const struct slice *list, size_t count) {
	for (size_t i = 0; i < count; i++)
		if (slice_starts_nocase(s, list[i])) return true;
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

#endif
