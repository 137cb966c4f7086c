/* help.h - what --help prints. */
#ifndef GATLING_OPTIONS_HELP_H
#define GATLING_OPTIONS_HELP_H

#include "gatling/options/row.h"

/* Prints the options to stdout, or those about a subject: "acme" or "limits". Any other text, or NULL, is none. */
void help_print(const struct option_row *rows, const char *subject);

#endif
