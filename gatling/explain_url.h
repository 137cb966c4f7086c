/* explain_url.h - --explain URL: how a request would be answered, and which files say so. Nothing is served, and no
 * upstream is asked. */
#ifndef GATLING_EXPLAIN_URL_H
#define GATLING_EXPLAIN_URL_H

#include "gatling/options/options.h"

/* Prints it to stdout. Returns the exit status. */
int explain_url(const struct options *options);

#endif
