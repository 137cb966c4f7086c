/* date.c - see date.h. libowfat's fmt_httpdate() calls gmtime(3), which threads must not share; its scan_httpdate()
 * accepts "99 Foo", and rejects RFC 850's form. The server never leaves the C locale. */
#include "gatling/http/date.h"

enum { PARSED_MAX = 64 }; /* bytes of the longest date that is parsed */

size_t date_format(char *out, time_t time) {
	struct tm tm;
	gmtime_r(&time, &tm);
	return strftime(out, DATE_LENGTH + 1, "%a, %d %b %Y %T GMT", &tm);
}

bool date_parse(struct slice value, time_t *time) {
	static const char *const form[] = {"%a, %d %b %Y %T GMT", "%A, %d-%b-%y %T GMT", "%a %b %e %T %Y"};
	char text[PARSED_MAX];
	if (!value.length || value.length >= sizeof text) return false;
	memcpy(text, value.at, value.length);
	text[value.length] = '\0';
	for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
		struct tm tm = {0};
		const char *end = strptime(text, form[i], &tm);
		if (!end || *end) continue;
		*time = timegm(&tm);
		return true;
	}
	return false;
}
