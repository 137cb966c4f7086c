/* values.c - see values.h. */
#include "gatling/options/values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/client/limit_value.h"

void option_refuse(const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	notice_line(LEVEL_ERROR, "%s (see gatling --help)", text);
	exit(2);
}

void option_takes(const struct option_row *row, const char *text, const char *format, ...) {
	const bool limit = row->section == LIMITS;
	char what[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	notice_line(LEVEL_ERROR, "--%s%s takes %s, not '%s' (see gatling --help%s)", limit ? "limit " : "", row->name, what,
				text, limit ? " limits" : "");
	exit(2);
}

static void *place(struct options *o, const struct option_row *row) { return (char *)o + row->place; }

void option_flag(struct options *o, const struct option_row *row, char *text) {
	(void)text;
	*(bool *)place(o, row) = row->least;
}

void option_either(struct options *o, const struct option_row *row, char *text) {
	unsigned *value = place(o, row);
	const bool negative = strncmp(row->name, "no-", 3) == 0;
	(void)text;
	if (*value && *value != row->least)
		notice_line(LEVEL_WARNING, "--%s%s has no effect, since --%s comes after it", negative ? "" : "no-",
					row->name + (negative ? 3 : 0), row->name);
	*value = (unsigned)row->least;
}

/* Returns which of the words it is, from 0. */
static unsigned word_index(const struct option_row *row, const char *text) {
	const size_t length = strlen(text);
	unsigned index = 0;
	for (const char *word = row->words; *word; index++) {
		const size_t end = strcspn(word, "|");
		if (length == end && memcmp(word, text, end) == 0) return index;
		word += end + (word[end] == '|');
	}
	option_takes(row, text, "%s", row->words);
}

void option_word(struct options *o, const struct option_row *row, char *text) {
	*(unsigned *)place(o, row) = (unsigned)row->least + word_index(row, text);
}

void option_switch(struct options *o, const struct option_row *row, char *text) {
	*(bool *)place(o, row) = word_index(row, text);
}

void option_text(struct options *o, const struct option_row *row, char *text) { *(const char **)place(o, row) = text; }

static void parse_number(struct options *o, const struct option_row *row, const char *text, const char *of) {
	if (!limit_number(slice_of(text), row->least, row->most, place(o, row)))
		option_takes(row, text, "a number%s from %" PRId64 " to %" PRId64, of, row->least, row->most);
}

void option_number(struct options *o, const struct option_row *row, char *text) { parse_number(o, row, text, ""); }

void option_seconds(struct options *o, const struct option_row *row, char *text) {
	parse_number(o, row, text, " of seconds");
}

void option_size(struct options *o, const struct option_row *row, char *text) {
	uint64_t *const value = place(o, row);
	if (!limit_size(slice_of(text), value))
		option_takes(row, text, "a number of bytes, or one with K, M or G appended");
	if (*value < (uint64_t)row->least) option_takes(row, text, "at least %" PRId64 " bytes", row->least);
}

void option_rate(struct options *o, const struct option_row *row, char *text) {
	if (!limit_rate(slice_of(text), place(o, row)))
		option_takes(
			row, text,
			"a number of requests a second up to %d, and perhaps a burst, as 50:200, or of a minute, as 10/m:5",
			LIMIT_RATE_MAX);
}
