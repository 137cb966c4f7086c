/* text.h - writes text into memory, takes text off the front, and classifies ASCII characters. */
#ifndef GATLING_BASE_TEXT_H
#define GATLING_BASE_TEXT_H

#include <stdint.h>

#include "gatling/base/owfat.h"
#include "gatling/base/slice.h"

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
