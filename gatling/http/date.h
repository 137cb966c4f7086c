/* date.h - HTTP-date (RFC 9110, section 5.6.7). */
#ifndef GATLING_HTTP_DATE_H
#define GATLING_HTTP_DATE_H

#include <time.h>

#include "gatling/base/slice.h"

enum { DATE_LENGTH = 29 }; /* of "Sun, 06 Nov 1994 08:49:37 GMT" */

/* Writes a date of the years 0 to 9999, and a NUL, to out (DATE_LENGTH + 1 bytes). Returns DATE_LENGTH. */
size_t date_format(char *out, time_t time);

/* Parses a date in any of the three formats. Returns false if value is not a date. */
bool date_parse(struct slice value, time_t *time);

#endif
