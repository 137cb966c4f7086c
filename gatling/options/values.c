/* values.c - see values.h. */
#include "gatling/options/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"

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

static int number_of(const char *what, const char *name, const char *text, int least, int most) {
	char *end;
	long value = strtol(text, &end, 10);
	if (end == text || *end || value < least || value > most)
		option_refuse("%s takes a number%s from %d to %d, not '%s'", name, what, least, most, text);
	return (int)value;
}

int option_number(const char *name, const char *text, int least, int most) {
	return number_of("", name, text, least, most);
}

int option_seconds(const char *name, const char *text, int most) {
	return number_of(" of seconds", name, text, 0, most);
}

uint64_t option_size(const char *name, const char *text, uint64_t least) {
	static const char units[] = "KMG";
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;
	if (!isdigit((unsigned char)*text) || (*end && (!unit || end[1])) || errno || value > SIZE_LIMIT >> shift)
		option_refuse("%s takes a number of bytes, or one with K, M or G appended, not '%s'", name, text);
	if ((uint64_t)value << shift < least) option_refuse("%s takes at least %" PRIu64 " bytes", name, least);
	return (uint64_t)value << shift;
}

struct address_rate option_rate(const char *name, const char *text) {
	char *end;
	long requests = strtol(text, &end, 10), burst = requests;
	bool valid = isdigit((unsigned char)*text) && requests <= LIMITS_RATE_MAX;
	if (valid && *end == ':' && isdigit((unsigned char)end[1])) {
		burst = strtol(end + 1, &end, 10);
		valid = burst >= 1 && burst <= LIMITS_RATE_MAX;
	}
	if (!valid || *end)
		option_refuse("%s takes a number of requests a second up to %d, and perhaps a burst, as 50:200, not '%s'", name,
					  LIMITS_RATE_MAX, text);
	if (!requests) return (struct address_rate){0};
	return (struct address_rate){.interval_ns = INT64_C(1000000000) / requests, .burst = burst};
}

bool option_either(const char *name, const char *text, const char *yes, const char *no) {
	if (strcmp(text, yes) != 0 && strcmp(text, no) != 0)
		option_refuse("%s takes '%s' or '%s', not '%s'", name, no, yes, text);
	return strcmp(text, yes) == 0;
}
