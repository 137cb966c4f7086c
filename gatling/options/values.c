/* values.c - see values.h. */
#include "gatling/options/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/client/limits.h"

#define SIZE_LIMIT (UINT64_C(1) << 40)

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
	char *end;
	const long value = strtol(text, &end, 10);
	if (end == text || *end || value < row->least || value > row->most)
		option_takes(row, text, "a number%s from %" PRId64 " to %" PRId64, of, row->least, row->most);
	*(int *)place(o, row) = (int)value;
}

void option_number(struct options *o, const struct option_row *row, char *text) { parse_number(o, row, text, ""); }

void option_seconds(struct options *o, const struct option_row *row, char *text) {
	parse_number(o, row, text, " of seconds");
}

void option_size(struct options *o, const struct option_row *row, char *text) {
	static const char units[] = "KMG";
	char *end;
	errno = 0;
	const unsigned long long value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (!isdigit((unsigned char)*text) || (*end && (!unit || end[1])) || errno || value > SIZE_LIMIT >> shift)
		option_takes(row, text, "a number of bytes, or one with K, M or G appended");
	if ((uint64_t)value << shift < (uint64_t)row->least)
		option_takes(row, text, "at least %" PRId64 " bytes", row->least);
	*(uint64_t *)place(o, row) = (uint64_t)value << shift;
}

void option_rate(struct options *o, const struct option_row *row, char *text) {
	struct address_rate *rate = place(o, row);
	char *end;
	long requests = strtol(text, &end, 10), burst = requests;
	bool valid = isdigit((unsigned char)*text) && requests <= LIMITS_RATE_MAX;
	if (valid && *end == ':' && isdigit((unsigned char)end[1])) {
		burst = strtol(end + 1, &end, 10);
		valid = burst >= 1 && burst <= LIMITS_RATE_MAX;
	}
	if (!valid || *end)
		option_takes(row, text, "a number of requests a second up to %d, and perhaps a burst, as 50:200",
					 LIMITS_RATE_MAX);
	*rate = (struct address_rate){0};
	if (requests) *rate = (struct address_rate){.interval_ns = INT64_C(1000000000) / requests, .burst = burst};
}
