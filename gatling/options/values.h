/* values.h - the kinds of values. Each is a macro for the last fields of a row, which names a member of struct options
 * and does not compile if its type is another. */
#ifndef GATLING_OPTIONS_VALUES_H
#define GATLING_OPTIONS_VALUES_H

#include "gatling/options/row.h"

#define OPTION_PLACE(type, member)                                                                                     \
	.place = _Generic(((struct options *)0)->member, type : offsetof(struct options, member))

/* bool: an option without a value, which sets it to `value`. */
#define FLAG(member, value) .parse = option_flag, OPTION_PLACE(bool, member), .least = (value)

/* An enum, whose value 0 is the default: an option without a value, which sets it to `value`. Warns if its opposite
 * (the name with "no-" or without) came before. */
#define EITHER(member, value) .parse = option_either, OPTION_PLACE(unsigned, member), .least = (value)

/* An enum: one of the words, of which `first` is the value of the first. */
#define WORD(member, first, choice)                                                                                    \
	.parse = option_word, OPTION_PLACE(unsigned, member), .least = (first), .words = (choice)

/* bool: the first of two words is false, the second true. */
#define SWITCH(member, choice) .parse = option_switch, OPTION_PLACE(bool, member), .words = (choice)

/* const char *: any text. */
#define TEXT(member) .parse = option_text, OPTION_PLACE(const char *, member)

/* int: a number, or seconds. */
#define NUMBER(member, low, high) .parse = option_number, OPTION_PLACE(int, member), .least = (low), .most = (high)
#define SECONDS(member, high) .parse = option_seconds, OPTION_PLACE(int, member), .most = (high)

/* uint64_t: bytes, or KiB, MiB or GiB if K, M or G is appended. */
#define SIZE(member, low) .parse = option_size, OPTION_PLACE(uint64_t, member), .least = (low)

/* struct address_rate: as limit_rate() takes it. */
#define RATE(member) .parse = option_rate, OPTION_PLACE(struct address_rate, member)

/* A function with rules of its own, see take.h. */
#define OWN(function) .parse = (function)

option_parse option_flag, option_either, option_word, option_switch, option_text, option_number, option_seconds,
	option_size, option_rate;

/* Prints a line about an error and exits with 2. */
__attribute__((format(printf, 1, 2), noreturn)) void option_refuse(const char *format, ...);

/* Prints "OPTION takes ..., not 'TEXT'" and exits with 2. */
__attribute__((format(printf, 3, 4), noreturn)) void option_takes(const struct option_row *row, const char *text,
																  const char *format, ...);

#endif
