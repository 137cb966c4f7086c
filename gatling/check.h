/* check.h - gatling --check: finds mistakes in the files of the sites without serving them. */
#ifndef GATLING_CHECK_H
#define GATLING_CHECK_H

#include "gatling/options/options.h"

/* Checks the rules and passwords of all sites and the certificates, and looks for files that would not be served.
 * Prints each finding in a line on stdout, or else "no mistakes". wrong: there was an error before. Returns the exit
 * status: 1 if there are findings, or after an error on stderr; otherwise 0. */
int check(const struct options *options, bool wrong);

/* Enters the chroot of the working directory, and becomes the user, as root, to see the files as the server will.
 * directory: room for the path of the root (PATH_MAX), which stays in use. Returns 0, or -1 after printing an error. */
int check_enter(const struct options *options, struct docroot *docroot, char *directory);

#endif
