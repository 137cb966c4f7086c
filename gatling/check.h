/* check.h - gatling --check: what an owner may have got wrong in the files of his sites, told without serving them. */
#ifndef GATLING_CHECK_H
#define GATLING_CHECK_H

#include "gatling/options.h"

/* Looks at the rules and passwords of all sites, at the certificates, and for what is there but would not be served.
 * Each finding is a line on stdout. The exit status: 1 if there are any, or after a line on stderr about what could not
 * be looked at; else 0. */
int check(const struct options *options);

#endif
