/* listing_writer.c - see listing_writer.h. */
#include "gatling/site/listing/listing_writer.h"

#include "gatling/base/slice.h"
#include "gatling/http/path.h"

struct slice listing_date(int64_t seconds, char *out) {
	time_t time = (time_t)seconds;
	struct tm tm;
	if (!gmtime_r(&time, &tm) || tm.tm_year < 1 - 1900 || tm.tm_year > 9999 - 1900) return SLICE("");
	int year = tm.tm_year + 1900;
	const int number[] = {year / 100, year % 100, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec};
	memcpy(out, "0000-00-00T00:00:00Z", LISTING_DATE_LENGTH);
	for (size_t i = 0, at = 0; i < sizeof number / sizeof *number; at += i++ ? 3 : 2)
		(void)text_copy_two(out + at, (unsigned)number[i]);
	return (struct slice){.at = out, .length = LISTING_DATE_LENGTH};
}

void listing_add_link(struct text *out, struct slice name) {
	char encoded[3 * NAME_MAX];
	text_add(out, (struct slice){.at = encoded, .length = path_encode(name, encoded)});
}
