/* help.h - what --help prints. */
#ifndef GATLING_OPTIONS_HELP_H
#define GATLING_OPTIONS_HELP_H

#include <stdbool.h>

#include "gatling/options/row.h"

/* Prints the options, or the limits, to stdout. */
void help_print(const struct option_row *rows, bool limits);

#endif
