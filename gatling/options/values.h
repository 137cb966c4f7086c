/* values.h - parses the values of options. name: the option, as in messages. After a wrong value they print a line that
 * says what the option takes, and exit with 2. */
#ifndef GATLING_OPTIONS_VALUES_H
#define GATLING_OPTIONS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "gatling/client/limits.h"

/* Prints a line about an error and exits with 2. */
__attribute__((format(printf, 1, 2), noreturn)) void option_refuse(const char *format, ...);

int option_number(const char *name, const char *text, int least, int most);
int option_seconds(const char *name, const char *text, int most); /* from 0 on */

/* Parses a number of bytes, or with K, M or G appended, of KiB, MiB or GiB. */
uint64_t option_size(const char *name, const char *text, uint64_t least);

/* Parses REQUESTS[:BURST], requests a second; without BURST, those of a second may come at once. 0: no limit. */
struct address_rate option_rate(const char *name, const char *text);

/* Returns whether it is the first of two words. */
bool option_either(const char *name, const char *text, const char *yes, const char *no);

#endif
