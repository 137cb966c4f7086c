/* text.h - writes text into memory, reads it from the front, and tells ASCII characters apart. */
#ifndef GATLING_BASE_TEXT_H
#define GATLING_BASE_TEXT_H

#include <stdint.h>

#include "gatling/base/owfat.h"
#include "gatling/base/slice.h"

/* Copies the bytes to `to`, which has room for them. Returns where they end. */
static inline char *text_copy(char *to, struct slice s) {
	if (s.length) memcpy(to, s.at, s.length);
	return to + s.length;
}

/* Copies a NUL-terminated string, as text_copy(). */
static inline char *text_copy_string(char *to, const char *text) { return to + fmt_str(to, text); }

/* Writes a number in decimal, as text_copy(): FMT_ULONG bytes are enough. In half the instructions of
 * fmt_ulonglong(). */
static inline char *text_copy_number(char *to, uint64_t number) {
	char digits[FMT_ULONG], *const end = digits + sizeof digits, *at = end;
	do *--at = (char)('0' + number % 10);
	while (number /= 10);
	return text_copy(to, (struct slice){.at = at, .length = (size_t)(end - at)});
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

/* In decimal. */
static inline void text_add_number(struct text *t, uint64_t number) {
	char digits[FMT_ULONG];
	text_add(t, (struct slice){.at = digits, .length = fmt_ulonglong(digits, number)});
}

/* What has been written. */
static inline struct slice text_written(const struct text *t) {
	return (struct slice){.at = t->start, .length = (size_t)(t->at - t->start)};
}

#endif
