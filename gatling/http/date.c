/* date.c - see date.h. libowfat's fmt_httpdate() calls gmtime(3), which is not thread-safe; its scan_httpdate() accepts
 * "99 Foo", and rejects the format of RFC 850. The server always runs in the C locale. */
#include "gatling/http/date.h"

#include "gatling/base/slice.h"

enum { PARSED_MAX = 64 }; /* bytes of the longest date that is parsed, with its NUL */

static char *put_two(char *at, int number, char end) {
	at = text_copy_two(at, (unsigned)number);
	*at = end;
	return at + 1;
}

/* Formats each part itself: strftime(3) would take four times the instructions, and every file that is loaded has a
 * date. */
size_t date_format(char *out, time_t time) {
	static const char day[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char month[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct tm tm;
	gmtime_r(&time, &tm);
	const int year = tm.tm_year + 1900;
	memcpy(out, day[tm.tm_wday], 3);
	out[3] = ',';
	out[4] = ' ';
	char *at = put_two(out + 5, tm.tm_mday, ' ');
	memcpy(at, month[tm.tm_mon], 3);
	at[3] = ' ';
	(void)put_two(at + 4, year / 100, ' ');
	at = put_two(at + 6, year % 100, ' ');
	at = put_two(at, tm.tm_hour, ':');
	at = put_two(at, tm.tm_min, ':');
	at = put_two(at, tm.tm_sec, ' ');
	memcpy(at, "GMT", sizeof "GMT");
	return DATE_LENGTH;
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
		if (!end || *end || tm.tm_year < 0) continue; /* %Y also accepts two digits, as a year of antiquity */
		*time = timegm(&tm);
		return true;
	}
	return false;
}
