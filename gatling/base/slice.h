/* slice.h - bytes that somebody else owns. */
#ifndef GATLING_BASE_SLICE_H
#define GATLING_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct slice {
	const char *at; /* NULL: absent, which differs from empty */
	size_t length;
};

/* A string literal as a slice. */
#define SLICE(literal) ((struct slice){.at = (literal), .length = sizeof(literal) - 1})

static inline bool slice_equal(struct slice a, struct slice b) {
	return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* The same, ASCII letters of either case alike. */
static inline bool slice_equal_nocase(struct slice a, struct slice b) {
	return a.length == b.length && strncasecmp(a.at, b.at, a.length) == 0;
}

static inline bool slice_starts(struct slice s, struct slice start) {
	return s.length >= start.length && memcmp(s.at, start.at, start.length) == 0;
}

static inline bool slice_ends(struct slice s, struct slice end) {
	return s.length >= end.length && memcmp(s.at + s.length - end.length, end.at, end.length) == 0;
}

/* Takes the first length bytes off the front. */
static inline void slice_drop(struct slice *s, size_t length) {
	s->at += length;
	s->length -= length;
}

/* The slice without blanks (SP, HTAB) at its ends. */
static inline struct slice slice_trim(struct slice s) {
	while (s.length && (s.at[0] == ' ' || s.at[0] == '\t')) s.at++, s.length--;
	while (s.length && (s.at[s.length - 1] == ' ' || s.at[s.length - 1] == '\t')) s.length--;
	return s;
}

/* The next element of a comma-separated list (RFC 9110, section 5.6.1), trimmed; empty elements are skipped. Takes it
 * off the front of *list; false at the end. For elements that cannot hold a comma. */
static inline bool slice_next_element(struct slice *list, struct slice *element) {
	while (list->length) {
		const char *comma = memchr(list->at, ',', list->length);
		size_t length = comma ? (size_t)(comma - list->at) : list->length;
		*element = slice_trim((struct slice){.at = list->at, .length = length});
		list->at += length + (comma ? 1 : 0);
		list->length -= length + (comma ? 1 : 0);
		if (element->length) return true;
	}
	return false;
}

#endif
