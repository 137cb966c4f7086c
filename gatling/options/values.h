/* values.h - parses the values of options. name: of the option, for messages. After a wrong value the functions print a
 * line that says what the option takes, and exit with 2. */
#ifndef GATLING_OPTIONS_VALUES_H
#define GATLING_OPTIONS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/client/limits.h"

/* Prints a line about an error and exits with 2. */
__attribute__((format(printf, 1, 2), noreturn)) void option_refuse(const char *format, ...);

int option_number(const char *name, const char *text, int least, int most);
int option_seconds(const char *name, const char *text, int most); /* from 0 on */

/* Parses a number of bytes, or of KiB, MiB or GiB if K, M or G is appended. */
uint64_t option_size(const char *name, const char *text, uint64_t least);

/* Parses REQUESTS[:BURST]. REQUESTS is how many are allowed a second (0: no limit), BURST how many may come at once
 * (default: REQUESTS). */
struct address_rate option_rate(const char *name, const char *text);

/* Returns whether the text is `yes`. It must be `yes` or `no`. */
bool option_either(const char *name, const char *text, const char *yes, const char *no);

#endif
